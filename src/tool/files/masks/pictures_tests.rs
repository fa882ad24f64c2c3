use super::*;

fn put_back(written: &str, part: &str, file: &str) -> Option<String> {
    restore(written, part, file).ok().map(Cow::into_owned)
}

#[test]
fn positions_lead_back() {
    let text = "a\u{1b}[1m\r\nb\0\u{10feff}c\r\u{85}";
    let shown = Shown::of(text);
    assert_eq!(shown.text, "a␛[1m\r\nb␀\u{fffd}c␍\u{fffd}");
    for ((at, c), (real, r)) in shown.text.char_indices().zip(text.char_indices()) {
        assert_eq!(shown.real(at), real, "{c:?} {r:?}");
    }
    assert_eq!(shown.real(shown.text.len()), text.len());
    assert!(matches!(Shown::of("plain\r\n\t␛").text, Cow::Borrowed(_)));
}

#[test]
fn w20_pictures_become_what_they_show() {
    let (a, b) = ('\u{10fe81}', '\u{10fe90}');
    let file = format!("x\0y\n1{a}\n2{b}\n");
    // One character comes into question.
    assert_eq!(put_back("z␀", &file, &file).as_deref(), Some("z\0"));
    // A line stays, wherever it goes.
    assert_eq!(put_back("2\u{fffd}\nnew\n1\u{fffd}", &file, &file), Some(format!("2{b}\nnew\n1{a}")));
    // A line is changed in its place.
    assert_eq!(put_back("one\u{fffd}\n", &format!("1{a}\n"), &file), Some(format!("one{a}\n")));
    // A new line with one of two.
    assert_eq!(put_back("new\u{fffd}\nother\u{fffd}\u{fffd}\n", &format!("1{a}\n"), &file), None);
    // The file has none that is not shown.
    assert_eq!(put_back("␛ \u{fffd}", "plain", "plain ␛\n").as_deref(), Some("␛ \u{fffd}"));
    // It has the picture itself, too.
    let both = "p␛q\np\u{1b}r\n";
    assert_eq!(put_back("p␛r\np␛q\n", both, both).as_deref(), Some("p\u{1b}r\np␛q\n"));
    assert_eq!(put_back("new ␛\nsecond\n", "p␛q\np\u{1b}r\n", both), None);
}
