//! Where things lie in the text: boundaries of letters, words and lines, and the rows on the screen.

use std::cell::RefCell;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Edit, RowRange, chip_number};

impl Edit {
    // ---- boundaries

    /// Grapheme boundary before `at`.
    pub fn before(&self, at: usize) -> usize {
        self.text[..at].grapheme_indices(true).next_back().map_or(0, |(i, _)| i)
    }

    /// Grapheme boundary behind `at`.
    pub fn after(&self, at: usize) -> usize {
        self.text[at..].graphemes(true).next().map_or(at, |g| at + g.len())
    }

    /// Start of the caret's line.
    pub fn line_start(&self) -> usize {
        self.text[..self.caret].rfind('\n').map_or(0, |i| i + 1)
    }

    /// End of the caret's line.
    pub fn line_end(&self) -> usize {
        self.text[self.caret..].find('\n').map_or(self.text.len(), |i| self.caret + i)
    }

    pub(super) fn word_start(&self, at: usize) -> usize {
        let word = |c: char| c.is_alphanumeric();
        let head = self.text[..at].trim_end_matches(|c| !word(c));
        head.char_indices().rev().find(|(_, c)| !word(*c)).map_or(0, |(i, c)| i + c.len_utf8())
    }

    pub(super) fn word_end(&self, at: usize) -> usize {
        let word = |c: char| c.is_alphanumeric();
        let tail = &self.text[at..];
        let start = tail.find(word).unwrap_or(tail.len());
        tail[start..].find(|c| !word(c)).map_or(self.text.len(), |i| at + start + i)
    }

    // ---- rows

    /// The visual rows at this width (in cells, at least 1). There is always one. Breaks behind white space
    /// where that is possible; a row that fills the width exactly is followed by the caret's own row only
    /// when text follows.
    pub fn rows(&self, width: usize, label: &dyn Fn(char) -> Option<String>) -> Arc<Vec<RowRange>> {
        let width = width.max(1);
        let mut known = self.wrapped.0.borrow_mut();
        if self.text.len() < LARGE {
            *known = None;
            return Arc::new(wrap(&self.text, 0, width, label));
        }
        if let Some(k) = known.as_mut().filter(|k| k.width == width && k.same_chips(label)) {
            if k.text != self.text {
                k.follow(&self.text, label);
            }
            return Arc::clone(&k.rows);
        }
        let mut new = CachedRows { width, text: self.text.clone(), ..CachedRows::default() };
        new.rows = Arc::new(wrap(&self.text, 0, width, label));
        new.note_chips(&self.text, label);
        Arc::clone(&known.insert(new).rows)
    }

    /// Row and column (in cells) of the caret among `rows`.
    pub fn position(&self, rows: &[RowRange], label: &dyn Fn(char) -> Option<String>) -> (usize, usize) {
        let row = rows.partition_point(|r| r.start <= self.caret).saturating_sub(1);
        let upto = self.caret.clamp(rows[row].start, rows[row].end);
        (row, letters(&self.text[rows[row].start..upto]).map(|(_, g)| cell_width(g, label)).sum())
    }

    /// Puts the caret at a cell of a row, for the mouse.
    pub fn click(
        &mut self,
        rows: &[RowRange],
        row: usize,
        col: usize,
        label: &dyn Fn(char) -> Option<String>,
    ) {
        let Some(range) = rows.get(row.min(rows.len().saturating_sub(1))) else { return };
        let (mut at, mut cells) = (range.start, 0);
        for g in self.text[range.clone()].graphemes(true) {
            let w = cell_width(g, label);
            if cells + w > col {
                break;
            }
            cells += w;
            at += g.len();
        }
        self.moved(at);
    }
}

/// A text of so many bytes keeps its rows: a key in it wraps the changed lines only.
const LARGE: usize = 16 << 10;
/// First byte of every chip in UTF-8.
const CHIP_BYTE: u8 = 0xF3;

/// The rows of a large text, as they were asked for last. A copy of the text begins without them.
#[derive(Debug, Default)]
pub(super) struct RowCache(RefCell<Option<CachedRows>>);

impl Clone for RowCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[derive(Debug, Default)]
struct CachedRows {
    width: usize,
    text: String,
    /// Chips in it, with the cells of their labels.
    chips: Vec<(char, usize)>,
    rows: Arc<Vec<RowRange>>,
}

impl CachedRows {
    fn same_chips(&self, label: &dyn Fn(char) -> Option<String>) -> bool {
        self.chips.iter().all(|(c, cells)| chip_width(*c, label) == *cells)
    }

    fn note_chips(&mut self, text: &str, label: &dyn Fn(char) -> Option<String>) {
        if !text.as_bytes().contains(&CHIP_BYTE) {
            return;
        }
        for c in text.chars().filter(|c| chip_number(*c).is_some()) {
            if !self.chips.iter().any(|(known, _)| *known == c) {
                self.chips.push((c, chip_width(c, label)));
            }
        }
    }

    /// Wraps the lines in which `text` differs from what is known.
    fn follow(&mut self, text: &str, label: &dyn Fn(char) -> Option<String>) {
        let (old, new) = (self.text.as_bytes(), text.as_bytes());
        let head = common(old, new);
        let tail = common_back(&old[head..], &new[head..]);
        let from = new[..head].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let rest = new.len() - tail;
        let to = new[rest..].iter().position(|b| *b == b'\n').map_or(new.len(), |at| rest + at);
        let old_to = old.len() - (new.len() - to);
        let fresh = wrap(&text[from..to], from, self.width, label);
        let rows = Arc::make_mut(&mut self.rows);
        let first = rows.partition_point(|r| r.start < from);
        let last = rows.partition_point(|r| r.start <= old_to);
        let behind = first + fresh.len();
        rows.splice(first..last, fresh);
        for row in &mut rows[behind..] {
            *row = row.start - old_to + to..row.end - old_to + to;
        }
        self.text.replace_range(from..old_to, &text[from..to]);
        self.note_chips(&text[from..to], label);
    }
}

/// Bytes that both begin with. Comparison by blocks, which is many times faster than by bytes.
fn common(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

/// Bytes that both end with.
fn common_back(a: &[u8], b: &[u8]) -> usize {
    let equal =
        a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let (a, b) = (&a[..a.len() - equal], &b[..b.len() - equal]);
    equal + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

const BLOCK: usize = 4 << 10;

#[cfg(test)]
thread_local! {
    /// Bytes that this thread has wrapped.
    pub(crate) static WRAPPED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The rows of whole lines that begin at byte `from` of the text.
fn wrap(lines: &str, mut from: usize, width: usize, label: &dyn Fn(char) -> Option<String>) -> Vec<RowRange> {
    #[cfg(test)]
    WRAPPED.set(WRAPPED.get() + lines.len());
    let mut rows = Vec::new();
    for line in lines.split('\n') {
        let (mut start, mut cells, mut space) = (from, 0, None);
        for (i, g) in letters(line) {
            let at = from + i;
            let w = cell_width(g, label);
            if cells + w > width && at > start {
                let cut = match space {
                    Some(s) if s > start && !g.starts_with(' ') => s,
                    _ => at,
                };
                rows.push(start..cut);
                cells = letters(&line[cut - from..i]).map(|(_, g)| cell_width(g, label)).sum();
                start = cut;
                space = None;
            }
            cells += w;
            if g.starts_with(char::is_whitespace) {
                space = Some(at + g.len());
            }
        }
        rows.push(start..from + line.len());
        from += line.len() + 1;
    }
    rows
}

/// Graphemes with their places. In ASCII each byte is one, which is found out much faster.
fn letters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let plain = text.is_ascii() && !text.contains('\r');
    let (plain, other) = if plain { (text, "") } else { ("", text) };
    (0..plain.len()).map(|i| (i, &plain[i..=i])).chain(other.grapheme_indices(true))
}

/// Cells of one grapheme; `label` gives the text of a chip. A tab is shown as four cells, and what cannot be
/// seen as the mark that is drawn for it.
pub fn cell_width(g: &str, label: &dyn Fn(char) -> Option<String>) -> usize {
    if let [b' '..=b'~'] = g.as_bytes() {
        return 1;
    }
    let mut chars = g.chars();
    match chars.next() {
        Some('\t') => 4,
        Some(c) if chip_number(c).is_some() => chip_width(c, label),
        Some(c) if c.is_alphanumeric() && g.len() == c.len_utf8() => g.width(),
        _ => crate::widget::draw::clean(g).width(),
    }
}

fn chip_width(c: char, label: &dyn Fn(char) -> Option<String>) -> usize {
    label(c).map_or(1, |l| l.width())
}
