//! Diffs of texts, and three-way merges.

use similar::TextDiff;

use crate::error::Result;
use crate::objects::object::{Entry, Kind};
use crate::shadow::Shadow;
use crate::view::compare::FileDiff;

/// Larger files are not compared line by line, in bytes.
const LARGEST: u64 = 2 << 20;

/// The change of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextChange {
    /// A unified diff without a file header, and the numbers of added and removed lines.
    Lines { diff: String, added: usize, removed: usize },
    /// Binary: sizes before and after, in bytes.
    Binary { before: u64, after: u64 },
}

impl Shadow {
    /// The lines of a file that changed.
    ///
    /// # Errors
    /// When a content cannot be read.
    pub fn text(&self, file: &FileDiff) -> Result<TextChange> {
        let some = |e: Option<Entry>| e.filter(|e| e.kind != Kind::Folder);
        let (before, after) = (some(file.before), some(file.after));
        let size = |e: Option<Entry>| e.map_or(Ok(0), |e| self.size(e.id));
        let (a, b) = (size(before)?, size(after)?);
        if a.max(b) <= LARGEST {
            let read = |e: Option<Entry>| e.map_or(Ok(Vec::new()), |e| self.content(e.id));
            if let (Ok(old), Ok(new)) = (String::from_utf8(read(before)?), String::from_utf8(read(after)?))
                && !old.contains('\0')
                && !new.contains('\0')
            {
                return Ok(lines(&old, &new));
            }
        }
        Ok(TextChange::Binary { before: a, after: b })
    }
}

fn lines(old: &str, new: &str) -> TextChange {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(500)).diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Insert => added += 1,
            similar::ChangeTag::Delete => removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    TextChange::Lines { diff: diff.unified_diff().to_string(), added, removed }
}

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    /// Both changes are merged.
    Clean(Vec<u8>),
    /// Both changed the same lines: with conflict markers around them.
    Conflict(Vec<u8>),
}

/// Merges two changes of one file, line by line.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> MergeResult {
    match diffy::merge_bytes(base, ours, theirs) {
        Ok(text) => MergeResult::Clean(text),
        Err(text) => MergeResult::Conflict(text),
    }
}
