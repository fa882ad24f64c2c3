//! The changes since the last snapshot of the same document.

use similar::{ChangeTag, TextDiff};

use super::PageText;

/// The lines that were added (`+`) and removed (`-`); `None`: so much changed that the whole page is shorter or clearer.
/// An empty list: nothing changed.
pub(crate) fn difference(before: &PageText, now: &PageText) -> Option<Vec<String>> {
    if before.document != now.document {
        return None;
    }
    if before.lines == now.lines {
        return Some(Vec::new());
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.lines.iter().map(String::as_str).collect(), now.lines.iter().map(String::as_str).collect());
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(200)).diff_slices(&old, &new);
    let mut lines = Vec::new();
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {}
            ChangeTag::Delete => lines.push(format!("- {}", change.value())),
            ChangeTag::Insert => lines.push(format!("+ {}", change.value())),
        }
    }
    let size = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    (size(&lines) * 2 <= size(&now.lines).max(400)).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(document: u64, lines: &[&str]) -> PageText {
        PageText { document, lines: lines.iter().map(|l| (*l).to_owned()).collect(), ..PageText::default() }
    }

    #[test]
    fn a_small_change_is_told_by_its_lines_and_a_large_one_by_the_page() {
        let lines: Vec<String> = (0..40).map(|n| format!("e{n} button \"Number {n}\"")).collect();
        let all: Vec<&str> = lines.iter().map(String::as_str).collect();
        let before = page(1, &all);
        let mut changed = all.clone();
        changed[3] = "e3 button \"Pressed\" pressed";
        assert_eq!(
            difference(&before, &page(1, &changed)),
            Some(vec!["- e3 button \"Number 3\"".into(), "+ e3 button \"Pressed\" pressed".into()])
        );
        assert_eq!(difference(&before, &before), Some(vec![]));
        assert_eq!(difference(&before, &page(2, &all)), None, "another document");
        let other: Vec<String> = (0..40).map(|n| format!("e{n} link \"Other {n}\"")).collect();
        let other: Vec<&str> = other.iter().map(String::as_str).collect();
        assert_eq!(difference(&before, &page(1, &other)), None);
    }
}
