//! What the loop of an engine calls at the agents that work for its session.

use tiller_protocol::workflow::WorkflowView;
use tiller_protocol::{
    AgentCommand, AgentId, AgentView, Command, CommandId, FileChange, Notice, NoticeKind, Profile, SessionId,
};

use crate::bus::ClientId;
use crate::crew::host::{CrewHost, HostEvents};
use crate::crew::msg::CrewMsg;

/// The agents that work for a session. `tiller-agents` implements it; the composition root hands it to the engine.
///
/// The loop owns the value and calls it from its own task: no method may block. Each call lends the loop as a
/// [`CrewHost`]. An engine whose agent is a child has [`NoCrew`].
pub trait Crew: Send {
    /// Another session is open: the agents of the one before end, and those of this one are loaded if it was stored.
    fn session_opened(&mut self, host: CrewHost<'_>, stored: bool);

    /// The session closes: every agent is interrupted, so that it can continue later.
    fn interrupt_all(&mut self, host: CrewHost<'_>);

    /// Handles a report of an agent, a request of a tool, or a message of the crew's own tasks.
    fn message(&mut self, host: CrewHost<'_>, msg: CrewMsg);

    /// Carries out a command of the user to the crew.
    fn command(&mut self, host: CrewHost<'_>, client: ClientId, cause: CommandId, command: AgentCommand);

    /// Delivers a command of the user to one agent.
    fn route(&mut self, host: CrewHost<'_>, client: ClientId, agent: &AgentId, command: Command);

    /// The rows of all agents and workflows, for a snapshot.
    fn rows(&self) -> CrewRows;

    /// The agents at work, each with its label.
    fn at_work(&self) -> Vec<(AgentId, String)>;

    /// The profile of the session has changed.
    fn profile_changed(&mut self, profile: Profile);

    /// The settings were read again.
    fn settings_changed(&mut self, host: CrewHost<'_>);

    /// Files of the workspace have changed.
    fn files_changed(&mut self, host: CrewHost<'_>, changes: &[FileChange]);

    /// The ends of agents and workflows that the next entry reports to the main agent. They count as announced from then on.
    fn take_ended(&mut self) -> EndedWork;

    /// A row of an agent was stored or not, or the store works again.
    fn stored(&mut self, host: CrewHost<'_>, report: StoreReport);
}

/// Rows for a snapshot.
#[derive(Debug, Default)]
pub struct CrewRows {
    pub agents: Vec<AgentView>,
    pub workflows: Vec<WorkflowView>,
}

/// Agents and workflows that have ended, by their ids.
#[derive(Debug, Default)]
pub struct EndedWork {
    pub agents: Vec<AgentId>,
    pub workflows: Vec<String>,
}

/// What the store did with rows of agents.
#[derive(Debug)]
pub enum StoreReport {
    /// The row of the agent that has this session was stored and published (`written`), or could not be stored.
    Row { session: SessionId, view: Box<AgentView>, written: bool },
    /// The store works again.
    Recovered,
}

/// The crew of an engine that has no agents beside its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCrew;

impl Crew for NoCrew {
    fn session_opened(&mut self, _: CrewHost<'_>, _: bool) {}

    fn interrupt_all(&mut self, _: CrewHost<'_>) {}

    fn message(&mut self, _: CrewHost<'_>, _: CrewMsg) {}

    fn command(&mut self, host: CrewHost<'_>, client: ClientId, cause: CommandId, _: AgentCommand) {
        host.refuse(client, cause, Notice::new(NoticeKind::User, "this engine has no other agents"));
    }

    fn route(&mut self, host: CrewHost<'_>, client: ClientId, agent: &AgentId, command: Command) {
        let text = format!("there is no agent {}", agent.name());
        host.refuse(client, command.id, Notice::new(NoticeKind::User, text));
    }

    fn rows(&self) -> CrewRows {
        CrewRows::default()
    }

    fn at_work(&self) -> Vec<(AgentId, String)> {
        Vec::new()
    }

    fn profile_changed(&mut self, _: Profile) {}

    fn settings_changed(&mut self, _: CrewHost<'_>) {}

    fn files_changed(&mut self, _: CrewHost<'_>, _: &[FileChange]) {}

    fn take_ended(&mut self) -> EndedWork {
        EndedWork::default()
    }

    fn stored(&mut self, _: CrewHost<'_>, _: StoreReport) {}
}
