use super::document::{Document, Entry, FindError};
use super::merge::merge;

const FILE: &str = "# About\r\n\r\nSome words.\r\n- 2026-11-01: one\r\n  more of it\r\n\r\n- two\r\n```\r\n- code\r\n```\r\n\
                    \r\n## Archive\r\n\r\n* 2025-01-01: old\r\n";

fn entries(doc: &Document) -> Vec<String> {
    doc.entries().map(|e| format!("{}{}", if e.archived { "archive " } else { "" }, e.line())).collect()
}

#[test]
fn a_file_is_taken_apart_and_comes_back_byte_for_byte() {
    let doc = Document::parse(FILE);
    assert_eq!(doc.render(), FILE);
    assert_eq!(entries(&doc), ["2026-11-01: one\nmore of it", "two", "archive 2025-01-01: old"]);
    for text in [
        "",
        "\u{feff}- a",
        "no entries",
        "- \n",
        "---\n- - -\n",
        "- a\n\n\n\n  - b\n",
        "## archive\n- x\n# B\n- y",
    ] {
        assert_eq!(Document::parse(text).render(), text, "{text:?}");
    }
    let closed = Document::parse("## Archive\n- x\n### Deeper\n- z\n# B\n- y\n");
    assert_eq!(entries(&closed), ["archive x", "archive z", "y"]);
    assert_eq!(Document::parse("- - -\n* * *\n").entries().count(), 0, "rules are no entries");
}

/// A mark of a code block that nothing closes hides no entry, and one below an item ends with the item.
#[test]
fn only_what_stands_in_a_code_block_is_no_entry() {
    for (text, expected) in [
        ("- a\n\n```\n- code\n```\n- b\n", vec!["a", "b"]),
        ("```\nnever closed\n\n- a\n- b\n", vec!["a", "b"]),
        ("````\n```\n- code\n```\n- code\n````\n- a\n", vec!["a"]),
        ("```rust\n- code\n~~~\n- code\n``` x\n- code\n```\n- a\n", vec!["a"]),
        ("```one line``` of code\n- a\n```\n- code\n```\n", vec!["a"]),
        // An empty line ends an entry, and the block goes on.
        ("- a\n  ```\n  x\n\n  y\n  ```\n- b\n- c\n", vec!["a\n```\nx", "b", "c"]),
        ("- a\n\n  ```\n  x\n- b\n\n```\n- code\n```\n- c\n", vec!["a", "b", "c"]),
        ("- a\n  ~~~\n- b\n  ~~~\n- c\n", vec!["a\n~~~", "b\n~~~", "c"]),
        ("```\n## Archive\n```\n- a\n```\n## Archive\n- b\n", vec!["a", "archive b"]),
    ] {
        assert_eq!(entries(&Document::parse(text)), expected, "{text:?}");
        assert_eq!(Document::parse(text).render(), text);
    }
    // What is added is an entry, wherever a mark stands.
    for text in ["```\n", "- a\n```\nb", "~~~\n- a\n"] {
        let mut doc = Document::parse(text);
        doc.add(&Entry::new("", "new"), None);
        assert!(Document::parse(&doc.render()).entries().any(|e| e.text == "new"), "{text:?}");
    }
    // Many marks that nothing closes cost no more than the lines that they are in.
    let began = std::time::Instant::now();
    for line in ["```x\n", "- a\n  ```x\n", "  ~~~ y\n", "```x\n~~~y\n"] {
        let text = line.repeat((1 << 20) / line.len());
        assert_eq!(Document::parse(&text).render().len(), text.len());
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(90), "{:?}", began.elapsed());
}

#[test]
fn an_entry_is_added_behind_the_last_one_with_the_ends_of_lines_of_the_file() {
    let mut doc = Document::parse(FILE);
    doc.add(&Entry::new("2026-11-26", "three\n\n  deep"), None);
    assert!(doc.render().contains("- two\r\n- 2026-11-26: three\r\n  deep\r\n```"), "{}", doc.render());
    let again = Document::parse(&doc.render());
    assert_eq!(entries(&again), entries(&doc));
    for (before, after) in [
        ("", "- x\n"),
        ("words", "words\n\n- x\n"),
        ("words\n\n", "words\n\n- x\n"),
        ("- a", "- a\n- x\n"),
        ("## Archive\n- old\n", "- x\n\n## Archive\n- old\n"),
        ("# T\n\n## Archive\n", "# T\n\n- x\n\n## Archive\n"),
    ] {
        let mut doc = Document::parse(before);
        doc.add(&Entry::new("", "x"), None);
        assert_eq!(doc.render(), after, "{before:?}");
    }
}

#[test]
fn an_entry_goes_to_the_archive_and_back() {
    let mut doc = Document::parse("# T\n\n- a\n- b\n");
    let a = doc.find("a").unwrap();
    assert!(doc.archive(&a, true));
    assert_eq!(doc.render(), "# T\n\n- b\n\n## Archive\n\n- a\n");
    assert_eq!(doc.live_text(), "# T\n\n- b");
    let a = doc.find("a").unwrap();
    assert!(a.archived && doc.archive(&a, false));
    assert_eq!(entries(&doc), ["b", "a"]);
}

#[test]
fn an_entry_is_found_by_a_part_of_its_text() {
    let doc = Document::parse(
        "- 2026-01-02: Tabs in Makefiles\n- tabs everywhere\n- last\n## Archive\n- last one\n",
    );
    assert_eq!(doc.find("makefiles").unwrap().text, "Tabs in Makefiles");
    assert_eq!(doc.find("tabs"), Err(FindError::Several(2)));
    assert!(!doc.find("last").unwrap().archived);
    assert!(doc.find("last one").unwrap().archived);
    assert_eq!(doc.find("2026-01-02: Tabs in Makefiles").unwrap().date, "2026-01-02");
    assert_eq!(doc.find("nothing"), Err(FindError::Nothing));
    assert_eq!(doc.find(" "), Err(FindError::Nothing));
}

#[test]
fn changes_of_both_sides_are_merged_by_entry() {
    let base = Document::parse("# T\n- a\n- b\n- c\n");
    for (mine, theirs, merged) in [
        ("# T\n- a\n- b\n- c\n- m\n", "# T2\n- a\n- b\n- t\n- c\n", "# T2\n- a\n- b\n- t\n- c\n- m\n"),
        ("# T\n- a\n- c\n", "# T\n- a\n- b\n", "# T\n- a\n"),
        // Both changed b: both are there.
        ("# T\n- a\n- b mine\n- c\n", "# T\n- a\n- b theirs\n- c\n", "# T\n- a\n- b mine\n- b theirs\n- c\n"),
        // The same entry of both is one.
        ("# T\n- a\n- b\n- c\n- x\n", "# T\n- a\n- b\n- c\n- x\n", "# T\n- a\n- b\n- c\n- x\n"),
        // Deleted there, unchanged here: it stays deleted.
        ("# T\n- a\n- b\n- c\n- m\n", "words\n", "words\n\n- m\n"),
    ] {
        let out = merge(&base, &Document::parse(mine), &Document::parse(theirs));
        assert_eq!(out.render(), merged, "{mine:?} and {theirs:?}");
    }
    assert_eq!(merge(&base, &base, &Document::parse(FILE)).render(), FILE);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_comes_back_byte_for_byte(text in "(?s)[-*# a`\\t\\r\\n\u{feff}1:~]{0,80}") {
            prop_assert_eq!(Document::parse(&text).render(), text);
        }

        #[test]
        fn no_added_entry_is_lost(
            base in prop::collection::vec("[a-d]", 0..6),
            mine in prop::collection::vec("[a-h]", 0..8),
            theirs in prop::collection::vec("[a-d,s-z]", 0..8),
        ) {
            let doc = |list: &[String]| Document::parse(&list.iter().map(|e| format!("- {e}\n")).collect::<String>());
            let (b, m, t) = (doc(&base), doc(&mine), doc(&theirs));
            let out = merge(&b, &m, &t);
            for entry in m.entries().filter(|e| !b.contains(e)) {
                prop_assert!(out.contains(entry), "mine {:?}", entry);
            }
            for entry in t.entries().filter(|e| !b.contains(e)) {
                prop_assert!(out.contains(entry), "theirs {:?}", entry);
            }
            prop_assert_eq!(merge(&b, &b, &t).render(), t.render());
            prop_assert_eq!(Document::parse(&out.render()), out);
        }

        #[test]
        fn what_is_written_is_read_back(text in "(?s)[-*# a`b\\n:1]{1,40}", date in "(2026-11-26)?") {
            let entry = Entry::new(&date, &text);
            // Without a letter or digit it may be a horizontal rule; such text is refused.
            prop_assume!(entry.text.lines().next().is_some_and(|l| l.chars().any(char::is_alphanumeric)));
            let mut doc = Document::parse("- x\n");
            doc.add(&entry, None);
            let again = Document::parse(&doc.render());
            let read: Vec<_> = again.entries().map(Entry::line).collect();
            prop_assert_eq!(read.len(), 2);
            prop_assert_eq!(&read[1], &entry.line());
        }
    }
}
