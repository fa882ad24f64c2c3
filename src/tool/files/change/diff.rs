//! Unified differences: for the screen, for the approval dialog, and for the model when a file is stale.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};
use tiller_protocol::ChangeKind;
use tiller_protocol::tool::FileDiff;

use crate::output::human;

/// Time that one comparison may take; after that it is coarser.
const DEADLINE: Duration = Duration::from_millis(400);
/// Bytes of one file's difference on screen and in the store.
const SHOWN: usize = 256 * 1024;

/// A difference for the screen, and how many bytes of it were left out at the end.
#[derive(Debug)]
pub(crate) struct ShownDiff {
    pub file: FileDiff,
    pub cut: usize,
}

impl ShownDiff {
    /// As the approval dialog shows it: it says when it is not whole.
    pub(crate) fn preview(self) -> String {
        if self.cut == 0 {
            return self.file.diff;
        }
        let (FileDiff { diff, added, removed, .. }, cut) = (self.file, human(self.cut as u64));
        format!("{diff}[... {cut} more of this diff; +{added} -{removed} in all ...]\n")
    }
}

/// The difference of one file as the screen shows it: 3 lines of context, `a/` and `b/` names.
pub(crate) fn file(name: &str, kind: ChangeKind, before: &str, after: &str) -> ShownDiff {
    let diff = compare(before, after);
    let (mut added, mut removed) = (0u32, 0u32);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let text = unified(&diff, name, kind);
    let mut end = text.len();
    if end > SHOWN {
        end = text.floor_char_boundary(SHOWN);
        // A whole hunk, or else whole lines.
        let at = text[..end].rfind("\n@@").filter(|at| *at > SHOWN / 2).or_else(|| text[..end].rfind('\n'));
        end = at.map_or(end, |at| at + 1);
    }
    let file = FileDiff { path: name.to_owned(), kind, added, removed, diff: text[..end].to_owned() };
    ShownDiff { file, cut: text.len() - end }
}

fn compare<'a>(before: &'a str, after: &'a str) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().algorithm(Algorithm::Myers).timeout(DEADLINE).diff_lines(before, after)
}

fn unified(diff: &TextDiff<'_, '_, str>, name: &str, kind: ChangeKind) -> String {
    let old = if kind == ChangeKind::Added { "/dev/null".into() } else { format!("a/{name}") };
    let new = if kind == ChangeKind::Deleted { "/dev/null".into() } else { format!("b/{name}") };
    diff.unified_diff().context_radius(3).header(&old, &new).to_string()
}

/// For the model: at most `limit` bytes, whole lines.
pub(crate) fn brief(name: &str, before: &str, after: &str, limit: usize) -> String {
    let text = unified(&compare(before, after), name, ChangeKind::Modified);
    let text = crate::text::visible(&text);
    if text.len() <= limit {
        return text.into_owned();
    }
    let end = text.floor_char_boundary(limit);
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    format!("{}[... the rest of the diff is left out; read the file]\n", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_difference_is_cut_and_says_so() {
        let before: String = (0..40_000).map(|n| format!("line {n}\n")).collect();
        let shown = file("a", ChangeKind::Deleted, &before, "");
        assert_eq!((shown.file.removed, shown.file.added), (40_000, 0));
        assert!(shown.cut > 0 && shown.file.diff.len() <= SHOWN && shown.file.diff.ends_with('\n'));
        assert!(shown.preview().ends_with("more of this diff; +0 -40000 in all ...]\n"));
        assert_eq!(file("a", ChangeKind::Modified, "x\n", "y\n").cut, 0);
    }

    #[test]
    fn the_brief_form_ends_at_a_line() {
        let after: String = (0..4_000).map(|n| format!("line {n}\n")).collect();
        let text = brief("a", "", &after, 1_000);
        assert!(text.len() < 1_100 && text.contains("is left out; read the file]"), "{text}");
    }
}
