//! How the approval dialog is laid out and drawn: text, a line of words, buttons or a field.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::title::Sentence;
use super::{Approval, Button, KeyTarget};
use crate::dialog::question::{is_roomy, placed};
use crate::model::Model;
use crate::panel::{DrawCx, Placement};
use crate::text::sheet::Sheet;
use crate::text::width::width;
use crate::theme::Role;
use crate::widget::buttons::{self, Face};
use crate::widget::{draw, field};

/// Most rows of a field.
const FIELD: u16 = 6;
/// Columns of padding at both sides of a docked dialog.
const SIDES: u16 = 4;
/// Rows of the title and below the buttons.
const AROUND: u16 = 2;

/// Areas of the dialog.
pub(super) struct ApprovalAreas {
    pub(super) text: Rect,
    /// One row: what blocks a yes, or feedback.
    pub(super) status: Rect,
    pub(super) buttons: Rect,
    pub(super) field: Rect,
}

impl Approval {
    /// The title, in the room that it has.
    pub(super) fn titled(&self, model: &Model) -> Sentence {
        let room = usize::from(model.window.screen.0.saturating_sub(SIDES));
        // Beside the state stands the key that unfolds it.
        let hint = if self.answer_state.covered { 22 } else { 0 };
        let state = width(self.state(model).line(false).text()) + 3 + hint;
        // Two columns for the sign before it.
        let columns = is_roomy(model.window.screen).then(|| room.saturating_sub(2 + state));
        self.sentence(model, columns)
    }

    /// The target is drawn whole in the title, so it is not repeated in the text.
    pub(super) fn has_target_in_title(&self, model: &Model) -> bool {
        self.titled(model).whole
    }

    /// The rule with the button that saves it.
    fn always(&self) -> Option<String> {
        self.pattern.as_ref().map(|p| format!("always {}", super::content::rule_words(&self.p, p)))
    }

    /// The rule fits on its button, with the key.
    pub(super) fn rule_fits(&self, columns: u16) -> bool {
        self.always().is_some_and(|a| a.width() + 6 <= usize::from(columns))
    }

    /// The buttons with their words. A button that cannot be pressed yet says so, where that takes no further row.
    fn labels(&self, key: impl Fn(&'static str) -> String, columns: u16) -> Vec<(Button, String)> {
        let rows = |all: &[(Button, String)]| {
            buttons::rows(&all.iter().map(|l| l.1.clone()).collect::<Vec<_>>(), columns)
        };
        let short = self.labelled(&key, columns, false);
        if self.is_read() || self.answer_state.covered {
            return short;
        }
        let long = self.labelled(&key, columns, true);
        if rows(&long) > rows(&short) { short } else { long }
    }

    fn labelled(
        &self,
        key: &impl Fn(&'static str) -> String,
        columns: u16,
        unread: bool,
    ) -> Vec<(Button, String)> {
        let name = |b: Button, name: &str| match b {
            Button::Once if unread => "after reading".to_owned(),
            Button::Outside if unread && !self.has(Button::Once) => "after reading".to_owned(),
            Button::Always if self.rule_fits(columns) => self.always().unwrap_or_default(),
            _ => name.to_owned(),
        };
        self.buttons().map(|(b, id, words)| (b, buttons::label(&key(id), &name(b, words)))).collect()
    }

    /// Rows of the buttons or the field.
    fn below(&self, columns: u16) -> u16 {
        if let Some(edit) = self.fields.active() {
            return field::rows(edit, columns).clamp(1, FIELD);
        }
        // Every key is one character wide by default; longer ones are rare and cost a row at worst.
        let labels = self.labels(|_| "n".into(), columns);
        buttons::rows(&labels.into_iter().map(|l| l.1).collect::<Vec<_>>(), columns)
    }

    pub(super) fn parts(&self, area: Rect, _model: &Model) -> ApprovalAreas {
        // At least one row of the text is seen.
        let below = self.below(area.width).min(area.height.saturating_sub(2)).max(1);
        let text = area.height.saturating_sub(below + 1);
        let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
        let buttons = row(text + 1, below);
        ApprovalAreas { text: row(0, text), status: row(text, 1.min(area.height)), buttons, field: buttons }
    }

    pub(super) fn place_for(&self, model: &Model) -> Placement {
        let columns = model.window.screen.0.saturating_sub(SIDES);
        let key = (columns, self.has_target_in_title(model));
        let rows = match self.height.get() {
            Some((at, rows)) if at == key => rows,
            _ => {
                let lines =
                    self.content(key.1, !self.rule_fits(columns), &mut crate::widget::diff::Uncoloured);
                let rows = Sheet::new(lines.text.lines, usize::from(columns)).rows.len();
                let rows = u16::try_from(rows).unwrap_or(u16::MAX / 2).min(u16::MAX / 2);
                self.height.set(Some((key, rows)));
                rows
            }
        };
        placed(model.window.screen, rows, 1 + self.below(columns) + AROUND)
    }

    pub(super) fn lay_out(&mut self, area: Rect, cx: &DrawCx<'_>) {
        let columns = area.width;
        self.answer_state.covered = !cx.focus;
        let elsewhere = (self.has_target_in_title(cx.model), self.rule_fits(columns));
        if self.elsewhere != elsewhere {
            self.elsewhere = elsewhere;
            self.fill();
        } else if self.colours.again() {
            self.colour();
        }
        let parts = self.parts(area, cx.model);
        self.text.measure(usize::from(columns), usize::from(parts.text.height), cx.focus);
        self.answer_state.delay.note_drawn(cx);
        self.spots.clear();
        if self.fields.mode != KeyTarget::Buttons {
            return;
        }
        let labels = self.labels(|id| cx.key(id), columns);
        let texts: Vec<String> = labels.iter().map(|l| l.1.clone()).collect();
        self.spots = labels.iter().map(|l| l.0).zip(buttons::spots(&texts, parts.buttons)).collect();
    }

    /// The line between text and buttons.
    fn status(&self, cx: &DrawCx<'_>) -> (String, Role) {
        match self.fields.mode {
            KeyTarget::Comment => return ("Deny and tell the agent why:".into(), Role::Strong),
            KeyTarget::Command => {
                return ("Run this instead (the rules check it again):".into(), Role::Strong);
            }
            KeyTarget::Rule => {
                return ("Rule to save; afterwards, press its key again to approve:".into(), Role::Strong);
            }
            KeyTarget::Buttons => {}
        }
        if self.answer_state.sent {
            return ("Sent; waiting for the engine".into(), Role::Dim);
        }
        let below = self.text.below();
        // Without the keys nothing is asked of the person yet.
        let unread = cx.focus && !self.is_read();
        if let Some(said) = self.answer_state.feedback.as_ref().filter(|s| !unread || *s != super::NOT_YET) {
            return (said.clone(), Role::Waiting);
        }
        if unread {
            let key = cx.key("list.page_down");
            let not_yet = if self.answer_state.feedback.is_some() { "Not yet: " } else { "" };
            let words = match below {
                // The end was reached by a jump.
                0 => format!("{not_yet}read from the start ({}) before approving", cx.key("list.first")),
                _ => format!("{not_yet}{} ({key}): read to the end before approving", draw::below(below)),
            };
            return (words, Role::Waiting);
        }
        if self.armed {
            let key = cx.key("approval.always");
            return (format!("{key} again: approve and save the rule"), Role::Waiting);
        }
        if below > 0 {
            return (format!("{} ({})", draw::below(below), cx.key("list.page_down")), Role::Dim);
        }
        (String::new(), Role::Dim)
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.parts(area, cx.model);
        self.text.draw(parts.text, buf, cx.theme);
        let (words, role) = self.status(cx);
        draw::text(buf, parts.status, &words, cx.theme.style(role));
        if let Some(edit) = self.fields.active() {
            field::draw(edit, parts.field, buf, cx.theme);
            return;
        }
        let off = !self.answer_state.accepts(cx.model) || cx.delay.is_some();
        let labels = self.labels(|id| cx.key(id), parts.buttons.width);
        for ((b, spot), (_, text)) in self.spots.iter().zip(&labels) {
            let face = match (off || self.unread(*b), *b == self.focus) {
                (true, _) => Face::Off,
                (_, true) => Face::Focus,
                _ => Face::Plain,
            };
            buttons::draw(cx, text, *spot, face, buf);
        }
    }
}
