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

    /// Reads one key of a key file: `ctrl-x`, `shift-tab`, `G`, `f12`. The form of the screen is read too: after
    /// `Ctrl-`, as opposed to `ctrl-`, a capital letter does not mean Shift.
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
        let shown = text.starts_with(char::is_uppercase) && !mods.is_empty();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) if shown => KeyCode::Char(c.to_lowercase().next().unwrap_or(c)),
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

    /// As named on the keyboard: `Ctrl-X`, `Esc`, `PageUp`. A letter without Ctrl, Alt or Super keeps its case, because
    /// `a` and `A` are two keys.
    pub fn shown(&self) -> String {
        let capital = |word: &str| {
            let mut chars = word.chars();
            chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
        };
        let mut out: String =
            MODS.iter().filter(|(_, bit)| self.mods.contains(*bit)).map(|(name, _)| capital(name)).collect();
        match self.code {
            KeyCode::PageUp => out.push_str("PageUp"),
            KeyCode::PageDown => out.push_str("PageDown"),
            KeyCode::Char(c) if c != ' ' => match self.text() {
                Some(c) => out.push(c),
                None => out.extend(c.to_uppercase()),
            },
            code => out.push_str(&capital(&Self { code, mods: KeyModifiers::empty() }.to_string())),
        }
        out
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

/// The form of key files.
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
pub fn written(keys: &[Chord]) -> String {
    keys.iter().map(Chord::to_string).collect::<Vec<_>>().join(" ")
}

/// Several chords as named on the screen: `Ctrl-X r`.
pub fn show(keys: &[Chord]) -> String {
    keys.iter().map(Chord::shown).collect::<Vec<_>>().join(" ")
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
    fn keys_are_shown_as_on_the_keyboard() {
        for (file, screen) in [
            ("ctrl-x", "Ctrl-X"),
            ("ctrl-shift-b", "Ctrl-Shift-B"),
            ("alt-enter", "Alt-Enter"),
            ("shift-tab", "Shift-Tab"),
            ("esc", "Esc"),
            ("pageup", "PageUp"),
            ("ctrl-pagedown", "Ctrl-PageDown"),
            ("space", "Space"),
            ("f12", "F12"),
            ("ctrl-]", "Ctrl-]"),
            ("alt-ö", "Alt-Ö"),
            ("g", "g"),
            ("G", "G"),
            ("ctrl-x r", "Ctrl-X r"),
        ] {
            let keys = parse_sequence(file, Chord::parse("ctrl-x").unwrap()).unwrap();
            assert_eq!((show(&keys).as_str(), written(&keys).as_str()), (screen, file));
            assert_eq!(parse_sequence(screen, keys[0]).unwrap(), keys, "{screen} is read as {file}");
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
