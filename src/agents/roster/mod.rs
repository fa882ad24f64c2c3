//! All agents of a session.

pub(crate) mod member;
pub(crate) mod restore;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tiller_engine::crew::{Grant, HostEvents, HostSession, HostStorage};
use tiller_engine::money::reservations::Reservations;
use tiller_engine::{ClientId, EventScope};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentCommand, AgentId, AgentLimits, AgentState, AgentView, CommandId, EventBody, SessionId,
};
use tiller_tool::crew::Note;

use crate::driver::CrewDriver;
use crate::msg::TaskQueue;
use crate::requests::wait::AgentWait;
use crate::roster::member::Member;

/// The refusal while agents are loaded: their names may be taken.
pub(crate) const READING: &str = "the agents of this session are still being loaded: try again";

/// The agents of one session, the main agent excepted, and its workflows.
#[derive(Default)]
pub struct Roster {
    pub(crate) members: BTreeMap<AgentId, Member>,
    /// Agents that wait to be started, in order.
    pub(crate) line: VecDeque<AgentId>,
    pub(crate) waits: Vec<AgentWait>,
    /// Workflows, by number.
    pub(crate) flows: BTreeMap<u32, crate::workflow::state::WorkflowRun>,
    /// The last number given to a wait or a run.
    pub(crate) next: u64,
    pub(crate) names: u32,
    /// Tokens and money of all agents of the session; the engine of the main agent has it, too.
    pub(crate) reservations: Arc<Reservations>,
    /// Notes that siblings share, by board and key.
    pub(crate) boards: HashMap<String, BTreeMap<String, Note>>,
    /// Agents whose ends the next entry reports.
    pub(crate) to_tell: Vec<AgentId>,
    /// Workflows whose ends the next entry reports.
    pub(crate) flows_to_tell: Vec<u32>,
    /// The main agent's session.
    pub(crate) root: Option<SessionId>,
    /// Agents and workflows are being loaded. No names are given to new ones meanwhile.
    pub(crate) reading: bool,
    /// Messages of the crew's own tasks.
    pub(crate) tasks: TaskQueue,
    /// Commands of the user that wait until loading is done.
    pub(crate) asked: Vec<(ClientId, CommandId, AgentCommand)>,
}

impl Roster {
    /// The agents below `id`, `id` excepted.
    pub(crate) fn below(&self, id: &AgentId) -> Vec<AgentId> {
        self.members.keys().filter(|m| *m != id && m.is_below(id)).cloned().collect()
    }

    /// A member and its ancestors, the topmost first.
    pub(crate) fn chain(&self, id: &AgentId) -> Vec<&Member> {
        let mut chain: Vec<&Member> = std::iter::successors(Some(id.clone()), AgentId::parent)
            .filter_map(|id| self.members.get(&id))
            .collect();
        chain.reverse();
        chain
    }

    /// What a member and its ancestors were given, the topmost first.
    pub(crate) fn grants(&self, id: &AgentId) -> Vec<Grant<'_>> {
        self.chain(id).into_iter().map(Member::grant).collect()
    }

    /// The member below `by` with this name (`a1`) or path.
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
        crate::workflow::state::number(crate::workflow::state::StepRef::parse(step)?.flow)
    }

    /// The next agent that may start; agents of a paused workflow stay in line.
    pub(crate) fn next_in_line(&mut self) -> Option<AgentId> {
        let rests = |id: &AgentId| {
            let flow = self.flow_of(id).and_then(|no| self.flows.get(&no));
            flow.is_some_and(|f| f.paused.is_some())
        };
        let at = self.line.iter().position(|id| !rests(id))?;
        self.line.remove(at)
    }

    /// Number of agents that count as running, also while their folder is made or their session is loaded.
    /// Agents that wait for agents or the user, or are paused, do not count.
    pub(crate) fn running(&self) -> usize {
        let busy = |m: &&Member| m.state() == AgentState::Running && !self.waits.iter().any(|w| w.by == m.id);
        self.members.values().filter(busy).count()
    }
}

impl Roster {
    /// What an agent has used, for its row.
    pub(crate) fn used_by(&self, id: &AgentId) -> AgentLimits {
        let (tokens, cost) = self.reservations.used(id);
        let work = self.members.get(id).map(|m| m.order.work).unwrap_or_default();
        let (turns, seconds) = (Some(work.requests), Some(work.millis / 1000));
        AgentLimits { turns, seconds, tokens: Some(tokens), cost: Some(cost) }
    }

    /// Rows of all children, for a snapshot. An end that is not stored yet is not shown.
    pub(crate) fn agent_rows(&self) -> Vec<AgentView> {
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
        self.members.values().map(row).collect()
    }
}

impl CrewDriver<'_> {
    /// Publishes an agent's row; while a change of it is being stored, after that.
    pub(crate) fn show_member(&mut self, id: &AgentId) {
        let used = self.crew.used_by(id);
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.disk.ahead() {
            member.disk.behind = true;
            return;
        }
        let view = member.row(used);
        member.disk.shown = Some(Box::new(view.clone()));
        let scope = EventScope { session: member.session, agent: id.clone(), cause: None };
        self.host.publish(&scope, EventBody::State(StateEvent::AgentChanged { view }));
    }

    /// Stores an agent, and publishes its row when that is done.
    pub(crate) fn store_member(&mut self, id: &AgentId) {
        if self.host.read_only() {
            return self.show_member(id);
        }
        let (used, limits) = (self.crew.reservations.used(id), self.crew.used_by(id));
        let root = self.root();
        let Some(member) = self.crew.members.get_mut(id) else { return };
        member.order.used = (used.0, used.1.0);
        member.disk.pending += 1;
        member.disk.lost = false;
        let (row, view) = (member.kept(root), member.row(limits));
        let session = member.session;
        let ticket = self.host.store().agents().put(row);
        self.host.save_row(ticket, session, view);
    }

    /// A row is stored and published, or could not be stored. (Another session may be open by now.)
    pub(crate) fn row_stored(&mut self, session: SessionId, view: Box<AgentView>, written: bool) {
        let id = view.id.clone();
        let Some(member) = self.crew.members.get_mut(&id).filter(|m| m.session == session) else {
            return;
        };
        member.disk.pending = member.disk.pending.saturating_sub(1);
        member.disk.lost = !written;
        if written {
            member.disk.shown = Some(view);
        }
        if written && member.disk.pending == 0 && std::mem::take(&mut member.disk.behind) {
            self.show_member(&id);
        }
    }

    /// The store works again: stores the rows that it had refused.
    pub(crate) fn store_lost_rows(&mut self) {
        let lost: Vec<AgentId> =
            self.crew.members.values().filter(|m| m.disk.lost).map(|m| m.id.clone()).collect();
        lost.iter().for_each(|id| self.store_member(id));
    }

    /// Changes a member's state and stores it.
    pub(crate) fn set_state(&mut self, id: &AgentId, state: AgentState) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.view.state != state {
            member.view.state = state;
            member.view.act = tiller_protocol::Act::Nothing;
            self.store_member(id);
        }
    }
}
