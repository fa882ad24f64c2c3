//! Encodes a person's input as bytes, for the modes that the program requested, as xterm does.

use tiller_protocol::{Mods, MouseAct, PaneKey, TerminalInput};

use super::keys;

/// The modes that the program requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Application cursor keys: cursor keys begin with `ESC O`.
    pub app_cursor: bool,
    /// Application keypad: keys of the keypad begin with `ESC O`.
    pub app_pad: bool,
    /// Flags of the kitty keyboard protocol; see [`keys::kitty`].
    pub kitty: u8,
    /// xterm's modifyOtherKeys: 0, 1 or 2.
    pub other_keys: u8,
    /// Bracketed paste: pasted text is marked.
    pub brackets: bool,
    pub mouse: Mouse,
    /// Mouse reports as `ESC [ <`.
    pub sgr: bool,
    /// Coordinates in the old form are characters, not bytes.
    pub wide: bool,
    /// The wheel moves the cursor: for a screen without history that did not request the mouse.
    pub wheel_keys: bool,
    /// Whether it requested focus events.
    pub focus: bool,
}

/// The requested mouse events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mouse {
    #[default]
    None,
    Click,
    Drag,
    Motion,
}

/// The bytes; empty: the program did not request such events.
pub(crate) fn encode(typed: &TerminalInput, modes: Modes) -> Vec<u8> {
    match typed {
        TerminalInput::Key { key, mods } => keys::bytes(*key, *mods, modes),
        TerminalInput::Paste { text } => pasted(text, modes.brackets),
        TerminalInput::Focus { on } => focus(*on, modes),
        TerminalInput::Mouse { act, col, row, mods } => mouse(*act, *col, *row, *mods, modes),
    }
}

/// The bytes of a focus event.
pub(crate) fn focus(on: bool, modes: Modes) -> Vec<u8> {
    match (modes.focus, on) {
        (false, _) => Vec::new(),
        (true, true) => b"\x1b[I".to_vec(),
        (true, false) => b"\x1b[O".to_vec(),
    }
}

/// As a terminal pastes: control characters are removed, so that the text cannot end the paste; without bracketed paste
/// each line end is the Enter key, as in any terminal.
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
            return keys::bytes(key, Mods::default(), modes).repeat(3);
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
    // The old form has no button for a release, and ends at column 223; as characters at 2,015.
    let button = if up { held + 3 } else { button };
    let most = if modes.wide { 0x7ff } else { 0xff };
    let mut out = b"\x1b[M".to_vec();
    for n in [u32::from(button) + 32, u32::from(col) + 33, u32::from(row) + 33] {
        match (char::from_u32(n).filter(|_| n <= most), modes.wide) {
            (Some(c), true) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            (Some(c), false) => out.push(c as u8),
            (None, _) => return Vec::new(),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_focus_of_the_window_is_told_only_to_who_asked() {
        let tell = |on, focus| encode(&TerminalInput::Focus { on }, Modes { focus, ..Modes::default() });
        assert_eq!((tell(true, true), tell(false, true)), (b"\x1b[I".to_vec(), b"\x1b[O".to_vec()));
        assert_eq!((tell(true, false), tell(false, false)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn pasted_text_never_ends_the_paste() {
        let paste = |brackets| {
            let modes = Modes { brackets, ..Modes::default() };
            let text = "a\x1b[201~\r\nrm\x03\tb\n".into();
            String::from_utf8(encode(&TerminalInput::Paste { text }, modes)).unwrap()
        };
        assert_eq!(paste(true), "\x1b[200~a[201~\rrm\tb\r\x1b[201~");
        assert_eq!(paste(false), "a[201~\rrm\tb\r");
    }

    #[test]
    fn the_mouse_is_told_only_to_who_asked() {
        let tell = |act, modes| {
            let typed = TerminalInput::Mouse { act, col: 2, row: 4, mods: Mods::default() };
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
        let far = TerminalInput::Mouse { act: MouseAct::Down, col: 400, row: 1, mods: Mods::default() };
        assert!(encode(&far, asked(Mouse::Click, false)).is_empty());
        let wide = Modes { wide: true, ..asked(Mouse::Click, false) };
        assert_eq!(encode(&far, wide), "\x1b[M \u{1b1}\"".as_bytes());
    }
}
