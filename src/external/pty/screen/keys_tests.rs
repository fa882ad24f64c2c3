use super::*;

fn held(mods: &str) -> Mods {
    let has = |c| mods.contains(c);
    Mods { shift: has('s'), alt: has('a'), ctrl: has('c') }
}

fn key(key: PaneKey, mods: &str, modes: Modes) -> String {
    String::from_utf8(bytes(key, held(mods), modes)).unwrap()
}

#[test]
fn keys_are_what_the_program_asked_for() {
    let app = Modes { app_cursor: true, ..Modes::default() };
    for (k, mods, normal, application) in [
        (PaneKey::Up, "", "\x1b[A", "\x1bOA"),
        (PaneKey::Home, "", "\x1b[H", "\x1bOH"),
        (PaneKey::Left, "c", "\x1b[1;5D", "\x1b[1;5D"),
        (PaneKey::Delete, "", "\x1b[3~", "\x1b[3~"),
        (PaneKey::PageUp, "s", "\x1b[5;2~", "\x1b[5;2~"),
        (PaneKey::F(1), "", "\x1bOP", "\x1bOP"),
        (PaneKey::F(5), "", "\x1b[15~", "\x1b[15~"),
        (PaneKey::F(12), "a", "\x1b[24;3~", "\x1b[24;3~"),
        (PaneKey::Enter, "", "\r", "\r"),
        (PaneKey::Enter, "s", "\n", "\n"),
        (PaneKey::Enter, "a", "\x1b\r", "\x1b\r"),
        (PaneKey::Tab, "s", "\x1b[Z", "\x1b[Z"),
        (PaneKey::Backspace, "", "\x7f", "\x7f"),
        (PaneKey::Escape, "", "\x1b", "\x1b"),
        (PaneKey::Char('é'), "", "é", "é"),
        (PaneKey::Char('B'), "s", "B", "B"),
        (PaneKey::Char('c'), "c", "\x03", "\x03"),
        (PaneKey::Char('b'), "a", "\x1bb", "\x1bb"),
        (PaneKey::Char(' '), "c", "\0", "\0"),
        (PaneKey::Pad('5'), "", "5", "5"),
        (PaneKey::Pad('\n'), "", "\r", "\r"),
        // A byte from an untrusted client never acts as another key.
        (PaneKey::Char('\x1b'), "", "", ""),
        (PaneKey::Pad('\x1b'), "", "", ""),
        (PaneKey::F(99), "", "", ""),
    ] {
        assert_eq!(key(k, mods, Modes::default()), normal, "{k:?} {mods}");
        assert_eq!(key(k, mods, app), application, "{k:?} {mods}");
    }
    let pad = Modes { app_pad: true, ..Modes::default() };
    assert_eq!(key(PaneKey::Pad('5'), "", pad), "\x1bOu");
    assert_eq!(key(PaneKey::Pad('\n'), "", pad), "\x1bOM");
    assert_eq!(key(PaneKey::Char('5'), "", pad), "5", "above the letters it stays a digit");
}

#[test]
fn by_the_kitty_protocol_each_flag_says_more() {
    for (k, mods, flags, told) in [
        // A key changed by Shift only is text.
        (PaneKey::Char('a'), "", 1, "a"),
        (PaneKey::Char('A'), "s", 1, "A"),
        (PaneKey::Char(' '), "s", 1, " "),
        (PaneKey::Char('c'), "c", 1, "\x1b[99;5u"),
        (PaneKey::Char('i'), "c", 1, "\x1b[105;5u"),
        (PaneKey::Char('x'), "a", 1, "\x1b[120;3u"),
        (PaneKey::Char('P'), "c", 1, "\x1b[112;6u"),
        (PaneKey::Char('P'), "cs", 5, "\x1b[112:80;6u"),
        (PaneKey::Escape, "", 1, "\x1b[27u"),
        (PaneKey::Enter, "", 1, "\r"),
        (PaneKey::Enter, "s", 1, "\x1b[13;2u"),
        (PaneKey::Enter, "c", 1, "\x1b[13;5u"),
        (PaneKey::Tab, "", 1, "\t"),
        (PaneKey::Tab, "s", 1, "\x1b[9;2u"),
        (PaneKey::Backspace, "c", 1, "\x1b[127;5u"),
        (PaneKey::Up, "", 1, "\x1b[A"),
        (PaneKey::Up, "cs", 1, "\x1b[1;6A"),
        (PaneKey::F(1), "", 1, "\x1b[P"),
        (PaneKey::F(3), "", 1, "\x1b[13~"),
        (PaneKey::F(13), "", 1, "\x1b[57376u"),
        (PaneKey::Pad('\n'), "", 1, "\x1b[57414u"),
        (PaneKey::Pad('5'), "", 1, "5"),
        // Every key as a number, and with its text.
        (PaneKey::Char('a'), "", 8, "\x1b[97u"),
        (PaneKey::Char('A'), "", 8, "\x1b[97;2u"),
        (PaneKey::Enter, "", 9, "\x1b[13u"),
        (PaneKey::Pad('5'), "", 8, "\x1b[57404u"),
        (PaneKey::Char('a'), "", 24, "\x1b[97;;97u"),
        (PaneKey::Char('A'), "s", 31, "\x1b[97:65;2;65u"),
        (PaneKey::Char('a'), "c", 31, "\x1b[97;5u"),
        // Alternates alone: keys are not distinguished yet.
        (PaneKey::Escape, "", 4, "\x1b"),
        (PaneKey::Char('c'), "c", 4, "\x03"),
        // Only unsupported features were requested.
        (PaneKey::Escape, "", 2, "\x1b"),
        (PaneKey::Char('\x1b'), "", 31, ""),
    ] {
        // It takes precedence over xterm's.
        let modes = Modes { kitty: flags, other_keys: 0, app_cursor: true, ..Modes::default() };
        assert_eq!(key(k, mods, modes), told, "{k:?} {mods} {flags}");
        if flags & HONOURED != 0 {
            assert_eq!(key(k, mods, Modes { other_keys: 2, ..modes }), told, "{k:?} {mods} {flags}");
        }
    }
}

#[test]
fn by_modify_other_keys_what_has_no_byte_has_a_number() {
    for (k, mods, one, two) in [
        (PaneKey::Enter, "", "\r", "\r"),
        (PaneKey::Enter, "s", "\x1b[27;2;13~", "\x1b[27;2;13~"),
        (PaneKey::Enter, "c", "\x1b[27;5;13~", "\x1b[27;5;13~"),
        (PaneKey::Enter, "a", "\x1b\r", "\x1b[27;3;13~"),
        (PaneKey::Tab, "s", "\x1b[Z", "\x1b[27;2;9~"),
        (PaneKey::Tab, "c", "\x1b[27;5;9~", "\x1b[27;5;9~"),
        (PaneKey::Char('a'), "c", "\x01", "\x1b[27;5;97~"),
        (PaneKey::Char('1'), "c", "\x1b[27;5;49~", "\x1b[27;5;49~"),
        (PaneKey::Char('x'), "a", "\x1bx", "\x1b[27;3;120~"),
        (PaneKey::Char('A'), "c", "\x01", "\x1b[27;6;65~"),
        (PaneKey::Char('A'), "s", "A", "A"),
        (PaneKey::Up, "c", "\x1b[1;5A", "\x1b[1;5A"),
        (PaneKey::Escape, "", "\x1b", "\x1b"),
    ] {
        for (level, told) in [(1, one), (2, two)] {
            let modes = Modes { other_keys: level, ..Modes::default() };
            assert_eq!(key(k, mods, modes), told, "{k:?} {mods} {level}");
        }
    }
}
