//! When dialogs for questions of the engine open, and where. A question never answers to a sentence: while the person
//! writes, it opens folded. All of it stands above the composer, and keys go to the draft until an action or a click unfolds
//! it. A question that was put aside opens again on request, when a pane is left, and when the turn waits for the person.

use std::time::Duration;

use tiller_protocol::event::{AskEvent, StateEvent, TurnEvent};
use tiller_protocol::{AgentState, Ask, AskId, Event, EventBody};

use crate::app::App;
use crate::app::state::{Layer, Owner};
use crate::dialog;
use crate::panel::{Letters, Panel, PanelEvent, Reply, View};
use crate::view::layout::Zoom;

/// No question takes keys by itself within this time after a printable key.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

const COMPOSER: Owner = Owner::View(View::Composer);

impl App {
    /// Closes dialogs whose question is answered, and opens the next one when the moment is right.
    pub(crate) fn show_asks(&mut self) {
        self.drop_answered();
        // While the person types into a program's terminal, no dialog opens over it.
        let inside = self.status_of(self.top()).is_some_and(|s| s.is_raw());
        // Where there is no room for it above the composer, it opens when the person pauses.
        if self.is_folded_hidden() && self.layers.is_empty() && !self.is_writing() && !inside {
            self.unfold();
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
        // Of two dialogs that lie on each other, the key for one would answer the next.
        if self.layers.iter().any(|l| l.question(&self.model).is_some()) {
            return false;
        }
        let waits = |id: &AskId| asked || !self.questions.aside.contains(id);
        let Some(id) = self.model.questions.open.iter().map(|a| a.id).find(waits) else { return false };
        if asked {
            self.questions.aside.clear();
        }
        // A text that was begun in it would take what is written now.
        let begun = |(kept, panel): &(AskId, Box<dyn Panel>)| {
            *kept == id && panel.status(&self.model).letters == Letters::Write
        };
        let writes = self.is_writing() || self.questions.kept.iter().any(begun);
        self.open_dialog(id, !asked && !self.questions.row.contains(&id) && writes)
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
            self.take_row();
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
            // What is answered was all that was not put aside.
            EventBody::Ask(
                AskEvent::PermissionDecided { id: Some(_), .. } | AskEvent::QuestionAnswered { .. },
            ) => {
                let aside = |a: &Ask| self.questions.aside.contains(&a.id);
                self.questions.waited && self.model.questions.open.iter().all(aside)
            }
            _ => false,
        };
        if waits {
            self.questions.aside.clear();
        }
    }

    /// Closes dialogs whose question is answered. Unsent text in them is kept.
    fn drop_answered(&mut self) {
        // Text that is being written in a dialog goes on in the draft.
        let gone_from = self.layers.last().filter(|l| {
            let status = l.panel().status(&self.model);
            let open = status.question.is_none_or(|id| self.model.questions.open.iter().any(|a| a.id == id));
            !open && matches!(status.letters, Letters::Write | Letters::Filter(0))
        });
        if gone_from.is_some() {
            self.wrote();
        }
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
            self.questions.row.clear();
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

    /// The composer gets the keys: what was put aside opens again, when they were elsewhere.
    pub(crate) fn left_pane(&mut self) {
        if self.screen.focus != View::Composer || self.screen.main != View::Conversation {
            self.questions.aside.clear();
        }
    }

    /// True when the person writes: a question that opens now takes no keys.
    pub(crate) fn is_writing(&self) -> bool {
        self.typing() || !self.is_empty(COMPOSER)
    }

    /// True when a printable key was pressed just now.
    pub(crate) fn typing(&self) -> bool {
        self.keys.typed.is_some_and(|t| self.model.mono.saturating_sub(t) < QUIET)
    }

    /// When the last printable key is no typing any more (monotonic).
    pub(crate) fn quiet_from(&self) -> Option<Duration> {
        self.keys.typed.map(|t| t + QUIET)
    }

    /// Shows the dialog of a question above the composer.
    fn open_folded(&mut self, mut panel: Box<dyn Panel>) {
        let id = self.router.fresh();
        let reply = panel.handle(PanelEvent::Opened, &self.model);
        self.questions.folded = Some(Layer::new(id, panel));
        if let Reply::Done(list) = reply {
            self.effects(Owner::Layer(id), list);
        }
    }

    /// The question that is folded.
    pub(crate) fn folded_question(&self) -> Option<AskId> {
        self.questions.folded.as_ref()?.question(&self.model)
    }

    /// True when Escape in the composer is about a question that is folded.
    pub(crate) fn is_folded_in_sight(&self) -> bool {
        self.questions.folded.is_some() && !self.is_folded_hidden() && self.screen.focus == View::Composer
    }

    /// True when the screen has no room for the question that is folded.
    pub(crate) fn is_folded_hidden(&self) -> bool {
        self.questions.folded.is_some() && !self.screen.shows_folded
    }

    /// Gives the keys to the folded question; `false`: there is none.
    pub(crate) fn unfold(&mut self) -> bool {
        let Some(mut layer) = self.questions.folded.take() else { return false };
        layer.delay.restart();
        self.keys.pending.clear();
        self.layers.push(layer);
        self.take_row();
        true
    }

    /// Notes the questions that wait behind the one that takes keys now: they take keys, too.
    fn take_row(&mut self) {
        let aside = &self.questions.aside;
        let open = self.model.questions.open.iter().map(|a| a.id);
        self.questions.row = open.filter(|id| !aside.contains(id)).collect();
    }

    /// Closes the folded question until it is asked for.
    pub(crate) fn put_folded_aside(&mut self) {
        let Some(layer) = self.questions.folded.take() else { return };
        self.questions.aside.extend(layer.question(&self.model));
        self.keep_ask(layer.into_panel());
    }

    /// Folds the question on top, and gives the keys to the composer. One that lies over another dialog stays, and is
    /// deaf: what follows is no command for that dialog.
    pub(crate) fn fold_top(&mut self) {
        let now = self.model.mono;
        let others = self.layers.len() > 1;
        let Some(top) = self.layers.last_mut().filter(|l| l.question(&self.model).is_some()) else { return };
        if others {
            top.delay.note_typed(now);
            return;
        }
        if let Some(layer) = self.layers.pop() {
            self.put_folded_aside();
            self.questions.folded = Some(layer);
        }
        self.focus_composer();
    }

    /// Gives the keys to the composer.
    pub(crate) fn focus_composer(&mut self) {
        self.left_pane();
        if self.screen.focus != View::Composer {
            self.screen.focus = View::Composer;
            self.screen.zoom = Zoom::Normal;
        }
    }

    /// Notes a printable key that was not for a question.
    pub(crate) fn wrote(&mut self) {
        self.keys.typed = Some(self.model.mono);
        self.questions.row.clear();
    }
}
