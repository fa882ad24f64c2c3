//! The text being typed: one string, a caret, and the readline set of edits with undo and a kill ring.
//!
//! Attachments stand in the text as single private-use characters ([`chip`]), so that every edit treats
//! them as one letter; they become their labels when drawn or sent. Such characters never come in from
//! outside: `insert` drops them.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// First chip; chip `n` is the character `CHIP0 + n`.
const CHIP0: u32 = 0xF_0000;
/// Chips in one draft, at most.
pub const CHIPS: u32 = 4096;
/// Steps of undo that are kept.
const UNDO: usize = 200;
/// Bytes of text that the steps of undo keep together.
const UNDO_BYTES: usize = 32 << 20;
/// Killed texts that are kept.
const KILLS: usize = 30;

/// The character that stands for attachment `n`.
pub fn chip(n: u32) -> Option<char> {
    (n < CHIPS).then(|| char::from_u32(CHIP0 + n)).flatten()
}

/// The attachment that `c` stands for.
pub fn chip_number(c: char) -> Option<u32> {
    (CHIP0..CHIP0 + CHIPS).contains(&(c as u32)).then(|| c as u32 - CHIP0)
}

/// The kind of the last edit, so that neighbours of the same kind are undone together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EditKind {
    #[default]
    Other,
    Typed,
    Killed,
    Yanked,
}

/// Text, caret, history of edits.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    text: String,
    /// Byte position, always on a grapheme boundary.
    caret: usize,
    /// Column that Up and Down try to keep, in cells.
    goal: Option<usize>,
    undo: Vec<(String, usize)>,
    redo: Vec<(String, usize)>,
    kills: Vec<String>,
    yank: (usize, Range<usize>),
    last: EditKind,
    /// Edits belong to one step of undo; `true`: that step is saved already.
    group: Option<bool>,
    wrapped: rows::RowCache,
}

/// One visual row: its bytes, without the newline that ends it.
pub type RowRange = Range<usize>;

#[path = "edit_rows.rs"]
mod rows;
pub use rows::cell_width;

impl Edit {
    /// With text, caret at its end.
    pub fn with(text: &str) -> Self {
        Self { caret: text.len(), text: text.to_owned(), ..Self::default() }
    }

    /// Takes everything out; can be undone.
    pub fn take(&mut self) -> String {
        self.save(EditKind::Other);
        self.caret = 0;
        std::mem::take(&mut self.text)
    }

    /// Does one of the `edit.*` actions; `false` when it is none of them or changed nothing.
    pub fn act(&mut self, id: &str) -> bool {
        let before = (self.text.len(), self.caret);
        let done: fn(&mut Self) = match id {
            "edit.left" => Self::left,
            "edit.right" => Self::right,
            "edit.word_left" => Self::word_left,
            "edit.word_right" => Self::word_right,
            "edit.home" => Self::home,
            "edit.end" => Self::end,
            "edit.top" => Self::top,
            "edit.bottom" => Self::bottom,
            "edit.backspace" => Self::delete_back,
            "edit.delete" => Self::delete_forward,
            "edit.kill_word_left" => Self::kill_big_word_back,
            "edit.kill_part_left" => Self::kill_word_back,
            "edit.kill_word_right" => Self::kill_word,
            "edit.kill_start" => Self::kill_to_start,
            "edit.kill_end" => Self::kill_to_end,
            "edit.yank" => Self::yank,
            "edit.yank_pop" => Self::yank_pop,
            "edit.transpose" => Self::transpose,
            "edit.upper" => |e| e.change_case(LetterCase::Upper),
            "edit.lower" => |e| e.change_case(LetterCase::Lower),
            "edit.capital" => |e| e.change_case(LetterCase::Capital),
            "edit.undo" => Self::undo,
            "edit.redo" => Self::redo,
            _ => return false,
        };
        done(self);
        let same_size =
            ["edit.transpose", "edit.upper", "edit.lower", "edit.capital", "edit.undo", "edit.redo"];
        before != (self.text.len(), self.caret) || same_size.contains(&id)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte offset of the caret.
    pub fn caret(&self) -> usize {
        self.caret
    }

    /// No text at all.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces everything; undo brings the old text back.
    pub fn set(&mut self, text: &str) {
        self.save(EditKind::Other);
        self.text = text.to_owned();
        self.caret = self.text.len();
    }

    /// Puts the caret at the nearest boundary at or before `at`.
    pub fn set_caret(&mut self, at: usize) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        self.moved(at);
    }

    /// Types `text` at the caret. Private-use chips in it are dropped.
    pub fn insert(&mut self, text: &str) {
        if text.contains(|c| chip_number(c).is_some()) {
            let clean: String = text.chars().filter(|c| chip_number(*c).is_none()).collect();
            self.insert_raw(&clean);
        } else {
            self.insert_raw(text);
        }
    }

    /// Puts in the character of an attachment.
    pub fn insert_chip(&mut self, n: u32) {
        if let Some(c) = chip(n) {
            self.insert_raw(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn insert_raw(&mut self, text: &str) {
        let word = text.chars().all(|c| !c.is_whitespace()) && text.len() <= 4;
        self.save(if word { EditKind::Typed } else { EditKind::Other });
        self.text.insert_str(self.caret, text);
        self.caret += text.len();
    }

    /// Replaces `range` by `text` and puts the caret behind it.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        self.save(EditKind::Other);
        self.text.replace_range(range.clone(), text);
        self.caret = range.start + text.len();
    }

    // ---- moving

    fn moved(&mut self, to: usize) {
        self.caret = to;
        self.goal = None;
        self.last = EditKind::Other;
    }

    /// One letter left.
    pub fn left(&mut self) {
        self.moved(self.before(self.caret));
    }

    /// One letter right.
    pub fn right(&mut self) {
        self.moved(self.after(self.caret));
    }

    /// To the start of the word.
    pub fn word_left(&mut self) {
        self.moved(self.word_start(self.caret));
    }

    /// To the end of the word.
    pub fn word_right(&mut self) {
        self.moved(self.word_end(self.caret));
    }

    /// Start of the line (of the text, not of the visual row), as readline does.
    pub fn home(&mut self) {
        self.moved(self.line_start());
    }

    /// End of the line.
    pub fn end(&mut self) {
        self.moved(self.line_end());
    }

    /// Start of the text.
    pub fn top(&mut self) {
        self.moved(0);
    }

    /// End of the text.
    pub fn bottom(&mut self) {
        self.moved(self.text.len());
    }

    /// One visual row up or down at this width. False at the edge.
    pub fn vertical(&mut self, down: bool, width: usize, label: &dyn Fn(char) -> Option<String>) -> bool {
        let rows = self.rows(width, label);
        let (row, col) = self.position(&rows, label);
        let Some(target) =
            (if down { row.checked_add(1).filter(|r| *r < rows.len()) } else { row.checked_sub(1) })
        else {
            return false;
        };
        let goal = self.goal.unwrap_or(col);
        let mut at = rows[target].start;
        let mut cells = 0;
        for g in self.text[rows[target].clone()].graphemes(true) {
            let w = cell_width(g, label);
            if cells + w > goal {
                break;
            }
            cells += w;
            at += g.len();
        }
        // The end of a wrapped row is the start of the next one: stay on the row that was meant.
        if at == rows[target].end
            && rows.get(target + 1).is_some_and(|n| n.start == at)
            && at > rows[target].start
        {
            at = self.before(at);
        }
        self.caret = at;
        self.goal = Some(goal);
        self.last = EditKind::Other;
        true
    }

    // ---- deleting

    /// Deletes the letter before the caret.
    pub fn delete_back(&mut self) {
        let from = self.before(self.caret);
        self.delete(from..self.caret, false);
    }

    /// Deletes a range; `kill`: it can be yanked.
    pub fn delete(&mut self, range: Range<usize>, kill: bool) {
        if range.is_empty() {
            return;
        }
        let before = range.start < self.caret;
        let joined = self.save(if kill { EditKind::Killed } else { EditKind::Other });
        let cut: String = self.text.drain(range.clone()).collect();
        self.caret = range.start;
        if kill {
            self.keep(cut, before, joined);
        }
    }

    /// Deletes the letter behind the caret.
    pub fn delete_forward(&mut self) {
        let to = self.after(self.caret);
        self.delete(self.caret..to, false);
    }

    /// To the end of the line; at its end, the newline.
    pub fn kill_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.caret { self.after(end) } else { end };
        self.delete(self.caret..end, true);
    }

    /// To the start of the line; at its start, the newline.
    pub fn kill_to_start(&mut self) {
        let start = self.line_start();
        let start = if start == self.caret { self.before(start) } else { start };
        self.delete(start..self.caret, true);
    }

    /// Back to white space, as Ctrl-W does in bash.
    pub fn kill_big_word_back(&mut self) {
        let head = &self.text[..self.caret];
        let trimmed = head.trim_end_matches(char::is_whitespace);
        let start = trimmed
            .rfind(char::is_whitespace)
            .map_or(0, |i| i + trimmed[i..].chars().next().map_or(1, char::len_utf8));
        self.delete(start..self.caret, true);
    }

    /// Cuts the word before the caret.
    pub fn kill_word_back(&mut self) {
        let start = self.word_start(self.caret);
        self.delete(start..self.caret, true);
    }

    /// Cuts the word behind the caret.
    pub fn kill_word(&mut self) {
        let end = self.word_end(self.caret);
        self.delete(self.caret..end, true);
    }

    /// Kills in a row make one text, as in readline.
    fn keep(&mut self, cut: String, before: bool, joined: bool) {
        match self.kills.last_mut() {
            Some(top) if joined && before => top.insert_str(0, &cut),
            Some(top) if joined => top.push_str(&cut),
            _ => {
                self.kills.push(cut);
                if self.kills.len() > KILLS {
                    self.kills.remove(0);
                }
            }
        }
    }

    /// Puts the last killed text in.
    pub fn yank(&mut self) {
        if let Some(text) = self.kills.last().cloned() {
            let from = self.caret;
            self.insert_raw(&text);
            self.yank = (self.kills.len() - 1, from..self.caret);
            self.last = EditKind::Yanked;
        }
    }

    /// Right after a yank: the kill before it instead.
    pub fn yank_pop(&mut self) {
        if self.last != EditKind::Yanked || self.kills.is_empty() {
            return;
        }
        let at = self.yank.0.checked_sub(1).unwrap_or(self.kills.len() - 1);
        let from = self.yank.1.start;
        let text = self.kills[at].clone();
        self.replace(self.yank.1.clone(), &text);
        self.yank = (at, from..self.caret);
        self.last = EditKind::Yanked;
    }

    /// Swaps the letters around the caret and moves on.
    pub fn transpose(&mut self) {
        let at = if self.caret == self.line_end() { self.before(self.caret) } else { self.caret };
        let (a, b) = (self.before(at), self.after(at));
        if a < at && at < b && !self.text[a..b].contains('\n') {
            let swapped = format!("{}{}", &self.text[at..b], &self.text[a..at]);
            self.replace(a..b, &swapped);
        }
    }

    /// Upper, lower or capital letters from the caret to the end of the word.
    pub fn change_case(&mut self, how: LetterCase) {
        let end = self.word_end(self.caret);
        let word = &self.text[self.caret..end];
        let new: String = match how {
            LetterCase::Upper => word.to_uppercase(),
            LetterCase::Lower => word.to_lowercase(),
            LetterCase::Capital => {
                let mut first = true;
                word.chars()
                    .flat_map(|c| {
                        let up = first && c.is_alphanumeric();
                        first &= !c.is_alphanumeric();
                        if up { c.to_uppercase().collect::<Vec<_>>() } else { c.to_lowercase().collect() }
                    })
                    .collect()
            }
        };
        self.replace(self.caret..end, &new);
    }

    /// From now on all edits are one step of undo, until [`Edit::end_group`].
    pub fn begin_group(&mut self) {
        self.group.get_or_insert(false);
    }

    /// The next edit is a step of its own again.
    pub fn end_group(&mut self) {
        self.group = None;
        self.last = EditKind::Other;
    }

    /// Undoes the last edit.
    pub fn undo(&mut self) {
        // What is done after it begins anew.
        self.group = self.group.map(|_| false);
        if let Some(then) = self.undo.pop() {
            self.redo.push((std::mem::take(&mut self.text), self.caret));
            (self.text, self.caret) = then;
            self.last = EditKind::Other;
        }
    }

    /// Does it again.
    pub fn redo(&mut self) {
        if let Some(then) = self.redo.pop() {
            self.undo.push((std::mem::take(&mut self.text), self.caret));
            (self.text, self.caret) = then;
            self.last = EditKind::Other;
        }
    }

    /// Remembers the state before an edit. True when it goes on with the last one.
    fn save(&mut self, kind: EditKind) -> bool {
        let joined = kind == self.last && kind != EditKind::Other;
        let saved = self.group == Some(true);
        let own = if self.group.is_some() { !saved } else { !joined };
        self.group = self.group.map(|_| true);
        if own {
            self.undo.push((self.text.clone(), self.caret));
            let size = |undo: &[(String, usize)]| undo.iter().map(|(text, _)| text.len()).sum::<usize>();
            let much = |undo: &[(String, usize)]| undo.len() > UNDO || size(undo) > UNDO_BYTES;
            while self.undo.len() > 1 && much(&self.undo) {
                self.undo.remove(0);
            }
        }
        self.redo.clear();
        self.goal = None;
        self.last = kind;
        joined
    }
}

/// For [`Edit::change_case`].
#[derive(Clone, Copy, Debug)]
pub enum LetterCase {
    Upper,
    Lower,
    Capital,
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
