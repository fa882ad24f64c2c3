//! Copy mode: a caret in the text, moved by the keys of vim and emacs; a mark; text out.

use unicode_segmentation::UnicodeSegmentation;

use super::viewport::{TextPosition, Viewport};
use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;
use crate::model::conversation::Conversation;
use crate::text::paint::{byte_at, column_of};

/// Keys of copy mode, besides those of lists.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("copy.left", "left", "One character left"),
    ActionSpec::key_only("copy.right", "right", "One character right"),
    ActionSpec::key_only("copy.up", "up", "One row up"),
    ActionSpec::key_only("copy.down", "down", "One row down"),
    ActionSpec::key_only("copy.word", "word", "Next word"),
    ActionSpec::key_only("copy.word_back", "word back", "Previous word"),
    ActionSpec::key_only("copy.line_start", "start", "To the start of the line"),
    ActionSpec::key_only("copy.line_end", "end", "To the end of the line"),
    ActionSpec::key_only("copy.half_down", "half down", "Half a page down"),
    ActionSpec::key_only("copy.half_up", "half up", "Half a page up"),
    ActionSpec::key_only("copy.mark", "select", "Start or end a selection here"),
    ActionSpec::key_only("copy.mark_line", "select lines", "Start or end a selection of whole lines"),
    ActionSpec::key_only("copy.take", "copy", "Copy the selection or the line, and leave"),
    ActionSpec::key_only("copy.dump", "dump", "Write the conversation to the terminal's scrollback"),
    ActionSpec::key_only("copy.edit", "editor", "Open the conversation in the editor"),
    ActionSpec::key_only("copy.leave", "leave", "Leave copy mode"),
];

/// Default keys of the section `copy`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("h", "copy.left"),
    ("j", "copy.down"),
    ("k", "copy.up"),
    ("l", "copy.right"),
    ("left", "copy.left"),
    ("right", "copy.right"),
    ("ctrl-b", "copy.left"),
    ("ctrl-f", "copy.right"),
    ("ctrl-n", "copy.down"),
    ("ctrl-p", "copy.up"),
    ("w", "copy.word"),
    ("b", "copy.word_back"),
    ("alt-f", "copy.word"),
    ("alt-b", "copy.word_back"),
    ("0", "copy.line_start"),
    ("^", "copy.line_start"),
    ("$", "copy.line_end"),
    ("home", "copy.line_start"),
    ("end", "copy.line_end"),
    ("ctrl-a", "copy.line_start"),
    ("ctrl-e", "copy.line_end"),
    ("ctrl-d", "copy.half_down"),
    ("ctrl-u", "copy.half_up"),
    ("ctrl-v", "list.page_down"),
    ("alt-v", "list.page_up"),
    ("v", "copy.mark"),
    ("ctrl-space", "copy.mark"),
    ("V", "copy.mark_line"),
    ("y", "copy.take"),
    ("enter", "copy.take"),
    ("alt-w", "copy.take"),
    ("s", "copy.dump"),
    ("e", "copy.edit"),
    ("q", "copy.leave"),
    ("i", "copy.leave"),
];

/// The caret and the mark.
#[derive(Clone, Copy, Debug)]
pub struct CopyMode {
    pub caret: TextPosition,
    pub mark: Option<TextPosition>,
    /// Whole lines.
    pub lines: bool,
    /// Column that moves up and down aim at.
    column: usize,
}

impl CopyMode {
    /// With the caret on the last visible row.
    pub fn begin(view: &Viewport) -> Option<Self> {
        let y = view.visible.last().map(|s| s.y + s.rows - 1)?;
        let caret = (0..=y).rev().find_map(|y| view.pos_at(0, y))?;
        Some(Self { caret, mark: None, lines: false, column: 0 })
    }

    /// Returns what is selected, from and to (the end is not part of it).
    pub fn range(&self, view: &Viewport, conv: &Conversation) -> Option<(TextPosition, TextPosition)> {
        let (a, mut b) = view.order(conv, self.mark?, self.caret);
        let line = view.kept(b.key)?.stack().line(b.line)?;
        if self.lines {
            b.byte = line.text().len() as u32;
            return Some((TextPosition { byte: 0, ..a }, b));
        }
        // The character under the caret is part of it, as in vim.
        b.byte += next(line.text(), b.byte as usize);
        Some((a, b))
    }

    /// Does one move; `false`: it is none.
    pub fn act(&mut self, id: &str, view: &mut Viewport, conv: &Conversation) -> bool {
        let half = (view.env.rows / 2).max(1) as isize;
        match id {
            "copy.left" => self.sideways(view, conv, false),
            "copy.right" => self.sideways(view, conv, true),
            "copy.up" | "list.up" => self.rows(view, conv, -1),
            "copy.down" | "list.down" => self.rows(view, conv, 1),
            "copy.half_up" => self.rows(view, conv, -half),
            "copy.half_down" => self.rows(view, conv, half),
            "list.page_up" | "conversation.page_up" => self.rows(view, conv, -2 * half),
            "list.page_down" | "conversation.page_down" => self.rows(view, conv, 2 * half),
            "list.first" | "conversation.first" => self.end(view, conv, false),
            "list.last" | "conversation.last" => self.end(view, conv, true),
            "copy.word" => self.word(view, conv, true),
            "copy.word_back" => self.word(view, conv, false),
            "copy.line_start" => self.caret.byte = 0,
            "copy.line_end" => {
                let end = self.line(view, |l| l.len().saturating_sub(previous(l, l.len())));
                self.caret.byte = end as u32;
            }
            "copy.mark" | "list.mark" => self.set_mark(false),
            "copy.mark_line" => self.set_mark(true),
            _ => return false,
        }
        if !matches!(
            id,
            "copy.up" | "copy.down" | "list.up" | "list.down" | "copy.half_up" | "copy.half_down"
        ) {
            self.column = self.columns(view).unwrap_or(0);
        }
        self.show(view, conv);
        true
    }

    fn set_mark(&mut self, lines: bool) {
        self.mark = if self.mark.is_some() && self.lines == lines {
            None
        } else {
            Some(self.mark.unwrap_or(self.caret))
        };
        self.lines = lines;
    }

    fn line<T: Default>(&self, view: &Viewport, f: impl FnOnce(&str) -> T) -> T {
        view.kept(self.caret.key)
            .and_then(|l| l.stack().line(self.caret.line))
            .map_or_else(T::default, |l| f(l.text()))
    }

    /// The caret's column in its row.
    fn columns(&self, view: &Viewport) -> Option<usize> {
        let stack = view.kept(self.caret.key)?.stack();
        let (_, line, row) = stack.row(stack.row_of(self.caret.line, self.caret.byte)?)?;
        Some(column_of(line, row, self.caret.byte))
    }

    fn sideways(&mut self, view: &Viewport, conv: &Conversation, right: bool) {
        let at = self.caret.byte as usize;
        let step = self.line(view, |l| if right { next(l, at) } else { previous(l, at) as u32 });
        if !right && step == 0 {
            self.other_line(view, conv, false);
        } else if right && self.line(view, |l| at + step as usize >= l.len()) {
            self.other_line(view, conv, true);
        } else if right {
            self.caret.byte += step;
        } else {
            self.caret.byte -= step;
        }
    }

    /// To the end of the line before, or the start of the one after; stays where there is none.
    fn other_line(&mut self, view: &Viewport, conv: &Conversation, down: bool) {
        let Some(laid) = view.kept(self.caret.key) else { return };
        let lines = laid.stack().lines();
        if down && self.caret.line + 1 < lines {
            self.caret = TextPosition { line: self.caret.line + 1, byte: 0, ..self.caret };
        } else if !down && self.caret.line > 0 {
            self.caret.line -= 1;
            self.caret.byte = self.line(view, |l| l.len().saturating_sub(previous(l, l.len()))) as u32;
        } else if let Some(index) = conv.find(self.caret.key) {
            let next = if down { index + 1 } else { index.wrapping_sub(1) };
            let Some(cell) = conv.cells().get(next) else { return };
            let line =
                if down { 0 } else { view.kept(cell.key).map_or(0, |l| l.stack().lines().saturating_sub(1)) };
            self.caret = TextPosition { key: cell.key, line, byte: 0 };
        }
    }

    fn rows(&mut self, view: &mut Viewport, conv: &Conversation, by: isize) {
        let Some(mut index) = conv.find(self.caret.key) else { return };
        let Some(laid) = view.laid(conv, index) else { return };
        let mut row = laid.stack().row_of(self.caret.line, self.caret.byte).unwrap_or(0) as isize + by;
        loop {
            let Some(laid) = view.laid(conv, index) else { return };
            let rows = laid.stack().rows() as isize;
            if row < 0 && index > 0 {
                index -= 1;
                row += view.laid(conv, index).map_or(0, |l| l.stack().rows()) as isize;
            } else if row >= rows && index + 1 < conv.cells().len() {
                row -= rows;
                index += 1;
            } else {
                row = row.clamp(0, (rows - 1).max(0));
                break;
            }
        }
        let key = conv.cells()[index].key;
        let Some((line, text, cut)) = view.laid(conv, index).and_then(|l| l.stack().row(row as usize)) else {
            return;
        };
        let byte =
            byte_at(text, cut, self.column).min(cut.end.saturating_sub(u32::from(cut.end > cut.start)));
        let byte = text.text().floor_char_boundary(byte as usize) as u32;
        self.caret = TextPosition { key, line, byte };
    }

    /// To the first row of what is loaded, or the last one, without a look at the rows between.
    fn end(&mut self, view: &mut Viewport, conv: &Conversation, last: bool) {
        let cells = conv.cells();
        let shown = |n: &usize| view.laid(conv, *n).is_some_and(|l| l.stack().rows() > 0);
        let index = if last { (0..cells.len()).rev().find(shown) } else { (0..cells.len()).find(shown) };
        let Some(cell) = index.and_then(|n| cells.get(n)) else { return };
        self.caret = TextPosition { key: cell.key, line: 0, byte: 0 };
        self.rows(view, conv, if last { isize::MAX / 2 } else { 0 });
    }

    fn word(&mut self, view: &Viewport, conv: &Conversation, forward: bool) {
        let at = self.caret.byte as usize;
        let found = self.line(view, |l| {
            let words = l.unicode_word_indices().map(|(n, _)| n);
            if forward { words.into_iter().find(|n| *n > at) } else { words.take_while(|n| *n < at).max() }
        });
        match found {
            Some(n) => self.caret.byte = n as u32,
            None => self.other_line(view, conv, forward),
        }
    }

    /// Scrolls so far that the caret is on the screen.
    fn show(&self, view: &mut Viewport, conv: &Conversation) {
        let Some(index) = conv.find(self.caret.key) else { return };
        let Some(laid) = view.laid(conv, index) else { return };
        let row = laid.gap + laid.stack().row_of(self.caret.line, self.caret.byte).unwrap_or(0);
        for _ in 0..2 {
            view.measure(conv);
            let (Some(first), Some(last)) = (view.visible.first().copied(), view.visible.last().copied())
            else {
                return;
            };
            if (index, row) < (first.index, first.from) {
                view.scroll_by(
                    conv,
                    if index == first.index { row as isize - first.from as isize } else { -1 },
                );
                if index < first.index {
                    view.show(conv, index, row);
                }
            } else if (index, row) >= (last.index, last.from + last.rows) {
                let by = if index == last.index { (row + 1 - last.from - last.rows) as isize } else { 0 };
                if by > 0 { view.scroll_by(conv, by) } else { view.show(conv, index, row) }
            } else {
                return;
            }
        }
    }
}

/// Bytes of the grapheme at `at`.
pub fn next(text: &str, at: usize) -> u32 {
    text.get(at..).and_then(|t| t.graphemes(true).next()).map_or(0, str::len) as u32
}

/// Bytes of the grapheme before `at`.
pub fn previous(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|t| t.graphemes(true).next_back()).map_or(0, str::len)
}

/// The word around a byte, for a double click.
pub fn word_at(text: &str, at: usize) -> (u32, u32) {
    let part = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ':' | '~' | '@' | '%' | '#' | '?' | '=' | '&' | '+')
    };
    let at = text.floor_char_boundary(at);
    if !text[at..].chars().next().is_some_and(part) {
        return (at as u32, at as u32 + next(text, at));
    }
    let start = text[..at].char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(at, |(n, _)| n);
    let end = text[at..].char_indices().find(|(_, c)| !part(*c)).map_or(text.len(), |(n, _)| at + n);
    (start as u32, end as u32)
}
