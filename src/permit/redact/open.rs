//! Text that is shown while it comes: whether its last word may still become a part of a secret. If it cannot, the
//! word is shown as it grows; most words are, and the others wait for their end.

use crate::redact::Redactor;
use crate::redact::shapes::{RULES, word_begins};
use crate::redact::values::strong;
use crate::redact::{names_a_secret, structure, views};

/// Longer words are not looked at: they wait.
const LONGEST: usize = 64;

/// Characters before `-us1` in a key.
const HEX: usize = 32;

/// Characters of the shortest word that is too random for a name.
const RANDOM: usize = 20;

/// Digits that a colon may follow in a token.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=10;

/// Whether `c` is a part of a word, as far as secrets go: they are runs of visible ASCII.
pub fn grows(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | ';')
}

impl Redactor {
    /// Whether the last word of `text` (all of [`grows`] at its end) may be masked, or be a part of what is masked,
    /// once more of it is there. `text` holds the line above, too: names stand before their values.
    pub fn may_grow(&self, text: &str) -> bool {
        let before = text.trim_end_matches(grows);
        let word = &text[before.len()..];
        if word.is_empty() {
            return false;
        }
        word.len() > LONGEST
            || self.may_be_known(word)
            || may_be_shape(before, word)
            || may_be_read(word)
            || named(text)
    }

    /// Whether a known value may have begun anywhere in the word.
    fn may_be_known(&self, word: &str) -> bool {
        (0..word.len()).any(|at| self.known.iter().any(|known| known.starts_with(&word[at..])))
    }
}

/// One is the beginning of the other.
fn agree(a: &str, b: &str) -> bool {
    let n = a.len().min(b.len());
    a.as_bytes()[..n] == b.as_bytes()[..n]
}

fn may_be_shape(before: &str, word: &str) -> bool {
    if word.contains("://") {
        return true;
    }
    (0..word.len()).any(|at| {
        let (head, here) = word.split_at(at);
        // In the middle of a word no shape begins, but for those that bring their own first sign.
        let inner = head.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+'))
            && !here.starts_with(['?', '&', '-'])
            && !word_begins(&format!("{}{head}", before.rsplit('\n').next().unwrap_or(before)));
        !inner && begins_shape(here) || here.len() > 1 && RULES.within.iter().any(|sign| agree(sign, here))
    })
}

fn begins_shape(here: &str) -> bool {
    let digits = here.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &here[digits..];
    RULES.signs.iter().any(|sign| {
        let n = sign.len().min(here.len());
        sign[..n] == here.as_bytes()[..n]
    })
        // Hex is followed by `-us1`.
        || (here.len() <= HEX && (digits < here.len() || digits <= *DIGITS.end()) && here.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
        || (here.as_bytes().get(..HEX).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) && agree("-us", &here[HEX..]))
        // `12345678:AA…`
        || (digits > 0 && rest.is_empty() && digits <= *DIGITS.end())
        || (DIGITS.contains(&digits) && agree(":AA", rest))
        // `Mxxx….xxxxxx.xxx…`
        || (here.starts_with(['M', 'N', 'O'])
            && here.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')))
}

/// Whether the word may hold a text as base64 or as addresses spell it, a line of a file of passwords, or is random.
fn may_be_read(word: &str) -> bool {
    word.contains('%')
        || word.matches(':').count() > 2
        || word.len() >= RANDOM && strong(word)
        || word.split(|c: char| !views::is_base64(c)).any(views::may_be_text)
}

/// Whether the last lines name something whose value is secret.
fn named(text: &str) -> bool {
    let above = &text[context(text)..];
    names_a_secret(above) || structure::marks(above)
}

/// Lines and bytes above the end of a text that may say what it is.
const LINES: usize = 60;
const WINDOW: usize = 8 << 10;

/// Where the part of a text begins that says what the text behind it is: the last whole line, lines above it that name
/// secrets, and those in which a value begins that is still open.
pub fn context(text: &str) -> usize {
    let Some(end) = text.rfind('\n') else { return 0 };
    let floor = text.len().saturating_sub(WINDOW);
    let mut start = text[..end].rfind('\n').map_or(0, |i| i + 1);
    let (mut line, mut near) = (start, true);
    for n in 0..LINES {
        if line == 0 || line < floor {
            break;
        }
        let above = text[..line - 1].rfind('\n').map_or(0, |i| i + 1);
        let here = text[above..line].trim_end();
        // A name and its value may stand on two lines, and two names in front of it: a machine and a login.
        near &= n < 3 && names_a_secret(here);
        if near || opens(here) {
            start = above;
        }
        line = above;
    }
    start
}

/// Whether what a line begins goes on below it.
fn opens(line: &str) -> bool {
    let open = line.ends_with([
        ':', '[', '{', '(', '=', '|', '>', '\\', '+', '.', '&', '-', '~', '`', '"', '\'', '_', ',',
    ]);
    open && (names_a_secret(line) || line.ends_with('\\')) || structure::marks(line)
}

#[cfg(test)]
#[path = "tests/open_tests.rs"]
mod tests;
