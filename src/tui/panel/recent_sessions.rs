//! The last sessions of this folder, below the composer of the start screen.
//!
//! A digit in the composer is always text, since a message may begin with one. Down from the empty composer selects the
//! first of the rows; only then a digit opens a session, and any other text goes to the composer and ends the selection.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::{CommandBody, SessionId, SessionSummary};

use super::DrawCx;
use crate::app::effect::{Effect, Token};
use crate::dialog::session::sessions::{ago, name};
use crate::keymap::action::Action;
use crate::keymap::scope::DefaultKey;
use crate::model::{Model, Tracked};
use crate::text::width;
use crate::theme::Role;
use crate::view::layout::PADDING;
use crate::widget::{draw, surface};

/// Sessions that are listed.
const MOST: usize = 3;

/// Columns of the keys, as in the list of things to try.
pub(crate) const KEYS_WIDTH: u16 = 12;

/// Columns between title and time.
const GAP: u16 = 3;

/// Actions of the composer that open one of them, in their order.
pub(crate) const OPEN: [Action; MOST] =
    [Action("recent.first"), Action("recent.second"), Action("recent.third")];

/// Default keys of the section `recent`.
pub(crate) const KEYS: &[DefaultKey] =
    &[("1", "recent.first"), ("2", "recent.second"), ("3", "recent.third")];

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecentSession {
    id: SessionId,
    title: String,
    /// When it was used last, as of the answer of the engine; or that another process has it open.
    used: String,
}

/// The rows, as of the last answer of the engine, and the selected one.
#[derive(Debug, Default)]
pub(crate) struct RecentSessions {
    rows: Vec<RecentSession>,
    /// `None`: the keys belong to the draft.
    selected: Option<usize>,
}

/// True when the sessions can be shown: nothing was said yet in the session on the screen.
pub(crate) fn are_shown(model: &Model) -> bool {
    let (columns, rows) = model.window.screen;
    model.is_start() && crate::view::layout::has_start(Rect::new(0, 0, columns, rows))
}

/// Asks the engine for the sessions of this folder.
pub(crate) fn ask(token: Token) -> Effect {
    let query = Query::Sessions { everywhere: false, filter: String::new(), archived: false, trashed: false };
    Effect::ask(CommandBody::Query(query), token)
}

impl RecentSessions {
    /// Takes the answer of the engine, newest first. The session on the screen and those without a message are left out.
    pub(crate) fn take(&mut self, sessions: &[SessionSummary], model: &Model) {
        let here = model.agent.session.summary.as_ref().map(|s| s.id);
        let row = |s: &SessionSummary| RecentSession {
            id: s.id,
            title: draw::clean(name(s)),
            used: match s.open_in {
                Some(_) => "open elsewhere".into(),
                None => ago(s.used, model.now),
            },
        };
        let offered = sessions.iter().filter(|s| Some(s.id) != here && s.entries > 0 && !s.archived);
        self.rows = offered.take(MOST).map(row).collect();
        self.selected = None;
    }

    /// The selected row.
    pub(crate) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// The effect that opens a session by the number of its row.
    pub(crate) fn open(&self, row: usize) -> Option<Effect> {
        let id = self.rows.get(row)?.id;
        Some(Effect::send(CommandBody::Session(SessionCommand::Open { id })))
    }

    /// Returns what a click at this row of the area opens.
    pub(crate) fn action_at(&self, area: Rect, y: u16) -> Option<Action> {
        let row = usize::from(y.checked_sub(area.y)?);
        self.rows.get(row).and_then(|_| OPEN.get(row)).copied()
    }

    /// Draws the rows; returns how many rows of the area they fill.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) -> u16 {
        let widest =
            |of: fn(&RecentSession) -> &str| self.rows.iter().map(|r| width(of(r))).max().unwrap_or(0) as u16;
        let time = widest(|r| &r.used);
        let room = area.width.saturating_sub(KEYS_WIDTH + GAP + time);
        let title = widest(|r| &r.title).min(room);
        let down = cx.keys.describe(Action("composer.down"), &["composer", "global"]).unwrap_or_default();
        let indent = width(&down) as u16 + 1;
        for (n, (row, y)) in self.rows.iter().zip(area.top()..area.bottom()).enumerate() {
            let line = Rect { y, height: 1, ..area };
            let at = |x: u16, width: u16| Rect {
                x: line.x + x,
                width: width.min(line.width.saturating_sub(x)),
                ..line
            };
            if n == 0 && self.selected.is_none() {
                draw::text(buf, at(0, indent), &down, cx.theme.style(Role::Accent));
            }
            let digit = OPEN.get(n).and_then(|a| cx.keys.describe(*a, &["recent"]));
            let room = KEYS_WIDTH.saturating_sub(indent + 1);
            draw::text(buf, at(indent, room), &digit.unwrap_or_default(), cx.theme.style(Role::Accent));
            draw::text(buf, at(KEYS_WIDTH, title), &row.title, cx.theme.style(Role::Text));
            let right = KEYS_WIDTH + title + GAP + time - width(&row.used) as u16;
            draw::text(buf, at(right, time), &row.used, cx.theme.style(Role::Dim));
            if self.selected == Some(n) {
                let whole =
                    Rect { x: line.x.saturating_sub(PADDING), width: line.width + 2 * PADDING, ..line };
                surface::selected(cx, whole, buf);
            }
        }
        (self.rows.len() as u16).min(area.height)
    }
}

/// The rows with the number of their state: the start screen is drawn again when it changes.
pub(crate) type Recent = Tracked<RecentSessions>;

impl Recent {
    /// Selects the first row; `false`: there is none to be seen.
    pub(crate) fn enter(&mut self, model: &Model) -> bool {
        let any = !self.rows.is_empty() && are_shown(model);
        if any {
            self.selected = Some(0);
        }
        any
    }

    /// Selects the next or the previous row; up from the first one the keys belong to the draft again.
    pub(crate) fn step(&mut self, down: bool) {
        let last = self.rows.len().saturating_sub(1);
        let Some(at) = self.selected else { return };
        self.selected = if down { Some((at + 1).min(last)) } else { at.checked_sub(1) };
    }

    /// Gives the keys back to the draft; `false`: it had them.
    pub(crate) fn leave(&mut self) -> bool {
        let any = self.selected.is_some();
        if any {
            self.selected = None;
        }
        any
    }
}

#[cfg(test)]
#[path = "recent_sessions_tests.rs"]
mod tests;
