//! The mouse: the wheel scrolls, a click on a folding row folds, dragging selects, a double click takes
//! a word. With Shift everything belongs to the terminal.

use std::time::Duration;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use super::copy_mode::{next, word_at};
use super::viewport::TextPosition;
use super::{ConversationPanel, Reply};
use crate::app::effect::{Effect, Task};
use crate::cell;
use crate::model::Model;

/// Rows of one notch of the wheel.
const WHEEL: isize = 3;
/// Time in which the second click counts.
const DOUBLE: Duration = Duration::from_millis(400);

impl ConversationPanel {
    pub(super) fn mouse_event(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        if event.modifiers.contains(KeyModifiers::SHIFT) {
            return Reply::Ignored;
        }
        let (x, y) = (event.column.saturating_sub(area.x), event.row.saturating_sub(area.y));
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(model, -WHEEL),
            MouseEventKind::ScrollDown => self.wheel(model, WHEEL),
            MouseEventKind::Down(MouseButton::Left) => self.press(x, y, model),
            MouseEventKind::Drag(MouseButton::Left) => self.drag(x, y, area, model),
            MouseEventKind::Up(MouseButton::Left) => self.release(x, y, model),
            _ => Reply::Ignored,
        }
    }

    fn wheel(&mut self, model: &Model, by: isize) -> Reply {
        self.view.scroll_by(&model.agent.conversation, by);
        self.view.measure(&model.agent.conversation);
        self.done(model)
    }

    fn press(&mut self, x: u16, y: u16, model: &Model) -> Reply {
        self.selection = None;
        let pos = self.view.pos_at(x.into(), y.into());
        self.pressed = pos.map(|p| (p, x, y));
        let again = self
            .clicked
            .is_some_and(|(at, cx, cy)| (cx, cy) == (x, y) && model.mono.saturating_sub(at) < DOUBLE);
        self.clicked = Some((model.mono, x, y));
        if let Some(p) = pos.filter(|_| again) {
            self.pressed = None;
            self.clicked = None;
            return self.word(p, model);
        }
        Reply::done()
    }

    fn word(&mut self, p: TextPosition, model: &Model) -> Reply {
        let Some(line) = self.view.kept(p.key).and_then(|l| l.stack().line(p.line)) else {
            return Reply::done();
        };
        let (start, end) = word_at(line.text(), p.byte as usize);
        self.selection = Some((TextPosition { byte: start, ..p }, TextPosition { byte: end, ..p }));
        self.copied(model)
    }

    fn drag(&mut self, x: u16, y: u16, area: Rect, model: &Model) -> Reply {
        let Some((from, px, py)) = self.pressed else { return Reply::Ignored };
        if (x, y) == (px, py) && self.selection.is_none() {
            return Reply::done();
        }
        // At the edges the window follows.
        if y == 0 {
            self.view.scroll_by(&model.agent.conversation, -1);
            self.view.measure(&model.agent.conversation);
        } else if y + 1 >= area.height {
            self.view.scroll_by(&model.agent.conversation, 1);
            self.view.measure(&model.agent.conversation);
        }
        if let Some(mut to) = self.view.pos_at(x.into(), y.into()) {
            let (a, mut b) = self.view.order(&model.agent.conversation, from, to);
            // The character under the pointer is part of it.
            let step = |p: TextPosition| {
                let line = self.view.kept(p.key).and_then(|l| l.stack().line(p.line));
                line.map_or(0, |l| next(l.text(), p.byte as usize))
            };
            b.byte += step(b);
            to = b;
            self.selection = Some((a, to));
        }
        Reply::done()
    }

    fn release(&mut self, x: u16, y: u16, model: &Model) -> Reply {
        let pressed = self.pressed.take();
        if self.selection.is_some() {
            return self.copied(model);
        }
        let pinned = self.view.pinned.filter(|p| usize::from(y) < p.rows);
        let py = y;
        if pinned.is_none() && pressed.is_none_or(|(_, px, py)| (px, py) != (x, y)) {
            return Reply::done();
        }
        let conv = &model.agent.conversation;
        let Some((seen, row)) = self.view.at(py.into()) else {
            // The pinned message: there it stands.
            if let Some(n) = pinned.and_then(|p| conv.find(p.key)) {
                self.view.to_top(conv, n);
                self.view.measure(conv);
            }
            return Reply::done();
        };
        let Some(c) = conv.cells().get(seen.index) else { return Reply::done() };
        self.cursor = Some(c.key);
        let head = self.view.kept(c.key).is_some_and(|l| row == l.gap);
        if head && cell::folds(c) {
            self.view.toggle(conv, c);
        }
        Reply::done()
    }

    /// Copies the selection when the person wants that at once; it stays visible.
    fn copied(&mut self, model: &Model) -> Reply {
        if !model.ui.copy_on_select {
            return Reply::done();
        }
        match self.selected_text(model) {
            Some(text) => Reply::with(Effect::Task(Task::Copy { text, what: "selection" })),
            None => Reply::done(),
        }
    }
}
