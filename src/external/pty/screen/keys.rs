//! Encodes one key as bytes: in the original form, with xterm's modifyOtherKeys, or by the kitty keyboard protocol, as
//! the program requested.

use tiller_protocol::{Mods, PaneKey};

use super::encode::Modes;

/// Flag of the kitty keyboard protocol: distinguishes keys that are equal in the original form.
pub(crate) const DISAMBIGUATE: u8 = 1;
/// Adds the shifted character of a key.
pub(crate) const ALTERNATE: u8 = 4;
/// Keys that produce text are reported as numbers, too.
pub(crate) const ALL: u8 = 8;
/// Adds the text that a key produces.
pub(crate) const TEXT: u8 = 16;
/// The supported flags. Not 2: releases of keys are not reported to Tiller.
pub(crate) const HONOURED: u8 = DISAMBIGUATE | ALTERNATE | ALL | TEXT;

/// The bytes; empty: terminals have no encoding for such a key.
pub(crate) fn bytes(key: PaneKey, mods: Mods, modes: Modes) -> Vec<u8> {
    let known = match key {
        PaneKey::F(n) => (1..=35).contains(&n),
        PaneKey::Pad(c) => pad(c).is_some(),
        PaneKey::Char(c) => !c.is_control(),
        _ => true,
    };
    if !known {
        return Vec::new();
    }
    if modes.kitty & HONOURED != 0 {
        return kitty(key, mods, modes.kitty);
    }
    if let Some(bytes) = other(key, mods, modes.other_keys) {
        return bytes;
    }
    old(key, mods, modes)
}

/// `1` plus one for Shift, two for Alt, four for Ctrl.
fn modifier(mods: Mods) -> u8 {
    1 + u8::from(mods.shift) + 2 * u8::from(mods.alt) + 4 * u8::from(mods.ctrl)
}

/// `ESC [ 1 ; m X`, or the short form without modifiers.
fn letter(c: char, m: u8) -> Vec<u8> {
    if m == 1 { format!("\x1b[{c}").into_bytes() } else { format!("\x1b[1;{m}{c}").into_bytes() }
}

/// `ESC [ n ; m ~`.
fn number(n: u8, m: u8) -> Vec<u8> {
    if m == 1 { format!("\x1b[{n}~").into_bytes() } else { format!("\x1b[{n};{m}~").into_bytes() }
}

/// F5 to F12: the number in both forms.
fn function(n: u8) -> Option<u8> {
    [15, 17, 18, 19, 20, 21, 23, 24].get(usize::from(n).checked_sub(5)?).copied()
}

/// A key of the keypad: its letter after `ESC O`, and its number in the kitty protocol.
fn pad(c: char) -> Option<(char, u32)> {
    Some(match c {
        '0'..='9' => (char::from(b'p' + (c as u8 - b'0')), 57399 + u32::from(c as u8 - b'0')),
        '.' => ('n', 57409),
        '/' => ('o', 57410),
        '*' => ('j', 57411),
        '-' => ('m', 57412),
        '+' => ('k', 57413),
        '\n' => ('M', 57414),
        '=' => ('X', 57415),
        ',' => ('l', 57416),
        _ => return None,
    })
}

/// The corresponding key outside of the keypad.
fn unpadded(c: char) -> PaneKey {
    if c == '\n' { PaneKey::Enter } else { PaneKey::Char(c) }
}

/// Final letters of keys that have one, in the original form and in the kitty protocol.
fn named(key: PaneKey) -> Option<char> {
    Some(match key {
        PaneKey::Up => 'A',
        PaneKey::Down => 'B',
        PaneKey::Right => 'C',
        PaneKey::Left => 'D',
        PaneKey::Home => 'H',
        PaneKey::End => 'F',
        _ => return None,
    })
}

/// Numbers of keys that are encoded as `ESC [ n ~`.
fn tilde(key: PaneKey) -> Option<u8> {
    Some(match key {
        PaneKey::Insert => 2,
        PaneKey::Delete => 3,
        PaneKey::PageUp => 5,
        PaneKey::PageDown => 6,
        PaneKey::F(n) => return function(n),
        _ => return None,
    })
}

fn old(key: PaneKey, mods: Mods, modes: Modes) -> Vec<u8> {
    let m = modifier(mods);
    if let Some(c) = named(key) {
        let app = modes.app_cursor && m == 1;
        return if app { format!("\x1bO{c}").into_bytes() } else { letter(c, m) };
    }
    if let Some(n) = tilde(key) {
        return number(n, m);
    }
    let plain = |bytes: &[u8]| {
        let mut out = if mods.alt { vec![0x1b] } else { Vec::new() };
        out.extend_from_slice(bytes);
        out
    };
    match key {
        PaneKey::F(n @ 1..=4) => {
            let c = char::from(b'P' + n - 1);
            if m == 1 { format!("\x1bO{c}").into_bytes() } else { letter(c, m) }
        }
        // The same byte in every terminal without further modes; most programs take it for a line break.
        PaneKey::Enter if mods.shift || mods.ctrl => plain(b"\n"),
        PaneKey::Enter => plain(b"\r"),
        PaneKey::Tab if mods.shift => plain(b"\x1b[Z"),
        PaneKey::Tab => plain(b"\t"),
        PaneKey::Backspace if mods.ctrl => plain(b"\x08"),
        PaneKey::Backspace => plain(b"\x7f"),
        PaneKey::Escape => plain(b"\x1b"),
        PaneKey::Pad(c) => match pad(c).filter(|_| modes.app_pad) {
            Some((end, _)) => format!("\x1bO{end}").into_bytes(),
            None => old(unpadded(c), mods, modes),
        },
        PaneKey::Char(c) if mods.ctrl => match control(c) {
            Some(byte) => plain(&[byte]),
            None => plain(c.encode_utf8(&mut [0; 4]).as_bytes()),
        },
        PaneKey::Char(c) => plain(c.encode_utf8(&mut [0; 4]).as_bytes()),
        _ => Vec::new(),
    }
}

/// The control character of Ctrl and this key, if there is one.
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

/// xterm's modifyOtherKeys. `None`: the original form applies. Level 1 leaves well-known combinations alone; level 2
/// encodes every key with a modifier as a number.
fn other(key: PaneKey, mods: Mods, level: u8) -> Option<Vec<u8>> {
    let (code, known) = match key {
        PaneKey::Enter => (13, mods.alt && !mods.shift && !mods.ctrl),
        PaneKey::Tab => (9, !mods.ctrl),
        PaneKey::Backspace => (127, true),
        PaneKey::Escape => (27, true),
        PaneKey::Char(c) => (u32::from(c), !mods.ctrl || control(c).is_some()),
        _ => return None,
    };
    // Shift alone changes the character, which has been received.
    let held = mods.ctrl || mods.alt || (mods.shift && !matches!(key, PaneKey::Char(_)));
    let told = held && (level >= 2 || level == 1 && !known);
    told.then(|| format!("\x1b[27;{};{code}~", modifier(shifted(key, mods))).into_bytes())
}

/// Adds Shift for an upper-case letter, whether its terminal reported Shift or not.
fn shifted(key: PaneKey, mods: Mods) -> Mods {
    let upper = matches!(key, PaneKey::Char(c) if c.is_uppercase());
    Mods { shift: mods.shift || upper, ..mods }
}

/// The kitty keyboard protocol, for flags that are not all off.
fn kitty(key: PaneKey, mods: Mods, flags: u8) -> Vec<u8> {
    let all = flags & ALL != 0;
    let mods = shifted(key, mods);
    let m = modifier(mods);
    if let Some(c) = named(key) {
        return letter(c, m);
    }
    if let Some(n) = tilde(key) {
        return number(n, m);
    }
    let plain = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
    let told = |code: u32| match m {
        1 => format!("\x1b[{code}u").into_bytes(),
        _ => format!("\x1b[{code};{m}u").into_bytes(),
    };
    match key {
        // 13 before `~`, since its letter is that of a cursor position report.
        PaneKey::F(3) => number(13, m),
        PaneKey::F(n @ 1..=4) => letter(char::from(b'P' + n - 1), m),
        PaneKey::F(n) => told(57363 + u32::from(n)),
        // These stay unchanged, so that a shell can be used after a program forgot to switch the protocol off.
        PaneKey::Enter if m == 1 && !all => plain('\r'),
        PaneKey::Tab if m == 1 && !all => plain('\t'),
        PaneKey::Backspace if m == 1 && !all => plain('\x7f'),
        PaneKey::Enter => told(13),
        PaneKey::Tab => told(9),
        PaneKey::Backspace => told(127),
        PaneKey::Escape if flags & (DISAMBIGUATE | ALL) == 0 && m == 1 => plain('\x1b'),
        PaneKey::Escape => told(27),
        PaneKey::Pad(c) => match pad(c) {
            Some((_, code)) if all || c == '\n' || mods.ctrl || mods.alt => told(code),
            _ => kitty(unpadded(c), mods, flags),
        },
        PaneKey::Char(c) => {
            if !all && !mods.ctrl && !mods.alt {
                return plain(c);
            }
            if flags & (DISAMBIGUATE | ALL) == 0 {
                return old(key, mods, Modes::default());
            }
            text_key(c, mods, flags)
        }
        _ => Vec::new(),
    }
}

/// A key that produces text: always the number without Shift, as far as that is known here.
fn text_key(c: char, mods: Mods, flags: u8) -> Vec<u8> {
    let m = modifier(mods);
    let mut lower = c.to_lowercase();
    let base = lower.next().filter(|_| lower.next().is_none()).unwrap_or(c);
    let mut out = format!("\x1b[{}", u32::from(base));
    if flags & ALTERNATE != 0 && mods.shift && base != c {
        out.push_str(&format!(":{}", u32::from(c)));
    }
    let text = flags & (ALL | TEXT) == ALL | TEXT && !mods.ctrl && !mods.alt;
    if m > 1 || text {
        out.push(';');
    }
    if m > 1 {
        out.push_str(&m.to_string());
    }
    if text {
        out.push_str(&format!(";{}", u32::from(c)));
    }
    out.push('u');
    out.into_bytes()
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
