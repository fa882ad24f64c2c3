//! Masks that replace secrets in text: a mask names the kind of secret and reveals nothing of its value.

use std::ops::Range;

/// The place of a secret in a text, and its name in the mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// `password`, `api key`, ...: small letters and single blanks.
    pub name: &'static str,
}

/// Every mask begins with this.
pub const OPEN: &str = "[redacted ";
/// Maximum length of a name, in bytes.
const NAME: usize = 24;

/// The mask of a secret with this name.
pub fn mask(name: &str) -> String {
    format!("{OPEN}{name}]")
}

/// Whether the text contains a mask.
pub fn has_mask(text: &str) -> bool {
    masks(text).next().is_some()
}

/// Where masks stand in a text, in order.
pub fn masks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.match_indices(OPEN).filter_map(|(at, open)| {
        let rest = &text[at + open.len()..];
        let len = rest.bytes().take(NAME + 1).position(|b| b == b']')?;
        let name = &rest[..len];
        let letters = |b: u8| b.is_ascii_lowercase() || b == b' ';
        let whole = !name.is_empty() && name == name.trim() && name.bytes().all(letters);
        whole.then(|| at..at + open.len() + len + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_found_and_their_like_are_not() {
        let text = "A=[redacted api key]\nB=[redacted password]";
        let found: Vec<&str> = masks(text).map(|r| &text[r]).collect();
        assert_eq!(found, [mask("api key"), mask("password")]);
        for text in [
            "[redacted ]",
            "[redacted",
            "[redacted \u{e9}]",
            "[redacted  x]",
            "[redacted a\nb]",
            "[redacted X]",
        ] {
            assert!(!has_mask(text), "{text}");
        }
    }
}
