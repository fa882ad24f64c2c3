//! Control sequences: special keys in their many spellings, mouse, and the terminal's answers.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventState, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::keys::key;
use super::{Input, Parse, TerminalFact};

/// Numbers between semicolons, each with its colon parts.
struct Params<'a>(&'a [u8]);

impl Params<'_> {
    fn nth(&self, n: usize) -> Option<&[u8]> {
        self.0.split(|b| *b == b';').nth(n)
    }

    /// Part `part` of number `n`; `None` when it is missing or empty.
    fn sub(&self, n: usize, part: usize) -> Option<u32> {
        let text = self.nth(n)?.split(|b| *b == b':').nth(part)?;
        if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(text.iter().fold(0u32, |a, d| a.saturating_mul(10).saturating_add(u32::from(d - b'0'))))
    }

    fn get(&self, n: usize) -> Option<u32> {
        self.sub(n, 0)
    }
}

/// `ESC [ ...`. `b` begins with the Escape.
pub(super) fn parse(b: &[u8], longest: usize) -> Parse {
    if b.get(2) == Some(&b'[') {
        // The Linux console's F1 to F5: ESC [ [ A.
        let Some(c) = b.get(3) else { return Parse::More };
        let meaning = match c {
            b'A'..=b'E' => press(KeyCode::F(c - b'A' + 1), KeyModifiers::empty()),
            _ => None,
        };
        return Parse::Done(4, meaning);
    }
    for (i, c) in b.iter().enumerate().skip(2) {
        match c {
            0x20..=0x3f => {}
            0x40..=0x7e => {
                if *c == b'M' && i == 2 {
                    // The old mouse form: three more bytes, which could be anything.
                    return if b.len() < 6 { Parse::More } else { Parse::Done(6, None) };
                }
                return Parse::Done(i + 1, meaning(&b[2..i], *c));
            }
            // Not a sequence after all: swallow what looked like one.
            0x18 | 0x1a => return Parse::Done(i + 1, None),
            _ => return Parse::Done(i, None),
        }
    }
    if b.len() > longest { Parse::Done(b.len(), None) } else { Parse::More }
}

/// `ESC O x`: keypad and function keys; some terminals put a modifier before the letter.
pub(super) fn ss3(b: &[u8]) -> Parse {
    let none = KeyModifiers::empty();
    let (mods, at) = match b.get(2) {
        None => return Parse::More,
        Some(d @ b'1'..=b'9') => (modifiers(u32::from(d - b'0')), 3),
        Some(_) => (none, 2),
    };
    let Some(c) = b.get(at) else { return Parse::More };
    let code = match c {
        b'A'..=b'F' | b'H' | b'P'..=b'S' => letter(*c),
        b'M' => Some(KeyCode::Enter),
        b'I' => Some(KeyCode::Tab),
        b'X' => Some(KeyCode::Char('=')),
        b'j'..=b'y' => Some(KeyCode::Char(char::from(b"*+,-./0123456789"[usize::from(c - b'j')]))),
        0x1b => return Parse::Done(at, None),
        _ => None,
    };
    let pad = matches!(c, b'M' | b'X' | b'j'..=b'y');
    Parse::Done(at + 1, code.and_then(|code| if pad { padded(code, mods) } else { press(code, mods) }))
}

/// A keypad key. It equals the same key elsewhere, except for programs that distinguish them.
fn padded(code: KeyCode, mods: KeyModifiers) -> Option<Input> {
    Some(Input::Key(KeyEvent { state: KeyEventState::KEYPAD, ..key(code, mods) }))
}

fn press(code: KeyCode, mods: KeyModifiers) -> Option<Input> {
    Some(Input::Key(key(code, mods)))
}

/// The wire's number: one more than a set of bits.
fn modifiers(n: u32) -> KeyModifiers {
    let bits = n.saturating_sub(1);
    let mut m = KeyModifiers::empty();
    for (bit, one) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        if bits & bit != 0 {
            m |= one;
        }
    }
    m
}

fn letter(c: u8) -> Option<KeyCode> {
    Some(match c {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'E' => KeyCode::KeypadBegin,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

fn meaning(params: &[u8], last: u8) -> Option<Input> {
    let private = params.first().copied().filter(|b| (b'<'..=b'?').contains(b));
    // Intermediate bytes stand behind the numbers.
    let end = params.iter().position(|b| *b < b'0').unwrap_or(params.len());
    let middle = &params[end..];
    let p = Params(params.get(usize::from(private.is_some())..end).unwrap_or(&[]));
    match (private, middle, last) {
        (None, [], b'I') if params.is_empty() => Some(Input::FocusGained),
        (None, [], b'O') if params.is_empty() => Some(Input::FocusLost),
        (None, [], b'Z') => press(KeyCode::Tab, modifiers(p.get(1).unwrap_or(1)) | KeyModifiers::SHIFT),
        (None, [], b'R') => {
            // Also a report of the cursor's place, which we never ask for: only the key's own form counts.
            let plain = params.is_empty();
            let shifted =
                p.get(0) == Some(1) && p.get(1).is_some_and(|m| (2..=16).contains(&m)) && p.nth(2).is_none();
            if plain || shifted { event(&p, KeyCode::F(3)) } else { None }
        }
        (None, [], b'~') => tilde(&p),
        (None, [], b'u') => kitty(&p),
        (None, [], c) => letter(c).and_then(|code| event(&p, code)),
        (Some(b'<'), [], b'M' | b'm') => mouse(&p, last == b'M'),
        (Some(b'?'), [], b'u') => fact(TerminalFact::Keyboard(small(p.get(0)?))),
        (Some(b'?'), [], b'c') => {
            let sixel = (1..16).any(|n| p.get(n) == Some(4));
            fact(TerminalFact::Attributes { sixel })
        }
        (Some(b'?'), [b'$'], b'y') => {
            fact(TerminalFact::Mode(small(p.get(0)?), u8::try_from(p.get(1)?).unwrap_or(0)))
        }
        (Some(b'?'), [], b'n') if p.get(0) == Some(997) => match p.get(1)? {
            1 => Some(Input::Scheme { dark: true }),
            2 => Some(Input::Scheme { dark: false }),
            _ => None,
        },
        _ => None,
    }
}

fn small(n: u32) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

fn fact(f: TerminalFact) -> Option<Input> {
    Some(Input::Fact(f))
}

/// A key with `1;MODIFIERS:KIND`. Releases are swallowed.
fn event(p: &Params<'_>, code: KeyCode) -> Option<Input> {
    if p.sub(1, 1) == Some(3) {
        return None;
    }
    press(code, modifiers(p.get(1).unwrap_or(1)))
}

fn tilde(p: &Params<'_>) -> Option<Input> {
    let code = match p.get(0)? {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        n @ 11..=15 => KeyCode::F((n - 10) as u8),
        n @ 17..=21 => KeyCode::F((n - 11) as u8),
        n @ 23..=26 => KeyCode::F((n - 12) as u8),
        n @ 28..=29 => KeyCode::F((n - 13) as u8),
        n @ 31..=34 => KeyCode::F((n - 14) as u8),
        // xterm's modifyOtherKeys: 27;modifiers;code.
        27 => return unicode(p.get(2)?, None, modifiers(p.get(1)?)),
        _ => return None,
    };
    event(p, code)
}

/// The kitty protocol: `code:shifted:base;modifiers:kind;text`.
fn kitty(p: &Params<'_>) -> Option<Input> {
    if p.sub(1, 1) == Some(3) {
        return None;
    }
    unicode(p.get(0)?, p.sub(0, 1), modifiers(p.get(1).unwrap_or(1)))
}

fn unicode(code: u32, shifted: Option<u32>, mods: KeyModifiers) -> Option<Input> {
    let named = match code {
        9 => Some(KeyCode::Tab),
        13 => Some(KeyCode::Enter),
        27 => Some(KeyCode::Esc),
        8 | 127 => Some(KeyCode::Backspace),
        57361 => Some(KeyCode::PrintScreen),
        57362 => Some(KeyCode::Pause),
        57363 => Some(KeyCode::Menu),
        57376..=57398 => Some(KeyCode::F((code - 57376 + 13) as u8)),
        57399..=57408 => char::from_digit(code - 57399, 10).map(KeyCode::Char),
        57409 => Some(KeyCode::Char('.')),
        57410 => Some(KeyCode::Char('/')),
        57411 => Some(KeyCode::Char('*')),
        57412 => Some(KeyCode::Char('-')),
        57413 => Some(KeyCode::Char('+')),
        57414 => Some(KeyCode::Enter),
        57415 => Some(KeyCode::Char('=')),
        57416 => Some(KeyCode::Char(',')),
        57417 => Some(KeyCode::Left),
        57418 => Some(KeyCode::Right),
        57419 => Some(KeyCode::Up),
        57420 => Some(KeyCode::Down),
        57421 => Some(KeyCode::PageUp),
        57422 => Some(KeyCode::PageDown),
        57423 => Some(KeyCode::Home),
        57424 => Some(KeyCode::End),
        57425 => Some(KeyCode::Insert),
        57426 => Some(KeyCode::Delete),
        57427 => Some(KeyCode::KeypadBegin),
        // Lock keys, media keys, modifiers alone: nothing of ours.
        57344..=63743 => return None,
        _ => None,
    };
    if let Some(named) = named {
        return if (57399..=57416).contains(&code) { padded(named, mods) } else { press(named, mods) };
    }
    let shift = mods.contains(KeyModifiers::SHIFT);
    let c = shifted.filter(|_| shift).and_then(char::from_u32).or_else(|| char::from_u32(code))?;
    if c.is_control() {
        return None;
    }
    // Without the shifted form a letter's is known; other characters depend on the keyboard.
    let c = if shift && c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c };
    press(KeyCode::Char(c), mods)
}

/// SGR mouse: button and modifiers in one number, then column and row from 1.
fn mouse(p: &Params<'_>, down: bool) -> Option<Input> {
    let b = p.get(0)?;
    let at = |n: usize| p.get(n).map(|v| small(v.saturating_sub(1)));
    let (column, row) = (at(1)?, at(2)?);
    let mut modifiers = KeyModifiers::empty();
    for (bit, m) in [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)] {
        if b & bit != 0 {
            modifiers |= m;
        }
    }
    let button = match b & 3 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (b & 64 != 0, b & 32 != 0, button) {
        (true, ..) => match b & 3 {
            0 => MouseEventKind::ScrollUp,
            1 => MouseEventKind::ScrollDown,
            2 => MouseEventKind::ScrollLeft,
            _ => MouseEventKind::ScrollRight,
        },
        (_, true, Some(button)) => MouseEventKind::Drag(button),
        (_, true, None) => MouseEventKind::Moved,
        (_, false, Some(button)) if down => MouseEventKind::Down(button),
        (_, false, Some(button)) => MouseEventKind::Up(button),
        (_, false, None) => return None,
    };
    // Buttons beyond the wheel.
    if b >= 128 {
        return None;
    }
    Some(Input::Mouse(MouseEvent { kind, column, row, modifiers }))
}

/// `11;rgb:RRRR/GGGG/BBBB`, one to four digits each; also `rgba:` and `#rrggbb`.
pub(super) fn osc(text: &[u8]) -> Option<Input> {
    let text = std::str::from_utf8(text).ok()?;
    let value = text.strip_prefix("11;")?;
    if let Some(hex) = value.strip_prefix('#') {
        let (r, g, b) = crate::theme::color::hex_rgb(hex)?;
        return Some(Input::Background(r, g, b));
    }
    let value = value.strip_prefix("rgb:").or_else(|| value.strip_prefix("rgba:"))?;
    let mut parts = value.split('/').map(|h| {
        let max = match h.len() {
            1..=4 => (1u32 << (4 * h.len())) - 1,
            _ => return None,
        };
        Some((u32::from_str_radix(h, 16).ok()? * 255 / max) as u8)
    });
    Some(Input::Background(parts.next()??, parts.next()??, parts.next()??))
}

/// `1$r...m`: the style in force, as numbers between semicolons. Terminals write the parts of a colour with colons or
/// with semicolons, and with or without the empty place of a colour space.
/// `G`: the answer to the question for Kitty's protocol.
pub(super) fn apc(text: &[u8]) -> Option<Input> {
    let (control, said) = std::str::from_utf8(text).ok()?.strip_prefix('G')?.split_once(';')?;
    let ours = control.split(',').any(|c| c == "i=7417");
    (ours && said == "OK").then_some(Input::Fact(TerminalFact::Pictures))
}

pub(super) fn dcs(text: &[u8]) -> Option<Input> {
    let style = std::str::from_utf8(text).ok()?.strip_prefix("1$r")?.strip_suffix('m')?;
    let numbers: Vec<&str> = style.split([';', ':']).filter(|n| !n.is_empty()).collect();
    let at = numbers.iter().position(|n| *n == "48")?;
    match &numbers[at + 1..] {
        ["2", colour @ ..] => {
            let asked = crate::terminal::ASKED_COLOUR;
            // A colour space, if any, stands before the three.
            fact(TerminalFact::DirectColour(colour.ends_with(&asked) || colour.starts_with(&asked)))
        }
        ["5", ..] => fact(TerminalFact::DirectColour(false)),
        _ => None,
    }
}
