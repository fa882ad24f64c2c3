//! The identity of the agent of a loop, and what only children have.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiller_config::agents::Definition;
use tiller_protocol::{AgentId, AgentLimits, CommandId, EntryId, Profile, QueueId, SessionId, Time};

use crate::crew::child::outbox::Outbox;
use crate::crew::external::ExternalProgram;

/// The agent of a loop.
pub(crate) struct AgentIdentity {
    pub(crate) id: AgentId,
    pub(crate) kind: AgentKind,
    /// Its role; `None`: the main agent as it is built in.
    pub(crate) role: Option<Arc<Definition>>,
    /// Nothing is written in this window.
    pub(crate) look_only: bool,
}

impl AgentIdentity {
    /// The main agent.
    pub(crate) fn main(role: Option<Arc<Definition>>) -> Self {
        Self { id: AgentId::main(), kind: AgentKind::Main, role, look_only: false }
    }
}

impl AgentIdentity {
    /// Whether this engine holds what all agents of a session share: permission rules, background processes, the
    /// budgets of session and day, work that ended while no one listened.
    pub(crate) fn owns_session(&self) -> bool {
        matches!(self.kind, AgentKind::Main)
    }

    /// Whether the messages of its turns are the user's, and belong in the history of prompts.
    pub(crate) fn talks_to_user(&self) -> bool {
        matches!(self.kind, AgentKind::Main)
    }

    /// Another agent started it.
    pub(crate) fn is_child(&self) -> bool {
        self.child().is_some()
    }

    /// What a child has beyond the main agent; `None`: the main agent.
    pub(crate) fn child(&self) -> Option<&Child> {
        match &self.kind {
            AgentKind::Main => None,
            AgentKind::Child(child) | AgentKind::External(child, _) => Some(child),
        }
    }

    /// As [`Self::child`].
    pub(crate) fn child_mut(&mut self) -> Option<&mut Child> {
        match &mut self.kind {
            AgentKind::Main => None,
            AgentKind::Child(child) | AgentKind::External(child, _) => Some(child),
        }
    }

    /// The external program that does the work of this agent.
    pub(crate) fn external(&self) -> Option<&ExternalProgram> {
        match &self.kind {
            AgentKind::External(_, program) => Some(program),
            AgentKind::Main | AgentKind::Child(_) => None,
        }
    }

    /// As [`Self::external`].
    pub(crate) fn external_mut(&mut self) -> Option<&mut ExternalProgram> {
        match &mut self.kind {
            AgentKind::External(_, program) => Some(program),
            AgentKind::Main | AgentKind::Child(_) => None,
        }
    }
}

/// Who does the work of an engine. It is decided when the engine is made.
pub(crate) enum AgentKind {
    /// The agent that the user talks to, with a model of a provider.
    Main,
    /// An agent that another one started, with a model of a provider.
    Child(Box<Child>),
    /// An agent that another one started, whose work a program of another vendor does.
    External(Box<Child>, Box<ExternalProgram>),
}

/// The state of a child beyond that of the main agent.
pub(crate) struct Child {
    /// To the main agent's loop. It closes when the session ends.
    pub(crate) main: Outbox,
    /// The main agent's session.
    pub(crate) root: SessionId,
    pub(crate) assignment: Assignment,
    pub(crate) limits: AgentLimits,
    /// Questions of this agent in the queue of the main agent's loop.
    pub(crate) open_questions: u32,
    /// Requests and calls so far.
    pub(crate) work: Work,
    /// Files that it changed, relative to its folder.
    pub(crate) files: BTreeSet<String>,
    pub(crate) time: WorkTime,
    pub(crate) pause: Pause,
    /// Messages on their way, and the commands that sent them.
    pub(crate) receipts: HashMap<QueueId, CommandId>,
    /// Ends of its own children that its next entry reports, with the text.
    pub(crate) unannounced: Vec<(AgentId, String)>,
}

/// What a child was given at its start.
pub(crate) struct Assignment {
    /// The entry that its session hangs off.
    pub(crate) spawned_by: Option<EntryId>,
    /// The user wrote the task: it may call commands, load skills and attach files.
    pub(crate) task_of_user: bool,
    pub(crate) label: String,
    /// Names of skills that its task gives it.
    pub(crate) skills: Vec<String>,
    /// The widest profile that it can have.
    pub(crate) max_profile: Profile,
    /// The main agent's turn answered `/init` when the task was given: what holds for AGENTS.md there holds here.
    pub(crate) init: bool,
}

/// Time at work, pauses left out.
pub(crate) struct WorkTime {
    /// In stretches that are over.
    pub(crate) before: Duration,
    /// The start of the present stretch, in monotonic time.
    pub(crate) since: Option<Duration>,
}

impl WorkTime {
    /// Time at work so far.
    pub(crate) fn worked(&self, mono: Duration) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| mono.saturating_sub(since))
    }

    /// Ends the present stretch.
    pub(crate) fn stop(&mut self, mono: Duration) {
        self.before = self.worked(mono);
        self.since = None;
    }
}

/// Whether a child is paused, and what waits until it is resumed.
#[derive(Default)]
pub(crate) struct Pause {
    pub(crate) active: bool,
    pub(crate) deferred: Option<DeferredStep>,
}

/// What waits until a paused agent is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeferredStep {
    /// The preparation of the next request.
    Prepare { may_compact: bool },
    /// A request that has had no answer yet; it is sent again.
    Request,
    /// A retry whose wait is over.
    Try { turn: u64, n: u32 },
}

/// What an agent has done, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    pub requests: u32,
    pub calls: u32,
    /// Time at work.
    pub millis: u64,
    /// It went on working when this was said.
    pub at: Option<Time>,
    /// No one could give an approval or an answer that it needed. It is a fact of this run, and not kept.
    #[serde(skip)]
    pub refused: bool,
}

impl Work {
    /// What the store shows of an agent, when that is more: it may have gone on until Tiller was killed.
    /// `own`: each of its replies was a request of this program.
    pub fn or_more(mut self, seen: &tiller_store::AgentWork, own: bool) -> Self {
        if own {
            self.requests = self.requests.max(u32::try_from(seen.replies).unwrap_or(u32::MAX));
        }
        self.calls = self.calls.max(u32::try_from(seen.results).unwrap_or(u32::MAX));
        if let (Some(at), Some(last)) = (self.at.take(), seen.last) {
            let more = u64::try_from(last.millis() - at.millis()).unwrap_or(0);
            self.millis = self.millis.saturating_add(more);
        }
        self
    }
}
