use proptest::prelude::*;

use super::*;
use crate::role::Role;
use crate::{Line, Look, Wrap};

/// Whether a character must never appear in a drawn line.
fn foreign(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{ad}')
}

#[test]
fn u1_hostile_corpus_is_spelled_out() {
    let rows = [
        ("\x1b[2J\x1b]52;c;aGk=\x07", "\\x1b[2J\\x1b]52;c;aGk=\\x07"),
        ("a\u{202e}txt.exe", "a<U+202E>txt.exe"),
        ("zero\u{200b}width", "zero<U+200B>width"),
        ("\u{feff}bom", "<U+FEFF>bom"),
        ("x\u{9b}31m", "x<U+009B>31m"),
        ("tag\u{e0041}", "tag<U+E0041>"),
        ("cr\rover", "cr\\rover"),
        ("del\x7f\0", "del\\x7f\\x00"),
        ("no\u{a0}break", "no<U+00A0>break"),
        ("filler\u{3164}", "filler<U+3164>"),
        ("vs\u{fe0f}", "vs<U+FE0F>"),
        ("join\u{200d}ed", "join<U+200D>ed"),
        ("\u{643}\u{200d}\u{180e}", "\u{643}<U+200D><U+180E>"),
        ("ls\u{2028}sep", "ls<U+2028>sep"),
        ("braille\u{2800}", "braille<U+2800>"),
    ];
    for (raw, want) in rows {
        assert_eq!(plain(raw), want, "{raw:?}");
    }
}

#[test]
fn u9_writing_stays_as_it_is() {
    for text in [
        "naïve café",
        "e\u{301}te\u{301}",
        "日本語テキスト",
        "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️‍🔥 1️⃣",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "שלום עולם",
        "مرحبا",
        "क्‍ष",
        "ภาษาไทย",
        "한국어",
    ] {
        assert_eq!(plain(text), text);
    }
    let mut persian = Line::default();
    persian.push("می\u{200c}خواهم\u{a0}!", Look::of(Role::Text));
    assert_eq!(persian.text(), "می\u{200c}خواهم !");
}

#[test]
fn u9_piles_of_marks_are_cut() {
    let zalgo = format!("a{}", "\u{301}".repeat(40));
    let clean = plain(&zalgo);
    assert_eq!(clean.chars().filter(|c| *c == '\u{301}').count(), MARKS);
    assert!(clean.contains("<U+0301>"));
}

#[test]
fn marks_look_hostile_and_tabs_reach_their_stop() {
    let line = Line::strict("a\tb\x1b", Look::of(Role::Code), Wrap::Hard);
    assert_eq!(line.text(), "a   b\\x1b");
    assert_eq!(line.runs().last().map(|r| r.look.role), Some(Role::Hostile));
}

#[test]
fn bad_bytes_are_named() {
    assert_eq!(from_bytes(b"a\xff\xfeb"), "a\\xff\\xfeb");
    assert_eq!(lines("a\r\nb\n").collect::<Vec<_>>(), ["a", "b"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn u1_no_foreign_control_in_any_line(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = from_bytes(&bytes);
        for mode in [Mode::Prose, Mode::Strict] {
            let mut line = Line::new(Wrap::Word);
            if mode == Mode::Prose {
                line.push(&text, Look::of(Role::Text));
            } else {
                line.push_strict(&text, Look::of(Role::Text));
            }
            prop_assert!(!line.text().chars().any(foreign), "{:?}", line.text());
            prop_assert_eq!(line.runs().last().map_or(0, |r| r.end as usize), line.text().len());
        }
    }

    #[test]
    fn u1_no_foreign_control_from_odd_characters(
        text in "[a-z \\x00-\\x1f\\x7f-\\u{9f}\\u{200b}-\\u{206f}\\u{fe00}-\\u{fe0f}\\u{e0000}-\\u{e007f}👩\u{301}]{0,60}"
    ) {
        prop_assert!(!plain(&text).chars().any(foreign), "{:?}", plain(&text));
    }
}

/// Row U1 asks for ten million bytes in a quick run: half of them arbitrary, half sequences that terminals obey.
#[test]
#[ignore = "ten million bytes, about a minute in a debug build"]
fn u1_no_foreign_control_in_ten_million_bytes() {
    const BYTES: usize = 10_000_000;
    const PIECES: [&[u8]; 12] = [
        b"\x1b[",
        b"\x1b]52;c;",
        b"\x1bP",
        b"\x07",
        b"\x1b\\",
        b"\r",
        b"\x9b",
        b"\xc2\x9b",
        b"\xe2\x80\xae",
        b"\xe2\x81\xa6",
        b"\xf3\xa0\x81\x81",
        b"\xef\xbb\xbf",
    ];
    let mut seed = 0x5EED_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut done = 0;
    while done < BYTES {
        let mut bytes = Vec::new();
        while bytes.len() < 400 {
            match next() {
                n if n % 2 == 0 => bytes.extend_from_slice(PIECES[(n / 2) % PIECES.len()]),
                n => bytes.push((n >> 8) as u8),
            }
        }
        done += bytes.len();
        let text = from_bytes(&bytes);
        let mut prose = Line::new(Wrap::Word);
        prose.push(&text, Look::of(Role::Text));
        let mut strict = Line::new(Wrap::Hard);
        strict.push_strict(&text, Look::of(Role::Text));
        for line in [prose, strict] {
            assert!(!line.text().chars().any(foreign), "{bytes:?}: {:?}", line.text());
        }
    }
}
