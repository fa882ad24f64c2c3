//! Single keys: plain, control, Alt, UTF-8.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Input, Parse};

pub(super) fn key(code: KeyCode, mods: KeyModifiers) -> KeyEvent {
    KeyEvent::new_with_kind(code, mods, KeyEventKind::Press)
}

/// Printable ASCII.
pub(super) fn plain(b: u8) -> KeyEvent {
    key(KeyCode::Char(char::from(b)), KeyModifiers::empty())
}

/// C0 controls and delete, as terminals send them without a keyboard protocol.
pub(super) fn control(b: u8) -> KeyEvent {
    let ctrl = |c: char| key(KeyCode::Char(c), KeyModifiers::CONTROL);
    match b {
        0x00 => ctrl(' '),
        0x09 => key(KeyCode::Tab, KeyModifiers::empty()),
        0x0d => key(KeyCode::Enter, KeyModifiers::empty()),
        0x7f => key(KeyCode::Backspace, KeyModifiers::empty()),
        // 0x0a is Ctrl-J and 0x08 Ctrl-H: nothing important depends on telling them apart.
        0x01..=0x1a => ctrl(char::from(b + 0x60)),
        0x1c => ctrl('\\'),
        0x1d => ctrl(']'),
        0x1e => ctrl('^'),
        0x1f => ctrl('_'),
        _ => key(KeyCode::Esc, KeyModifiers::empty()),
    }
}

/// One character of UTF-8. Bad bytes are swallowed one by one; so are C1 controls.
pub(super) fn utf8(b: &[u8]) -> Parse {
    let need = match b[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Parse::Done(1, None),
    };
    let have = b.len().min(need);
    match std::str::from_utf8(&b[..have]) {
        Ok(s) => match s.chars().next() {
            Some(c) if !c.is_control() => {
                Parse::Done(need, Some(Input::Key(key(KeyCode::Char(c), KeyModifiers::empty()))))
            }
            _ => Parse::Done(need, None),
        },
        Err(e) if e.error_len().is_none() && have < need => Parse::More,
        Err(_) => Parse::Done(1, None),
    }
}

/// Returns what follows an Escape that began no sequence: the key with Alt.
pub(super) fn after_escape(b: &[u8]) -> Parse {
    let alt = |k: KeyEvent| Input::Key(key(k.code, k.modifiers | KeyModifiers::ALT));
    match b[0] {
        0x20..=0x7e => Parse::Done(1, Some(alt(plain(b[0])))),
        0x80.. => match utf8(b) {
            Parse::Done(n, Some(Input::Key(k))) => Parse::Done(n, Some(alt(k))),
            other => other,
        },
        c => Parse::Done(1, Some(alt(control(c)))),
    }
}
