//! The panel of a view that has no registered panel.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{DrawCx, Hint, Panel, PanelStatus, Reply, View};
use crate::app::effect::Effect;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::wrap::wrap;

/// Says in place of rows what will appear there, dim, in as many rows as that needs.
pub(crate) fn explain(cx: &DrawCx<'_>, area: Rect, text: &str, buf: &mut Buffer) {
    let rows = wrap(text, usize::from(area.width));
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        draw::text(buf, Rect { y, height: 1, ..area }, row, cx.theme.style(Role::Dim));
    }
}

/// A panel that says that its view is empty.
pub struct EmptyView(pub View);

impl Panel for EmptyView {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("list").empty(true)
    }

    fn title(&self, _model: &Model) -> String {
        self.0.name().into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        &[]
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if action.0 == "list.back" { Reply::with(Effect::Focus(View::Composer)) } else { Reply::Ignored }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        Vec::new()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        explain(cx, area, "Nothing yet", buf);
    }
}
