use super::*;

fn page(text: &str, start: Option<u64>, end: Option<u64>, limit: usize) -> String {
    match of_text(&MaskedText::plain(text), Range { start, end, byte: None }, limit) {
        Ok(page) => page.text,
        Err(e) => format!("error: {e}"),
    }
}

#[test]
fn lines_have_numbers_and_the_rest_is_named() {
    assert_eq!(page("a\nb\n", None, None, 100), "1\ta\n2\tb\n");
    assert_eq!(page("a\r\nb", None, None, 100), "1\ta\n2\tb\n[no newline at the end of the file]\n");
    assert_eq!(page("a\nb\nc\n", Some(2), Some(2), 100), "2\tb\n[lines 2-2 of 3]\n");
    assert_eq!(page("a\nb\nc\n", Some(2), Some(900), 100), "2\tb\n3\tc\n");
    assert_eq!(page("", None, None, 100), "[the file is empty]\n");
    assert_eq!(page("a\n", Some(2), None, 100), "error: there are only 1 lines");
    assert!(page("a\nb\n", Some(2), Some(1), 100).starts_with("error: the range"));
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let text: String = (1..=1000).map(|n| format!("row {n}\n")).collect();
    let (mut start, mut seen) = (Some(1), Vec::new());
    while let Some(at) = start {
        let got = page(&text, Some(at), None, 500);
        assert!(got.len() < 600);
        seen.extend(got.lines().filter_map(|l| l.split_once('\t')).map(|(_, l)| l.to_owned()));
        start = got.split("start=").nth(1).map(|s| s.trim_end_matches("]\n").parse().unwrap());
    }
    assert_eq!(seen.join("\n") + "\n", text);
}

#[test]
fn a_line_longer_than_a_page_goes_on_by_byte() {
    let text = format!("first\n{}\nlast\n", "ä".repeat(2000));
    let got = page(&text, Some(2), None, 1000);
    let mut byte: u64 = got.split("byte=").nth(1).unwrap().trim_end_matches("]\n").parse().unwrap();
    let mut whole = got.split_once('\t').unwrap().1.split('\n').next().unwrap().to_owned();
    loop {
        let got = of_text(&MaskedText::plain(&text), Range { byte: Some(byte), ..Range::default() }, 1000)
            .unwrap()
            .text;
        let (body, note) = got.rsplit_once("\n[bytes").unwrap();
        whole.push_str(body);
        let Some((_, next)) = note.split_once("byte=") else { break };
        byte = next.trim_end_matches("]\n").parse().unwrap();
    }
    assert_eq!(whole, format!("{}\nlast\n", "ä".repeat(2000)));
}
