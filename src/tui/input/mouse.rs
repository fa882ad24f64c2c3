//! The mouse: what lies below it gets the event; a click in a pane focuses it. A click that only brought
//! the window to the front does nothing.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::state::Owner;
use crate::keymap::action::Action;
use crate::panel::conversation::empty;
use crate::panel::{PanelInput, Reply, View};

/// A click so soon after the window got the focus is the click that gave it.
const FOCUSING: std::time::Duration = std::time::Duration::from_millis(150);

impl App {
    pub(crate) fn mouse(&mut self, event: &MouseEvent) {
        let ui = &self.model.ui;
        let wanted = match event.kind {
            MouseEventKind::ScrollUp
            | MouseEventKind::ScrollDown
            | MouseEventKind::ScrollLeft
            | MouseEventKind::ScrollRight => ui.mouse_wheel,
            // The right and the middle button belong to the terminal.
            MouseEventKind::Down(b) | MouseEventKind::Up(b) => ui.mouse_click && b == MouseButton::Left,
            MouseEventKind::Drag(b) => ui.mouse_motion && b == MouseButton::Left,
            MouseEventKind::Moved => ui.mouse_motion,
        };
        // Terminals report the focus just before the click that gave it.
        let fresh = matches!(event.kind, MouseEventKind::Down(_) | MouseEventKind::Up(_))
            && self.model.mono.saturating_sub(self.model.window.back) < FOCUSING;
        if !wanted || self.model.window.away || fresh {
            self.frame.dirty = false;
            return;
        }
        let mut event = *event;
        let held = match event.kind {
            MouseEventKind::Drag(_) => self.screen.grab,
            MouseEventKind::Up(_) => self.screen.grab.take(),
            _ => None,
        };
        let under = self.at(event.column, event.row);
        if let MouseEventKind::Down(_) = event.kind {
            self.screen.grab = under;
        }
        // A drag belongs to the panel in which it began, wherever it goes and ends: at the edge next to it.
        if let Some((_, area)) = held.filter(|(_, area)| area.area() > 0) {
            event.column = event.column.clamp(area.left(), area.right() - 1);
            event.row = event.row.clamp(area.top(), area.bottom() - 1);
        }
        let event = &event;
        if let (MouseEventKind::Down(_), Some((Owner::Layer(id), _))) = (event.kind, under)
            && self.questions.folded.as_ref().is_some_and(|l| l.id == id)
        {
            self.unfold();
            return;
        }
        let Some((owner, area)) = held.or(under) else {
            self.frame.dirty = self.notice_click(event);
            return;
        };
        if let (MouseEventKind::Down(_), Owner::View(view)) = (event.kind, owner)
            && view != self.screen.focus
            && view != View::Conversation
        {
            if view == View::Composer {
                self.left_pane();
            }
            self.screen.focus = view;
        }
        match self.with(owner, |p, m| p.input(PanelInput::Mouse(event, area), m)) {
            Some(Reply::Done(list)) => self.effects(owner, list),
            _ => self.frame.dirty = matches!(event.kind, MouseEventKind::Down(_)),
        }
    }

    /// A click on a line between conversation and composer, on a part of the header, or on a session of the start screen
    /// opens what it tells of.
    fn notice_click(&mut self, event: &MouseEvent) -> bool {
        if event.kind == MouseEventKind::Down(MouseButton::Left)
            && let Some(id) = self.header_click(event.column, event.row)
        {
            return self.act(Action(id));
        }
        if let Some(action) = self.recent_at(event) {
            return self.act(action);
        }
        let notices = self.screen.areas.as_ref().map_or(Rect::ZERO, |a| a.notices);
        let inside = notices.contains(Position::new(event.column, event.row));
        if event.kind != MouseEventKind::Down(MouseButton::Left) || !inside || !self.layers.is_empty() {
            return false;
        }
        let line = self.screen.notice_actions.get(usize::from(event.row - notices.y)).copied().flatten();
        line.is_some_and(|id| self.act(Action(id)))
    }

    /// Returns what opens the session of the start screen that was clicked.
    fn recent_at(&self, event: &MouseEvent) -> Option<Action> {
        let start = self.screen.areas.as_ref().map(|a| a.start)?;
        let inside = start.contains(Position::new(event.column, event.row));
        if event.kind != MouseEventKind::Down(MouseButton::Left) || !inside || !self.layers.is_empty() {
            return None;
        }
        self.recent()?.action_at(empty::sessions_area(start), event.row)
    }
}
