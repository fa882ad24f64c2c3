//! Paths in the workspace: bytes with slashes, relative to its root. Escaped in Tiller's own files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use tiller_protocol::names::is_temporary;

use crate::error::{Result, SnapshotError};
use crate::objects::object::is_git;

/// Prefix of Tiller's temporary names in the root of the workspace while a restore runs. No snapshot holds them, and a
/// watcher should ignore them.
pub const STAGING_PREFIX: &str = ".tiller-restore-";
pub(crate) const STAGING: &[u8] = STAGING_PREFIX.as_bytes();

/// Whether a name belongs to a temporary file of Tiller's in the workspace. No snapshot holds these.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    name.starts_with(STAGING) || is_temporary(name)
}

/// A name or path as one line of UTF-8.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for b in bytes {
        match b {
            b'%' | 0..=b' ' | 0x7f..=0xff => out.push_str(&format!("%{b:02X}")),
            _ => out.push(char::from(*b)),
        }
    }
    out
}

/// Reverses [`escape`]. `None`: malformed.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            let mut digit = || (rest.next()? as char).to_digit(16);
            out.push(u8::try_from(digit()? << 4 | digit()?).ok()?);
        } else {
            out.push(b);
        }
    }
    Some(out)
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// The parts of a relative path.
pub(crate) fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|b| *b == b'/').filter(|p| !p.is_empty())
}

/// The folder and the last name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// `folder/name`, where the folder may be the root.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut out = folder.to_vec();
    if !out.is_empty() {
        out.push(b'/');
    }
    out.extend_from_slice(name);
    out
}

/// Whether `path` is `folder` or below it. The root holds everything.
pub(crate) fn within(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// A path from a caller, absolute or relative, as bytes relative to `root`.
pub(crate) fn relative(root: &Path, named: &Path) -> Result<Vec<u8>> {
    let bad = || SnapshotError::Path { path: named.to_owned() };
    let inner = if named.is_absolute() { named.strip_prefix(root).map_err(|_| bad())? } else { named };
    let mut out = Vec::new();
    for part in inner.components() {
        match part {
            Component::Normal(name) if !is_git(name.as_bytes()) && !is_ours(name.as_bytes()) => {
                out = join(&out, name.as_bytes());
            }
            Component::CurDir => {}
            _ => return Err(bad()),
        }
    }
    Ok(out)
}
