//! Keys that no action has, pasted text, the mouse, and Escape.

use crossterm::event::{KeyEvent, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::Picker;
use crate::app::effect::Effect;
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::Reply;

impl Picker {
    /// A character goes into the filter, or into the text that is requested.
    pub(super) fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        if self.whole.is_some() {
            return Reply::done();
        }
        match (Chord::of(key).text(), &mut self.words) {
            (Some(c), Some(w)) => {
                w.edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            (Some(c), None) => {
                self.input.insert(c.encode_utf8(&mut [0; 4]));
                self.typed(model)
            }
            (None, _) => Reply::Ignored,
        }
    }

    /// Pasted text is one line.
    pub(super) fn on_paste(&mut self, text: &str, model: &Model) -> Reply {
        if let Some(w) = &mut self.words {
            w.edit.insert(&text.replace(['\n', '\r'], " "));
            return Reply::done();
        }
        if self.whole.is_some() {
            return Reply::done();
        }
        self.input.insert(&text.replace(['\n', '\r'], " "));
        self.typed(model)
    }

    /// The wheel scrolls; a click selects a row, and chooses the selected one.
    pub(super) fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        if self.words.is_some() {
            return Reply::done();
        }
        if self.whole.is_some() {
            match event.kind {
                MouseEventKind::ScrollDown => self.wheel_on_whole(true),
                MouseEventKind::ScrollUp => self.wheel_on_whole(false),
                _ => false,
            };
            return Reply::done();
        }
        let list = self.split(area).list;
        self.moved = true;
        self.searching = false;
        match event.kind {
            MouseEventKind::ScrollDown => self.list.wheel(true, self.page),
            MouseEventKind::ScrollUp => self.list.wheel(false, self.page),
            MouseEventKind::Down(_) if list.contains(Position::new(event.column, event.row)) => {
                let Some(row) = self.list.row_at(usize::from(event.row - list.y)) else {
                    return Reply::done();
                };
                if row == self.list.chosen {
                    // As by key: a row that decides something waits until the list was readable.
                    return Reply::with(Effect::Act(Action("picker.choose")));
                }
                self.list.chosen = row;
                return Reply::Done(self.hover());
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    /// Takes back what is open above the list, or closes the dialog.
    pub(super) fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        self.words = None;
        self.whole = None;
        if escape_step != EscapeStep::Layer {
            return Reply::done();
        }
        let mut effects = self.source.hover(None);
        effects.push(Effect::Pop);
        Reply::Done(effects)
    }
}
