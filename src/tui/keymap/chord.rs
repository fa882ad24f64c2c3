//! One key with its modifiers, in a form in which equal keys are equal whatever the terminal sent.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key press, normalised: letters with Ctrl or Alt are lower case with an explicit Shift; other
/// printable characters carry no Shift (the character says it already).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub struct Chord {
    pub code: KeyCode,
    pub mods: KeyModifiers,
}

/// Names of keys that are not one character.
const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("esc", KeyCode::Esc),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("menu", KeyCode::Menu),
];

/// Prefixes, in the order in which they are written.
const MODS: &[(&str, KeyModifiers)] = &[
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
    ("super-", KeyModifiers::SUPER),
];

impl Chord {
    /// From what the decoder gave.
    pub fn of(key: &KeyEvent) -> Self {
        Self::new(key.code, key.modifiers)
    }

    /// Normalises.
    pub fn new(code: KeyCode, mods: KeyModifiers) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT | KeyModifiers::SUPER;
        let mut mods = mods & known;
        let code = match code {
            KeyCode::BackTab => {
                mods |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(c) => {
                let chorded =
                    mods.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
                if chorded && c.is_ascii_uppercase() {
                    mods |= KeyModifiers::SHIFT;
                    KeyCode::Char(c.to_ascii_lowercase())
                } else {
                    if c != ' ' && !(chorded && c.is_ascii_lowercase()) {
                        mods -= KeyModifiers::SHIFT;
                    }
                    KeyCode::Char(c)
                }
            }
            code => code,
        };
        Self { code, mods }
    }

    /// Reads one key of a key file: `ctrl-x`, `shift-tab`, `G`, `f12`.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut mods = KeyModifiers::empty();
        'more: loop {
            for (name, bit) in MODS {
                if rest.len() > name.len()
                    && let Some(head) = rest.get(..name.len())
                    && head.eq_ignore_ascii_case(name)
                {
                    rest = &rest[name.len()..];
                    mods |= *bit;
                    continue 'more;
                }
            }
            break;
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            (None, _) => return Err("a key is missing".into()),
            _ => named(rest).ok_or_else(|| format!("unknown key '{rest}'"))?,
        };
        Ok(Self::new(code, mods))
    }

    /// A printable character without Ctrl, Alt or Super: what a text editor would insert.
    pub fn text(&self) -> Option<char> {
        match self.code {
            KeyCode::Char(c)
                if !self.mods.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER) =>
            {
                Some(c)
            }
            _ => None,
        }
    }

    /// The key event that has this chord (for tests and literal keys).
    pub fn event(&self) -> KeyEvent {
        KeyEvent::new(self.code, self.mods)
    }
}

fn named(text: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED.iter().find(|(n, _)| n.eq_ignore_ascii_case(text)) {
        return Some(*code);
    }
    let n: u8 = text.strip_prefix(['f', 'F'])?.parse().ok()?;
    (1..=24).contains(&n).then_some(KeyCode::F(n))
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, bit) in MODS {
            if self.mods.contains(*bit) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::F(n) => write!(f, "f{n}"),
            KeyCode::Char(' ') => f.write_str("space"),
            KeyCode::Char(c) => write!(f, "{c}"),
            code => f.write_str(NAMED.iter().find(|(_, c)| *c == code).map_or("?", |(n, _)| n)),
        }
    }
}

/// Several chords as written in key files: `ctrl-x r`.
pub fn show(keys: &[Chord]) -> String {
    keys.iter().map(Chord::to_string).collect::<Vec<_>>().join(" ")
}

/// Reads a sequence: chords with spaces between them; `leader` stands for the leader key.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_sequence(text: &str, leader: Chord) -> Result<Vec<Chord>, String> {
    let keys = text
        .split_whitespace()
        .map(|k| if k == "leader" { Ok(leader) } else { Chord::parse(k) })
        .collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err("a key is missing".into()) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in
            ["ctrl-x", "alt-enter", "shift-tab", "G", "f12", "ctrl-alt-shift-b", "space", "ctrl-_", "-"]
        {
            assert_eq!(Chord::parse(text).map(|c| c.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn one_key_has_one_form() {
        let ctrl = KeyModifiers::CONTROL;
        let shift = KeyModifiers::SHIFT;
        assert_eq!(
            Chord::new(KeyCode::Char('G'), shift),
            Chord::new(KeyCode::Char('G'), KeyModifiers::empty())
        );
        assert_eq!(Chord::new(KeyCode::Char('A'), ctrl), Chord::new(KeyCode::Char('a'), ctrl | shift));
        assert_eq!(Chord::new(KeyCode::BackTab, shift), Chord::new(KeyCode::Tab, shift));
        assert_eq!(Chord::new(KeyCode::Char('_'), ctrl | shift), Chord::new(KeyCode::Char('_'), ctrl));
    }

    #[test]
    fn wrong_names_are_told() {
        assert!(Chord::parse("ctrl-hello").unwrap_err().contains("hello"));
        assert!(Chord::parse("").is_err());
        assert!(parse_sequence("  ", Chord::parse("a").unwrap()).is_err());
    }
}
