use proptest::prelude::*;

use super::*;

fn controls(s: &str) -> usize {
    s.chars().filter(|c| c.is_control() && *c != '\n' && *c != '\t').count()
}

#[test]
fn t4_known_shapes() {
    let rows: &[(&[u8], &str)] = &[
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"10%\r50%\r100%\ndone", "100%\ndone"),
        (b"10%\r", "10%"),
        (b"abc\x08\x08X", "aX"),
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0;2;0\x1b\\x", "x"),
        (b"\x1b(Bx", "x"),
        ("\u{9b}31mx".as_bytes(), "x"),
        ("\u{9d}0;t\u{9c}x".as_bytes(), "x"),
        (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        (b"\xe2\x82", "\u{fffd}"),
        (b"a\0b\x7fc", "a␀bc"),
        // A title that never ends must not swallow the rest.
        (b"\x1b]0;never\nnext", "\nnext"),
        (b"\x1b[31\x1b[1mx", "x"),
        (b"\x1b]0;a\x1b[1mx", "x"),
    ];
    for (raw, want) in rows {
        assert_eq!(&clean(raw), want, "{raw:?}");
    }
}

#[test]
fn t4_a_long_string_ends_by_itself() {
    let mut raw = b"\x1b]52;c;".to_vec();
    raw.extend(vec![b'A'; STRING_MAX * 2]);
    assert!(clean(&raw).len() > STRING_MAX / 2);
}

#[test]
fn visible_shows_controls() {
    assert_eq!(visible("a\x1b[1m\r\n\u{85}\x7f"), "a␛[1m␍\n\u{fffd}␡");
    assert!(matches!(visible("plain\n\t"), Cow::Borrowed(_)));
}

#[test]
fn binary_is_told_from_text() {
    for text in [&b""[..], b"fn main() {}\n", b"\xff\xfeh\0i\0", "käse".as_bytes(), b"\x1b[1mlog\n"] {
        assert!(!is_binary(text), "{text:?}");
    }
    for raw in [&b"\x7fELF\x02\x01\x01\0\0"[..], b"\x89PNG\r\n\x1a\n\0", b"\x01\x02\x03\x04"] {
        assert!(is_binary(raw), "{raw:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn t4_no_control_byte_gets_through(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert_eq!(controls(&clean(&bytes)), 0);
        prop_assert_eq!(controls(&visible(&String::from_utf8_lossy(&bytes))), 0);
    }

    #[test]
    fn t4_pieces_give_the_same_as_the_whole(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b']'), Just(0xe2), Just(b'\r')], 0..200),
        cut in 0usize..200,
    ) {
        let cut = cut.min(bytes.len());
        let mut out = String::new();
        let mut c = Cleaner::default();
        c.push(&bytes[..cut], &mut out);
        c.push(&bytes[cut..], &mut out);
        c.finish(&mut out);
        prop_assert_eq!(out, clean(&bytes));
    }
}
