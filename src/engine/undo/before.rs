//! Files before a turn, for its review: kept in memory up to a budget, for this process only. Turns of earlier
//! processes, and those that exceeded the budget, are reviewed by the differences that their calls showed.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_fs::beneath;
use tiller_protocol::mask::has_mask;
use tiller_protocol::tool::FileDiff;
use tiller_protocol::{ChangeKind, EntryId, OpId};
use tiller_tool::files::{Masks, comparable, decoded};

use crate::lock::lock;

/// Largest file that is kept or compared, in bytes.
const KEPT: u64 = 2 << 20;
/// Files of one turn whose state before it is kept.
const FILES: usize = 500;
/// Bytes that all turns of a session keep together; the oldest turns are dropped first.
const ALL: usize = 32 << 20;
/// Most turns that are remembered as dropped.
const GONE: usize = 10_000;
/// Bytes of one file's difference.
const DIFF: usize = 1 << 20;
/// Time limit of one difference; after it a coarser but correct one is made.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A file's path relative to the workspace, and the difference that a rejection made.
pub(crate) type RejectedDiff = (String, String);

/// Contents by path relative to the workspace. `None`: the file did not exist.
pub(crate) type FilesBefore = HashMap<String, Option<Arc<[u8]>>>;

/// Files before each turn, and the last rejection.
#[derive(Default)]
pub(crate) struct Reviews {
    /// Oldest first.
    turns: Vec<(EntryId, FilesBefore)>,
    bytes: usize,
    gone: HashSet<EntryId>,
    /// The differences that the last rejection of hunks made.
    pub(crate) undo: Vec<RejectedDiff>,
    /// The operation of the last rejection of whole files.
    pub(crate) whole: Option<OpId>,
}

impl Reviews {
    pub(crate) fn kept(&self, turn: EntryId) -> FilesBefore {
        self.turns.iter().find(|(t, _)| *t == turn).map(|(_, kept)| kept.clone()).unwrap_or_default()
    }

    /// Whether some of its files were dropped.
    pub(crate) fn forgot(&self, turn: EntryId) -> bool {
        self.gone.contains(&turn)
    }

    fn wants(&self, turn: EntryId, name: &str) -> bool {
        let kept = self.turns.iter().find(|(t, _)| *t == turn).map(|(_, kept)| kept);
        kept.is_none_or(|k| k.len() < FILES && !k.contains_key(name))
    }

    /// Keeps a file of a turn as it was, as far as there is room.
    pub(crate) fn remember(&mut self, turn: EntryId, name: String, was: Option<Arc<[u8]>>) {
        self.put(turn, name, was, ALL);
    }

    fn put(&mut self, turn: EntryId, name: String, was: Option<Arc<[u8]>>, all: usize) {
        if !self.wants(turn, &name) {
            return;
        }
        let size = was.as_ref().map_or(0, |b| b.len());
        while self.bytes + size > all && self.turns.first().is_some_and(|(t, _)| *t != turn) {
            let (old, kept) = self.turns.remove(0);
            self.bytes -= kept.values().flatten().map(|b| b.len()).sum::<usize>();
            self.forget(old);
        }
        if self.bytes + size > all {
            // This turn alone exceeds the budget.
            return self.forget(turn);
        }
        if !self.turns.iter().any(|(t, _)| *t == turn) {
            self.turns.push((turn, FilesBefore::new()));
        }
        if let Some((_, kept)) = self.turns.iter_mut().find(|(t, _)| *t == turn) {
            kept.insert(name, was);
            self.bytes += size;
        }
    }

    fn forget(&mut self, turn: EntryId) {
        if self.gone.len() < GONE {
            self.gone.insert(turn);
        }
    }
}

/// Keeps a file before a call of `turn` writes it. Reads it: blocks.
pub(crate) fn keep(reviews: &Mutex<Reviews>, turn: EntryId, root: &Path, path: &Path) {
    let Some(name) = relative(root, path) else { return };
    if !lock(reviews).wants(turn, &name) {
        return;
    }
    // Read without holding the lock.
    let was = match read(root, &name) {
        Ok(Some(bytes)) => Some(bytes.into()),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        _ => return,
    };
    lock(reviews).put(turn, name, was, ALL);
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(tiller_protocol::names::written(path.strip_prefix(root).ok()?))
}

/// The bytes of a regular file of the workspace; `None` when there are too many. A link on the way may lead to any file: none
/// is followed.
fn read(root: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = beneath::file_below(root, &tiller_protocol::names::path(name))?;
    if file.metadata()?.len() > KEPT {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(KEPT + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= KEPT).then_some(bytes))
}

/// How a file differs from what it was.
#[derive(Debug)]
pub(crate) enum Since {
    Same,
    Changed(FileDiff),
    /// Not compared, and why.
    TooLarge(&'static str),
}

/// The difference between a file before the turn and now.
pub(crate) fn since(root: &Path, path: &str, before: Option<&[u8]>) -> Since {
    let now = match read(root, path) {
        Ok(Some(bytes)) => Some(bytes),
        Ok(None) => return Since::TooLarge("it is too large to compare"),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(_) => return Since::TooLarge("it is no longer a file that can be read, or a link leads to it"),
    };
    let kind = match (before, &now) {
        (None, None) => return Since::Same,
        (Some(b), Some(n)) if b == n.as_slice() => return Since::Same,
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let Some((old, new)) = comparable(before, now.as_deref()) else {
        return Since::Changed(FileDiff {
            path: path.into(),
            kind,
            added: 0,
            removed: 0,
            diff: String::new(),
        });
    };
    let file = unified(path, kind, &old, &new);
    if file.diff.len() > DIFF {
        return Since::TooLarge("the difference is too large to show");
    }
    Since::Changed(file)
}

/// The lines that differ between two contents of a file, counted as [`since`] does; `None`: they are not text.
pub(crate) fn lines(
    path: &str,
    kind: ChangeKind,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Option<(u32, u32)> {
    let (old, new) = comparable(before, after)?;
    let file = unified(path, kind, &old, &new);
    Some((file.added, file.removed))
}

/// Whether masks in a hunk are text of the file (the hunk was made from the kept bytes) or stand for values that the
/// record does not hold. `kept`: the state before the turn, as in [`FilesBefore`].
pub(crate) fn masks(kept: Option<&Option<Arc<[u8]>>>, hunk: &str) -> Masks {
    let Some(was) = kept else { return Masks::Value };
    let was = was.as_deref().and_then(decoded).unwrap_or_default();
    let known: HashSet<&str> = was.lines().collect();
    let mut old = hunk.lines().filter_map(|l| l.strip_prefix(['-', ' '])).filter(|l| has_mask(l));
    if old.all(|l| known.contains(l)) { Masks::Text } else { Masks::Value }
}

/// A unified difference with three lines of context.
pub(crate) fn unified(path: &str, kind: ChangeKind, old: &str, new: &str) -> FileDiff {
    let diff = similar::TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for c in diff.iter_all_changes() {
        match c.tag() {
            similar::ChangeTag::Insert => added += 1,
            similar::ChangeTag::Delete => removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    let (a, b) = (format!("a/{path}"), format!("b/{path}"));
    let diff = diff.unified_diff().context_radius(3).header(&a, &b).to_string();
    FileDiff { path: path.into(), kind, added, removed, diff }
}

/// Copies a file to our own folder before it is changed. A missing file needs no copy.
pub(crate) fn save_copy(folder: &Path, root: &Path, name: &str) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    // A missing file, a link or a large file: the reverse patch reports it.
    let Ok(file) = beneath::file_below(root, &tiller_protocol::names::path(name)) else { return Ok(()) };
    let mut bytes = Vec::new();
    file.take(tiller_snapshot::NAMED_BYTES + 1).read_to_end(&mut bytes)?;
    // No larger file is changed.
    if bytes.len() as u64 > tiller_snapshot::NAMED_BYTES {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let hash = blake3::hash(&bytes).to_hex();
    let flat: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).take(80).collect();
    let file = folder.join(format!("{flat}.{}", &hash.as_str()[..16]));
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut f) => f.write_all(&bytes).and_then(|()| f.sync_all()),
        // The same content was copied before.
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
#[path = "before_tests.rs"]
mod tests;
