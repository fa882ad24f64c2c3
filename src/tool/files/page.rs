//! Pages of text: by line with numbers, or by byte.

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

/// A page of text that is all in memory.
pub(crate) fn of_text(text: &str, range: Range, limit: usize) -> Result<Page, String> {
    if let Some(byte) = range.byte {
        return by_byte(text, byte, limit);
    }
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
    let mut at = text.split_inclusive('\n').take(first as usize - 1).map(str::len).sum::<usize>();
    for line in text[at..].split_inclusive('\n').take((last - first + 1) as usize) {
        let bare = line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l));
        match pager.add(bare) {
            Ok(()) => at += line.len(),
            Err(None) => break,
            Err(Some(cut)) => {
                let n = pager.next() - 1;
                return Ok(
                    pager.finish(&format!("line {n} of {total} goes on; next page: byte={}", at + cut))
                );
            }
        }
    }
    let next = pager.next();
    let note = if next <= last {
        format!("lines {first}-{} of {total}; next page: start={next}", next - 1)
    } else if next <= total {
        format!("lines {first}-{} of {total}", next - 1)
    } else if !text.ends_with('\n') {
        "no line end at the end of the file".into()
    } else {
        String::new()
    };
    Ok(pager.finish(&note))
}

fn by_byte(text: &str, byte: u64, limit: usize) -> Result<Page, String> {
    let at = usize::try_from(byte).unwrap_or(usize::MAX);
    if at > text.len() {
        return Err(format!("there are only {} bytes", text.len()));
    }
    let at = text.floor_char_boundary(at);
    let end = text.floor_char_boundary((at + limit).min(text.len()));
    let more = if end < text.len() {
        format!("\n[bytes {at}-{end} of {}; next page: byte={end}]\n", text.len())
    } else {
        format!("\n[bytes {at}-{end}: the end]\n")
    };
    let piece = &text[at..end];
    Ok(Page { text: format!("{}{more}", visible(piece)), lines: piece.lines().count() as u64 })
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
