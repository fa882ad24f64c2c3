//! What the loop of the engine calls at the agents of its session.

use tiller_engine::ClientId;
use tiller_engine::crew::{Crew, CrewHost, CrewMsg, CrewRows, EndedWork, MemberMsg, StoreReport};
use tiller_protocol::{AgentCommand, AgentId, Command, CommandId, FileChange, Profile};

use crate::driver::CrewDriver;
use crate::msg::{MemberTaskMsg, TaskMsg};
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

impl CrewDriver<'_> {
    /// Handles a message from a child, a tool or a task.
    fn message(&mut self, msg: CrewMsg) {
        match msg {
            CrewMsg::Request { by, call, entry, request, reply } => {
                self.request(&by, call, entry, request, reply);
            }
            CrewMsg::RequestEnded => {
                self.workflows().stop_unawaited();
                self.settle_waits();
            }
            CrewMsg::Member { id, session, msg } => {
                if self.crew.members.get(&id).is_some_and(|m| m.session == session) {
                    self.member_message(&id, *msg);
                }
            }
            CrewMsg::Session { root, msg } => {
                if self.crew.root == Some(root) {
                    self.message(*msg);
                }
            }
            CrewMsg::Own(msg) => match msg.downcast::<TaskMsg>() {
                Ok(msg) => self.task_message(*msg),
                Err(_) => tracing::error!("a message of an unknown type was sent to the crew"),
            },
        }
    }

    /// Handles a message from or about a child.
    fn member_message(&mut self, id: &AgentId, msg: MemberMsg) {
        match msg {
            MemberMsg::View(view) => self.record_view(*view),
            MemberMsg::Work(work) => self.record_work(id, work),
            MemberMsg::Ended(end) => self.member_ended(id, *end),
            MemberMsg::ProgramSession { session, transport, booked } => {
                self.record_external_session(id, session, transport, booked);
            }
            MemberMsg::ProgramModel(model) => {
                if let Some(member) = self.crew.members.get_mut(id) {
                    member.order.brief.model = Some(model);
                    self.store_member(id);
                }
            }
            MemberMsg::TaskEnded { run } => self.member_task_ended(id, run),
        }
    }

    /// Handles a message of one of the crew's own tasks.
    fn task_message(&mut self, msg: TaskMsg) {
        match msg {
            TaskMsg::WaitTimedOut(no) => self.wait_timed_out(no),
            TaskMsg::Member { id, session, msg } => {
                if self.crew.members.get(&id).is_none_or(|m| m.session != session) {
                    return;
                }
                match msg {
                    MemberTaskMsg::Folder(made) => self.folder_made(&id, made),
                    MemberTaskMsg::Reloaded { services, loaded, then } => {
                        self.reloaded(&id, services, loaded, then);
                    }
                }
            }
            TaskMsg::Workflow(msg) => self.workflows().message(msg),
            TaskMsg::AgentsLoaded(rows) => self.restore_agents(rows),
            TaskMsg::WorkflowsLoaded(rows) => {
                self.workflows().restored(rows);
                self.all_restored();
            }
        }
    }
}
