//! Decoding of event streams, after the HTML standard's section "Interpreting an event stream".
//!
//! Pure: bytes in, events out, the same however the bytes were split. Lines end with LF, CR or CRLF; a leading byte
//! order mark is skipped; invalid UTF-8 becomes U+FFFD; unused fields are ignored.

/// Maximum bytes of one event, over all of its lines.
pub const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// One event. An absent `event` field gives an empty `name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    /// Its `data` lines, joined by line feeds.
    pub data: String,
}

/// A line was longer than [`LINE_LIMIT`], or an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream was larger than {} MB", LINE_LIMIT / 1024 / 1024)]
pub struct TooLarge;

/// The decoder's state between two reads.
#[derive(Clone, Debug, Default)]
pub struct SseDecoder {
    /// The incomplete line so far.
    line: Vec<u8>,
    name: String,
    data: String,
    /// A `data` field, possibly empty, was read since the last event.
    any: bool,
    /// The last byte was CR: an LF that follows belongs to it.
    cr: bool,
    /// The beginning, with a possible byte order mark, was read.
    started: bool,
}

impl SseDecoder {
    /// Decodes the next bytes and passes each completed event to `out`.
    ///
    /// # Errors
    /// [`TooLarge`]; the decoder must not be used afterwards.
    pub fn feed(&mut self, mut bytes: &[u8], mut out: impl FnMut(SseEvent)) -> Result<(), TooLarge> {
        if self.cr && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
            self.cr = false;
        } else if !bytes.is_empty() {
            self.cr = false;
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            let was_cr = bytes[at] == b'\r';
            if self.line.is_empty() {
                self.take(line, &mut out)?;
            } else {
                if self.line.len() + line.len() > LINE_LIMIT {
                    return Err(TooLarge);
                }
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take(&whole, &mut out)?;
                whole.clear();
                if whole.capacity() <= 64 * 1024 {
                    self.line = whole;
                }
            }
            bytes = rest;
            if was_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.cr = true,
                }
            }
        }
        if self.line.len() + bytes.len() > LINE_LIMIT {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Interprets one line without its end.
    fn take(&mut self, mut line: &[u8], out: &mut impl FnMut(SseEvent)) -> Result<(), TooLarge> {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if self.any {
                out(SseEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) });
            }
            self.name.clear();
            self.any = false;
            return Ok(());
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(0) => return Ok(()),
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() >= LINE_LIMIT {
                    return Err(TooLarge);
                }
                if self.any {
                    self.data.push('\n');
                }
                self.data.push_str(&String::from_utf8_lossy(value));
                self.any = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
