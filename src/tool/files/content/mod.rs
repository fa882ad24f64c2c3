//! Pages of text: by line with numbers, or by byte.

pub(crate) mod encoding;
pub(crate) mod ends;
pub(crate) mod image;
pub(crate) mod large;
pub(crate) mod notebook;
mod utf16;

use crate::files::masks::MaskedText;
use crate::text::visible;

/// What part was asked for. Lines are 1-based and inclusive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub byte: Option<u64>,
}

/// One page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// With line numbers, clean, and a last line in brackets that says what there is more.
    pub text: String,
    /// Lines on it.
    pub lines: u64,
}

/// Collects lines until the page is full.
#[derive(Debug)]
pub(crate) struct Pager {
    limit: usize,
    text: String,
    next: u64,
    lines: u64,
}

impl Pager {
    pub(crate) fn new(limit: usize, first: u64) -> Self {
        Self { limit, text: String::new(), next: first, lines: 0 }
    }

    /// Adds the next line, without its end; `false`: it does not fit any more. A first line that is longer
    /// than the page is cut; then `Some(bytes taken)` comes back.
    pub(crate) fn add(&mut self, line: &str) -> Result<(), Option<usize>> {
        let number = self.next.to_string();
        let room = self.limit.saturating_sub(self.text.len());
        if line.len() + number.len() + 2 > room {
            if self.lines > 0 {
                return Err(None);
            }
            let cut = line.floor_char_boundary(room.saturating_sub(number.len() + 2).max(4));
            self.push(&number, &line[..cut]);
            return Err(Some(cut));
        }
        self.push(&number, line);
        Ok(())
    }

    fn push(&mut self, number: &str, line: &str) {
        self.text.push_str(number);
        self.text.push('\t');
        self.text.push_str(&visible(line));
        self.text.push('\n');
        self.next += 1;
        self.lines += 1;
    }

    /// The next line is the `number`th.
    fn at(&mut self, number: u64) {
        self.next = number;
    }

    /// Number of the line that would come next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn finish(mut self, note: &str) -> Page {
        if !note.is_empty() {
            self.text.push_str(&format!("[{note}]\n"));
        }
        Page { text: self.text, lines: self.lines }
    }
}

/// A page of text that is all in memory. Lines and bytes are counted in the real text; what is shown is masked. A value
/// of several lines is one mask on its first line.
pub(crate) fn of_text(file: &MaskedText<'_>, range: Range, limit: usize) -> Result<Page, String> {
    if let Some(byte) = range.byte {
        return by_byte(file, byte, limit);
    }
    let text = file.real();
    let total = text.lines().count() as u64;
    let first = range.start.unwrap_or(1).max(1);
    if total == 0 && first == 1 {
        return Ok(Page { text: "[the file is empty]\n".into(), lines: 0 });
    }
    if first > total {
        return Err(format!("there are only {total} lines"));
    }
    let last = range.end.unwrap_or(u64::MAX).min(total);
    if last < first {
        return Err(format!("the range {first}-{last} is empty; the file has {total} lines"));
    }
    let mut pager = Pager::new(limit, first);
    // Where the line begins in the masked and in the real text, and its number.
    let (mut at, mut real, mut number) = (0, 0, 1);
    for line in file.shown().split_inclusive('\n') {
        if number > last {
            break;
        }
        let (start, next) = (at, at + line.len());
        // A line end is never inside of a mask.
        let real_next = file.to_real(next).unwrap_or_else(|r| r.end);
        let following = number + text[real..real_next].matches('\n').count().max(1) as u64;
        (at, real) = (next, real_next);
        if following <= first {
            number = following;
            continue;
        }
        let bare = line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l));
        pager.at(number);
        match pager.add(bare) {
            Ok(()) => {}
            Err(None) => break,
            Err(Some(cut)) => {
                let goes_on = file.to_real(start + cut).unwrap_or_else(|r| r.end);
                return Ok(
                    pager.finish(&format!("line {number} of {total} continues; next page: byte={goes_on}"))
                );
            }
        }
        number = following;
        pager.at(number);
    }
    let next = pager.next();
    let note = if next <= last {
        format!("lines {first}-{} of {total}; next page: start={next}", next - 1)
    } else if next <= total {
        format!("lines {first}-{} of {total}", next - 1)
    } else if !text.ends_with('\n') {
        "no newline at the end of the file".into()
    } else {
        String::new()
    };
    Ok(pager.finish(&note))
}

fn by_byte(file: &MaskedText<'_>, byte: u64, limit: usize) -> Result<Page, String> {
    let text = file.real();
    let at = usize::try_from(byte).unwrap_or(usize::MAX);
    if at > text.len() {
        return Err(format!("there are only {} bytes", text.len()));
    }
    // A value is shown as a whole mask, however the page cuts it.
    let at = file
        .to_shown(text.floor_char_boundary(at))
        .map_or_else(|r| r.start, |_| text.floor_char_boundary(at));
    let end = text.floor_char_boundary((at + limit).min(text.len()));
    let end = file.to_shown(end).map_or_else(|r| r.end, |_| end);
    let more = if end < text.len() {
        format!("\n[bytes {at}-{end} of {}; next page: byte={end}]\n", text.len())
    } else {
        format!("\n[bytes {at}-{end}: the end]\n")
    };
    let lines = text[at..end].lines().count() as u64;
    let piece = file.part(at..end);
    Ok(Page { text: format!("{}{more}", visible(piece.shown())), lines })
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "round_trip_tests.rs"]
mod round_trip_tests;
