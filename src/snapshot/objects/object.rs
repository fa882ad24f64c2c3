//! Folders and snapshots in git's form: trees and commits.

use std::cmp::Ordering;

use crate::objects::id::{Id, Sort};

const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const FOLDER: u32 = 0o040_000;
const TYPE: u32 = 0o170_000;

/// The type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link; its content is its target.
    Link,
    /// A folder. As a state of a path: an empty one.
    Folder,
}

/// The state of one path in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub kind: Kind,
    /// Permission bits with sticky and set-ID bits (`0o7777` at most; 0 for links). Snapshots of an earlier version have
    /// `0o777` at most.
    pub mode: u32,
    /// Its content.
    pub id: Id,
}

impl Entry {
    /// The mode as git writes it. Unusual permissions are kept; git reads them as the nearest of its own.
    pub(crate) fn bits(self) -> u32 {
        match self.kind {
            Kind::File => FILE | self.mode,
            Kind::Link => LINK,
            Kind::Folder if self.mode == 0o755 => FOLDER,
            Kind::Folder => FOLDER | self.mode,
        }
    }

    pub(crate) fn from_bits(bits: u32, id: Id) -> Option<Self> {
        let (kind, mode) = match bits & TYPE {
            FILE => (Kind::File, bits & 0o7777),
            LINK => (Kind::Link, 0),
            FOLDER if bits & 0o7777 == 0 => (Kind::Folder, 0o755),
            FOLDER => (Kind::Folder, bits & 0o7777),
            _ => return None,
        };
        Some(Self { kind, mode, id })
    }
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) entry: Entry,
}

/// Git's order: a folder sorts as if its name ended with a slash.
pub(crate) fn order(a: (&[u8], Kind), b: (&[u8], Kind)) -> Ordering {
    let n = a.0.len().min(b.0.len());
    let end =
        |name: &[u8], kind: Kind| name.get(n).copied().unwrap_or(if kind == Kind::Folder { b'/' } else { 0 });
    a.0[..n].cmp(&b.0[..n]).then_with(|| end(a.0, a.1).cmp(&end(b.0, b.1)))
}

/// The bytes of a folder object. Sorts the names.
pub(crate) fn folder(names: &mut [FolderEntry]) -> Vec<u8> {
    names.sort_by(|a, b| order((&a.name, a.entry.kind), (&b.name, b.entry.kind)));
    let mut out = Vec::with_capacity(names.len() * 64);
    for n in names.iter() {
        out.extend_from_slice(format!("{:o} ", n.entry.bits()).as_bytes());
        out.extend_from_slice(&n.name);
        out.push(0);
        out.extend_from_slice(&n.entry.id.0);
    }
    out
}

/// Parses a folder; `None` when it is malformed, or has a name that must never reach a file system.
pub(crate) fn read_folder(mut data: &[u8]) -> Option<Vec<FolderEntry>> {
    let mut names = Vec::new();
    while !data.is_empty() {
        let space = data.iter().position(|b| *b == b' ')?;
        let bits = u32::from_str_radix(std::str::from_utf8(&data[..space]).ok()?, 8).ok()?;
        data = &data[space + 1..];
        let end = data.iter().position(|b| *b == 0)?;
        let name = data[..end].to_vec();
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || is_git(&name) {
            return None;
        }
        let entry = Entry::from_bits(bits, Id::from_slice(data.get(end + 1..end + 33)?)?)?;
        data = &data[end + 33..];
        names.push(FolderEntry { name, entry });
    }
    Some(names)
}

/// Whether the name is that of a git folder, also on file systems that ignore case.
pub(crate) fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// The bytes of a snapshot object. `notes` describes its coverage.
pub(crate) fn snapshot(tree: Id, millis: i64, notes: &str) -> Vec<u8> {
    let who = format!("Tiller <tiller> {} +0000", millis.div_euclid(1000));
    format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nsnapshot {millis}\n{notes}").into_bytes()
}

/// Parses a snapshot: its tree, its time and its notes.
pub(crate) fn read_snapshot(data: &[u8]) -> Option<(Id, i64, &str)> {
    let text = std::str::from_utf8(data).ok()?;
    let (head, body) = text.split_once("\n\n")?;
    let tree = head.lines().next()?.strip_prefix("tree ")?.parse().ok()?;
    let (first, notes) = body.split_once('\n')?;
    Some((tree, first.strip_prefix("snapshot ")?.parse().ok()?, notes))
}

/// The id of an empty folder.
pub(crate) fn empty_folder() -> Id {
    Id::of(Sort::Folder, &[])
}
