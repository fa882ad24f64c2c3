//! Output of any length in bounded memory: head and tail here, everything up to a cap on disk.

use tiller_protocol::tool::Display;

use crate::ToolCx;
use crate::files::masks::OutputMask;
use crate::files::{legacy_of, lossy};
use crate::output::{self, Spill};
use crate::text;

/// Up to here everything stays in memory and no file is made.
const WHOLE: usize = 256 << 10;
/// What is kept of each end of longer output.
const END: usize = 128 << 10;
/// Of the cleaned text that the screen gets.
const SHOWN: usize = 8 << 10;

/// Takes output as it comes.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes seen.
    pub total: u64,
    spill: Option<Spill>,
    trouble: Option<String>,
}

/// Output made ready.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// For the model: cleaned, bounded, with a pointer to the rest.
    pub model: String,
    /// For the screen: the last lines, cleaned.
    pub tail: String,
    /// The file with everything.
    pub full: Option<String>,
}

impl Text {
    /// With masks where `command` printed a file of variables.
    pub(crate) fn masked(self, command: &str, cx: &ToolCx) -> Self {
        match OutputMask::of(command, cx) {
            Some(mask) => {
                Self { model: mask.of_text(self.model), tail: mask.of_text(self.tail), full: self.full }
            }
            None => self,
        }
    }

    pub(crate) fn display(&self, exit: Option<i32>) -> Display {
        Display::Output { tail: self.tail.clone(), exit, full: self.full.clone() }
    }
}

impl Capture {
    /// Takes more. Writes to the page cache only, so it does not wait for a disk that is well.
    pub(crate) fn push(&mut self, bytes: &[u8], cx: &ToolCx) {
        let whole = self.total as usize <= WHOLE && self.head.len() + bytes.len() <= WHOLE;
        self.total += bytes.len() as u64;
        if whole && self.tail.is_empty() && self.spill.is_none() {
            self.head.extend_from_slice(bytes);
            return;
        }
        if self.spill.is_none() && self.trouble.is_none() {
            self.keep(cx);
            self.tail = self.head.split_off(END.min(self.head.len()));
        }
        if let Some(spill) = &mut self.spill
            && let Err(e) = spill.write(bytes)
        {
            self.trouble = Some(e.to_string());
            self.spill = None;
        }
        let room = if self.tail.is_empty() { END.saturating_sub(self.head.len()) } else { 0 };
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(2 * END)..]);
        if self.tail.len() > 2 * END {
            self.tail.drain(..self.tail.len() - END);
        }
    }

    /// Puts what is in memory into a spill file.
    fn keep(&mut self, cx: &ToolCx) {
        let made = Spill::create(cx).and_then(|mut spill| {
            spill.write(&self.head)?;
            Ok(spill)
        });
        match made {
            Ok(spill) => self.spill = Some(spill),
            Err(e) => self.trouble = Some(e.to_string()),
        }
    }

    /// Bytes that are neither in the head nor in the tail.
    fn gap(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }

    /// Ends it. Raw bytes that the cleaned text does not show are kept on disk.
    pub(crate) fn finish(mut self, cx: &ToolCx) -> Text {
        let limit = cx.limits.output_bytes;
        let binary = text::is_binary(&self.head[..self.head.len().min(8 << 10)]);
        let gap = self.gap();
        if gap == 0 {
            self.head.append(&mut self.tail);
        }
        let encoding = legacy_of(&self.head).filter(|_| !binary);
        let clean = |bytes| text::clean(lossy(bytes, encoding).as_bytes());
        let (mut head, tail) = if gap > 0 {
            (clean(&self.head), clean(after_line_end(&self.tail)))
        } else {
            (clean(&self.head), String::new())
        };
        let altered = binary || !plain(&self.head) || gap > 0 && !plain(&self.tail);
        if self.spill.is_none() && self.trouble.is_none() && (altered || head.len() > limit) {
            self.keep(cx);
        }
        let pointer = match (&self.spill, &self.trouble) {
            (Some(spill), _) => spill.pointer(),
            (None, Some(e)) => format!("the full output could not be kept: {e}"),
            (None, None) => String::new(),
        };
        let full = self.spill.as_ref().map(|s| s.path().display().to_string());
        let shown = if gap > 0 { &tail } else { &head };
        let shown = shown[shown.ceil_char_boundary(shown.len().saturating_sub(SHOWN))..].to_owned();
        if binary {
            let size = output::human(self.total);
            let kept = self.spill.as_ref().map_or(pointer, Spill::bytes_pointer);
            let model = format!("[binary output, {size}, not shown; {kept}]\n");
            return Text { tail: model.clone(), model, full };
        }
        if gap > 0 {
            // Both ends come with their share of the limit; the marker counts what is missing in all.
            head.truncate(line_end_before(&head, limit / 5 * 3));
            let from = line_start_after(&tail, tail.len().saturating_sub(limit / 5 * 2));
            let missing = self.total.saturating_sub((head.len() + tail.len() - from) as u64);
            let size = output::human(missing);
            let model = format!("{head}[... about {size} left out; {pointer} ...]\n{}", &tail[from..]);
            return Text { model, tail: shown, full };
        }
        let model = output::cut_middle(&head, limit, &pointer).unwrap_or(head);
        Text { model, tail: shown, full }
    }
}

/// Whether cleaning would only change line ends.
fn plain(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|s| !s.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')))
}

fn after_line_end(bytes: &[u8]) -> &[u8] {
    let near = bytes.iter().take(4096).position(|b| *b == b'\n');
    near.map_or(bytes, |at| &bytes[at + 1..])
}

fn line_end_before(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    text[..at].rfind('\n').filter(|n| at - n < 4096).map_or(at, |n| n + 1)
}

fn line_start_after(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    text[at..].find('\n').filter(|n| *n < 4096).map_or(at, |n| at + n + 1)
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
