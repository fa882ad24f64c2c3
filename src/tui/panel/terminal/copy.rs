//! Copy mode over the program's screen and its history: the screen is frozen while text is selected.

use tiller_protocol::GridRun;
use unicode_segmentation::UnicodeSegmentation;

use super::screen::text;
use crate::panel::conversation::copy_mode::{next, previous};
use crate::text::width::width;

/// The frozen screen with a caret and a selection.
pub(super) struct CopyView {
    pub(super) rows: Vec<Vec<GridRun>>,
    lines: Vec<String>,
    /// Line and byte.
    pub(super) caret: (usize, usize),
    pub(super) mark: Option<(usize, usize)>,
    /// Whole lines.
    whole: bool,
    /// Column that moves up and down aim at.
    column: usize,
    /// The first line that is shown, and how many are.
    pub(super) top: usize,
    height: usize,
}

impl CopyView {
    /// Of a screen, with the caret on its last line that has text.
    pub(super) fn new(rows: Vec<Vec<GridRun>>, height: usize) -> Self {
        let lines: Vec<String> = rows.iter().map(|r| text(r)).collect();
        let last = lines.iter().rposition(|l| !l.is_empty()).unwrap_or(0);
        let top = lines.len().saturating_sub(height);
        Self { rows, lines, caret: (last, 0), mark: None, whole: false, column: 0, top, height }
    }

    /// Adds the history above the frozen screen.
    pub(super) fn above(&mut self, mut history: Vec<Vec<GridRun>>) {
        let more = history.len();
        self.lines.splice(0..0, history.iter().map(|r| text(r)));
        history.append(&mut self.rows);
        self.rows = history;
        self.caret.0 += more;
        self.mark = self.mark.map(|(line, byte)| (line + more, byte));
        self.top += more;
    }

    pub(super) fn resize(&mut self, height: usize) {
        if height != self.height {
            self.height = height.max(1);
            self.show();
        }
    }

    fn line(&self) -> &str {
        self.lines.get(self.caret.0).map_or("", String::as_str)
    }

    /// Puts the caret where the mouse is; `mark`: a selection begins there.
    pub(super) fn point(&mut self, line: usize, column: usize, mark: bool) {
        self.caret.0 = (self.top + line).min(self.lines.len().saturating_sub(1));
        self.caret.1 = byte_at(self.line(), column);
        if mark {
            (self.mark, self.whole) = (Some(self.caret), false);
        }
    }

    /// Scrolls, and keeps the caret on the screen.
    pub(super) fn scroll(&mut self, by: isize) {
        let most = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(most);
        let line = self.caret.0.clamp(self.top, self.top + self.height - 1);
        if line != self.caret.0 {
            self.caret = (line, 0);
        }
    }

    /// At the end, with nothing selected: copy mode ends.
    pub(super) fn at_end(&self) -> bool {
        self.mark.is_none() && self.top + self.height >= self.lines.len()
    }

    /// Does one move; `false`: it is none.
    pub(super) fn act(&mut self, id: &str) -> bool {
        let half = (self.height / 2).max(1) as isize;
        let vertical = match id {
            "copy.up" | "list.up" => -1,
            "copy.down" | "list.down" => 1,
            "copy.half_up" => -half,
            "copy.half_down" => half,
            "list.page_up" | "conversation.page_up" => -2 * half,
            "list.page_down" | "conversation.page_down" => 2 * half,
            "list.first" | "conversation.first" => isize::MIN / 2,
            "list.last" | "conversation.last" => isize::MAX / 2,
            _ => 0,
        };
        if vertical != 0 {
            let last = self.lines.len().saturating_sub(1);
            self.caret.0 = self.caret.0.saturating_add_signed(vertical).min(last);
            self.caret.1 = byte_at(self.line(), self.column);
            self.show();
            return true;
        }
        let at = self.caret.1;
        match id {
            "copy.left" => self.caret.1 = at - previous(self.line(), at),
            "copy.right" => {
                let to = at + next(self.line(), at) as usize;
                if to < self.line().len() {
                    self.caret.1 = to;
                }
            }
            "copy.word" | "copy.word_back" => {
                let words = self.line().unicode_word_indices().map(|(n, _)| n);
                let found = if id == "copy.word" {
                    words.into_iter().find(|n| *n > at)
                } else {
                    words.take_while(|n| *n < at).max()
                };
                match (found, id) {
                    (Some(n), _) => self.caret.1 = n,
                    (None, "copy.word") if self.caret.0 + 1 < self.lines.len() => {
                        self.caret = (self.caret.0 + 1, 0);
                    }
                    (None, "copy.word_back") if self.caret.0 > 0 => {
                        self.caret.0 -= 1;
                        let line = self.line();
                        self.caret.1 = line.unicode_word_indices().next_back().map_or(0, |(n, _)| n);
                    }
                    _ => {}
                }
            }
            "copy.line_start" => self.caret.1 = 0,
            "copy.line_end" => {
                let line = self.line();
                self.caret.1 = line.len() - previous(line, line.len());
            }
            "copy.mark" | "list.mark" => self.choose(false),
            "copy.mark_line" => self.choose(true),
            _ => return false,
        }
        self.column = self.column_of(self.caret);
        self.show();
        true
    }

    fn choose(&mut self, whole: bool) {
        let off = self.mark.is_some() && self.whole == whole;
        self.mark = if off { None } else { Some(self.mark.unwrap_or(self.caret)) };
        self.whole = whole;
    }

    fn show(&mut self) {
        self.top = self.top.min(self.caret.0).max((self.caret.0 + 1).saturating_sub(self.height));
    }

    fn column_of(&self, (line, byte): (usize, usize)) -> usize {
        self.lines.get(line).and_then(|l| l.get(..byte)).map_or(0, width)
    }

    /// Where the caret is on the screen.
    pub(super) fn at(&self) -> (u16, u16) {
        (self.column_of(self.caret) as u16, self.caret.0.saturating_sub(self.top) as u16)
    }

    /// From and to, the end not part of it.
    fn range(&self) -> Option<((usize, usize), (usize, usize))> {
        let mark = self.mark?;
        let (a, mut b) = (mark.min(self.caret), mark.max(self.caret));
        let end = self.lines.get(b.0).map_or("", String::as_str);
        if self.whole {
            return Some(((a.0, 0), (b.0, end.len())));
        }
        b.1 += next(end, b.1) as usize;
        Some((a, b))
    }

    /// Columns of a line that are chosen.
    pub(super) fn chosen(&self, line: usize) -> Option<(u16, u16)> {
        let (a, b) = self.range()?;
        if line < a.0 || line > b.0 {
            return None;
        }
        let from = if line == a.0 { self.column_of(a) } else { 0 };
        let to = if line == b.0 { self.column_of(b) } else { width(self.lines.get(line)?) };
        Some((from as u16, to as u16))
    }

    /// Returns what is chosen, else the line of the caret.
    pub(super) fn taken(&self) -> String {
        let Some((a, b)) = self.range() else { return self.line().to_owned() };
        let mut out = Vec::new();
        for at in a.0..=b.0 {
            let Some(line) = self.lines.get(at) else { break };
            let from = if at == a.0 { a.1 } else { 0 };
            let to = if at == b.0 { b.1.min(line.len()) } else { line.len() };
            out.push(line.get(from..to).unwrap_or_default().trim_end());
        }
        out.join("\n")
    }
}

/// The character at a column; behind the end: the last one.
fn byte_at(line: &str, column: usize) -> usize {
    let mut used = 0;
    let mut at = 0;
    for (n, g) in line.grapheme_indices(true) {
        at = n;
        used += crate::text::width::grapheme(g);
        if used > column {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<GridRun>> {
        text.lines().map(|t| vec![GridRun { text: t.into(), ..GridRun::default() }]).collect()
    }

    #[test]
    fn text_is_chosen_by_the_keys_of_copy_mode_over_what_scrolled_away() {
        let mut c = CopyView::new(rows("alpha beta\n漢字 gamma\n\n"), 4);
        assert_eq!(c.taken(), "漢字 gamma");
        c.act("copy.mark");
        c.act("copy.word");
        c.act("copy.word");
        assert_eq!(c.taken(), "漢字 g");
        assert_eq!(c.chosen(1), Some((0, 6)));
        assert_eq!((c.chosen(0), c.chosen(2), c.at()), (None, None, (5, 1)));
        c.above(rows("old one\nold two"));
        assert_eq!((c.taken().as_str(), c.top), ("漢字 g", 2));
        c.act("copy.mark_line");
        c.act("list.first");
        assert_eq!(c.taken(), "old one\nold two\nalpha beta\n漢字 gamma");
        assert_eq!((c.top, c.at_end()), (0, false));
        c.act("copy.mark_line");
        c.act("list.last");
        assert!(c.at_end());
        c.point(0, 3, true);
        c.point(0, 99, false);
        assert_eq!(c.taken(), " two");
        for id in
            ["copy.left", "copy.right", "copy.word_back", "copy.line_end", "copy.half_up", "list.page_down"]
        {
            assert!(c.act(id), "{id}");
        }
        assert!(!c.act("copy.take"));
        let mut none = CopyView::new(Vec::new(), 3);
        none.act("copy.down");
        none.scroll(-5);
        assert_eq!(none.taken(), "");
    }
}
