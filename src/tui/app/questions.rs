//! When dialogs for questions of the engine open: in place of the composer, or folded above it ([`crate::app::folded`]).
//! A question that was put aside opens again on request, when a pane is left, and when the turn waits for the person.

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{AgentState, AskId, Event, EventBody};

use crate::app::App;
use crate::app::folded::QUIET;
use crate::app::state::{Layer, Owner};
use crate::dialog;
use crate::panel::{Panel, PanelEvent, Reply};

impl App {
    /// Closes dialogs whose question is answered, and opens the next one when the moment is right.
    pub(crate) fn show_asks(&mut self) {
        self.drop_answered();
        // While the person types into a program's terminal, no dialog opens over it.
        let inside = self.status_of(self.top()).is_some_and(|s| s.is_raw());
        // What comes at once is the next one of a row.
        let used = self.questions.used.is_some_and(|t| self.model.mono.saturating_sub(t) < QUIET);
        if self.model.questions.open.is_empty() && !used {
            self.questions.answering = false;
        }
        let busy = self.questions.folded.is_some() || self.keys.held.is_some();
        if busy || !self.layers.is_empty() || !self.keys.pending.is_empty() || inside {
            return;
        }
        // A session that continues with a real model needs no set-up.
        let real = self.model.agent.session.model.is_real();
        // A session with the demo model chosen by name needs none either.
        let child = self.model.shown.is_some();
        if self.open_ask(false) || !self.questions.first_run || !self.model.engine.ready || real || child {
            return;
        }
        if self.typing() {
            return;
        }
        self.questions.first_run = false;
        self.push(Box::new(dialog::first_run::FirstRun::by_itself(self.model.mono)));
    }

    /// Denies approvals whose time is over.
    pub(crate) fn time_asks(&mut self) {
        for (answer, said) in self.questions.deadlines.late(&mut self.model) {
            self.send(answer);
            self.notice(said);
        }
    }

    /// Restarts the time limit of the question on top: the person is reading it.
    pub(crate) fn attended(&mut self) {
        if let Some(id) = self.status_of(self.top()).and_then(|s| s.question) {
            self.questions.deadlines.attended(id, self.model.mono);
        }
    }

    /// Gives the keys to the folded question, else opens the oldest one. `asked`: also one that was put aside. `false`: no
    /// question waits that is not on the screen.
    pub(crate) fn open_ask(&mut self, asked: bool) -> bool {
        if asked && self.unfold() {
            return true;
        }
        let shown: Vec<AskId> = self.shown_questions().collect();
        let waits = |id: &AskId| !shown.contains(id) && (asked || !self.questions.aside.contains(id));
        let Some(id) = self.model.questions.open.iter().map(|a| a.id).find(waits) else { return false };
        if asked {
            self.questions.aside.clear();
        }
        let folded = !asked && !self.questions.answering && self.is_writing();
        self.open_dialog(id, folded)
    }

    /// Opens this question, which takes keys; `false` when it does not wait any more.
    pub(crate) fn open_this(&mut self, id: AskId) -> bool {
        if self.folded_question() == Some(id) {
            return self.unfold();
        }
        self.open_dialog(id, false)
    }

    fn open_dialog(&mut self, id: AskId, folded: bool) -> bool {
        let Some(ask) = self.model.questions.open.iter().find(|a| a.id == id) else { return false };
        let kept = self.questions.kept.iter().position(|(i, _)| *i == id);
        let panel = match kept.map(|at| self.questions.kept.swap_remove(at).1) {
            Some(mut panel) => {
                let _ = panel.handle(PanelEvent::Resumed, &self.model);
                panel
            }
            None => match self.registry.for_ask(ask) {
                Some(panel) => panel,
                None => return false,
            },
        };
        self.questions.aside.remove(&id);
        if folded {
            self.open_folded(panel);
        } else {
            self.questions.answering = true;
            self.push(panel);
        }
        true
    }

    /// Opens what was put aside again, when the person has come to an end: the main agent waits, or its turn is over.
    pub(crate) fn recall_asks(&mut self, event: &Event) {
        let waits = match &event.body {
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => event.agent.is_main(),
            EventBody::State(StateEvent::AgentChanged { view }) if view.id.is_main() => {
                let now = view.state == AgentState::Waiting;
                let before = std::mem::replace(&mut self.questions.waited, now);
                now && !before
            }
            _ => false,
        };
        if waits {
            self.questions.aside.clear();
        }
    }

    /// Closes dialogs whose question is answered. Unsent text in them is kept.
    fn drop_answered(&mut self) {
        let model = &self.model;
        let open = |id: AskId| model.questions.open.iter().any(|a| a.id == id);
        let (stay, gone): (Vec<Layer>, Vec<Layer>) =
            std::mem::take(&mut self.layers).into_iter().partition(|l| l.question(model).is_none_or(open));
        self.layers = stay;
        let folded = self.questions.folded.take_if(|l| !l.question(model).is_some_and(open));
        let (stay, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.questions.kept).into_iter().partition(|(id, _)| open(*id));
        self.questions.kept = stay;
        self.questions.aside.retain(|id| open(*id));
        let panels = gone
            .into_iter()
            .chain(folded)
            .map(Layer::into_panel)
            .chain(left.into_iter().map(|(_, panel)| panel));
        for mut panel in panels {
            if let Reply::Done(list) = panel.handle(PanelEvent::Withdrawn, &self.model) {
                self.effects(Owner::Shell, list);
            }
        }
    }

    /// Keeps the dialog of a question that still waits, as it is left.
    pub(crate) fn keep_ask(&mut self, panel: Box<dyn Panel>) {
        if let Some(id) = panel.status(&self.model).question {
            self.questions.answering = false;
            self.questions.kept.retain(|(i, _)| *i != id);
            self.questions.kept.push((id, panel));
        }
    }

    /// Puts the question aside, and all that wait behind it: none of them opens by itself.
    pub(crate) fn leave_asks(&mut self) {
        if self.layers.iter().any(|l| l.question(&self.model).is_some()) {
            self.questions.aside.extend(self.model.questions.open.iter().map(|a| a.id));
        }
        self.put_asks_aside();
    }

    /// Closes question dialogs without answering them.
    pub(crate) fn put_asks_aside(&mut self) {
        let ids: Vec<_> = self.layers.iter().filter_map(|l| l.question(&self.model)).collect();
        self.questions.aside.extend(ids);
        let (stay, left): (Vec<Layer>, Vec<Layer>) =
            std::mem::take(&mut self.layers).into_iter().partition(|l| l.question(&self.model).is_none());
        self.layers = stay;
        left.into_iter().for_each(|l| self.keep_ask(l.into_panel()));
    }

    fn shown_questions(&self) -> impl Iterator<Item = AskId> {
        self.dialogs().filter_map(|l| l.question(&self.model))
    }
}
