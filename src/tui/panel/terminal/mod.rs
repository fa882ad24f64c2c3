//! The live screen of an agent that is a program in a terminal. While it is only viewed, its keys are those of a list;
//! once entered, every key goes to the program except the key that releases it.

mod copy;
mod draw;
mod encode;
mod program;
mod screen;
#[cfg(test)]
mod tests;
pub mod visibility;

use std::time::Duration;

use crossterm::event::{KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::Activity;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AgentId, Event, EventBody, PaneCommand, PaneView, TerminalInput};

use self::copy::CopyView;
use self::screen::ProgramScreen;
use self::visibility::Visibility;
use super::{DrawCx, Hint, KeyRouting, Panel, PanelEvent, PanelInput, PanelStatus, Refresh, Reply, View};
use crate::app::effect::{Effect, Navigation, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Terminals,
    make: |_| Box::new(Terminal::default()),
    reads: &[Slice::Crew],
    groups: &[("Program terminal", ACTIONS)],
    scopes: &[
        Scope::new("pane", Some("list"), "Program terminal", false).keys(KEYS),
        Scope::new("pane_copy", Some("copy"), "Program terminal, copy mode", false)
            .keys(&[("s", "terminal.send")]),
        Scope::new("terminal", None, "Inside a program terminal", true)
            .keys(&[("ctrl-]", "terminal.release"), ("f12", "terminal.release")]),
    ],
};

/// Its actions.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("terminal.enter", "enter", "Enter the program's terminal; it gets all keys"),
    ActionSpec::key_only(
        "terminal.release",
        "release",
        "Leave the program's terminal; the program keeps running",
    ),
    ActionSpec::key_only("terminal.zoom", "zoom", "Show the terminal full screen, or restore it"),
    ActionSpec::key_only("terminal.copy", "copy mode", "Select and copy text of its screen and history"),
    ActionSpec::key_only(
        "terminal.send",
        "send to main",
        "Quote the selected text, else the screen, in the main composer",
    ),
    ActionSpec::key_only("terminal.stop", "stop", "End the program and everything it started"),
    ActionSpec::key_only("terminal.finish", "finish", "Let it finish with its answer once it is idle"),
    ActionSpec::key_only("terminal.next", "next", "Next agent's terminal"),
];

/// Default keys of the section `pane`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("r", "terminal.enter"),
    ("enter", "terminal.enter"),
    ("z", "terminal.zoom"),
    ("[", "terminal.copy"),
    ("s", "terminal.send"),
    ("x", "terminal.stop"),
    ("f", "terminal.finish"),
    ("n", "list.next terminal.next"),
];

const SCREEN: Token = Token(1);
const HISTORY: Token = Token(2);

/// The panel. Whose terminal it shows stands in [`crate::model::CrewModel::pane`].
#[derive(Default)]
pub struct Terminal {
    agent: Option<AgentId>,
    screen: ProgramScreen,
    /// It is on the screen.
    shown: bool,
    /// A dialog lies on the screen.
    covered: bool,
    /// Keys go to the program.
    entered: bool,
    /// The window has lost the focus.
    away: bool,
    /// A request is outstanding: its answer is the next screen.
    asked: bool,
    /// Columns and rows that it was drawn with; the program has the same size.
    room: (u16, u16),
    told: (u16, u16),
    copy: Option<CopyView>,
}

/// The agent, if it runs in a terminal now.
pub(crate) fn of<'m>(model: &'m Model, id: &AgentId) -> Option<&'m PaneView> {
    model.row(id)?.child.as_ref()?.pane.as_deref()
}

/// True when the agent runs in a terminal, or is about to.
pub(crate) fn will(model: &Model, id: &AgentId) -> bool {
    let Some(row) = model.row(id) else { return false };
    let pty = row.child.as_deref().is_some_and(|c| c.backend.in_terminal());
    of(model, id).is_some() || row.state.at_work() && pty
}

impl Panel for Terminal {
    fn status(&self, model: &Model) -> PanelStatus {
        let keys = match self.entered {
            true => KeyRouting::Raw { release: Some(Action("terminal.release")) },
            false => KeyRouting::Bound,
        };
        let empty = !model.crew.agents.iter().any(|a| of(model, &a.id).is_some());
        PanelStatus { keys, ..PanelStatus::new(self.scope()).escape(self.escape_step()).empty(empty) }
    }

    fn title(&self, model: &Model) -> String {
        match &self.agent {
            Some(id) => format!("Terminal of {}", model.name_of(id)),
            None => "Terminals".into(),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(copy) = &mut self.copy {
            if copy.act(action.0) {
                return Reply::done();
            }
            match action.0 {
                "copy.take" | "list.copy" | "list.open" => return self.take(),
                "copy.leave" | "list.back" => {
                    self.copy = None;
                    return Reply::done();
                }
                _ => {}
            }
        }
        match action.0 {
            "terminal.enter" | "list.open" => self.enter(model),
            "terminal.release" => Reply::Done(self.release()),
            "terminal.zoom" => Reply::with(Effect::Navigate(Navigation::FullScreen)),
            "terminal.copy" | "conversation.copy_mode" => Reply::Done(self.freeze(model)),
            "conversation.page_up" | "list.page_up" => {
                let all = self.freeze(model);
                if let Some(copy) = &mut self.copy {
                    copy.act(action.0);
                }
                Reply::Done(all)
            }
            "terminal.send" => self.quote(model),
            "terminal.stop" => self.stop(model),
            "terminal.finish" => {
                let Some(view) = self.view(model) else { return draw::say("It has ended") };
                let said =
                    if view.doing == Activity::Idle { "It ends now" } else { "It ends once it is idle" };
                let mut all = self.send(PaneCommand::Finish);
                all.push(draw::toast(said));
                Reply::Done(all)
            }
            "terminal.next" => Reply::with(Effect::Navigate(Navigation::NextTerminal)),
            "list.back" => Reply::with(Effect::Focus(View::Composer)),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            PanelInput::CopySelection => self.copy_selection().unwrap_or(Reply::Ignored),
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Tick => match self.fit(model) {
                all if all.is_empty() => Reply::Ignored,
                all => Reply::Done(all),
            },
            PanelEvent::Visibility(now) => Reply::Done(self.on_visibility(now, model)),
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if self.copy.is_some() {
            return vec![Hint::of("copy.mark"), Hint::of("copy.take"), Hint::of("terminal.send")];
        }
        let Some(view) = self.view(model) else {
            // The last picture can still be copied from.
            return if self.screen.rev > 0 { vec![Hint::of("terminal.copy")] } else { Vec::new() };
        };
        let mut all = vec![
            Hint::of("terminal.enter"),
            Hint::of("terminal.zoom"),
            Hint::of("terminal.copy"),
            Hint::of("terminal.send"),
            Hint::of("terminal.stop"),
        ];
        if view.touched {
            all.push(Hint::of("terminal.finish"));
        }
        if model.crew.agents.iter().filter(|a| of(model, &a.id).is_some()).count() > 1 {
            all.push(Hint::of("terminal.next"));
        }
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let cells = draw::cells(area);
        self.room = (cells.width, cells.height);
        if let Some(copy) = &mut self.copy {
            copy.resize(cells.height.into());
        }
        Refresh::after(self.unfit(cx.model).then_some(Duration::ZERO))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        draw::draw(self, cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let cells = draw::cells(area);
        let (x, y) = match &self.copy {
            Some(copy) => copy.at(),
            None => self.screen.cursor.filter(|_| self.entered)?,
        };
        Some(Position::new(cells.x + x, cells.y + y))
    }
}

impl Terminal {
    fn scope(&self) -> &'static str {
        match (self.entered, &self.copy) {
            (true, _) => "terminal",
            (false, Some(_)) => "pane_copy",
            (false, None) => "pane",
        }
    }

    fn escape_step(&self) -> Option<EscapeStep> {
        match &self.copy {
            Some(copy) if copy.mark.is_some() => Some(EscapeStep::Selection),
            Some(_) => Some(EscapeStep::CopyMode),
            None => None,
        }
    }

    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        match encode::key(key).filter(|_| self.entered) {
            Some(typed) => self.typed(typed),
            None => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if self.entered { self.typed(TerminalInput::Paste { text: text.to_owned() }) } else { Reply::Ignored }
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let area = draw::cells(area);
        // With Shift the mouse is ours, as in every terminal.
        let theirs = self.entered && self.screen.mouse && !event.modifiers.contains(KeyModifiers::SHIFT);
        if theirs {
            return encode::mouse(event, area).map_or(Reply::Ignored, |typed| self.typed(typed));
        }
        match event.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown if self.entered => {
                // A program with a screen of its own takes the wheel for its cursor keys.
                encode::mouse(event, area).map_or(Reply::Ignored, |typed| self.typed(typed))
            }
            MouseEventKind::ScrollUp => self.wheel(true, model),
            MouseEventKind::ScrollDown => self.wheel(false, model),
            _ if self.entered => Reply::Ignored,
            _ => self.drag(event, area, model),
        }
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        match (escape_step, &mut self.copy) {
            (EscapeStep::Selection, Some(copy)) => copy.mark = None,
            _ => self.copy = None,
        }
        Reply::done()
    }

    fn copy_selection(&mut self) -> Option<Reply> {
        self.copy.as_ref().is_some_and(|c| c.mark.is_some()).then(|| self.take())
    }

    /// Takes the panel's new visibility and focus.
    fn on_visibility(&mut self, now: &Visibility, model: &Model) -> Vec<Effect> {
        let Visibility { shown, focus, covered, .. } = *now;
        let mut all = Vec::new();
        let other = self.agent != model.crew.pane;
        if !focus || other {
            all.extend(self.release());
        }
        if (self.shown && !shown) || other {
            if self.told.0 > 0 && self.view(model).is_some() {
                all.extend(self.send(PaneCommand::Size { cols: 0, rows: 0 }));
            }
            (self.told, self.copy, self.asked) = ((0, 0), None, false);
        }
        if other {
            self.agent.clone_from(&model.crew.pane);
            self.screen = ProgramScreen::default();
        }
        if self.entered && self.away != now.away {
            let typed = vec![TerminalInput::Focus { on: !now.away }];
            all.extend(self.send(PaneCommand::Type { typed }));
        }
        (self.shown, self.covered, self.away) = (shown, covered, now.away);
        all.extend(self.look(model));
        all
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        // It may run again.
        let stir = self.shown && !self.asked && Some(&event.agent) == self.agent.as_ref();
        let mut all = if stir { self.look(model) } else { Vec::new() };
        if self.entered && self.view(model).is_none() {
            all.extend(self.release());
        }
        if all.is_empty() { Reply::Ignored } else { Reply::Done(all) }
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        if Some(&event.agent) != self.agent.as_ref() {
            return Reply::Ignored;
        }
        match (token, reply.as_ref()) {
            (SCREEN, ReplyEvent::ScreenReply { screen }) => {
                self.asked = false;
                self.screen.take(screen);
                if screen.ended {
                    // Another run of it begins with a size of its own.
                    self.told = (0, 0);
                    return Reply::done();
                }
                Reply::Done(self.look(model))
            }
            (SCREEN, _) => {
                self.asked = false;
                Reply::done()
            }
            (HISTORY, ReplyEvent::ScrollbackReply { rows }) => {
                let above = rows.len().saturating_sub(self.screen.rows.len());
                if let Some(copy) = self.copy.as_mut().filter(|c| c.rows.len() <= self.screen.rows.len()) {
                    copy.above(rows[..above].to_vec());
                }
                Reply::done()
            }
            _ => Reply::Ignored,
        }
    }
}
