//! The differences between two versions of a pack.

use std::io::Read;
use std::path::Path;

use super::contents::pin;

/// Bytes of a file that is compared line by line.
const LARGEST: u64 = 256 << 10;
/// Lines of the differences of one file that are shown.
const LINES: usize = 200;

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Changed,
    Removed,
}

impl ChangeKind {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    /// It is a program in the new version.
    pub executable: bool,
    /// Lines with `+`, `-` or a blank before them; empty where it is not text, or too large.
    pub diff: String,
}

/// What differs between two folders, by path.
///
/// # Errors
/// A sentence, when a file cannot be read.
pub fn changes(before: &Path, after: &Path) -> Result<Vec<Change>, String> {
    let (old, new) = (pin(before)?, pin(after)?);
    let mut all = Vec::new();
    for path in super::home::differing(&old, &new) {
        let was = old.iter().any(|file| file.path == path);
        let is = new.iter().find(|file| file.path == path);
        let kind = match (was, is) {
            (true, Some(_)) => ChangeKind::Changed,
            (false, _) => ChangeKind::Added,
            (true, None) => ChangeKind::Removed,
        };
        let diff = match (text(&before.join(&path), was), text(&after.join(&path), is.is_some())) {
            (Some(old), Some(new)) => diff(&old, &new),
            _ => String::new(),
        };
        all.push(Change { executable: is.is_some_and(|file| file.executable), path, kind, diff });
    }
    all.dedup_by(|a, b| a.path == b.path);
    Ok(all)
}

fn text(path: &Path, there: bool) -> Option<String> {
    if !there {
        return Some(String::new());
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LARGEST && !text.contains('\0')).then_some(text)
}

fn diff(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    let whole = diff.unified_diff().context_radius(2).to_string();
    let mut lines: Vec<&str> = whole.lines().take(LINES + 1).collect();
    if lines.len() > LINES {
        lines[LINES] = "(more lines differ)";
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
