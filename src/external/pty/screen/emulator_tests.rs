use super::*;

#[test]
fn the_grid_is_plain_cells_with_their_styles() {
    let mut e = Emulator::new(10, 3);
    e.feed("a\x1b[1;31mb\x1b[0;48;2;1;2;3m \x1b[0m漢\r\n\x1b[8mhidden".as_bytes());
    let grid = e.grid();
    assert_eq!((grid.cols, grid.rows.len(), grid.cursor), (10, 3, Some((6, 1))));
    let row: Vec<_> =
        grid.rows[0].iter().map(|r| (r.text.as_str(), r.style.fg, r.style.bg, r.style.bold)).collect();
    assert_eq!(
        row,
        [
            ("a", Hue::Default, Hue::Default, false),
            ("b", Hue::Index(1), Hue::Default, true),
            (" ", Hue::Default, Hue::Rgb(1, 2, 3), false),
            ("漢", Hue::Default, Hue::Default, false),
        ]
    );
    assert_eq!(grid.text(), "ab 漢");
    e.resize(20, 5);
    assert_eq!(e.grid().rows.len(), 5);
}

#[test]
fn u8_questions_are_answered_by_us_or_not_at_all_and_nothing_is_passed_on() {
    // Query, and the answer of this terminal; empty: none.
    for (what, question, answer) in [
        ("position", "\x1b[6n", "\x1b[1;1R"),
        ("status", "\x1b[5n", "\x1b[0n"),
        ("attributes", "\x1b[c", "\x1b[?6c"),
        ("colour of text", "\x1b]10;?\x07", "\x1b]10;rgb:d8d8/d8d8/d8d8\x07"),
        ("colour behind", "\x1b]11;?\x1b\\", "\x1b]11;rgb:1010/1010/1010\x1b\\"),
        ("palette", "\x1b]4;1;?\x07", "\x1b]4;1;rgb:d8d8/d8d8/d8d8\x07"),
        ("size in cells", "\x1b[18t", "\x1b[8;24;80t"),
        ("clipboard", "\x1b]52;c;?\x07", ""),
        ("clipboard of selections", "\x1b]52;p;?\x1b\\", ""),
        ("set clipboard", "\x1b]52;c;aGVsbG8=\x07", ""),
        ("title", "\x1b[21t", ""),
        ("graphics (kitty)", "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", ""),
        ("graphics (sixel)", "\x1bPq#0;2;0;0;0~~\x1b\\", ""),
        ("notification", "\x1b]9;hello\x07", ""),
        ("notification", "\x1b]777;notify;a;b\x07", ""),
        ("link", "\x1b]8;;file:///etc/passwd\x07x\x1b]8;;\x07", ""),
        ("tmux passthrough", "\x1bPtmux;\x1b\x1b]52;c;?\x07\x1b\\", ""),
        ("capabilities", "\x1bP+q544e\x1b\\", ""),
        ("setting", "\x1bP$qm\x1b\\", ""),
        ("answerback", "\x05", ""),
        ("checksum of the screen", "\x1b[1;1;1;1;1;1*y", ""),
        ("working folder", "\x1b]7;file://host/x\x07", ""),
        ("icon", "\x1b]1;x\x07", ""),
        ("name and version", "\x1b[>q", ""),
        ("keyboard (kitty)", "\x1b[?u", "\x1b[?0u"),
        ("keys (xterm)", "\x1b[>4;1m\x1b[?4m", "\x1b[>4;1m"),
        ("keyboard on (kitty)", "\x1b[>31u", ""),
        ("colour of the cursor", "\x1b]12;?\x07", "\x1b]12;rgb:d8d8/d8d8/d8d8\x07"),
        ("image (iTerm)", "\x1b]1337;File=name=QQ==;inline=1:AAAA\x07", ""),
        ("notification (kitty)", "\x1b]99;i=1;hello\x1b\\", ""),
        ("progress", "\x1b]9;4;1;50\x07", ""),
        ("prompt mark", "\x1b]133;A\x07", ""),
        ("private message", "\x1b^hello\x1b\\", ""),
        ("start of string", "\x1bXhello\x1b\\", ""),
        ("third attributes", "\x1b[=c", ""),
        ("window state", "\x1b[11t", ""),
        ("window move", "\x1b[3;0;0t", ""),
        ("title stack", "\x1b[22;0t\x1b[23;0t", ""),
        ("set a colour", "\x1b]4;1;#ff0000\x07", ""),
        ("printer", "\x1b[5i", ""),
        ("window report", "\x1b[14t", "\x1b[4;384;640t"),
    ] {
        let mut e = Emulator::new(80, 24);
        let fed = e.feed(question.as_bytes());
        assert_eq!(String::from_utf8(fed.answers).unwrap(), answer, "{what}");
        for run in e.grid().rows.iter().flatten() {
            assert!(!run.text.chars().any(char::is_control), "{what}");
        }
    }
}

#[test]
fn the_keyboard_is_as_the_program_asked_and_it_is_told_no_more_than_is_true() {
    let mut e = Emulator::new(80, 24);
    let mut feed = |text: &str| {
        let fed = e.feed(text.as_bytes());
        (String::from_utf8(fed.answers).unwrap(), e.modes())
    };
    // Pushed, changed, queried: key releases are not reported here.
    let (answer, modes) = feed("\x1b[>7u\x1b[?u");
    assert_eq!((&*answer, modes.kitty), ("\x1b[?5u", 5));
    let (_, modes) = feed("\x1b[=8;2u");
    assert_eq!(modes.kitty, 13);
    let (_, modes) = feed("\x1b[=1;3u");
    assert_eq!(modes.kitty, 12);
    // Each screen has a stack of its own.
    let (answer, modes) = feed("\x1b[?1049h\x1b[?u");
    assert_eq!((&*answer, modes.kitty), ("\x1b[?0u", 0));
    let (_, modes) = feed("\x1b[>1u\x1b[?1049l");
    assert_eq!(modes.kitty, 5);
    let (answer, modes) = feed("\x1b[<u\x1b[?u");
    assert_eq!((&*answer, modes.kitty), ("\x1b[?0u", 0));
    let (_, modes) = feed("\x1b[>4;2m\x1b=\x1b[?1h\x1b[?1005h");
    assert_eq!((modes.other_keys, modes.app_pad, modes.app_cursor, modes.wide), (2, true, true, true));
    let (_, modes) = feed("\x1bc");
    assert_eq!(modes, Modes { wheel_keys: modes.wheel_keys, ..Modes::default() });
}

#[test]
fn titles_are_plain_and_short_and_the_bell_is_a_flag() {
    let mut e = Emulator::new(80, 24);
    let fed = e.feed(format!("\x1b]2;hi {}\x07\x07", "x".repeat(5000)).as_bytes());
    assert!(fed.bell);
    let title = fed.title.unwrap();
    assert!(title.starts_with("hi x") && title.chars().count() == TITLE);
    assert_eq!(e.grid().title, title);
    // Endless queries without reading get a bounded answer.
    assert!(e.feed("\x1b[6n".repeat(100_000).as_bytes()).answers.len() <= ANSWERS);
}

#[test]
fn random_bytes_never_break_the_grid() {
    let mut seed = 7u64;
    let mut e = Emulator::new(40, 12);
    for round in 0..300 {
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let b = (seed >> 33) as u8;
                if b.is_multiple_of(5) { 0x1b } else { b }
            })
            .collect();
        e.feed(&bytes);
        if round % 10 == 0 {
            e.resize(2 + (round % 60) as u16, 1 + (round % 30) as u16);
        }
        let grid = e.grid();
        assert!(grid.rows.iter().flatten().all(|r| !r.text.chars().any(char::is_control)));
    }
}

/// A control character of two bytes is the same one when they come apart; so is every other character.
#[test]
fn characters_are_whole_wherever_the_output_is_cut() {
    let texts = ["a\u{85}b\u{9b}31mc\u{9d}0;t\u{9c}d\u{80}e", "é漢👩\u{200d}💻\u{301}\r\n\u{90}x\u{1b}[1mz"];
    let broken: [&[u8]; 3] =
        [b"a\xc2\x1b[1mb\xe6\x9f\x1b[0mc", b"\xf0\xe3\x82\xc2\xc2\x85x", b"\x80\x9b\xff\xc0\x85\xe0\x80x"];
    for bytes in texts.iter().map(|t| t.as_bytes()).chain(broken) {
        let mut whole = Emulator::new(20, 4);
        whole.feed(bytes);
        for step in 1..=4 {
            let mut cut = Emulator::new(20, 4);
            bytes.chunks(step).for_each(|piece| drop(cut.feed(piece)));
            assert_eq!(cut.grid(), whole.grid(), "{:?} by {step}", String::from_utf8_lossy(bytes));
        }
    }
    // Pieces of the parser itself.
    let mut long = vec![b' '; memory_limits::PIECE - 1];
    long.extend("\u{85}\u{9b}x".as_bytes());
    let (mut whole, mut cut) = (Emulator::new(20, 4), Emulator::new(20, 4));
    whole.feed(&long);
    cut.feed(&long[..100]);
    cut.feed(&long[100..]);
    assert_eq!(cut.grid(), whole.grid());
    assert!(!whole.lines(0).join("").contains('\u{85}'), "{:?}", whole.lines(0));
}
