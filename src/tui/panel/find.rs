//! Searching in the rows of a panel: the words are typed in a line at its bottom, the first hit is chosen
//! while they are, and then the keys for the next and the last hit go through them in a circle.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_width::UnicodeWidthStr;

use super::DrawCx;
use crate::keymap::Chord;
use crate::text::line::Line;
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::{draw, input};

/// A search.
#[derive(Debug)]
pub(crate) struct Find {
    pub(crate) edit: Edit,
    /// The words are still being typed.
    pub(crate) typing: bool,
    /// Numbers of the lines that hold them, in order.
    hits: Vec<usize>,
}

impl Default for Find {
    fn default() -> Self {
        Self { edit: Edit::default(), typing: true, hits: Vec::new() }
    }
}

impl Find {
    /// Looks at the lines as they are now. Upper and lower case are the same.
    pub(crate) fn look(&mut self, lines: &[Line]) {
        let words = self.edit.text().to_lowercase();
        let holds = |l: &Line| l.text().to_lowercase().contains(&words);
        self.hits = match words.trim() {
            "" => Vec::new(),
            _ => lines.iter().enumerate().filter(|(_, l)| holds(l)).map(|(n, _)| n).collect(),
        };
    }

    /// Takes a key; `true`: the words may have changed.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> bool {
        if let Some(c) = Chord::of(key).text() {
            self.edit.insert(c.encode_utf8(&mut [0; 4]));
            return true;
        }
        if key.code == KeyCode::Enter {
            self.typing = false;
        }
        false
    }

    /// The first hit at this line or behind it, else the first of all.
    pub(crate) fn from(&self, line: usize) -> Option<usize> {
        self.hits.iter().find(|h| **h >= line).or(self.hits.first()).copied()
    }

    /// The hit after this line, or before it.
    pub(crate) fn step(&self, line: usize, forward: bool) -> Option<usize> {
        if forward {
            self.hits.iter().find(|h| **h > line).or(self.hits.first()).copied()
        } else {
            self.hits.iter().rev().find(|h| **h < line).or(self.hits.last()).copied()
        }
    }

    /// Draws the line: the words, which hit is chosen, how many there are.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, line: Rect, chosen: usize, buf: &mut Buffer) {
        let style = cx.theme.style(Role::Raised);
        draw::clear(buf, line, style);
        draw::text(buf, line, "/", style);
        let at = self.hits.iter().position(|h| *h == chosen).map_or(0, |n| n + 1);
        let count = match (self.hits.len(), self.edit.is_empty()) {
            (_, true) => String::new(),
            (0, _) => "no matches".into(),
            (n, _) => format!("{at}/{n}"),
        };
        let need = (count.width() as u16).min(line.width);
        input::draw(&self.edit, Self::room(line, need), buf, style);
        draw::text(buf, Rect { x: line.right() - need, width: need, ..line }, &count, style);
    }

    /// Where the caret is.
    pub(crate) fn caret(&self, line: Rect) -> Position {
        input::caret(&self.edit, Self::room(line, 8))
    }

    fn room(line: Rect, right: u16) -> Rect {
        Rect { x: line.x + 1, width: line.width.saturating_sub(right.max(8) + 2), ..line }
    }
}
