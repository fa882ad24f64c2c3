//! What the loop of the engine calls at the agents of its session.

use tiller_engine::ClientId;
use tiller_engine::crew::{Crew, CrewHost, CrewMsg, CrewRows, EndedWork, StoreReport};
use tiller_protocol::{AgentCommand, AgentId, Command, CommandId, FileChange, Profile};

use crate::driver::CrewDriver;
use crate::roster::Roster;

impl Roster {
    fn driver<'a>(&'a mut self, host: CrewHost<'a>) -> CrewDriver<'a> {
        CrewDriver { crew: self, host }
    }
}

impl Crew for Roster {
    fn session_opened(&mut self, host: CrewHost<'_>, stored: bool) {
        self.driver(host).session_opened(stored);
    }

    fn interrupt_all(&mut self, host: CrewHost<'_>) {
        self.driver(host).interrupt_all();
    }

    fn message(&mut self, host: CrewHost<'_>, msg: CrewMsg) {
        self.driver(host).message(msg);
    }

    fn command(&mut self, host: CrewHost<'_>, client: ClientId, cause: CommandId, command: AgentCommand) {
        self.driver(host).command(client, cause, command);
    }

    fn route(&mut self, host: CrewHost<'_>, client: ClientId, agent: &AgentId, command: Command) {
        self.driver(host).route(client, agent, command);
    }

    fn rows(&self) -> CrewRows {
        CrewRows { agents: self.agent_rows(), workflows: self.workflow_rows() }
    }

    fn at_work(&self) -> Vec<(AgentId, String)> {
        let members = self.members.values().filter(|m| m.state().at_work());
        members.map(|m| (m.id.clone(), m.order.label.clone())).collect()
    }

    fn profile_changed(&mut self, profile: Profile) {
        for handle in self.members.values().filter_map(|m| m.handle.as_ref()) {
            handle.profile_changed(profile);
        }
    }

    fn settings_changed(&mut self, host: CrewHost<'_>) {
        // More agents may run at once now.
        self.driver(host).start_waiting();
    }

    fn files_changed(&mut self, host: CrewHost<'_>, changes: &[FileChange]) {
        self.driver(host).files_changed(changes);
    }

    fn take_ended(&mut self) -> EndedWork {
        self.mark_announced_ends()
    }

    fn stored(&mut self, host: CrewHost<'_>, report: StoreReport) {
        match report {
            StoreReport::Row { session, view, written } => {
                self.driver(host).row_stored(session, view, written);
            }
            StoreReport::Recovered => self.driver(host).store_lost_rows(),
        }
    }
}
