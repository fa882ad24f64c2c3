//! How the approval dialog is laid out and drawn: text, a line of words, buttons or a field, the rule.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{Approval, Button, KeyTarget, content};
use crate::model::Model;
use crate::panel::{DrawCx, Placement};
use crate::text::clean;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::buttons::{self, Face};
use crate::widget::{draw, field};

/// Most rows of a field.
const FIELD: u16 = 6;

/// Areas of the dialog.
pub(super) struct ApprovalAreas {
    pub(super) text: Rect,
    /// One row: what blocks a yes, or feedback.
    pub(super) status: Rect,
    pub(super) buttons: Rect,
    /// The rule with its key, where it fits into one row.
    pub(super) rule: Rect,
    pub(super) field: Rect,
}

/// A column free at each side.
fn inside(area: Rect) -> Rect {
    let pad = u16::from(area.width > 40);
    Rect { x: area.x + pad, width: area.width.saturating_sub(2 * pad), ..area }
}

fn rule_line(pattern: &str) -> String {
    format!("always: {}", clean::plain(&content::always(pattern)))
}

impl Approval {
    /// The rule fits below the buttons, with room for its key.
    fn rule_fits(&self, columns: u16) -> bool {
        self.pattern.as_deref().is_some_and(|p| rule_line(p).width() + 8 <= usize::from(columns))
    }

    fn labels(&self, key: impl Fn(&'static str) -> String, columns: u16) -> Vec<(Button, String)> {
        let below = self.rule_fits(columns);
        self.buttons()
            .filter(|b| !(below && b.0 == Button::Always))
            .map(|(b, id, name)| (b, buttons::label(&key(id), name)))
            .collect()
    }

    /// Rows of what lies below the text.
    fn below(&self, columns: u16) -> (u16, u16) {
        if let Some(edit) = self.fields.active() {
            return (field::rows(edit, columns).clamp(1, FIELD), 0);
        }
        // Every key is one character wide by default; longer ones are rare and cost a row at worst.
        let labels: Vec<String> = self.labels(|_| "n".into(), columns).into_iter().map(|l| l.1).collect();
        (buttons::rows(&labels, columns), u16::from(self.rule_fits(columns)))
    }

    pub(super) fn parts(&self, area: Rect, _model: &Model) -> ApprovalAreas {
        let area = inside(area);
        let (mut middle, mut rule) = self.below(area.width);
        // At least one row of the text is seen.
        rule = rule.min(area.height.saturating_sub(middle + 2));
        middle = middle.min(area.height.saturating_sub(2)).max(1);
        let text = area.height.saturating_sub(middle + rule + 1);
        let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
        let buttons = row(text + 1, middle);
        ApprovalAreas {
            text: row(0, text),
            status: row(text, 1.min(area.height)),
            buttons,
            rule: row(text + 1 + middle, rule),
            field: buttons,
        }
    }

    pub(super) fn place_for(&self, model: &Model) -> Placement {
        let (width, height) = model.window.screen;
        // Borders and the columns at the sides.
        let columns = inside(Rect { x: 0, y: 0, width: width.saturating_sub(2), height: 1 }).width;
        let rows = match self.height.get() {
            Some((w, rows)) if w == columns => rows,
            _ => {
                let rule = self.pattern.as_deref().filter(|_| !self.rule_fits(columns));
                let also: Vec<&str> = self.same.iter().map(|(_, name)| name.as_str()).collect();
                let lines = content::content(&self.p, &also, rule).lines;
                let rows = Sheet::new(lines, usize::from(columns)).rows.len();
                let rows = u16::try_from(rows).unwrap_or(u16::MAX / 2).min(u16::MAX / 2);
                self.height.set(Some((columns, rows)));
                rows
            }
        };
        let (middle, rule) = self.below(columns);
        let need = rows + 1 + middle + rule + 2;
        // Small screens, and whatever would leave too little of the conversation.
        if width < 60 || height < 16 || need + 9 > height {
            return Placement::Full;
        }
        Placement::Dock { height: need }
    }

    pub(super) fn lay_out(&mut self, area: Rect, cx: &DrawCx<'_>) {
        let columns = inside(area).width;
        if self.inside == self.rule_fits(columns) {
            self.inside = !self.inside;
            self.fill();
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
        if parts.rule.height > 0 {
            let key = format!("[{}]", cx.key("approval.always"));
            let width = (key.width() as u16).min(columns);
            let spot =
                Rect { x: parts.rule.right() - width - u16::from(columns > width), width, ..parts.rule };
            self.spots.push((Button::Always, spot));
        }
    }

    /// The line between text and buttons.
    fn status(&self, cx: &DrawCx<'_>) -> (String, Role) {
        match self.fields.mode {
            KeyTarget::Comment => return ("Deny and tell the agent:".into(), Role::Strong),
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
        let unread = !self.text.read(self.must);
        if let Some(said) = self.answer_state.feedback.as_ref().filter(|s| !unread || *s != super::NOT_YET) {
            return (said.clone(), Role::Waiting);
        }
        if unread {
            let key = cx.key("list.page_down");
            let not_yet = if self.answer_state.feedback.is_some() { "Not yet: " } else { "" };
            let words = format!("{not_yet}v {below} more rows ({key}): read to the end before approving");
            return (words, Role::Waiting);
        }
        if self.armed {
            let key = cx.key("approval.always");
            return (format!("{key} again: approve and save the rule"), Role::Waiting);
        }
        if below > 0 {
            return (format!("v {below} more rows"), Role::Dim);
        }
        if self.pattern.is_none() {
            return ("No rule can cover exactly this command".into(), Role::Dim);
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
        let off = !self.answer_state.accepts(cx.model);
        if parts.rule.height > 0
            && let Some(p) = &self.pattern
        {
            draw::text(buf, parts.rule, &rule_line(p), cx.theme.style(Role::Text));
        }
        let labels = self.labels(|id| cx.key(id), parts.buttons.width);
        for (b, spot) in &self.spots {
            let face = match (off || self.unread(*b), *b == self.focus) {
                (true, _) => Face::Off,
                (_, true) => Face::Focus,
                _ => Face::Plain,
            };
            let key = || format!("[{}]", cx.key("approval.always"));
            let text = labels.iter().find(|l| l.0 == *b).map_or_else(key, |l| l.1.clone());
            buttons::draw(cx, &text, *spot, face, buf);
        }
    }
}
