use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::*;

fn whole_file_hunk(old: &[String], new: &[String]) -> Hunk {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
    let diff = TextDiff::from_slices(&old, &new);
    let lines = diff.iter_all_changes().map(|c| {
        let text = c.value().to_string();
        match c.tag() {
            ChangeTag::Equal => Line::Keep(text),
            ChangeTag::Delete => Line::Cut(text),
            ChangeTag::Insert => Line::Put(text),
        }
    });
    Hunk { lines: lines.collect(), ..Hunk::default() }
}

proptest! {
    /// A hunk that shows a whole file turns the old into the new, in the file's own line ends, and leaves
    /// its end as it was.
    #[test]
    fn w13_a_patch_gives_exactly_the_new_text(
        old in proptest::collection::vec("[a-c ]{0,3}x", 1..12),
        new in proptest::collection::vec("[a-c ]{0,3}x", 1..12),
        crlf: bool,
        open: bool,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| {
            let mut all = lines.join(end);
            if !open {
                all.push_str(end);
            }
            all
        };
        // A single line without an end has no style of its own.
        prop_assume!(!(open && old.len() == 1));
        prop_assert_eq!(apply("f", &MaskedText::plain(&text(&old)), &[whole_file_hunk(&old, &new)]).unwrap(), text(&new));
    }

    /// Lines outside a hunk keep every byte, whatever their ends are.
    #[test]
    fn w13_lines_outside_a_hunk_keep_their_bytes(
        before in "([a-c]{0,3}(\n|\r\n)){0,6}", after in "([a-c]{0,3}(\n|\r\n)){0,6}[a-c\r]{0,2}",
    ) {
        let text = format!("{before}unique mark\n{after}");
        let lines = vec![Line::Cut("unique mark".into()), Line::Put("new".into())];
        let got = apply("f", &MaskedText::plain(&text), &[Hunk { lines, ..Hunk::default() }]).unwrap();
        prop_assert_eq!(got, format!("{before}new\n{after}"));
    }
}
