//! What a person's hands come to as bytes: for the modes that the program asked for, as xterm does it.

use tiller_protocol::{Mods, MouseAct, PaneKey, Typed};

/// What the program asked its terminal for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Cursor keys begin with `ESC O`.
    pub app_cursor: bool,
    /// Pasted text is marked.
    pub brackets: bool,
    pub mouse: Mouse,
    /// Mouse reports as `ESC [ <`.
    pub sgr: bool,
    /// The wheel moves the cursor: a screen without history that did not ask for the mouse.
    pub wheel_keys: bool,
    /// It wants to know whether its window has the focus.
    pub focus: bool,
}

/// Which mouse events it asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mouse {
    #[default]
    None,
    Click,
    Drag,
    Motion,
}

/// The bytes; empty: the program asked for nothing of the kind.
pub(crate) fn encode(typed: &Typed, modes: Modes) -> Vec<u8> {
    match typed {
        Typed::Key { key, mods } => key_bytes(*key, *mods, modes),
        Typed::Paste { text } => pasted(text, modes.brackets),
        Typed::Mouse { act, col, row, mods } => mouse(*act, *col, *row, *mods, modes),
    }
}

/// That the window has the focus now, or not.
pub(crate) fn focus(on: bool, modes: Modes) -> Vec<u8> {
    match (modes.focus, on) {
        (false, _) => Vec::new(),
        (true, true) => b"\x1b[I".to_vec(),
        (true, false) => b"\x1b[O".to_vec(),
    }
}

/// `1` plus one for Shift, two for Alt, four for Ctrl.
fn modifier(mods: Mods) -> u8 {
    1 + u8::from(mods.shift) + 2 * u8::from(mods.alt) + 4 * u8::from(mods.ctrl)
}

fn key_bytes(key: PaneKey, mods: Mods, modes: Modes) -> Vec<u8> {
    let m = modifier(mods);
    // `ESC [ 1 ; m X`, or short without modifiers.
    let letter = |c: char, app: bool| match (m, app) {
        (1, true) => format!("\x1bO{c}").into_bytes(),
        (1, false) => format!("\x1b[{c}").into_bytes(),
        _ => format!("\x1b[1;{m}{c}").into_bytes(),
    };
    let number = |n: u8| match m {
        1 => format!("\x1b[{n}~").into_bytes(),
        _ => format!("\x1b[{n};{m}~").into_bytes(),
    };
    let plain = |bytes: &[u8]| {
        let mut out = if mods.alt { vec![0x1b] } else { Vec::new() };
        out.extend_from_slice(bytes);
        out
    };
    match key {
        PaneKey::Up => letter('A', modes.app_cursor),
        PaneKey::Down => letter('B', modes.app_cursor),
        PaneKey::Right => letter('C', modes.app_cursor),
        PaneKey::Left => letter('D', modes.app_cursor),
        PaneKey::Home => letter('H', modes.app_cursor),
        PaneKey::End => letter('F', modes.app_cursor),
        PaneKey::Insert => number(2),
        PaneKey::Delete => number(3),
        PaneKey::PageUp => number(5),
        PaneKey::PageDown => number(6),
        PaneKey::F(n @ 1..=4) => letter(char::from(b'P' + n - 1), true),
        PaneKey::F(n @ 5..=12) => number([15, 17, 18, 19, 20, 21, 23, 24][usize::from(n - 5)]),
        PaneKey::F(_) => Vec::new(),
        // The same byte in every terminal that was not asked for more; most programs take it for a new line.
        PaneKey::Enter if mods.shift || mods.ctrl => plain(b"\n"),
        PaneKey::Enter => plain(b"\r"),
        PaneKey::Tab if mods.shift => plain(b"\x1b[Z"),
        PaneKey::Tab => plain(b"\t"),
        PaneKey::Backspace if mods.ctrl => plain(b"\x08"),
        PaneKey::Backspace => plain(b"\x7f"),
        PaneKey::Escape => plain(b"\x1b"),
        PaneKey::Char(c) if mods.ctrl => match control(c) {
            Some(byte) => plain(&[byte]),
            None => plain(c.encode_utf8(&mut [0; 4]).as_bytes()),
        },
        PaneKey::Char(c) if c.is_control() => Vec::new(),
        PaneKey::Char(c) => plain(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// The control character of Ctrl and this key, where there is one.
fn control(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' => c as u8 - b'a' + 1,
        'A'..='Z' => c as u8 - b'A' + 1,
        ' ' | '@' | '2' => 0,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' => 0x1e,
        '_' | '/' | '7' | '-' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// As a terminal pastes: control characters are taken out, so that nothing in it ends the paste; without marks each
/// line end is the Enter key, which is what the person asked for by pasting there.
fn pasted(text: &str, brackets: bool) -> Vec<u8> {
    let plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let clean: String = text.replace("\r\n", "\n").replace('\r', "\n").chars().filter(plain).collect();
    let clean = clean.replace('\n', "\r");
    if brackets { format!("\x1b[200~{clean}\x1b[201~").into_bytes() } else { clean.into_bytes() }
}

fn mouse(act: MouseAct, col: u16, row: u16, mods: Mods, modes: Modes) -> Vec<u8> {
    let wheel = matches!(act, MouseAct::WheelUp | MouseAct::WheelDown);
    let least = match act {
        MouseAct::Down | MouseAct::Up | MouseAct::WheelUp | MouseAct::WheelDown => Mouse::Click,
        MouseAct::Drag => Mouse::Drag,
        MouseAct::Move => Mouse::Motion,
    };
    if modes.mouse < least {
        if wheel && modes.wheel_keys && modes.mouse == Mouse::None {
            let key = if act == MouseAct::WheelUp { PaneKey::Up } else { PaneKey::Down };
            return key_bytes(key, Mods::default(), modes).repeat(3);
        }
        return Vec::new();
    }
    let held = 4 * u16::from(mods.shift) + 8 * u16::from(mods.alt) + 16 * u16::from(mods.ctrl);
    let button = held
        + match act {
            MouseAct::Down | MouseAct::Up => 0,
            MouseAct::Drag => 32,
            MouseAct::Move => 35,
            MouseAct::WheelUp => 64,
            MouseAct::WheelDown => 65,
        };
    let up = act == MouseAct::Up;
    if modes.sgr {
        let end = if up { 'm' } else { 'M' };
        return format!("\x1b[<{button};{};{}{end}", u32::from(col) + 1, u32::from(row) + 1).into_bytes();
    }
    // The old form says no button at a release, and ends at column 223.
    let button = if up { held + 3 } else { button };
    let byte = |n: u16| u8::try_from(n + 33).ok();
    match (u8::try_from(button + 32), byte(col), byte(row)) {
        (Ok(b), Some(x), Some(y)) => vec![0x1b, b'[', b'M', b, x, y],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: PaneKey, mods: &str, modes: Modes) -> String {
        let has = |c| mods.contains(c);
        let mods = Mods { shift: has('s'), alt: has('a'), ctrl: has('c') };
        String::from_utf8(encode(&Typed::Key { key, mods }, modes)).unwrap()
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
            (PaneKey::Char('c'), "c", "\x03", "\x03"),
            (PaneKey::Char('b'), "a", "\x1bb", "\x1bb"),
            (PaneKey::Char(' '), "c", "\0", "\0"),
            // No byte of a hostile client acts as a key of its own.
            (PaneKey::Char('\x1b'), "", "", ""),
            (PaneKey::F(99), "", "", ""),
        ] {
            assert_eq!(key(k, mods, Modes::default()), normal, "{k:?} {mods}");
            assert_eq!(key(k, mods, app), application, "{k:?} {mods}");
        }
    }

    #[test]
    fn pasted_text_never_ends_the_paste() {
        let paste = |brackets| {
            let modes = Modes { brackets, ..Modes::default() };
            let text = "a\x1b[201~\r\nrm\x03\tb\n".into();
            String::from_utf8(encode(&Typed::Paste { text }, modes)).unwrap()
        };
        assert_eq!(paste(true), "\x1b[200~a[201~\rrm\tb\r\x1b[201~");
        assert_eq!(paste(false), "a[201~\rrm\tb\r");
    }

    #[test]
    fn the_mouse_is_told_only_to_who_asked() {
        let tell = |act, modes| {
            let typed = Typed::Mouse { act, col: 2, row: 4, mods: Mods::default() };
            String::from_utf8(encode(&typed, modes)).unwrap()
        };
        let asked = |mouse, sgr| Modes { mouse, sgr, ..Modes::default() };
        for act in [MouseAct::Down, MouseAct::Up, MouseAct::Drag, MouseAct::Move, MouseAct::WheelUp] {
            assert_eq!(tell(act, Modes::default()), "");
        }
        assert_eq!(tell(MouseAct::Down, asked(Mouse::Click, true)), "\x1b[<0;3;5M");
        assert_eq!(tell(MouseAct::Up, asked(Mouse::Click, true)), "\x1b[<0;3;5m");
        assert_eq!(tell(MouseAct::Up, asked(Mouse::Click, false)), "\x1b[M##%");
        assert_eq!(tell(MouseAct::Drag, asked(Mouse::Click, true)), "");
        assert_eq!(tell(MouseAct::Drag, asked(Mouse::Drag, true)), "\x1b[<32;3;5M");
        assert_eq!(tell(MouseAct::WheelDown, asked(Mouse::Motion, true)), "\x1b[<65;3;5M");
        let keys = Modes { wheel_keys: true, ..Modes::default() };
        assert_eq!(tell(MouseAct::WheelUp, keys), "\x1b[A\x1b[A\x1b[A");
        let far = Typed::Mouse { act: MouseAct::Down, col: 400, row: 1, mods: Mods::default() };
        assert!(encode(&far, asked(Mouse::Click, false)).is_empty());
    }
}
