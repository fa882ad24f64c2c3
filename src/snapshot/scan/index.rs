//! The paths that git tracks, read from a repository's index. No git runs; an unreadable index tracks nothing.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::scan::disk::Stamp;

/// Maximum size of an index that is read, in bytes: about two million files.
const MOST: u64 = 256 << 20;
/// Maximum bytes of a repository's configuration that are read.
const CONFIG: u64 = 1 << 20;
/// Size of an entry's times, device, inode, mode, owner and size, in bytes.
const STAT: usize = 40;
const TYPE: u32 = 0o170_000;
const LINK_TO_COMMIT: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;

/// The stamp of a repository's index; `None`: it has none.
pub(crate) fn stamp(git: &Path) -> Option<Stamp> {
    crate::scan::disk::look(rustix::fs::CWD, git.join("index").as_os_str().as_bytes()).ok().flatten()
}

/// The tracked files, relative to the work tree, sorted. `git` is the work tree's own git folder, `common` the one with
/// the configuration.
pub(crate) fn paths(git: &Path, common: &Path) -> Vec<Vec<u8>> {
    let hash = if is_sha256(common) { 32 } else { 20 };
    let Some((mut found, shared)) = read(&git.join("index")).and_then(|data| parse(&data, hash)) else {
        return Vec::new();
    };
    if let Some(id) = shared {
        // Paths of the shared index that this one removes are included: more is covered, never less.
        let path = git.join(format!("sharedindex.{id}"));
        found.extend(read(&path).and_then(|data| parse(&data, hash)).unwrap_or_default().0);
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let meta = path.symlink_metadata().ok().filter(|m| m.is_file() && m.len() <= MOST)?;
    let mut data = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    std::fs::File::open(path).ok()?.take(MOST).read_to_end(&mut data).ok()?;
    Some(data)
}

fn is_sha256(common: &Path) -> bool {
    let mut text = String::new();
    let file = std::fs::File::open(common.join("config"));
    let read = file.is_ok_and(|f| f.take(CONFIG).read_to_string(&mut text).is_ok());
    read && text.to_ascii_lowercase().lines().any(|line| {
        line.trim_start().strip_prefix("objectformat").is_some_and(|rest| rest.contains("sha256"))
    })
}

fn be32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

/// The paths of an index, and the id of the shared index that it extends.
fn parse(data: &[u8], hash: usize) -> Option<(Vec<Vec<u8>>, Option<String>)> {
    data.starts_with(b"DIRC").then_some(())?;
    let (version, count) = (be32(data, 4)?, be32(data, 8)?);
    (2..=4).contains(&version).then_some(())?;
    let body = data.get(..data.len().checked_sub(hash)?)?;
    let (mut at, mut name) = (12, Vec::new());
    let mut paths = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = be32(body, at + 24)?;
        at += STAT + hash;
        let flags = be16(body, at)?;
        at += 2;
        if version >= 3 && flags & EXTENDED != 0 {
            at += 2;
        }
        if version == 4 {
            let strip = varint(body, &mut at)?;
            name.truncate(name.len().checked_sub(strip)?);
        } else {
            name.clear();
        }
        let rest = body.get(at..)?;
        let known = usize::from(flags & LENGTH);
        let len = if version < 4 && known < usize::from(LENGTH) {
            known
        } else {
            rest.iter().position(|b| *b == 0)?
        };
        name.extend_from_slice(rest.get(..len)?);
        at += len;
        if version == 4 {
            at += 1;
        } else {
            // At least one zero byte, up to a multiple of eight.
            at = start + ((at - start) / 8 + 1) * 8;
        }
        // A submodule's commit and a folder of a sparse checkout are not files.
        if mode & TYPE != LINK_TO_COMMIT && is_path(&name) {
            paths.push(name.clone());
        }
    }
    let mut shared = None;
    while let (Some(kind), Some(len)) = (body.get(at..at + 4), be32(body, at + 4)) {
        if kind == b"link" {
            let id = body.get(at + 8..at + 8 + hash)?;
            shared = id.iter().any(|b| *b != 0).then(|| id.iter().map(|b| format!("{b:02x}")).collect());
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(len).ok()?)?;
    }
    Some((paths, shared))
}

/// Whether it is a valid path below a work tree, as git writes it.
fn is_path(name: &[u8]) -> bool {
    name.split(|b| *b == b'/').all(|part| {
        !part.is_empty() && part != b"." && part != b".." && !crate::objects::object::is_git(part)
    })
}

fn varint(data: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *data.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

/// The folder that a work tree's `.git` points to, and the folder that all its work trees share.
pub(crate) fn folders(work: &Path, git: &Path) -> (PathBuf, PathBuf) {
    let mut dir = git.to_owned();
    if git.is_file()
        && let Some(line) = crate::scan::rules::read(git).strip_prefix(b"gitdir:")
    {
        dir = work.join(std::ffi::OsStr::from_bytes(line.trim_ascii()));
    }
    let common = crate::scan::rules::read(&dir.join("commondir"));
    let common = dir.join(std::ffi::OsStr::from_bytes(common.trim_ascii()));
    (dir, common)
}
