//! Places in the text of the conversation: under a row and column of the window, and the text between two.

use super::{Viewport, VisibleCell};
use crate::model::conversation::Conversation;

/// A place in the text: stays right when cells grow or come in above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub key: u64,
    pub line: usize,
    pub byte: u32,
}

impl Viewport {
    /// The cell and the row in it (the gap counted) at row `y` of the window.
    pub fn at(&self, y: usize) -> Option<(VisibleCell, usize)> {
        let seen = self.visible.iter().find(|s| (s.y..s.y + s.rows).contains(&y))?;
        Some((*seen, seen.from + y - seen.y))
    }

    /// The place under a column and row of the window; past a row's end it is the end.
    pub fn pos_at(&self, x: usize, y: usize) -> Option<TextPosition> {
        let (seen, row) = self.at(y)?;
        let laid = self.kept(seen.key)?;
        let (line, text, cut) = laid.stack().row(row.saturating_sub(laid.gap))?;
        let byte = crate::text::paint::byte_at(text, cut, x.saturating_sub(laid.indent));
        Some(TextPosition { key: seen.key, line, byte })
    }

    /// Column and row of the window where a place is drawn, if it is visible.
    pub fn screen_of(&self, pos: TextPosition) -> Option<(usize, usize)> {
        let laid = self.kept(pos.key)?;
        let row = laid.stack().row_of(pos.line, pos.byte)?;
        let (_, line, cut) = laid.stack().row(row)?;
        let row = row + laid.gap;
        let seen =
            self.visible.iter().find(|s| s.key == pos.key && (s.from..s.from + s.rows).contains(&row))?;
        Some((laid.indent + crate::text::paint::column_of(line, cut, pos.byte), seen.y + row - seen.from))
    }

    /// Which of two places comes first.
    pub fn order(
        &self,
        conv: &Conversation,
        a: TextPosition,
        b: TextPosition,
    ) -> (TextPosition, TextPosition) {
        let rank = |p: TextPosition| (conv.find(p.key), p.line, p.byte);
        if rank(a) <= rank(b) { (a, b) } else { (b, a) }
    }

    /// The logical text between two places: unwrapped, without gutters and marks.
    pub fn text_between(&mut self, conv: &Conversation, a: TextPosition, b: TextPosition) -> String {
        let (a, b) = self.order(conv, a, b);
        let (Some(first), Some(last)) = (conv.find(a.key), conv.find(b.key)) else { return String::new() };
        let mut out = String::new();
        for index in first..=last {
            let Some(laid) = self.laid(conv, index) else { continue };
            if index > first {
                out.push_str(if laid.gap > 0 { "\n\n" } else { "\n" });
            }
            let from = if index == first { a.line } else { 0 };
            let to = if index == last { b.line } else { laid.stack().lines().saturating_sub(1) };
            for n in from..=to {
                let Some(line) = laid.stack().line(n) else { break };
                let start = if index == first && n == a.line { a.byte as usize } else { 0 };
                let end = if index == last && n == b.line { b.byte as usize } else { line.text().len() };
                if n > from {
                    out.push('\n');
                }
                out.push_str(line.text().get(start..end.max(start)).unwrap_or_default().trim_end());
            }
        }
        out
    }
}
