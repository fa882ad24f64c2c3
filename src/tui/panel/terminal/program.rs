//! Requests of the panel to the program: its screen, its size, keys, text, its end.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use tiller_protocol::command::Query;
use tiller_protocol::{AgentCommand, AgentId, CommandBody, PaneCommand, PaneView, TerminalInput};

use super::copy::CopyView;
use super::{HISTORY, SCREEN, Terminal, draw, of};
use crate::app::effect::{ComposerInput, Effect, Navigation, Task};
use crate::dialog::confirm::Confirm;
use crate::model::Model;
use crate::panel::{Reply, View};

/// Lines of history that copy mode goes over.
const LINES: u32 = 5_000;
/// Lines of one notch of the wheel.
const WHEEL: isize = 3;

fn pane(command: PaneCommand) -> CommandBody {
    CommandBody::Pane(command)
}

impl Terminal {
    pub(super) fn view<'m>(&self, model: &'m Model) -> Option<&'m PaneView> {
        of(model, self.agent.as_ref()?)
    }

    pub(super) fn send(&self, command: PaneCommand) -> Vec<Effect> {
        self.agent.iter().map(|a| Effect::send_to(a.clone(), pane(command.clone()))).collect()
    }

    /// Requests the next change of the screen, unless a request is outstanding or the panel is hidden.
    pub(super) fn look(&mut self, model: &Model) -> Vec<Effect> {
        let Some(agent) = self.agent.clone().filter(|_| self.shown && !self.asked) else { return Vec::new() };
        if self.view(model).is_none() {
            return Vec::new();
        }
        self.asked = true;
        let since = self.screen.rev;
        vec![Effect::ask_of(agent, CommandBody::Query(Query::Screen { since }), SCREEN)]
    }

    /// The program does not have the size of the pane.
    pub(super) fn unfit(&self, model: &Model) -> bool {
        let room = self.room.0 > 0 && self.room.1 > 0;
        // A dialog takes room for a moment: the program does not have to draw itself anew for that.
        room && self.shown && !self.covered && self.room != self.told && self.view(model).is_some()
    }

    /// The program has the size of the pane.
    pub(super) fn fit(&mut self, model: &Model) -> Vec<Effect> {
        if !self.unfit(model) {
            return Vec::new();
        }
        self.told = self.room;
        self.send(PaneCommand::Size { cols: self.room.0, rows: self.room.1 })
    }

    pub(super) fn enter(&mut self, model: &Model) -> Reply {
        if self.view(model).is_none() {
            return draw::say("It has ended; a message restarts it");
        }
        self.copy = None;
        self.entered = true;
        let mut all = self.fit(model);
        all.extend(self.send(PaneCommand::Enter { on: true }));
        Reply::Done(all)
    }

    pub(super) fn release(&mut self) -> Vec<Effect> {
        if !std::mem::take(&mut self.entered) {
            return Vec::new();
        }
        self.send(PaneCommand::Enter { on: false })
    }

    pub(super) fn typed(&self, typed: TerminalInput) -> Reply {
        Reply::Done(self.send(PaneCommand::Type { typed: vec![typed] }))
    }

    /// Freezes the screen for copy mode, and requests the history.
    pub(super) fn freeze(&mut self, model: &Model) -> Vec<Effect> {
        self.copy = Some(CopyView::new(self.screen.rows.clone(), self.room.1.into()));
        match self.agent.clone().filter(|_| self.view(model).is_some()) {
            Some(agent) => {
                vec![Effect::ask_of(agent, CommandBody::Query(Query::Scrollback { lines: LINES }), HISTORY)]
            }
            None => Vec::new(),
        }
    }

    pub(super) fn take(&mut self) -> Reply {
        let Some(copy) = self.copy.take() else { return Reply::Ignored };
        Reply::with(Effect::Task(Task::Copy { text: copy.taken(), what: "selection" }))
    }

    /// Into main's composer, as a quotation.
    pub(super) fn quote(&mut self, model: &Model) -> Reply {
        let copy = self.copy.take();
        let text = copy.map_or_else(|| self.screen.text(), |c| c.taken());
        if text.trim().is_empty() {
            return draw::say("There is no text to send");
        }
        let name = self.agent.as_ref().map_or_else(String::new, |a| model.name_of(a));
        let lines: String = text.lines().map(|l| format!("> {l}\n")).collect();
        let text = format!("From the terminal of {name}:\n{lines}\n");
        Reply::Done(vec![
            Effect::Navigate(Navigation::Agent(AgentId::main())),
            Effect::Compose(ComposerInput::Text { text, replace: false }),
            Effect::Focus(View::Composer),
        ])
    }

    pub(super) fn stop(&self, model: &Model) -> Reply {
        let Some(id) = self.agent.clone().filter(|_| self.view(model).is_some()) else {
            return draw::say("It has ended");
        };
        let name = model.name_of(&id);
        let then = vec![Effect::send(CommandBody::Agent(AgentCommand::Cancel { id, subtree: false }))];
        let text = "Ends the program and everything it started. Its changes stay.";
        let confirm = Confirm::new(&format!("Stop {name}?"), text, "stop", then);
        Reply::with(Effect::Push(Box::new(confirm)))
    }

    pub(super) fn wheel(&mut self, up: bool, model: &Model) -> Reply {
        let mut all = Vec::new();
        if self.copy.is_none() {
            if !up {
                return Reply::done();
            }
            all = self.freeze(model);
        }
        if let Some(copy) = &mut self.copy {
            copy.scroll(if up { -WHEEL } else { WHEEL });
            if !up && copy.at_end() {
                self.copy = None;
            }
        }
        Reply::Done(all)
    }

    pub(super) fn drag(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let (line, column) =
            (usize::from(event.row.saturating_sub(area.y)), usize::from(event.column.saturating_sub(area.x)));
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(copy) = &mut self.copy {
                    copy.point(line, column, false);
                    copy.mark = None;
                }
                Reply::done()
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                let all = if self.copy.is_none() { self.freeze(model) } else { Vec::new() };
                if let Some(copy) = &mut self.copy {
                    copy.point(line, column, copy.mark.is_none());
                }
                Reply::Done(all)
            }
            MouseEventKind::Up(MouseButton::Left) if self.copy.as_ref().is_some_and(|c| c.mark.is_some()) => {
                self.take()
            }
            _ => Reply::Ignored,
        }
    }
}
