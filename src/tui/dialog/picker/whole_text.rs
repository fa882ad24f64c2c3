//! The whole text of a row, in place of the list: shown before an action decides about a text that its preview cuts.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::{paint_wrapped, preview_lines};
use super::{Item, Picker};
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Reply};
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::draw;

/// Time for which a text must have been on the screen before an action decides about it.
const READ: Duration = Duration::from_millis(300);

/// The text that is shown.
pub(super) struct WholeText {
    /// Does what the user asked for, once all rows were shown.
    action: Action,
    /// Id of the row.
    id: String,
    text: String,
    /// Its rows at this width, the first one that is shown, and the rows that fit.
    rows: usize,
    top: usize,
    page: usize,
    /// The last row was shown.
    ended: bool,
    since: Duration,
}

impl WholeText {
    /// Moves by key; `false`: the action moves nothing.
    fn moved(&mut self, action: Action) -> bool {
        let last = self.rows.saturating_sub(self.page);
        self.top = match action.0 {
            "picker.down" => self.top + 1,
            "picker.up" => self.top.saturating_sub(1),
            "picker.page_down" | "picker.choose" => self.top + self.page.max(1),
            "picker.page_up" => self.top.saturating_sub(self.page),
            "picker.first" => 0,
            "picker.last" => last,
            _ => return false,
        }
        .min(last);
        true
    }
}

impl Picker {
    /// Shows the whole text of a row before `action` decides about it. `None`: the action may be done.
    pub(super) fn show_whole(&mut self, action: Action, item: &Item, model: &Model) -> Option<Reply> {
        if !self.source.spec().decides_on_text.contains(&action.0) {
            return None;
        }
        let text = self.source.preview(item)?;
        if self.preview_fits(item, &text) {
            return None;
        }
        // The row stays where it is when others come or go.
        self.moved = true;
        self.whole = Some(WholeText {
            action,
            id: item.id.clone(),
            text,
            rows: 0,
            top: 0,
            page: 0,
            ended: false,
            since: model.mono,
        });
        Some(Reply::done())
    }

    /// Does the action of a key while the whole text is shown. `None`: its action is done.
    pub(super) fn act_on_whole(&mut self, action: Action, model: &Model) -> Option<Reply> {
        let whole = self.whole.as_mut()?;
        if action == whole.action {
            let read = model.mono.saturating_sub(whole.since) >= READ;
            if !(whole.ended && read) {
                whole.moved(Action("picker.page_down"));
                return Some(Reply::done());
            }
            let whole = self.whole.take()?;
            // Another row, or another text of it: it was not read.
            let same = self.chosen().is_some_and(|item| {
                item.id == whole.id && self.source.preview(item).is_some_and(|text| text == whole.text)
            });
            return if same { None } else { Some(Reply::done()) };
        }
        // Esc and what else is done everywhere goes on.
        let own = whole.moved(action) || action.0.starts_with("edit.") || action.0.starts_with("picker.");
        Some(if own { Reply::done() } else { Reply::Ignored })
    }

    /// By the mouse wheel.
    pub(super) fn wheel_on_whole(&mut self, down: bool) -> bool {
        let Some(whole) = &mut self.whole else { return false };
        whole.moved(Action(if down { "picker.down" } else { "picker.up" }))
    }

    /// True when the preview has room for all of this text, or the row says it already.
    fn preview_fits(&self, item: &Item, text: &str) -> bool {
        let parts = self.split(self.area);
        let area = self.preview_area(&parts);
        let rows = Sheet::new(preview_lines(text), usize::from(area.width).max(1)).rows.len();
        (area.width > 0 && rows <= usize::from(area.height)) || self.row_says(item, text, parts.list)
    }

    /// Notes how much of the text fits.
    pub(super) fn measure_whole(&mut self, area: Rect) {
        self.area = area;
        let below = below_field(area);
        let Some(whole) = &mut self.whole else { return };
        whole.rows = Sheet::new(preview_lines(&whole.text), usize::from(below.width).max(1)).rows.len();
        whole.page = usize::from(below.height);
        whole.top = whole.top.min(whole.rows.saturating_sub(whole.page));
        whole.ended |= whole.top + whole.page >= whole.rows;
    }

    /// Draws it; `false`: it is not shown.
    pub(super) fn paint_whole(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) -> bool {
        let Some(whole) = &self.whole else { return false };
        let field = Rect { height: area.height.min(1), ..area };
        let last = (whole.top + whole.page).min(whole.rows);
        let words = format!("The whole text, rows {} to {last} of {}", whole.top + 1, whole.rows);
        draw::text(buf, field, &words, cx.theme.style(Role::Strong));
        paint_wrapped(cx, preview_lines(&whole.text), whole.top, below_field(area), buf);
        true
    }

    /// The keys that count while it is shown.
    pub(super) fn hints_of_whole(&self) -> Option<Vec<Hint>> {
        let whole = self.whole.as_ref()?;
        let decide =
            if whole.ended { Hint::of(whole.action.0) } else { Hint::as_(whole.action.0, "read on") };
        Some(vec![decide, Hint::as_("picker.page_down", "page down")])
    }
}

fn below_field(area: Rect) -> Rect {
    let gap = area.height.min(2);
    Rect { y: area.y + gap, height: area.height - gap, ..area }
}
