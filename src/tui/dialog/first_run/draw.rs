//! Draws the set-up dialog: its text, the list or the field, and the last message.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use super::{FirstRun, SetupStep};
use crate::model::Model;
use crate::panel::DrawCx;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::line_list::LineList;
use crate::widget::wrap::wrap;
use crate::widget::{draw, input};

impl FirstRun {
    /// Areas of the text, of the list or field, and of the last message.
    pub(super) fn parts(&self, area: Rect) -> [Rect; 3] {
        let (words, said) = self.heights(area.width);
        let words = words.min(area.height);
        let said = said.min(area.height - words);
        let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
        let list = area.height - words - said;
        // A blank row below the text, where there is room for it.
        let gap = u16::from(list > 4);
        [row(0, words), row(words + gap, list - gap), row(area.height - said, said)]
    }

    /// Rows that all of it needs.
    pub(super) fn rows_needed(&self, columns: u16, model: &Model) -> u16 {
        let (words, said) = self.heights(columns);
        let list = if self.writing() { 1 } else { LineList::height(self.list(model), columns) };
        // Blank rows below the text, and before what was said.
        let gaps = 1 + u16::from(said > 0);
        words.saturating_add(list.max(4)).saturating_add(gaps + said)
    }

    /// Rows of the text, and of the last message.
    fn heights(&self, columns: u16) -> (u16, u16) {
        let lines = |text: &str| wrap(text, usize::from(columns)).len() as u16;
        (lines(&self.words()), self.said.as_deref().map_or(0, lines).min(4))
    }

    fn list(&self, model: &Model) -> Vec<Line> {
        let choices = self.choices(model);
        choices
            .iter()
            .enumerate()
            .map(|(n, (_, c))| {
                let line = Line::strict(c, Look::of(Role::Text), Wrap::Word);
                line.gutter(Gutter::new(format!("{} ", n + 1), Role::Accent))
            })
            .collect()
    }

    pub(super) fn lay(&mut self, area: Rect, cx: &DrawCx<'_>) {
        let [_, list, _] = self.parts(area);
        self.rows.set(self.list(cx.model), list);
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let [words, list, said] = self.parts(area);
        for (n, row) in wrap(&self.words(), usize::from(words.width)).iter().enumerate() {
            let spot = Rect { y: words.y + n as u16, height: u16::from((n as u16) < words.height), ..words };
            draw::text(buf, spot, row, cx.theme.style(Role::Text));
        }
        if self.writing() {
            draw::text(buf, list, ">", cx.theme.style(Role::Accent));
            let room = Rect { x: list.x + 2, width: list.width.saturating_sub(2), ..list };
            input::draw(&self.shown(), room, buf, cx.theme.style(Role::Text));
        } else {
            self.rows.draw(cx, list, buf);
        }
        let why = self.said.as_deref().unwrap_or("");
        for (n, row) in wrap(why, usize::from(said.width)).iter().enumerate() {
            let spot = Rect { y: said.y + n as u16, height: u16::from((n as u16) < said.height), ..said };
            draw::text(buf, spot, row, cx.theme.style(Role::Error));
        }
    }

    pub(super) fn caret(&self, area: Rect) -> Option<Position> {
        let [_, list, _] = self.parts(area);
        if !self.writing() {
            return self.rows.cursor(list);
        }
        let room = Rect { x: list.x + 2, width: list.width.saturating_sub(2), ..list };
        Some(input::caret(&self.shown(), room))
    }

    /// The field as it is drawn: a key is stars.
    fn shown(&self) -> Edit {
        match self.step {
            SetupStep::Key(_) => {
                let stars = |t: &str| "*".repeat(t.graphemes(true).count());
                let mut edit = Edit::with(&stars(self.field.text()));
                edit.set_caret(stars(&self.field.text()[..self.field.caret()]).len());
                edit
            }
            _ => self.field.clone(),
        }
    }
}
