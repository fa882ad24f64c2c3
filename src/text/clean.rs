//! Makes foreign text safe for the terminal. Controls, escapes, direction marks and invisible characters turn into
//! visible marks (`\x1b`, `<U+202E>`); what people write (accents, wide characters, joined emoji) stays.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Columns of a tab stop.
pub const TAB: usize = 4;

/// Combining marks on one base character that are drawn; further ones are replaced by visible marks.
const MARKS: usize = 6;

/// How strict to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Running text: odd blanks become blanks, a joiner between letters stays.
    Prose,
    /// Paths, commands, code, diffs: every look-alike of the blank becomes a visible mark.
    Strict,
}

/// A piece of cleaned text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// May be drawn as it is.
    Text(&'a str),
    /// A tab, to be expanded to the next tab stop.
    Tab,
    /// A visible mark in place of a character that must not be drawn.
    Mark(&'a str),
}

/// Whether `text` may be drawn as it is: printable ASCII only.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, 0x20..=0x7e))
}

/// Cleans one line of text into pieces, in order. Line ends count as controls: split lines first
/// ([`lines`]).
pub fn pieces(text: &str, mode: Mode, mut out: impl FnMut(Piece<'_>)) {
    if text.is_empty() {
        return;
    }
    if is_plain(text) {
        return out(Piece::Text(text));
    }
    let mut mark = String::new();
    let mut start = 0; // Start of the text that was not passed to `out` yet.
    let mut prev: Option<char> = None;
    let mut marks = 0; // combining marks since the last base
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        if let Some(len) = flag_tags(c, &text[next..]) {
            at = next + len;
            prev = Some(c);
            continue;
        }
        let verdict = judge(c, prev, &text[next..], mode, &mut marks);
        if verdict != Verdict::Keep {
            if start < at {
                out(Piece::Text(&text[start..at]));
            }
            match verdict {
                Verdict::Tab => out(Piece::Tab),
                Verdict::Blank => out(Piece::Text(" ")),
                Verdict::Keep | Verdict::Mark => {
                    mark.clear();
                    spell(c, &mut mark);
                    out(Piece::Mark(&mark));
                }
            }
            start = next;
        }
        prev = (verdict == Verdict::Keep).then_some(c);
        at = next;
    }
    if start < text.len() {
        out(Piece::Text(&text[start..]));
    }
}

/// One line as plain text with marks, for names and titles. Strict.
pub fn plain(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut s = String::with_capacity(text.len() + 16);
    pieces(text, Mode::Strict, |p| match p {
        Piece::Text(t) | Piece::Mark(t) => s.push_str(t),
        Piece::Tab => s.push_str("    "),
    });
    Cow::Owned(s)
}

/// Several lines as plain text with marks; `\n` stays, `\r\n` becomes `\n`. Strict.
pub fn plain_lines(text: &str) -> String {
    lines(text).map(plain).collect::<Vec<_>>().join("\n")
}

/// Several lines for a model: what cannot be seen becomes a visible mark, so that a file hides nothing from the person who
/// reads it. Tabs stay, odd blanks become blanks.
pub fn visible(text: &str) -> String {
    let mut s = String::with_capacity(text.len());
    for (at, line) in lines(text).enumerate() {
        if at > 0 {
            s.push('\n');
        }
        pieces(line, Mode::Prose, |p| match p {
            Piece::Text(t) | Piece::Mark(t) => s.push_str(t),
            Piece::Tab => s.push('\t'),
        });
    }
    s
}

/// The lines of `text` without their ends; `\r\n` counts as one end. An end at the very end opens no
/// further line.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l))
}

/// Bytes that may not be UTF-8, as text: each bad byte becomes `\xNN`. Not yet clean.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut s = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        s.push_str(chunk.valid());
        for b in chunk.invalid() {
            let _ = write!(s, "\\x{b:02x}");
        }
    }
    s
}

/// Writes the stand-in for `c`.
fn spell(c: char, out: &mut String) {
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", c as u32),
        _ => write!(out, "<U+{:04X}>", c as u32),
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Keep,
    Blank,
    Tab,
    Mark,
}

fn judge(c: char, prev: Option<char>, after: &str, mode: Mode, marks: &mut usize) -> Verdict {
    use Verdict::{Blank, Keep, Mark, Tab};
    let by_mode = |prose: Verdict| if mode == Mode::Prose { prose } else { Mark };
    if is_combining(c) {
        *marks += 1;
        return if *marks > MARKS || prev.is_none_or(|p| p.is_ascii_whitespace()) { Mark } else { Keep };
    }
    *marks = 0;
    match c {
        ' '..='~' => Keep,
        '\t' => Tab,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => Mark,
        // Look-alikes of the blank.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => by_mode(Blank),
        '\u{3000}' => by_mode(Keep),
        // Joiners are kept only where a script needs them.
        '\u{200d}' => {
            let next = after.chars().next();
            let emoji = prev.is_some_and(is_emoji_part) && next.is_some_and(is_emoji);
            if emoji || (prev.is_some_and(is_joining) && next.is_some_and(is_joining)) { Keep } else { Mark }
        }
        '\u{200c}' => {
            let joined = prev.is_some_and(is_joining) && after.chars().next().is_some_and(is_joining);
            if joined { by_mode(Keep) } else { Mark }
        }
        '\u{fe0e}' | '\u{fe0f}' => {
            let keycap =
                prev.is_some_and(|p| matches!(p, '0'..='9' | '#' | '*')) && after.starts_with('\u{20e3}');
            if keycap || prev.is_some_and(is_emoji) { Keep } else { Mark }
        }
        _ if is_invisible(c) => Mark,
        _ => Keep,
    }
}

/// Length of a valid tag sequence after a black flag (England, Scotland, ...).
fn flag_tags(c: char, after: &str) -> Option<usize> {
    if c != '\u{1f3f4}' {
        return None;
    }
    let tags = after
        .chars()
        .take_while(|c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}'))
        .count();
    let len = tags * 4;
    ((3..=6).contains(&tags) && after[len..].starts_with('\u{e007f}')).then_some(len + 4)
}

/// Characters that draw nothing, or change how neighbouring characters are drawn. Joiners and the two variation selectors
/// of emoji are not among them, nor are control characters.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || (c as u32) & 0xfffe == 0xfffe // noncharacters
        || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

/// Marks that combine with the character before them, in the blocks that are used to spill marks over other lines.
fn is_combining(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{6d6}'..='\u{6dc}' | '\u{e31}'
        | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20f0}' | '\u{3099}' | '\u{309a}' | '\u{fe20}'..='\u{fe2f}')
}

/// Letters of scripts that need joiners. What is shown as its number is none: a joiner beside it would join nothing.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18aa}')
        && !is_invisible(c)
}

fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// An emoji, or something that may stand between it and a joiner.
fn is_emoji_part(c: char) -> bool {
    is_emoji(c) || c == '\u{fe0f}'
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
