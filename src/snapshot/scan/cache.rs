//! The model on disk. It only saves time: without it files are read again.

use std::path::Path;

use tiller_fs::Attributes;

use crate::error::Result;
use crate::objects::id::{Id, Sort};
use crate::objects::object::Kind;
use crate::objects::place;
use crate::report::Reason;
use crate::scan::beside;
use crate::scan::disk::Stamp;
use crate::scan::model::{Content, Dir, Leaf, Node};
use crate::steps::Steps;

/// Changes with the format.
const MAGIC: &[u8] = b"tiller-cache-4\n";

/// Writes the model that belongs to a snapshot.
pub(crate) fn save(path: &Path, id: Id, model: &Dir, steps: &Steps) -> Result<()> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&id.0);
    put_dir(&mut out, model);
    let sum = Id::of(Sort::Content, &out);
    out.extend_from_slice(&sum.0);
    place::write_quick(path, &out, steps)
}

/// Reads it; `None` when there is no usable one.
pub(crate) fn load(path: &Path) -> Option<(Id, Dir)> {
    let data = std::fs::read(path).ok()?;
    let body = data.len().checked_sub(32)?;
    if Id::of(Sort::Content, &data[..body]).0 != data[body..] {
        return None;
    }
    let mut rest = data[..body].strip_prefix(MAGIC)?;
    let id = take_id(&mut rest)?;
    let dir = take_dir(&mut rest)?;
    rest.is_empty().then_some((id, dir))
}

fn put_num(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_num(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_stamp(out: &mut Vec<u8>, s: &Stamp) {
    put_num(out, s.size);
    out.extend_from_slice(&s.mtime.to_le_bytes());
    out.extend_from_slice(&s.ctime.to_le_bytes());
    put_num(out, s.ino);
    put_num(out, u64::from(s.mode));
}

fn put_id(out: &mut Vec<u8>, id: Option<&Id>) {
    out.push(u8::from(id.is_some()));
    out.extend_from_slice(id.map_or(&[], |i| &i.0));
}

fn put_dir(out: &mut Vec<u8>, dir: &Dir) {
    put_stamp(out, &dir.stamp);
    let bits = [dir.settled, dir.repository, dir.partial, dir.kept, dir.over];
    out.push(bits.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit)));
    put_id(out, dir.rules.as_ref());
    put_id(out, dir.id.as_ref());
    put_bytes(out, &dir.attributes.as_deref().map_or_else(Vec::new, beside::write_one));
    out.push(u8::from(dir.ignore.is_some()));
    if let Some((stamp, settled, text)) = &dir.ignore {
        put_stamp(out, stamp);
        out.push(u8::from(*settled));
        put_bytes(out, text);
    }
    put_num(out, dir.ignored.len() as u64);
    dir.ignored.iter().for_each(|name| put_bytes(out, name));
    put_num(out, dir.nodes.len() as u64);
    for (name, node) in &dir.nodes {
        put_bytes(out, name);
        match node {
            Node::Dir(inner) => {
                out.push(0);
                put_dir(out, inner);
            }
            Node::Leaf(leaf) => {
                out.push(if leaf.kind == Kind::Link { 2 } else { 1 });
                put_stamp(out, &leaf.stamp);
                out.push(u8::from(leaf.settled) | u8::from(leaf.ignored) << 1);
                let id = match &leaf.content {
                    Content::Known(id) => Some(id),
                    Content::Job(_) => None,
                };
                put_id(out, id);
                put_bytes(out, &leaf.attributes.as_deref().map_or_else(Vec::new, beside::write_one));
            }
            Node::Skip(stamp, reason) => {
                out.push(3);
                put_stamp(out, stamp);
                let place = Reason::ALL.iter().position(|(r, _)| r == reason).unwrap_or(0);
                out.push(u8::try_from(place).unwrap_or(0));
            }
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn take_num(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    take::<1>(rest).map(|[b]| b)
}

fn take_bytes(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(take_num(rest)?).ok()?;
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(head.to_vec())
}

fn take_stamp(rest: &mut &[u8]) -> Option<Stamp> {
    Some(Stamp {
        size: take_num(rest)?,
        mtime: take(rest).map(i64::from_le_bytes)?,
        ctime: take(rest).map(i64::from_le_bytes)?,
        ino: take_num(rest)?,
        mode: u32::try_from(take_num(rest)?).ok()?,
    })
}

fn take_id(rest: &mut &[u8]) -> Option<Id> {
    take(rest).map(Id)
}

fn take_some_id(rest: &mut &[u8]) -> Option<Option<Id>> {
    if take_byte(rest)? == 0 { Some(None) } else { take_id(rest).map(Some) }
}

fn take_attributes(rest: &mut &[u8]) -> Option<Option<Box<Attributes>>> {
    let attributes = beside::read_one(&take_bytes(rest)?);
    Some((!attributes.is_empty()).then(|| Box::new(attributes)))
}

fn take_dir(rest: &mut &[u8]) -> Option<Dir> {
    let stamp = take_stamp(rest)?;
    let bits = take_byte(rest)?;
    let (rules, id) = (take_some_id(rest)?, take_some_id(rest)?);
    let attributes = take_attributes(rest)?;
    let ignore = match take_byte(rest)? {
        0 => None,
        _ => Some((take_stamp(rest)?, take_byte(rest)? != 0, take_bytes(rest)?)),
    };
    let mut ignored = Vec::new();
    for _ in 0..take_num(rest)? {
        ignored.push(take_bytes(rest)?);
    }
    let count = usize::try_from(take_num(rest)?).ok()?;
    let mut nodes = Vec::with_capacity(count.min(rest.len()));
    for _ in 0..count {
        let name = take_bytes(rest)?;
        let node = match take_byte(rest)? {
            0 => Node::Dir(Box::new(take_dir(rest)?)),
            3 => {
                let stamp = take_stamp(rest)?;
                Node::Skip(stamp, Reason::ALL.get(usize::from(take_byte(rest)?))?.0)
            }
            kind => {
                let stamp = take_stamp(rest)?;
                let bits = take_byte(rest)?;
                let (settled, ignored) = (bits & 1 != 0, bits & 2 != 0);
                let content = Content::Known(take_some_id(rest)??);
                let kind = if kind == 2 { Kind::Link } else { Kind::File };
                let attributes = take_attributes(rest)?;
                Node::Leaf(Leaf { stamp, settled, kind, content, ignored, attributes })
            }
        };
        nodes.push((name, node));
    }
    let (settled, repository, partial) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
    let (kept, over) = (bits & 8 != 0, bits & 16 != 0);
    Some(Dir {
        nodes,
        stamp,
        settled,
        ignored,
        kept,
        over,
        rules,
        ignore,
        repository,
        partial,
        id,
        attributes,
    })
}
