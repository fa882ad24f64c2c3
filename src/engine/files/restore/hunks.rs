//! Applies hunks to exactly the text that they were made from, without fuzzy matching.

use diffy::{Line, Patch};

/// The text with these hunks, in any order. `None`: one does not match, or two overlap.
pub(crate) fn apply(text: &str, hunks: &[&str]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let sources: Vec<String> = hunks.iter().map(|h| bare(h)).collect::<Option<_>>()?;
    let patches: Vec<Patch<'_, str>> =
        sources.iter().map(|s| Patch::from_str(s).ok()).collect::<Option<_>>()?;
    let mut parts: Vec<_> = patches.iter().flat_map(Patch::hunks).collect();
    parts.sort_by_key(|h| h.old_range().start());
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for hunk in parts {
        let old = hunk.old_range();
        // A hunk that only adds names the line before it.
        let from = if old.is_empty() { old.start() } else { old.start().checked_sub(1)? };
        out.extend(lines.get(at..from)?.iter().copied());
        at = from;
        for line in hunk.lines() {
            match line {
                Line::Insert(new) => out.push_str(new),
                Line::Context(old) | Line::Delete(old) => {
                    if lines.get(at) != Some(old) {
                        return None;
                    }
                    if matches!(line, Line::Context(_)) {
                        out.push_str(old);
                    }
                    at += 1;
                }
            }
        }
    }
    out.extend(lines.get(at..)?.iter().copied());
    Some(out)
}

/// The hunk with a generated header: names in the original one may hold anything, and are not needed.
fn bare(hunk: &str) -> Option<String> {
    let from = if hunk.starts_with("@@ ") { 0 } else { hunk.find("\n@@ ")? + 1 };
    Some(format!("--- a\n+++ b\n{}", &hunk[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks_of(old: &str, new: &str) -> Vec<String> {
        let diff = diffy::create_patch(old, new).to_string();
        let mut out: Vec<String> = Vec::new();
        for line in diff.split_inclusive('\n') {
            match out.last_mut() {
                Some(hunk) if !line.starts_with("@@ ") => hunk.push_str(line),
                _ if line.starts_with("@@ ") => out.push(line.to_owned()),
                _ => {}
            }
        }
        out
    }

    fn of(n: std::ops::Range<usize>, change: impl Fn(usize) -> Option<String>) -> String {
        n.filter_map(|i| change(i).map(|l| l + "\n")).collect()
    }

    #[test]
    fn each_choice_of_hunks_gives_that_part_and_no_other() {
        // Three equal blocks, so that a search for the place could find a wrong one.
        let old = of(0..60, |i| Some(format!("line {}", i % 20)));
        let new = of(0..60, |i| match i {
            5 => None,
            25 => Some("second\nand more".into()),
            45 => Some("third".into()),
            _ => Some(format!("line {}", i % 20)),
        });
        let hunks = hunks_of(&old, &new);
        assert_eq!(hunks.len(), 3, "{hunks:?}");
        for choice in 0..8_usize {
            let chosen = |n: usize| choice & (1 << n) != 0;
            let want = of(0..60, |i| match i {
                5 if chosen(0) => None,
                25 if chosen(1) => Some("second\nand more".into()),
                45 if chosen(2) => Some("third".into()),
                _ => Some(format!("line {}", i % 20)),
            });
            // Given last first: their order does not matter.
            let some: Vec<&str> = (0..3).rev().filter(|n| chosen(*n)).map(|n| hunks[n].as_str()).collect();
            assert_eq!(apply(&old, &some).as_deref(), Some(want.as_str()), "{choice}");
        }
    }

    #[test]
    fn ends_without_a_newline_empty_texts_and_foreign_names_are_exact() {
        for (old, new) in
            [("a\nb", "a\nc"), ("a\nb", "a\nb\n"), ("", "x\ny"), ("x\n", ""), ("a\r\nb\r\n", "a\r\nc\r\n")]
        {
            let hunks = hunks_of(old, new);
            let all: Vec<&str> = hunks.iter().map(String::as_str).collect();
            assert_eq!(apply(old, &all).as_deref(), Some(new), "{old:?}");
        }
        assert_eq!(
            apply("a\n", &["--- a/x\ty\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n"]).as_deref(),
            Some("b\n")
        );
    }

    #[test]
    fn what_does_not_stand_there_is_refused() {
        let hunk = "@@ -2,1 +2,1 @@\n-b\n+B\n";
        assert_eq!(apply("x\na\nb\n", &[hunk]), None, "no search: it would be one line lower");
        assert_eq!(apply("a\nb\n", &[hunk, hunk]), None, "twice");
        assert_eq!(apply("a\n", &[hunk]), None, "shorter");
        assert_eq!(apply("a\nb\n", &["no hunk"]), None);
        assert_eq!(apply("a\nb\n", &["@@ -2,9 +2,1 @@\n-b\n+B\n"]), None, "a wrong count");
    }
}
