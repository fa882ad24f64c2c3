//! Bytes of the world made into text for a model: no escapes, no control characters but `\n` and `\t`,
//! no broken UTF-8. Zeros become visible, because they separate names. Raw bytes stay in files.

use std::borrow::Cow;

/// An escape string (title, graphics, ...) that is longer or crosses a line end was never one.
const STRING_MAX: usize = 4096;
/// A line without end is passed on in pieces of this many bytes.
const LINE_MAX: usize = 64 * 1024;
/// Zeros in a row that no text has.
const ZEROS: usize = 64;

/// The words of a text with single spaces between them.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

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
/// line anew, backspace takes a character back, a zero becomes `␀`, other controls are dropped.
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
            c if c.is_control() && c != '\t' && c != '\0' => {}
            c => {
                // It separates names.
                let c = if c == '\0' { picture(c) } else { c };
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

/// Bytes of an output as text: UTF-8, or else the legacy encoding that they are most likely in. Bytes may be lost.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let encoding = crate::files::legacy_of(bytes).filter(|_| !is_binary(&bytes[..bytes.len().min(8192)]));
    crate::files::lossy(bytes, encoding)
}

/// Text of a file with its control characters made visible instead of dropped (`␛`, `␍`), so that the
/// model sees that they are there. `\n` and `\t` stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| picture(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(picture).collect())
}

/// The character that stands for `c` where it is shown: a picture for a control character.
pub(crate) fn picture(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        c => c,
    }
}

/// Says whether [`picture`] may have made it.
pub(crate) fn is_picture(c: char) -> bool {
    matches!(c, '\u{2400}'..='\u{2421}' | '\u{fffd}')
}

/// Control characters that are in no text: all but those of terminals and printers.
pub(crate) fn is_odd(c: char) -> bool {
    matches!(c, '\u{1}'..='\u{6}' | '\u{e}'..='\u{1a}' | '\u{1c}'..='\u{1f}')
}

/// First bytes of content that is no text, and its name.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"PK\x03\x04", "a zip archive (or office document)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ", "xz data"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java or Mach-O code"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    // Text may begin like these.
    (b"%PDF-", "a PDF document"),
    (b"BZh", "bzip2 data"),
    (b"OggS", "Ogg media"),
    (b"RIFF", "RIFF media"),
];

/// The name of the kind of content that begins with `head` and is no text.
pub(crate) fn kind(head: &[u8]) -> &'static str {
    KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map_or("binary data", |(_, kind)| kind)
}

/// Whether the start of a file or of an output looks like something that is not text. Zeros are no sign of it, as long as
/// they stand between other characters: they separate names.
pub fn is_binary(head: &[u8]) -> bool {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return false;
    }
    let text_may_begin_so = |magic: &[u8]| magic.iter().all(|b| matches!(b, b' '..=b'~'));
    if KINDS.iter().any(|(magic, _)| !text_may_begin_so(magic) && head.starts_with(magic)) {
        return true;
    }
    let zeros = head.iter().filter(|b| **b == 0).count();
    let odd = head.iter().filter(|b| is_odd(char::from(**b))).count();
    // The last character may be cut.
    let utf8 = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    // Compressed data has a tenth.
    let most = if utf8 { 10 } else { 50 };
    zeros * 2 > head.len()
        || odd * most > head.len() - zeros
        || head.split(|b| *b != 0).any(|zeros| zeros.len() >= ZEROS)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
