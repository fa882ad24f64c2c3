//! Masking of text that comes in chunks.

use crate::redact::Redactor;
use crate::redact::open::context;
use crate::redact::pem::undecided;
use crate::redact::shapes::next;

/// Longest text that is held back in a stream.
pub(crate) const MAX_HELD: usize = 16 * 1024;
/// A line longer than this is cut at a blank.
const MAX_LINE: usize = 4 * 1024;

/// Masks text that comes in chunks: a secret may be cut anywhere, so the last line is held back until
/// it is complete. For files and logs, not for live drawing.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    pub(crate) held: String,
}

impl RedactStream {
    /// With these known values.
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new() }
    }

    /// Takes a chunk, gives what is complete.
    pub fn push(&mut self, chunk: &str) -> String {
        self.held.push_str(chunk);
        let cut = self.cut();
        let rest = self.held.split_off(cut);
        let done = std::mem::replace(&mut self.held, rest);
        self.redactor.redact(&done).into_owned()
    }

    /// What was held back. To be called at the end.
    pub fn finish(&mut self) -> String {
        let done = std::mem::take(&mut self.held);
        self.redactor.redact(&done).into_owned()
    }

    fn cut(&self) -> usize {
        let text = self.held.as_str();
        // An open key block waits for its end.
        if let Some(begin) = undecided(text).filter(|begin| text.len() - begin < MAX_HELD) {
            return text[..begin].rfind('\n').map_or(0, |i| i + 1).min(context(text));
        }
        if let Some(begin) = text.rfind("-----BEGIN")
            && !text[begin..].contains("-----END")
            && text.len() - begin < MAX_HELD
        {
            return text[..begin].rfind('\n').map_or(0, |i| i + 1).min(begin);
        }
        if let Some(line) = text.rfind('\n') {
            let before = context(text);
            return if text.len() - before < MAX_HELD { before } else { line + 1 };
        }
        if text.len() < MAX_LINE {
            return 0;
        }
        // No line end in sight: leave at least half of what may be held.
        let limit = text.floor_char_boundary(text.len() - MAX_LINE / 2);
        text[..limit]
            .rfind(char::is_whitespace)
            .map_or_else(|| if text.len() > MAX_HELD { limit } else { 0 }, |i| next(text, i))
    }
}
