use crossterm::event::{MouseButton, MouseEventKind};
use proptest::prelude::*;

use super::*;
use crate::keymap::Chord;

fn all(bytes: &[u8]) -> Vec<Input> {
    let mut d = Decoder::default();
    let mut out = Vec::new();
    d.feed(bytes, &mut out);
    d.flush(&mut out);
    out
}

/// Short text of what came out.
fn shown(list: &[Input]) -> String {
    let one = |i: &Input| match i {
        Input::Key(k) => Chord::of(k).to_string(),
        Input::Mouse(m) => format!("{:?}@{},{}", m.kind, m.column, m.row),
        Input::Paste(p) => format!("paste:{p:?}"),
        other => format!("{other:?}"),
    };
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Sequences and what they mean; nothing when they are to be swallowed.
fn table() -> Vec<(Vec<u8>, String)> {
    let mut t: Vec<(Vec<u8>, String)> = Vec::new();
    let mut add = |b: &[u8], s: &str| t.push((b.to_vec(), s.into()));
    for (b, s) in [
        (&b"a"[..], "a"),
        (b"G", "G"),
        (b" ", "space"),
        (b"\r", "enter"),
        (b"\n", "ctrl-j"),
        (b"\t", "tab"),
        (b"\x7f", "backspace"),
        (b"\x08", "ctrl-h"),
        (b"\0", "ctrl-space"),
        (b"\x1c", "ctrl-\\"),
        (b"\x1d", "ctrl-]"),
        (b"\x1e", "ctrl-^"),
        (b"\x1f", "ctrl-_"),
        (b"\x1b", "esc"),
        (b"\x1b\x1b", "esc esc"),
        (b"\x1b\r", "alt-enter"),
        (b"\x1b\x7f", "alt-backspace"),
        (b"\x1b\x08", "ctrl-alt-h"),
        (b"\x1b1", "alt-1"),
        (b"\x1bX", "alt-shift-x"),
        (b"\x1b[", "alt-["),
        (b"\x1bO", "alt-shift-o"),
        (b"\x1b]", "alt-]"),
        (b"\x1bP", "alt-shift-p"),
        (b"\x1b]x", "alt-] x"),
        (b"\x1bPx", "alt-shift-p x"),
        ("ä".as_bytes(), "ä"),
        ("漢".as_bytes(), "漢"),
        ("\u{1f600}".as_bytes(), "\u{1f600}"),
        ("\x1bö".as_bytes(), "alt-ö"),
        (b"\xff\xfe", ""),
        (b"\xc2\x9b1A", "1 A"),
        (b"\x9b1A", "1 A"),
        (b"\x1b[Z", "shift-tab"),
        (b"\x1b[1;5Z", "ctrl-shift-tab"),
        (b"\x1b[I", "FocusGained"),
        (b"\x1b[O", "FocusLost"),
        (b"\x1bOM", "enter"),
        (b"\x1bOj", "*"),
        (b"\x1bOp", "0"),
        (b"\x1bOy", "9"),
        (b"\x1bO5P", "ctrl-f1"),
        (b"\x1b[[A", "f1"),
        (b"\x1b[[E", "f5"),
        (b"\x1b[[Z", ""),
        // kitty
        (b"\x1b[97u", "a"),
        (b"\x1b[97;5u", "ctrl-a"),
        (b"\x1b[97:65;6u", "ctrl-shift-a"),
        (b"\x1b[97;2u", "A"),
        (b"\x1b[13;5u", "ctrl-enter"),
        (b"\x1b[13;2u", "shift-enter"),
        (b"\x1b[27u", "esc"),
        (b"\x1b[9;5u", "ctrl-tab"),
        (b"\x1b[127;3u", "alt-backspace"),
        (b"\x1b[45:95;6u", "ctrl-_"),
        (b"\x1b[97;5:1u", "ctrl-a"),
        (b"\x1b[97;5:2u", "ctrl-a"),
        (b"\x1b[97;5:3u", ""),
        (b"\x1b[97;69u", "ctrl-a"),
        (b"\x1b[57399u", "0"),
        (b"\x1b[57414u", "enter"),
        (b"\x1b[57376u", "f13"),
        (b"\x1b[57441u", ""),
        (b"\x1b[57358u", ""),
        (b"\x1b[228u", "ä"),
        (b"\x1b[1114112u", ""),
        (b"\x1b[0u", ""),
        (b"\x1b[u", ""),
        (b"\x1b[?0u", "Fact(Keyboard(0))"),
        (b"\x1b[?5u", "Fact(Keyboard(5))"),
        // modifyOtherKeys
        (b"\x1b[27;5;13~", "ctrl-enter"),
        (b"\x1b[27;2;13~", "shift-enter"),
        (b"\x1b[27;5;105~", "ctrl-i"),
        (b"\x1b[27;6;95~", "ctrl-_"),
        // answers
        (b"\x1b[?1;2c", "Fact(Attributes { sixel: false })"),
        (b"\x1b[?62;c", "Fact(Attributes { sixel: false })"),
        (b"\x1b[?62;4;22c", "Fact(Attributes { sixel: true })"),
        (b"\x1b[?4c", "Fact(Attributes { sixel: false })"),
        (b"\x1b_Gi=7417;OK\x1b\\", "Fact(Pictures)"),
        (b"\x1b_Gi=7417;ENODATA: x\x1b\\", ""),
        (b"\x1b_Gi=1;OK\x1b\\", ""),
        (b"\x1b[>0;276;0c", ""),
        (b"\x1b[?2026;2$y", "Fact(Mode(2026, 2))"),
        (b"\x1b[?2004;0$y", "Fact(Mode(2004, 0))"),
        (b"\x1b[?997;1n", "Scheme { dark: true }"),
        (b"\x1b[?997;2n", "Scheme { dark: false }"),
        (b"\x1b[?997;3n", ""),
        (b"\x1b[0n", ""),
        (b"\x1b[12;40R", ""),
        (b"\x1b[1;1R", ""),
        (b"\x1b[R", "f3"),
        (b"\x1b[1;5R", "ctrl-f3"),
        (b"\x1b[8;24;80t", ""),
        (b"\x1b[48;24;80;480;640t", ""),
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", "Background(30, 30, 46)"),
        (b"\x1b]11;rgb:ff/ff/ff\x07", "Background(255, 255, 255)"),
        (b"\x1b]11;rgb:0/8/f\x07", "Background(0, 136, 255)"),
        (b"\x1b]11;rgba:0000/0000/0000/ffff\x07", "Background(0, 0, 0)"),
        (b"\x1b]11;#102030\x07", "Background(16, 32, 48)"),
        (b"\x1b]11;junk\x07", ""),
        (b"\x1b]10;rgb:ff/ff/ff\x07", ""),
        (b"\x1b]52;c;aGVsbG8=\x07", ""),
        (b"\x1b]4;0;rgb:00/00/00\x1b\\", ""),
        (b"\x1bP>|xterm(379)\x1b\\", ""),
        (b"\x1bP1+r524742\x1b\\", ""),
        (b"\x1bP1$r0m\x1b\\", ""),
        (b"\x1bP0$r\x1b\\", ""),
        (b"\x1bP1$r0;48:2::1:2:3m\x1b\\", "Fact(DirectColour(true))"),
        (b"\x1bP1$r48:2:1:2:3m\x1b\\", "Fact(DirectColour(true))"),
        (b"\x1bP1$r0;48:2:1:1:2:3m\x07", "Fact(DirectColour(true))"),
        (b"\x1bP1$r0;48;2;1;2;3m\x1b\\", "Fact(DirectColour(true))"),
        (b"\x1bP1$r0;1;48;2;1;2;3;4m\x1b\\", "Fact(DirectColour(true))"),
        (b"\x1bP1$r0;48:2::0:0:0m\x1b\\", "Fact(DirectColour(false))"),
        (b"\x1bP1$r0;48:5:16m\x1b\\", "Fact(DirectColour(false))"),
        (b"\x1bP1$r0;48;5;16m\x1b\\", "Fact(DirectColour(false))"),
        (b"\x1bP1$r2 q\x1b\\", ""),
        (b"\x1b_Gi=1;OK\x1b\\", ""),
        (b"\x1b]11;rgb:ff\x1b[A", "up"),
        (b"\x1b]11;rgb\x18a", "a"),
        (b"\x1b[12\x18a", "a"),
        (b"\x1b[1;\x1b[A", "up"),
        (b"\x1b[12\xc3\xa4", "ä"),
        // mouse
        (b"\x1b[<0;1;1M", "Down(Left)@0,0"),
        (b"\x1b[<0;12;7m", "Up(Left)@11,6"),
        (b"\x1b[<2;12;7M", "Down(Right)@11,6"),
        (b"\x1b[<32;5;5M", "Drag(Left)@4,4"),
        (b"\x1b[<35;5;5M", "Moved@4,4"),
        (b"\x1b[<64;5;5M", "ScrollUp@4,4"),
        (b"\x1b[<65;5;5M", "ScrollDown@4,4"),
        (b"\x1b[<66;5;5M", "ScrollLeft@4,4"),
        (b"\x1b[<128;5;5M", ""),
        (b"\x1b[<3;5;5M", ""),
        (b"\x1b[<0;0;0M", "Down(Left)@0,0"),
        (b"\x1b[<0;99999999999;5M", "Down(Left)@65535,4"),
        (b"\x1b[<0;5M", ""),
        (b"\x1b[<M", ""),
        (b"\x1b[M !!", ""),
        (b"\x1b[M\x1b[A", ""),
        // pastes
        (b"\x1b[200~hello\x1b[201~", "paste:\"hello\""),
        (b"\x1b[200~a\r\nb\rc\x1b[201~", "paste:\"a\\nb\\nc\""),
        (b"\x1b[200~\x1b[31mred\x1b[0m\x1b[201~", "paste:\"[31mred[0m\""),
        (b"\x1b[200~\x1b[201~", "paste:\"\""),
        (b"\x1b[200~a\x1b[201~rm -rf\r\x1b[201~", "paste:\"a\" paste:\"rm -rf\\n\""),
        (b"\x1b[200~a\x1b[201~\r", "paste:\"a\" paste:\"\\n\""),
        (b"\x1b[200~a\x1b[201~\x1b[A", "paste:\"a\" up"),
        (b"\x1b[201~", ""),
        (b"\x1b[200~\xff\x1b[20\x1b[201~", "paste:\"\u{fffd}[20\""),
        ("\x1b[200~漢\x1b[201~".as_bytes(), "paste:\"漢\""),
    ] {
        add(b, s);
    }
    for c in b'a'..=b'z' {
        if !matches!(c, b'i' | b'm' | b'j' | b'h') {
            add(&[c - 0x60], &format!("ctrl-{}", char::from(c)));
        }
        add(&[0x1b, c], &format!("alt-{}", char::from(c)));
    }
    let mods =
        ["", "", "shift-", "alt-", "alt-shift-", "ctrl-", "ctrl-shift-", "ctrl-alt-", "ctrl-alt-shift-"];
    let letters = [('A', "up"), ('B', "down"), ('C', "right"), ('D', "left"), ('H', "home"), ('F', "end")];
    for (c, name) in letters {
        add(format!("\x1b[{c}").as_bytes(), name);
        add(format!("\x1bO{c}").as_bytes(), name);
        for (n, m) in mods.iter().enumerate().skip(2) {
            add(format!("\x1b[1;{n}{c}").as_bytes(), &format!("{m}{name}"));
        }
    }
    let tilde =
        [(2, "insert"), (3, "delete"), (5, "pageup"), (6, "pagedown"), (1, "home"), (4, "end"), (7, "home")];
    for (n, name) in tilde {
        add(format!("\x1b[{n}~").as_bytes(), name);
        for (k, m) in mods.iter().enumerate().skip(2) {
            add(format!("\x1b[{n};{k}~").as_bytes(), &format!("{m}{name}"));
        }
    }
    let function =
        [(11, 1), (12, 2), (13, 3), (14, 4), (15, 5), (17, 6), (18, 7), (19, 8), (20, 9), (21, 10), (23, 11)];
    for (n, f) in
        function.into_iter().chain([(24, 12), (25, 13), (26, 14), (28, 15), (29, 16), (31, 17), (34, 20)])
    {
        add(format!("\x1b[{n}~").as_bytes(), &format!("f{f}"));
        for (k, m) in mods.iter().enumerate().skip(2).take(4) {
            add(format!("\x1b[{n};{k}~").as_bytes(), &format!("{m}f{f}"));
        }
    }
    for (c, f) in [('P', 1), ('Q', 2), ('R', 3), ('S', 4)] {
        add(format!("\x1bO{c}").as_bytes(), &format!("f{f}"));
        add(format!("\x1b[1;2{c}").as_bytes(), &format!("shift-f{f}"));
    }
    t
}

#[test]
fn u4_every_known_sequence_means_what_it_should() {
    let table = table();
    assert!(table.len() >= 300, "{}", table.len());
    for (bytes, want) in table {
        assert_eq!(shown(&all(&bytes)), want, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn u4_split_at_every_byte_gives_the_same() {
    for (bytes, _) in table() {
        let whole = all(&bytes);
        for cut in 1..bytes.len() {
            let mut d = Decoder::default();
            let mut out = Vec::new();
            d.feed(&bytes[..cut], &mut out);
            d.feed(&bytes[cut..], &mut out);
            d.flush(&mut out);
            assert_eq!(out, whole, "{:?} cut at {cut}", String::from_utf8_lossy(&bytes));
        }
        let mut d = Decoder::default();
        let mut out = Vec::new();
        for b in &bytes {
            d.feed(&[*b], &mut out);
        }
        d.flush(&mut out);
        assert_eq!(out, whole, "byte by byte {:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn u4_answers_never_become_keys() {
    // Any answer, followed by a key: only the key is a key.
    for (bytes, want) in table().into_iter().filter(|(b, _)| b.len() > 3) {
        if want.contains("Fact") || want.contains("Background") || want.contains("Scheme") {
            let mut both = bytes.clone();
            both.push(b'k');
            let keys = all(&both).into_iter().filter(|i| matches!(i, Input::Key(_))).count();
            assert_eq!(keys, 1, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
    let long = [b"\x1b]52;c;".as_slice(), &vec![b'A'; 100_000], b"\x07x"].concat();
    assert_eq!(shown(&all(&long)), "x");
    let long = [b"\x1bP1$r".as_slice(), &vec![b'A'; 1_000], b"\x1b\\x"].concat();
    assert_eq!(shown(&all(&long)), "x");
}

/// Replies to all that the program asks, as terminals give them.
const REPLIES: &[&[u8]] = &[
    b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    b"\x1b]11;rgb:ff/ff/ff\x07",
    b"\x1b]11;rgba:0000/0000/0000/ffff\x07",
    b"\x1b]11;#102030\x07",
    b"\x1b[?62;4;22c",
    b"\x1b[?1;2c",
    b"\x1b[?2026;2$y",
    b"\x1b[?69;0$y",
    b"\x1b[?997;1n",
    b"\x1b[?0u",
    b"\x1bP1$r0;48:2::1:2:3m\x1b\\",
    b"\x1bP0$r\x1b\\",
    b"\x1bP1$r0;48;2;1;2;3m\x07",
    b"\x1b_Gi=7417;OK\x1b\\",
    b"\x1b_Gi=7417;ENODATA: no picture, sorry\x1b\\",
    b"\x1b[<0;12;7M",
    b"\x1b[I",
    b"\x1b[O",
];

/// Feeds parts with so many pauses between two, each as long as the decoder waits.
fn with_pauses(d: &mut Decoder, parts: &[&[u8]], pauses: usize) -> Vec<Input> {
    let mut out = Vec::new();
    for part in parts {
        d.feed(part, &mut out);
        for _ in 0..pauses {
            if d.waiting() != DecoderWait::Nothing {
                d.flush(&mut out);
            }
        }
    }
    out
}

fn answered() -> Decoder {
    let mut d = Decoder::default();
    d.feed(b"\x1b[?1;2c", &mut Vec::new());
    d
}

fn characters(list: &[Input]) -> Vec<String> {
    let text = |i: &Input| match i {
        Input::Key(k) if paste::is_text(k) && Chord::of(k).text().is_some() => Some(Chord::of(k).to_string()),
        Input::Paste(text) => Some(text.clone()),
        _ => None,
    };
    list.iter().filter_map(text).collect()
}

#[test]
fn a_reply_that_is_cut_and_waited_for_in_vain_types_nothing() {
    for reply in REPLIES {
        let meaning = all(reply).into_iter().filter(|i| !matches!(i, Input::Key(_))).collect::<Vec<_>>();
        for cut in 1..reply.len() {
            for (pauses, mut d) in [(1, Decoder::default()), (4, Decoder::default()), (1, answered())] {
                let (head, tail) = reply.split_at(cut);
                let mut out = with_pauses(&mut d, &[head, tail], pauses);
                let why = format!("{:?} cut at {cut}: {}", String::from_utf8_lossy(reply), shown(&out));
                assert!(characters(&out).is_empty(), "{why}");
                assert!(meaning.iter().all(|m| out.contains(m)), "the reply still counts: {why}");
                out.clear();
                d.feed(b"k", &mut out);
                assert_eq!(shown(&out), "k", "the next key is a key: {why}");
            }
        }
        // Three parts: nothing is typed either, whatever the second one ends with. One byte alone, behind what was a key, may
        // be a key.
        for first in 1..reply.len() - 1 {
            for second in first + 1..reply.len() {
                let parts = [&reply[..first], &reply[first..second], &reply[second..]];
                let out = with_pauses(&mut answered(), &parts, 1);
                // `[` and then a letter is a word in brackets.
                let word = first == 1 && reply.len() == 3;
                let most = usize::from(first < 3 && second == first + 1) + usize::from(word);
                assert!(characters(&out).len() <= most, "{parts:?}: {}", shown(&out));
            }
        }
    }
}

#[test]
fn a_paste_whose_mark_is_cut_is_one_paste() {
    let whole = all(b"\x1b[200~one\rtwo\x1b[201~");
    for cut in 1..6 {
        let mut d = answered();
        let (head, tail) = b"\x1b[200~one\rtwo\x1b[201~".split_at(cut);
        let mut out = with_pauses(&mut d, &[head], 1);
        d.feed(tail, &mut out);
        d.flush(&mut out);
        let keys = out.iter().filter(|i| matches!(i, Input::Key(_))).count();
        assert!(keys <= 1, "the Escape at most, cut at {cut}: {}", shown(&out));
        assert!(whole.iter().all(|w| out.contains(w)), "cut at {cut}: {}", shown(&out));
    }
}

#[test]
fn a_key_after_alt_and_a_key_is_kept() {
    for (alt, key) in [(']', '1'), ('[', '?'), ('[', '1'), ('P', '1'), ('_', 'G')] {
        let mut d = answered();
        let parts = [format!("\x1b{alt}"), key.to_string()];
        let out = with_pauses(&mut d, &[parts[0].as_bytes(), parts[1].as_bytes()], 1);
        assert!(shown(&out).ends_with(&format!(" {key}")), "alt-{alt} {key}: {}", shown(&out));
    }
}

#[test]
fn what_a_person_types_after_an_escape_is_theirs() {
    for typed in
        ["[", "]", "P", "_", "[1] see", "]]", "PS: x", "_G", "[?", "[I", "[O", "]11", "k", "11;", "?62", "c"]
    {
        for mut d in [Decoder::default(), answered()] {
            let mut out = with_pauses(&mut d, &[b"\x1b"], 1);
            assert_eq!(shown(&out), "esc", "it acts at once");
            for key in typed.bytes() {
                out.extend(with_pauses(&mut d, &[&[key]], 1));
            }
            let mut kept = String::new();
            characters(&out).iter().for_each(|c| kept.push_str(if c == "space" { " " } else { c }));
            assert_eq!(kept, typed, "{}", shown(&out));
        }
    }
    // A reply that never ends holds no key back for long, and no Escape.
    let mut d = answered();
    let mut out = with_pauses(&mut d, &[b"\x1b]11;rgb:12"], 1);
    d.feed(b"\x1b", &mut out);
    assert_eq!(d.waiting(), DecoderWait::Escape);
    d.flush(&mut out);
    assert_eq!(shown(&out), "esc");
    let out = with_pauses(&mut d, &[b"\x1b[A", b"a", b"b"], 2);
    assert_eq!(shown(&out), "up a b");
}

#[test]
fn only_a_lone_escape_waits_shortly() {
    let waiting = |b: &[u8]| {
        let mut d = Decoder::default();
        d.feed(b, &mut Vec::new());
        d.waiting()
    };
    assert_eq!(waiting(b"abc"), DecoderWait::Nothing);
    assert_eq!(waiting(b"\x1b"), DecoderWait::Escape);
    assert_eq!(waiting(b"\x1b[1;"), DecoderWait::Rest);
    assert_eq!(waiting(b"\x1b[200~x"), DecoderWait::Rest);
    assert_eq!(waiting(b"\x1b[A"), DecoderWait::Nothing);
}

#[test]
fn u3_a_paste_of_ten_megabytes_is_fast_and_one_piece() {
    const SIZE: usize = 10 << 20;
    let body: Vec<u8> = b"some line of text\n".iter().copied().cycle().take(SIZE).collect();
    let bytes = [b"\x1b[200~".as_slice(), &body, b"\x1b[201~"].concat();
    let start = tiller_testkit::thread_cpu_time();
    let mut d = Decoder::default();
    let mut out = Vec::new();
    for chunk in bytes.chunks(64 << 10) {
        d.feed(chunk, &mut out);
    }
    d.flush(&mut out);
    assert!(matches!(&out[..], [Input::Paste(p)] if p.len() == SIZE));
    // Generous for an unoptimised build; it takes about a tenth of it.
    let took = tiller_testkit::thread_cpu_time() - start;
    assert!(took.as_secs() < 5, "{took:?} of cpu time");
}

#[test]
fn u3_a_paste_with_an_end_mark_inside_never_submits() {
    for inside in [&b"x\x1b[201~\r"[..], b"\x1b[201~ls\r\n", b"\x1b[201~\x1b[200~a\x1b[201~\r"] {
        let bytes = [b"\x1b[200~".as_slice(), inside, b"\x1b[201~"].concat();
        for i in all(&bytes) {
            assert!(matches!(i, Input::Paste(_)), "{i:?}");
        }
    }
}

#[test]
fn a_paste_without_end_can_be_left() {
    let mut d = Decoder::default();
    let mut out = Vec::new();
    d.feed(b"\x1b[200~text", &mut out);
    d.flush(&mut out);
    assert_eq!(shown(&out), "paste:\"text\"");
    d.feed(b"\x03", &mut out);
    d.feed(b"a", &mut out);
    assert_eq!(shown(&out[1..]), "a");
}

#[test]
fn right_and_middle_clicks_are_seen_as_such() {
    let out = all(b"\x1b[<1;2;3M");
    assert!(matches!(out[0], Input::Mouse(m) if m.kind == MouseEventKind::Down(MouseButton::Middle)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Noise in any pieces: no panic, the same as in one piece, and a plain key afterwards is still heard.
    #[test]
    fn u4_noise_in_any_pieces(
        bytes in prop::collection::vec(prop_oneof![
            3 => Just(0x1bu8), 2 => Just(b'['), 1 => Just(b']'), 1 => Just(b'P'), 1 => Just(b';'), 1 => Just(b'<'),
            1 => Just(b'~'), 1 => Just(b'M'), 1 => Just(b'u'), 3 => b'0'..=b'9', 6 => any::<u8>()
        ], 0..60),
        cuts in prop::collection::vec(0usize..60, 0..6)
    ) {
        let whole = all(&bytes);
        let mut d = Decoder::default();
        let mut out = Vec::new();
        let mut at = 0;
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| *c < bytes.len()).collect();
        cuts.sort_unstable();
        for c in cuts.into_iter().chain([bytes.len()]) {
            d.feed(&bytes[at..c.max(at)], &mut out);
            at = c.max(at);
        }
        d.flush(&mut out);
        prop_assert_eq!(&out, &whole);
        if !d.paste.open() {
            let before = out.len();
            d.feed(b"k", &mut out);
            d.flush(&mut out);
            prop_assert_eq!(shown(&out[before..]), "k");
        }
    }
}
