use proptest::prelude::*;

use super::*;

fn opts(columns: usize) -> Opts {
    Opts { columns, ascii: true, tables_as_text: false }
}

/// The rows as a person sees them.
fn shown(stack: &Stack) -> String {
    let mut out = String::new();
    for n in 0..stack.rows() {
        let (_, line, row) = stack.row(n).unwrap();
        let gutter = if row.is_first() { &line.first } else { &line.rest };
        out.push_str(&gutter.text);
        out.push_str(&line.text()[row.start as usize..row.end as usize]);
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
    out
}

fn view(source: &str, columns: usize) -> String {
    shown(Doc::parse(source, opts(columns)).stack())
}

const SAMPLE: &str = include_str!("sample.md");

#[test]
fn sample_at_80() {
    insta::assert_snapshot!(view(SAMPLE, 80));
}

#[test]
fn sample_at_40_has_tables_as_text() {
    insta::assert_snapshot!(view(SAMPLE, 40));
}

#[test]
fn one_numbering_of_ones_counts_on() {
    assert_eq!(view("1. a\n1. b\n1. c\n", 40), "1. a\n2. b\n3. c\n");
    assert_eq!(view("3) a\n\n4) b\n", 40), "3) a\n\n4) b\n");
}

#[test]
fn definitions_are_shown_as_they_stand() {
    assert_eq!(view("see [x][1]\n\n[1]: http://h/p\n", 40), "see [x][1]\n\n[1]: http://h/p\n");
}

#[test]
fn u1_hostile_markdown_is_spelled_out() {
    let text = view("a\x1b[31mred `c\u{202e}` [t](http://x\u{200b}y)\n\n```\n\x1b]0;t\x07\n```\n", 60);
    assert_eq!(text, "a\\x1b[31mred c<U+202E> t (http://x<U+200B>y)\n\n  \\x1b]0;t\\x07\n");
}

/// Streams `source` in pieces and compares with all at once.
fn streamed(source: &str, cuts: &[usize]) {
    let mut doc = Doc::new(opts(50));
    let mut ends: Vec<usize> =
        cuts.iter().map(|c| c % (source.len() + 1)).filter(|c| source.is_char_boundary(*c)).collect();
    ends.sort_unstable();
    for end in ends {
        doc.update(&source[..end], false);
        // Each intermediate state equals the layout of that much source in one piece.
        let mut fresh = Doc::new(opts(50));
        fresh.update(&source[..end], false);
        assert_eq!(shown(doc.stack()), shown(fresh.stack()), "up to {end}");
    }
    doc.update(source, true);
    assert_eq!(shown(doc.stack()), view(source, 50), "{source:?}");
}

#[test]
fn marks_count_as_closed_only_while_the_reply_grows() {
    let mut doc = Doc::new(opts(50));
    doc.update("- a **bold", false);
    assert_eq!(shown(doc.stack()), "- a bold\n");
    doc.update("- a **bold `co", false);
    assert_eq!(shown(doc.stack()), "- a bold co\n");
    doc.update("- a **bold `co", true);
    assert_eq!(shown(doc.stack()), "- a **bold `co\n", "it was cut off, and is shown as it stands");
}

#[test]
fn the_sample_streams_byte_by_byte() {
    let cuts: Vec<usize> = (0..=SAMPLE.len()).collect();
    streamed(SAMPLE, &cuts);
}

#[test]
fn p7_a_paragraph_without_end_is_cut_and_stays_the_same() {
    let long = "word ".repeat(20_000);
    let list = format!("intro\n\n- item {long}\n- next\n\n```\n{}\n```\nafter\n", "x".repeat(80_000));
    for source in [long.clone(), list, format!("> {long}\n\nend"), "y".repeat(150_000)] {
        let at_once = view(&source, 50);
        let mut doc = Doc::new(opts(50));
        let begun = std::time::Instant::now();
        let mut end = 0;
        while end < source.len() {
            end = (end + 4_999).min(source.len());
            doc.update(&source[..end], false);
        }
        doc.update(&source, true);
        assert!(begun.elapsed().as_secs() < 90, "it grows with the square of the length");
        assert!(shown(doc.stack()) == at_once, "streamed and at once differ");
        assert!(doc.stack().sheets() > 1, "it was cut");
    }
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("- item\n".to_owned()),
        Just("  - nested\n".to_owned()),
        Just("1. one\n".to_owned()),
        Just("   more\n".to_owned()),
        Just("    four\n".to_owned()),
        Just("> quote\n".to_owned()),
        Just("```rust\n".to_owned()),
        Just("```\n".to_owned()),
        Just("~~~\n".to_owned()),
        Just("# head\n".to_owned()),
        Just("---\n".to_owned()),
        Just("===\n".to_owned()),
        Just("| a | b |\n".to_owned()),
        Just("|---|:-:|\n".to_owned()),
        Just("[r]: http://u\n".to_owned()),
        Just("\"title\"\n".to_owned()),
        Just("[^1]: note\n".to_owned()),
        Just("<div>\n".to_owned()),
        Just("<!-- c\n".to_owned()),
        Just("-->\n".to_owned()),
        Just("* * *\n".to_owned()),
        Just("**bold** `code` [l](u)\n".to_owned()),
        Just("text".to_owned()),
        Just("日本 👍\n".to_owned()),
        "[a-z*_`>#|\\-\\[\\]() ]{1,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn streamed_in_any_split_equals_parsed_at_once(
        parts in proptest::collection::vec(fragment(), 0..24),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        streamed(&parts.concat(), &cuts);
    }
}

#[test]
fn code_in_a_list_is_coloured_once_when_it_is_closed() {
    let source =
        "- an item\n  ```rust\n  let a = 1;\n  ```\n  and\n  ```rust\n  let b = 2;\n  let c = 3;\n  ```\n";
    let opts = Opts { columns: 80, ascii: false, tables_as_text: false };
    let mut doc = Doc::new(opts);
    let mut orders = std::collections::BTreeSet::new();
    for end in 1..=source.len() {
        doc.update(&source[..end], end == source.len());
        for code in doc.stack().uncoloured() {
            orders.insert(code);
        }
    }
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), ["let a = 1;", "let b = 2;\nlet c = 3;"]);
}
