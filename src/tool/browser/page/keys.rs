//! Keys by name, as `Input.dispatchKeyEvent` wants them.

use serde_json::{Value, json};

/// A key with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Bits: 1 Alt, 2 Control, 4 Meta, 8 Shift.
    modifiers: u8,
    /// As in `KeyboardEvent.key`.
    key: String,
    /// As in `KeyboardEvent.code`.
    code: String,
    /// Windows virtual key code.
    number: u32,
    /// The text that it types; `None`: nothing.
    text: Option<String>,
}

/// Name, `key`, virtual key code, text.
const NAMED: [(&str, &str, u32, Option<&str>); 18] = [
    ("enter", "Enter", 13, Some("\r")),
    ("tab", "Tab", 9, None),
    ("escape", "Escape", 27, None),
    ("esc", "Escape", 27, None),
    ("backspace", "Backspace", 8, None),
    ("delete", "Delete", 46, None),
    ("insert", "Insert", 45, None),
    ("space", " ", 32, Some(" ")),
    ("home", "Home", 36, None),
    ("end", "End", 35, None),
    ("pageup", "PageUp", 33, None),
    ("pagedown", "PageDown", 34, None),
    ("arrowleft", "ArrowLeft", 37, None),
    ("arrowup", "ArrowUp", 38, None),
    ("arrowright", "ArrowRight", 39, None),
    ("arrowdown", "ArrowDown", 40, None),
    ("return", "Enter", 13, Some("\r")),
    ("del", "Delete", 46, None),
];

impl Key {
    /// Reads `Enter`, `a`, `Control+A`, `Shift+Tab`.
    ///
    /// # Errors
    /// Which keys there are.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let mut modifiers = 0;
        let mut rest = name;
        while let Some((first, after)) =
            rest.split_once('+').filter(|(first, after)| !first.is_empty() && !after.is_empty())
        {
            modifiers |= match first.to_ascii_lowercase().as_str() {
                "alt" | "option" => 1,
                "control" | "ctrl" => 2,
                "meta" | "cmd" | "command" => 4,
                "shift" => 8,
                _ => return Err(wrong(name)),
            };
            rest = after;
        }
        let lower = rest.to_ascii_lowercase();
        let lower = match lower.as_str() {
            "left" | "up" | "right" | "down" => format!("arrow{lower}"),
            _ => lower,
        };
        if let Some((_, key, number, text)) = NAMED.iter().find(|(named, ..)| *named == lower) {
            let code = if *key == " " { "Space" } else { key };
            let text = text.filter(|_| modifiers & 7 == 0).map(str::to_owned);
            return Ok(Self { modifiers, key: (*key).into(), code: code.into(), number: *number, text });
        }
        if let Some(n) =
            lower.strip_prefix('f').and_then(|n| n.parse::<u32>().ok()).filter(|n| (1..=12).contains(n))
        {
            let name = format!("F{n}");
            return Ok(Self { modifiers, key: name.clone(), code: name, number: 111 + n, text: None });
        }
        let mut chars = rest.chars();
        let (Some(one), None) = (chars.next(), chars.next()) else { return Err(wrong(name)) };
        if one.is_control() {
            return Err(wrong(name));
        }
        let upper = one.to_ascii_uppercase();
        let code = match one {
            'a'..='z' | 'A'..='Z' => format!("Key{upper}"),
            '0'..='9' => format!("Digit{one}"),
            _ => String::new(),
        };
        let number = if one.is_ascii_alphanumeric() { u32::from(upper) } else { 0 };
        let text = (modifiers & 7 == 0).then(|| one.to_string());
        Ok(Self { modifiers, key: one.to_string(), code, number, text })
    }

    /// The events of one press: down and up.
    pub(super) fn events(&self) -> [Value; 2] {
        let event = |kind: &str| {
            json!({
                "type": kind, "modifiers": self.modifiers, "key": self.key, "code": self.code,
                "windowsVirtualKeyCode": self.number,
            })
        };
        let mut down = event(if self.text.is_some() { "keyDown" } else { "rawKeyDown" });
        if let Some(text) = &self.text {
            down["text"] = text.clone().into();
        }
        // Without a command some editing keys do nothing, since no window of the system handles them.
        if self.modifiers & 7 == 2 || self.modifiers & 7 == 4 {
            let command = match self.key.to_ascii_lowercase().as_str() {
                "a" => Some("selectAll"),
                "c" => Some("copy"),
                "x" => Some("cut"),
                "v" => Some("paste"),
                "z" => Some("undo"),
                _ => None,
            };
            if let Some(command) = command {
                down["commands"] = json!([command]);
            }
        }
        [down, event("keyUp")]
    }
}

fn wrong(name: &str) -> String {
    format!(
        "there is no key {name:?}. Keys: one character, Enter, Tab, Escape, Backspace, Delete, Space, Home, End, PageUp, PageDown, ArrowLeft, ArrowUp, ArrowRight, ArrowDown, F1 to F12; before it Control+, Shift+, Alt+ or Meta+"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_name() {
        let enter = Key::parse("Enter").unwrap();
        assert_eq!((enter.number, enter.text.as_deref()), (13, Some("\r")));
        assert_eq!(Key::parse("ctrl+A").unwrap().modifiers, 2);
        assert_eq!(Key::parse("Shift+Tab").unwrap().key, "Tab");
        assert_eq!(Key::parse("+").unwrap().key, "+");
        assert_eq!(Key::parse("Control++").unwrap().modifiers, 2);
        assert_eq!(Key::parse("down").unwrap().key, "ArrowDown");
        assert_eq!(Key::parse("F5").unwrap().number, 116);
        assert_eq!(Key::parse("ä").unwrap().text.as_deref(), Some("ä"));
        for bad in ["", "Entr", "Hyper+A", "\u{7}", "F13x"] {
            assert!(Key::parse(bad).is_err(), "{bad:?}");
        }
        let [down, _] = Key::parse("Control+a").unwrap().events();
        assert_eq!(down["commands"][0], "selectAll");
    }
}
