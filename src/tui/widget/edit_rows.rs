//! Where things lie in the text: boundaries of letters, words and lines, and the rows on the screen.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Edit, Row, chip_number};

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
    pub fn rows(&self, width: usize, label: &dyn Fn(char) -> Option<String>) -> Vec<Row> {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut from = 0;
        for line in self.text.split('\n') {
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
                    cells = letters(&self.text[cut..at]).map(|(_, g)| cell_width(g, label)).sum();
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

    /// Row and column (in cells) of the caret among `rows`.
    pub fn position(&self, rows: &[Row], label: &dyn Fn(char) -> Option<String>) -> (usize, usize) {
        let row = rows.iter().rposition(|r| r.start <= self.caret).unwrap_or(0);
        let upto = self.caret.clamp(rows[row].start, rows[row].end);
        (row, letters(&self.text[rows[row].start..upto]).map(|(_, g)| cell_width(g, label)).sum())
    }

    /// Puts the caret at a cell of a row, for the mouse.
    pub fn click(&mut self, rows: &[Row], row: usize, col: usize, label: &dyn Fn(char) -> Option<String>) {
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
        Some(c) if chip_number(c).is_some() => label(c).map_or(1, |l| l.width()),
        Some(c) if c.is_alphanumeric() && g.len() == c.len_utf8() => g.width(),
        _ => crate::widget::draw::clean(g).width(),
    }
}
