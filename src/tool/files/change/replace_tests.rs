use super::*;

fn run(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    replace("f", &MaskedText::plain(text), Ask { old, new, all }).map(|r| r.text)
}

#[test]
fn replaces_exactly() {
    let rows = [
        ("a b c", "b", "x", false, "a x c"),
        ("a b b", "b", "x", true, "a x x"),
        ("one\ntwo\n", "two\n", "", false, "one\n"),
        ("aaa", "aa", "b", false, "ba"),
        ("no end", "end", "end\n", false, "no end\n"),
        // Line ends of the place.
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false, "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", false, "a\r\nx\r\ny\r\n"),
        // Mixed: each place keeps its own.
        ("a\nb\r\nc\n", "b\nc", "x\ny", false, "a\nx\r\ny\n"),
        ("k\nk\r\n", "k\n", "v\nw\n", true, "v\nw\nv\r\nw\r\n"),
        // The needle ends before a line end that stays as it is.
        ("a\r\nb\r\nc", "a\nb", "z", false, "z\r\nc"),
        ("a\r\nb\r\nc", "\nb", "", false, "a\r\nc"),
        // Lines that stay keep their ends, and new ones end as those in whose place they come.
        ("a\nb\r\nc\nd\r\n", "a\nb\nc\nd\n", "a\nB\nc\nd\n", false, "a\nB\r\nc\nd\r\n"),
        ("a\nb\r\nc\n", "a\nb\nc\n", "b\nc\n", false, "b\r\nc\n"),
        ("a\nb\r\nc\n", "a\nb\nc\n", "a\nnew\nb\nc\nlast\n", false, "a\nnew\nb\r\nc\nlast\n"),
        // What is shown by a picture.
        ("x\0y\u{1b}[m", "x␀y␛", "␛x␀", false, "\u{1b}x\0[m"),
        // At the line ends themselves.
        ("a\r\nb\r\n", "a\r\n", "a\n", false, "a\nb\r\n"),
    ];
    for (text, old, new, all, want) in rows {
        assert_eq!(run(text, old, new, all).as_deref(), Ok(want), "{text:?} {old:?}");
    }
}

#[test]
fn says_where_it_is_not_unique() {
    let text = "x = 1\ny\nx = 1\nx = 1\n";
    let said = run(text, "x = 1", "z", false).unwrap_err();
    assert!(said.contains("3 times, at lines 1, 3, 4"), "{said}");
}

#[test]
fn shows_the_nearest_place() {
    let text = "fn one() {\n    first();\n}\n\nfn two(a: u32) {\n    second(a);\n}\n";
    let said = run(text, "fn two(b: u32) {\n    second(b);\n}", "x", false).unwrap_err();
    assert!(said.contains("lines 5-7:\nfn two(a: u32) {\n    second(a);\n}\n"), "{said}");
    assert!(said.contains("% similar"), "{said}");
}

#[test]
fn tells_white_space_and_numbers() {
    let text = "\tif a {\n\t\tb();\n\t}\n";
    let said = run(text, "    if a {\n        b();\n    }", "x", false).unwrap_err();
    assert!(said.contains("Only whitespace differs") && said.contains("lines 1-3:\n\tif a {"), "{said}");
    let said = run("alpha\nbeta\n", "1\talpha\n2\tbeta", "x", false).unwrap_err();
    assert!(said.contains("line numbers"), "{said}");
    let said = run("alpha\nbeta\n", "zzzz(qqq)", "x", false).unwrap_err();
    assert!(said.contains("The file has no similar text"), "{said}");
}

#[test]
fn refuses_what_is_no_change() {
    assert!(run("a", "", "b", false).is_err());
    assert!(run("a", "a", "a", false).is_err());
    assert!(run("a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n", false).unwrap_err().contains("changes nothing"));
}

proptest::proptest! {
    #[test]
    fn w13_nothing_outside_the_place_changes(
        before in "[ab\r\n]{0,20}", needle in "[xy\n]{1,6}", after in "[ab\r\n]{0,20}", new in "[z\n]{0,6}", crlf: bool,
    ) {
        let needle = format!("X{needle}X");
        let here = if crlf { needle.replace('\n', "\r\n") } else { needle.clone() };
        let text = format!("{before}{here}{after}");
        if let Ok(got) = replace("f", &MaskedText::plain(&text), Ask { old: &needle, new: &new, all: false }) {
            proptest::prop_assert!(got.text.starts_with(&before) && got.text.ends_with(&after));
            proptest::prop_assert_eq!(got.text.len() >= before.len() + after.len(), true);
        }
    }
}
