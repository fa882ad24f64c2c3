//! Characters that are not seen.

use tiller_text::clean::is_invisible;

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
            _ => !c.is_control() && !is_invisible(c),
        };
        if !visible {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_draws_nothing_is_found() {
        // Joiners and the emoji form are refused where they stand beside plain letters only.
        let listed = [
            0xAD..=0xAD,
            0x34F..=0x34F,
            0x61C..=0x61C,
            0x115F..=0x1160,
            0x17B4..=0x17B5,
            0x180B..=0x180F,
            0x200B..=0x200F,
            0x2028..=0x202E,
            0x2060..=0x206F,
            0x2800..=0x2800,
            0x3164..=0x3164,
            0xFE00..=0xFE0F,
            0xFEFF..=0xFEFF,
            0xFFA0..=0xFFA0,
            0xFFF0..=0xFFFB,
            0x13430..=0x1345F,
            0x1BCA0..=0x1BCA3,
            0x1D159..=0x1D159,
            0x1D173..=0x1D17A,
            0xE0000..=0xE0FFF,
        ];
        let control = (0..0xA0u32).filter(|n| !matches!(n, 0x09 | 0x0A | 0x20..=0x7E));
        for c in listed.into_iter().flatten().chain(control).filter_map(char::from_u32) {
            assert_eq!(hidden(&format!("a{c}b")), Some(c), "U+{:04X}", u32::from(c));
        }
        let family = "\u{1f468}\u{200d}\u{1f469}";
        for seen in ["a\tb\n", family, "\u{2764}\u{fe0f}", "1\u{fe0f}\u{20e3}", "\u{e9} \u{6f22}"] {
            assert_eq!(hidden(seen), None, "{seen:?}");
        }
    }
}
