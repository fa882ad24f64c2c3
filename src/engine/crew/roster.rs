//! All agents of a session.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentCommand, AgentId, AgentLimits, AgentState, AgentView, CommandId, EventBody, SessionId,
};
use tiller_tool::crew::Note;

use super::member::Member;
use super::reservations::Reservations;
use super::waits::WaitFor;
use crate::bus::{ClientId, Place};
use crate::core::Core;
use crate::core::saves::{After, Then};

/// The agents of one session; the main one is not among them.
#[derive(Default)]
pub(crate) struct Crew {
    pub(crate) members: BTreeMap<AgentId, Member>,
    /// Who waits to be started, in order.
    pub(crate) line: VecDeque<AgentId>,
    pub(crate) waits: Vec<WaitFor>,
    /// Workflows, by number.
    pub(crate) flows: BTreeMap<u32, crate::crew::flow_state::Flow>,
    /// Numbers waits, and names agents.
    pub(crate) next: u64,
    pub(crate) names: u32,
    pub(crate) reservations: Arc<Reservations>,
    /// Notes that siblings share, by board and key.
    pub(crate) boards: HashMap<String, BTreeMap<String, Note>>,
    /// Ends that the next entry tells, and those that the entry on its way tells.
    pub(crate) to_tell: Vec<AgentId>,
    pub(crate) telling: Vec<AgentId>,
    /// The same of workflows.
    pub(crate) flows_to_tell: Vec<u32>,
    pub(crate) telling_flows: Vec<String>,
    /// For whose session.
    pub(crate) root: Option<SessionId>,
    /// What the store knows of them is on its way: agents, workflows. Names are not given out meanwhile.
    pub(crate) reading: bool,
    /// What the person asked meanwhile.
    pub(crate) asked: Vec<(ClientId, CommandId, AgentCommand)>,
}

impl Crew {
    /// Those below `id`, itself left out.
    pub(crate) fn below(&self, id: &AgentId) -> Vec<AgentId> {
        self.members.keys().filter(|m| *m != id && m.is_below(id)).cloned().collect()
    }

    /// A member and those above it, the uppermost first.
    pub(crate) fn chain(&self, id: &AgentId) -> Vec<&Member> {
        let mut chain: Vec<&Member> = std::iter::successors(Some(id.clone()), AgentId::parent)
            .filter_map(|id| self.members.get(&id))
            .collect();
        chain.reverse();
        chain
    }

    /// A member by what a model calls it: `a1`, or its path.
    pub(crate) fn find(&self, by: &AgentId, name: &str) -> Result<AgentId, String> {
        let name = name.trim();
        let hit = |m: &&AgentId| m.0 == name || m.name() == name;
        let mine = |m: &&AgentId| by.is_main() || (m.is_below(by) && *m != by);
        self.members.keys().filter(mine).find(hit).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.members.keys().filter(mine).map(AgentId::name).collect();
            match names.as_slice() {
                [] => format!("there is no agent {name}: you have started none"),
                _ => format!("there is no agent {name}; yours are: {}", names.join(", ")),
            }
        })
    }

    /// The workflow that a member works for.
    pub(crate) fn flow_of(&self, id: &AgentId) -> Option<u32> {
        let step = self.members.get(id)?.order.brief.step.as_deref()?;
        crate::crew::flow_state::number(crate::crew::flow_state::Step::of(step)?.flow)
    }

    /// The next one that may start; those of a workflow that rests stay in line.
    pub(crate) fn next_in_line(&mut self) -> Option<AgentId> {
        let rests = |id: &AgentId| {
            let flow = self.flow_of(id).and_then(|no| self.flows.get(&no));
            flow.is_some_and(|f| f.paused.is_some())
        };
        let at = self.line.iter().position(|id| !rests(id))?;
        self.line.remove(at)
    }

    /// Those that take one of the places for agents that run, also while their folder is made or their session read.
    /// Who waits for others or for the person, or rests, takes none.
    pub(crate) fn running(&self) -> usize {
        let busy = |m: &&Member| m.state() == AgentState::Running && !self.waits.iter().any(|w| w.by == m.id);
        self.members.values().filter(busy).count()
    }
}

impl Core {
    /// What an agent has used, for its row.
    pub(crate) fn used_by(&self, id: &AgentId) -> AgentLimits {
        let (tokens, cost) = self.crew.reservations.used(id);
        let work = self.crew.members.get(id).map(|m| m.order.work).unwrap_or_default();
        let (turns, seconds) = (Some(work.requests), Some(work.millis / 1000));
        AgentLimits { turns, seconds, tokens: Some(tokens), cost: Some(cost) }
    }

    /// Rows of all children, for a snapshot: an end that is not on disk yet has not come.
    pub(crate) fn crew_rows(&self) -> Vec<AgentView> {
        let row = |m: &Member| {
            let now = m.row(self.used_by(&m.id));
            if !m.disk.ahead() || m.state().at_work() {
                return now;
            }
            match m.disk.shown.as_deref() {
                Some(shown) if shown.state == now.state => shown.clone(),
                shown => AgentView { state: AgentState::Running, ..shown.cloned().unwrap_or(now) },
            }
        };
        self.crew.members.values().map(row).collect()
    }

    /// Shows an agent's row as it is now; while a change of it is on its way to the disk, when that is there.
    pub(crate) fn show_member(&mut self, id: &AgentId) {
        let used = self.used_by(id);
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.disk.ahead() {
            member.disk.behind = true;
            return;
        }
        let view = member.row(used);
        member.disk.shown = Some(Box::new(view.clone()));
        let place = Place { session: member.session, agent: id.clone(), cause: None };
        self.bus.publish(&place, EventBody::State(StateEvent::AgentChanged { view }));
    }

    /// Writes an agent down as it is now, and shows it when that is on disk.
    pub(crate) fn keep_member(&mut self, id: &AgentId) {
        if self.session.read_only {
            return self.show_member(id);
        }
        let (used, root, limits) = (self.crew.reservations.used(id), self.session.id, self.used_by(id));
        let Some(member) = self.crew.members.get_mut(id) else { return };
        member.order.used = (used.0, used.1.0);
        member.disk.pending += 1;
        member.disk.lost = false;
        let (row, view) = (member.kept(root), member.row(limits));
        let place = Place { session: member.session, agent: id.clone(), cause: None };
        let event = EventBody::State(StateEvent::AgentChanged { view: view.clone() });
        let then = Then::Row { session: member.session, view: Box::new(view) };
        let ticket = self.services.store.agents().put(row);
        self.saves.push(ticket, After { events: vec![(place, event)], then });
    }

    /// A row is on disk and shown, or could not be written. (Another session may be open by now.)
    pub(crate) fn row_kept(&mut self, session: SessionId, view: Box<AgentView>, written: bool) {
        let id = view.id.clone();
        let Some(member) = self.crew.members.get_mut(&id).filter(|m| m.session == session) else { return };
        member.disk.pending = member.disk.pending.saturating_sub(1);
        member.disk.lost = !written;
        if written {
            member.disk.shown = Some(view);
        }
        if written && member.disk.pending == 0 && std::mem::take(&mut member.disk.behind) {
            self.show_member(&id);
        }
    }

    /// Saving works again: what could not be written down is written now.
    pub(crate) fn keep_lost(&mut self) {
        let lost: Vec<AgentId> =
            self.crew.members.values().filter(|m| m.disk.lost).map(|m| m.id.clone()).collect();
        lost.iter().for_each(|id| self.keep_member(id));
    }

    /// Changes a member's state, and keeps it.
    pub(crate) fn set_state(&mut self, id: &AgentId, state: AgentState) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.view.state != state {
            member.view.state = state;
            member.view.act.clear();
            self.keep_member(id);
        }
    }
}
