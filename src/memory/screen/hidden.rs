//! Characters that are not seen.

/// The first character that is not seen on a screen, or that changes the order of others.
pub(super) fn hidden(text: &str) -> Option<char> {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let visible = match c {
            '\n' | '\t' => true,
            // Joiners and the emoji form are part of visible characters of other scripts, and of emoji.
            '\u{200c}' | '\u{200d}' => {
                let after = text[at..].chars().nth(1);
                !before.is_none_or(|b: char| b.is_ascii()) && !after.is_none_or(|a| a.is_ascii())
            }
            '\u{fe0e}' | '\u{fe0f}' => {
                before.is_some_and(|b| !b.is_ascii() || b.is_ascii_digit() || b == '#')
            }
            _ => !is_hidden(c),
        };
        if !visible {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}
