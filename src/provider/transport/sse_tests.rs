use proptest::prelude::*;

use super::*;

fn decode(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let mut out = Vec::new();
    let mut d = SseDecoder::default();
    for p in pieces {
        d.feed(p, |e| out.push(e)).unwrap();
    }
    out
}

fn event(name: &str, data: &str) -> SseEvent {
    SseEvent { name: name.into(), data: data.into() }
}

#[test]
fn p4_the_rules_of_the_standard() {
    let table: &[(&str, &[SseEvent])] = &[
        ("data: a\n\n", &[event("", "a")]),
        ("data:a\r\rdata: b\r\n\r\n", &[event("", "a"), event("", "b")]),
        ("\u{feff}data: a\n\n", &[event("", "a")]),
        ("data: a\n\u{feff}data: b\n\n", &[event("", "a")]),
        (": comment\ndata: a\n: more\ndata:  b\n\n", &[event("", "a\n b")]),
        ("event: x\ndata\n\n", &[event("x", "")]),
        ("event: x\n\ndata: a\n\n", &[event("", "a")]),
        ("id: 1\nretry: 5\nfoo: bar\ndata: a: b\n\n", &[event("", "a: b")]),
        ("data: a\n", &[]),
        ("data: a\n\ndata: cut", &[event("", "a")]),
        ("\n\n\n", &[]),
        ("data: \u{1f600}é\r\n\r\n", &[event("", "\u{1f600}é")]),
    ];
    for (text, want) in table {
        assert_eq!(decode(&[text.as_bytes()]), *want, "{text:?}");
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(decode(&single), *want, "{text:?} byte by byte");
    }
}

#[test]
fn p4_broken_utf8_is_replaced() {
    assert_eq!(decode(&[b"data: a\xff\xc3", b"\n\n"]), [event("", "a\u{fffd}\u{fffd}")]);
}

#[test]
fn p4_a_line_over_64_mb_is_refused() {
    let mut d = SseDecoder::default();
    let piece = vec![b'x'; 1024 * 1024];
    d.feed(b"data: ", |_| {}).unwrap();
    let mut fed = 0;
    let refused = loop {
        match d.feed(&piece, |_| {}) {
            Ok(()) => fed += 1,
            Err(e) => break e,
        }
        assert!(fed <= 64);
    };
    assert_eq!(refused, TooLarge);

    let mut d = SseDecoder::default();
    let mut line = b"data: ".to_vec();
    line.extend_from_slice(&piece);
    line.push(b'\n');
    let many = (0..80).try_for_each(|_| d.feed(&line, |_| {}));
    assert_eq!(many, Err(TooLarge), "many lines of one event");
}

const CASES: u32 = 1_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn p4_split_anywhere_is_the_same(
        text in "(data: [aé\u{1f600}]{0,3}|data|event: x|: c|\u{feff}|\r\n|\n|\r|\n\n|\r\n\r\n){0,16}",
        cuts in prop::collection::vec(0..80_usize, 0..6),
    ) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for c in cuts {
            pieces.push(&bytes[from..c]);
            from = c;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(decode(&[bytes]), decode(&pieces));
    }

    #[test]
    fn p4_any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = decode(&[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(whole, decode(&single));
    }
}
