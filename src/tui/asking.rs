//! When questions of the engine come on the screen: in place of the composer, never over it while text
//! is being typed; a question that was put aside comes back only when it is asked for.

use std::time::Duration;

use tiller_protocol::AskId;

use crate::app::App;
use crate::dialog;

/// No question opens by itself within this time after a typed character.
pub(crate) const QUIET: Duration = Duration::from_millis(1000);

impl App {
    /// Closes dialogs whose question is answered, and opens the next one when the moment is right.
    pub(crate) fn show_asks(&mut self) {
        let open = |id| self.model.asks.iter().any(|a| a.id == id);
        self.layers.retain(|l| l.panel.ask().is_none_or(open));
        self.asking.aside.retain(|id| self.model.asks.iter().any(|a| a.id == *id));
        if !self.layers.is_empty() || !self.keys.pending.is_empty() || self.typing() {
            return;
        }
        let provider = self.model.session.model.provider();
        // A session that goes on with a real model needs no set-up.
        let real = !provider.is_empty() && provider != "demo";
        if self.open_ask(false) || !self.asking.first_run || !self.model.ready || real {
            return;
        }
        self.asking.first_run = false;
        self.push(Box::new(dialog::first_run::FirstRun::default()));
    }

    /// Says no to approvals whose time is over.
    pub(crate) fn time_asks(&mut self) {
        for (answer, said) in self.asking.deadlines.late(&mut self.model) {
            self.send(answer);
            self.notice(said);
        }
    }

    /// The person is at the dialog on top: its time begins anew.
    pub(crate) fn attended(&mut self) {
        if let Some(id) = self.panel(self.top()).and_then(crate::panel::Panel::ask) {
            self.asking.deadlines.attended(id, self.model.mono);
        }
    }

    /// The person is in the middle of typing.
    pub(crate) fn typing(&self) -> bool {
        self.keys.typed.is_some_and(|t| self.model.mono.saturating_sub(t) < QUIET)
    }

    /// Opens the oldest question; `asked`: also one that was put aside. `false` when there is none.
    pub(crate) fn open_ask(&mut self, asked: bool) -> bool {
        let next = self.model.asks.iter().find(|a| asked || !self.asking.aside.contains(&a.id));
        let Some(panel) = next.and_then(|a| dialog::for_ask(a, &self.model)) else { return false };
        if asked {
            self.asking.aside.clear();
        }
        self.push(panel);
        true
    }

    /// Opens this question; `false` when it does not wait any more.
    pub(crate) fn open_this(&mut self, id: AskId) -> bool {
        let ask = self.model.asks.iter().find(|a| a.id == id);
        let Some(panel) = ask.and_then(|a| dialog::for_ask(a, &self.model)) else { return false };
        self.asking.aside.remove(&id);
        self.push(panel);
        true
    }

    /// Takes question dialogs off the screen without answering them.
    pub(crate) fn put_asks_aside(&mut self) {
        let ids: Vec<_> = self.layers.iter().filter_map(|l| l.panel.ask()).collect();
        self.asking.aside.extend(ids);
        self.layers.retain(|l| l.panel.ask().is_none());
    }

    /// Questions that wait and are not on the screen.
    pub(crate) fn waiting_asks(&self) -> usize {
        self.model.asks.iter().filter(|a| !self.layers.iter().any(|l| l.panel.ask() == Some(a.id))).count()
    }
}
