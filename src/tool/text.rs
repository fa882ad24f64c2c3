//! Bytes of the world made into text for a model: no escapes, no control characters but `\n` and `\t`,
//! no broken UTF-8. Raw bytes stay in files.

use std::borrow::Cow;

/// An escape string (title, graphics, ...) that is longer or crosses a line end was never one.
const STRING_MAX: usize = 4096;
/// A line without end is passed on in pieces of this many bytes.
const LINE_MAX: usize = 64 * 1024;

/// Where in an escape sequence the stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// Parameters and intermediates up to a final character.
    Csi,
    /// `ESC ( B` and kin: one more character.
    Intermediate,
    /// Up to BEL or `ESC \`; holds the length so far.
    String(usize),
    StringEscape(usize),
}

/// Cleans a stream of terminal output piece by piece: escape sequences go, carriage return starts the
/// line anew, backspace takes a character back, other controls are dropped.
#[derive(Debug, Default)]
pub struct Cleaner {
    state: State,
    /// Start of a character whose rest has not come yet (at most 3 bytes).
    half: Vec<u8>,
    line: String,
    returned: bool,
}

impl Cleaner {
    /// Takes more bytes; appends the lines that are whole to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.half.is_empty() {
            bytes
        } else {
            let mut all = std::mem::take(&mut self.half);
            all.extend_from_slice(bytes);
            joined = all;
            &joined
        };
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text, out);
                    return;
                }
                Err(e) => {
                    let (good, bad) = rest.split_at(e.valid_up_to());
                    // Always valid; lossy only spares an unwrap.
                    self.text(&String::from_utf8_lossy(good), out);
                    let Some(len) = e.error_len() else {
                        self.half = bad.to_vec();
                        return;
                    };
                    self.char('\u{fffd}', out);
                    rest = &bad[len..];
                }
            }
        }
    }

    /// The line that has no end yet.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Ends the stream; appends what is left.
    pub fn finish(mut self, out: &mut String) {
        if !self.half.is_empty() {
            self.char('\u{fffd}', out);
        }
        out.push_str(&self.line);
    }

    fn text(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.char(c, out);
        }
    }

    fn char(&mut self, c: char, out: &mut String) {
        match self.state {
            State::Ground => self.ground(c, out),
            State::Escape => {
                self.state = match c {
                    '[' => State::Csi,
                    ']' | 'P' | 'X' | '^' | '_' => State::String(0),
                    '\u{20}'..='\u{2f}' => State::Intermediate,
                    '\u{1b}' => State::Escape,
                    _ => State::Ground,
                };
                if c == '\n' {
                    self.ground(c, out);
                }
            }
            State::Intermediate | State::Csi => match c {
                '\u{1b}' => self.state = State::Escape,
                '\n' | '\r' => {
                    self.state = State::Ground;
                    self.ground(c, out);
                }
                '\u{20}'..='\u{2f}' => {}
                '\u{30}'..='\u{3f}' if self.state == State::Csi => {}
                _ => self.state = State::Ground,
            },
            State::String(n) => match c {
                '\u{7}' | '\u{9c}' => self.state = State::Ground,
                '\u{1b}' => self.state = State::StringEscape(n),
                '\n' => {
                    self.state = State::Ground;
                    self.ground(c, out);
                }
                _ if n >= STRING_MAX => self.state = State::Ground,
                _ => self.state = State::String(n + 1),
            },
            State::StringEscape(n) => {
                self.state = if c == '\\' { State::Ground } else { State::Escape };
                if self.state == State::Escape && n < STRING_MAX {
                    self.char(c, out);
                }
            }
        }
    }

    fn ground(&mut self, c: char, out: &mut String) {
        match c {
            '\n' => {
                self.returned = false;
                out.push_str(&self.line);
                out.push('\n');
                self.line.clear();
            }
            '\r' => self.returned = true,
            '\u{8}' => {
                self.line.pop();
            }
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::String(0),
            c if c.is_control() && c != '\t' => {}
            c => {
                if std::mem::take(&mut self.returned) {
                    self.line.clear();
                }
                self.line.push(c);
                if self.line.len() >= LINE_MAX {
                    out.push_str(&self.line);
                    self.line.clear();
                }
            }
        }
    }
}

/// Cleans output that is all there.
pub fn clean(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut cleaner = Cleaner::default();
    cleaner.push(bytes, &mut out);
    cleaner.finish(&mut out);
    out
}

/// Text of a file with its control characters made visible instead of dropped (`␛`, `␍`), so that the
/// model sees that they are there. `\n` and `\t` stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        c if !odd(c) => c,
        '\u{7f}' => '\u{2421}',
        c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(picture).collect())
}

/// Whether the start of a file looks like something that is not text.
pub fn is_binary(head: &[u8]) -> bool {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return false;
    }
    let odd =
        head.iter().filter(|b| **b < 0x20 && !matches!(**b, b'\n' | b'\t' | b'\r' | 0x0c | 0x1b)).count();
    head.contains(&0) || odd * 10 > head.len()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
