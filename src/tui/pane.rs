//! Which agent's terminal is shown, and when: only the shown terminal receives updates.

use tiller_protocol::AgentId;

use crate::app::App;
use crate::app::state::Owner;
use crate::panel::terminal::visibility::Visibility;
use crate::panel::{PanelEvent, Reply, View, terminal};
use crate::view::layout::Zoom;

impl App {
    /// Shows an agent's terminal.
    pub(crate) fn show_terminal(&mut self, agent: &AgentId) {
        if *agent != self.model.shown_agent() {
            self.show_agent(agent);
        }
        self.model.crew.pane = Some(agent.clone());
        self.focus(View::Terminals);
    }

    /// The terminal to show when none was named: of the agent on the screen, else the one of before, else the first.
    pub(crate) fn pick_terminal(&mut self) {
        let has = |id: &AgentId| terminal::will(&self.model, id);
        let here = self.model.shown_agent();
        let before = self.model.crew.pane.clone();
        let first = self.model.crew.agents.iter().map(|a| &a.id).find(|id| has(id)).cloned();
        let pick = Some(here).filter(has).or(before.clone().filter(has)).or(first).or(before);
        if self.model.crew.pane != pick {
            self.model.crew.pane = pick;
        }
    }

    /// The terminal of the next agent that has one.
    pub(crate) fn next_terminal(&mut self) {
        let all: Vec<AgentId> = self.model.crew.agents.iter().map(|a| a.id.clone()).collect();
        let all: Vec<&AgentId> = all.iter().filter(|id| terminal::of(&self.model, id).is_some()).collect();
        let at = all.iter().position(|id| Some(*id) == self.model.crew.pane.as_ref());
        let next = at.map_or(0, |at| at + 1);
        match all.get(next).or(all.first()) {
            Some(id) => self.show_terminal(&(*id).clone()),
            None => self.say("No agent runs in a terminal"),
        }
    }

    /// The terminal takes the whole screen, or its part of it.
    pub(crate) fn zoom_full(&mut self) {
        self.screen.zoom = if self.screen.zoom == Zoom::Full { Zoom::Normal } else { Zoom::Full };
    }

    /// After each message: tells the panel when it came on the screen or went.
    pub(crate) fn settle_terminal(&mut self) {
        let view = View::Terminals;
        let shown = self.screen.main == view;
        if shown && (!self.told.pane.shown || self.model.crew.pane.is_none()) {
            self.pick_terminal();
        }
        let focus = shown && self.top() == Owner::View(view);
        let covered = !self.layers.is_empty();
        let away = self.model.window.away;
        let now = Visibility { shown, focus, covered, away, agent: self.model.crew.pane.clone() };
        // The person is in the pane, or has just left it, and knows of the bell.
        let inside = focus && self.status_of(self.top()).is_some_and(|s| s.is_raw());
        let before = &self.told.pane;
        let left = before.shown && (!shown || before.agent != now.agent);
        for id in [before.agent.clone().filter(|_| left), now.agent.clone().filter(|_| inside)]
            .into_iter()
            .flatten()
        {
            let bells = terminal::of(&self.model, &id).map_or(0, |p| p.bells);
            if self.model.bells_seen(Some(&id)) != bells {
                self.model.crew.bells.insert(id, bells);
            }
        }
        if now == self.told.pane {
            return;
        }
        let reply = self.with(Owner::View(view), |p, m| p.handle(PanelEvent::Visibility(&now), m));
        self.told.pane = now;
        if let Some(Reply::Done(list)) = reply {
            self.effects(Owner::View(view), list);
        }
    }
}
