//! The agents of a session and the loop that hosts them, for one call of the loop; and what is done with each message.

use tiller_engine::crew::{CrewHost, CrewMsg, HostSession, HostTasks, MemberMsg};
use tiller_protocol::{AgentId, SessionId};

use crate::msg::{MemberTaskMsg, TaskMailbox, TaskMsg};
use crate::reuse;
use crate::roster::Roster;

/// Drives the agents of a session. It borrows all that it needs and has no state.
pub(crate) struct CrewDriver<'a> {
    pub(crate) crew: &'a mut Roster,
    pub(crate) host: CrewHost<'a>,
}

/// Drives the workflows of a session. As [`CrewDriver`], it has no state.
pub(crate) struct WorkflowDriver<'a> {
    pub(crate) crew: &'a mut Roster,
    pub(crate) host: CrewHost<'a>,
}

impl CrewDriver<'_> {
    /// The session that the agents work for. While they end because another one was opened, it is still the one before.
    pub(crate) fn root(&self) -> SessionId {
        self.crew.root.unwrap_or_else(|| self.host.session_id())
    }

    /// For tasks that report to the crew, of the session that is open.
    pub(crate) fn mailbox(&self) -> TaskMailbox {
        self.crew.tasks.mailbox(self.host.mailbox(), self.host.session_id())
    }

    pub(crate) fn workflows(&mut self) -> WorkflowDriver<'_> {
        WorkflowDriver { crew: self.crew, host: self.host.reborrow() }
    }

    /// Handles a message from a child, a tool or a task.
    pub(crate) fn message(&mut self, msg: CrewMsg) {
        match msg {
            CrewMsg::Request { by, call, entry, request, reply } => {
                self.request(&by, call, entry, request, reply);
            }
            CrewMsg::RequestEnded => {
                self.workflows().stop_unawaited();
                self.settle_waits();
            }
            CrewMsg::Released => {
                self.move_all_to_background();
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
            CrewMsg::Queued => {
                while let Some((root, msg)) = self.crew.tasks.next() {
                    if self.crew.root == Some(root) {
                        self.task_message(msg);
                    }
                }
            }
        }
    }

    /// Handles a message from or about a child.
    fn member_message(&mut self, id: &AgentId, msg: MemberMsg) {
        match msg {
            MemberMsg::View(view) => self.record_view(*view),
            MemberMsg::Work(work) => self.record_work(id, work),
            MemberMsg::Ended(end) => self.member_ended(id, *end),
            MemberMsg::Files(files) => self.files_found(id, files),
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
                    MemberTaskMsg::Stamp(stamp) => reuse::stamp_noted(self, &id, stamp),
                    MemberTaskMsg::Reuse(check) => reuse::reuse_checked(self, &id, *check),
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

impl WorkflowDriver<'_> {
    /// As [`CrewDriver::root`].
    pub(crate) fn root(&self) -> SessionId {
        self.crew.root.unwrap_or_else(|| self.host.session_id())
    }

    /// As [`CrewDriver::mailbox`].
    pub(crate) fn mailbox(&self) -> TaskMailbox {
        self.crew.tasks.mailbox(self.host.mailbox(), self.host.session_id())
    }

    pub(crate) fn agents(&mut self) -> CrewDriver<'_> {
        CrewDriver { crew: self.crew, host: self.host.reborrow() }
    }
}
