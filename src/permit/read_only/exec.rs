//! Words that a program gets through `find -exec`: `find src -name '*.rs' -exec wc -l {} +`.

use std::path::PathBuf;

use super::xargs;
use crate::paths::Roots;
use tiller_shell::{Analysis, Part, Role};

/// Programs that add names of files to the words of another one.
pub(super) const ADDS_NAMES: &[&str] = &["find", "gfind", "fd", "fdfind"];

/// True for a part whose words come from `find -exec`.
pub(super) fn is_run_by_find(part: &Part) -> bool {
    part.role == Role::Command && part.wrappers.last().is_some_and(|w| w == "find")
}

/// `Some` when the part at this place gets plain names of files of the workspace.
pub(super) fn file_names(analysis: &Analysis, at: usize, roots: &Roots, folders: &[PathBuf]) -> Option<()> {
    let part = analysis.parts.get(at)?;
    let around = part.wrappers.split_last()?.1;
    let before = analysis.parts.get(..at)?;
    let find = before.iter().rev().find(|p| p.base() == "find" && p.wrappers == around)?;
    // Only `-exec` runs where find itself runs.
    let other = |w: &&str| matches!(*w, "-execdir" | "-ok" | "-okdir");
    if find.args().iter().map(|w| w.text.as_str()).any(|w| other(&w)) {
        return None;
    }
    // Links are what it looks for, and a link made meanwhile leads anywhere.
    if find.args().windows(2).any(|pair| pair[0].text == "-type" && pair[1].text.contains('l')) {
        return None;
    }
    let starts = find.args().iter().take_while(|w| !w.text.starts_with(['-', '!', '('])).collect();
    xargs::plain_below(starts, roots, folders)
}
