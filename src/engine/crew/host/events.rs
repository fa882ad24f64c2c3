//! Events, notices, and replies to commands of the user.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AgentId, CommandId, EventBody, HookEvent, Notice, SessionId};

use serde_json::json;

use super::CrewHost;
use crate::bus::{ClientId, EventScope};
use crate::core::hooks;
use crate::core::saves::{After, Then};
use crate::files::session_diff;

/// Events, notices, and replies to commands of the user.
pub trait HostEvents {
    /// The main agent's place, with the command that began its turn.
    fn scope(&self) -> EventScope;

    /// Publishes an event at once.
    fn publish(&self, scope: &EventScope, body: EventBody);

    /// Publishes an event after everything that is on its way to the disk.
    fn show(&mut self, scope: EventScope, body: EventBody);

    /// Publishes a notice at once.
    fn notice(&self, notice: Notice);

    /// Publishes a notice after everything that is on its way to the disk.
    fn notice_after(&mut self, notice: Notice);

    /// Replies that a command is done, after everything that is on its way to the disk.
    fn done(&mut self, client: ClientId, cause: CommandId, said: String);

    /// Replies that a command cannot be carried out.
    fn refuse(&self, client: ClientId, cause: CommandId, notice: Notice);

    /// Replies with what the calls of a session changed in files, as a diff.
    fn reply_diff(&mut self, client: ClientId, cause: CommandId, path: String, session: SessionId);

    /// An agent has ended with this status and last message: its hooks run.
    fn agent_ended(&mut self, id: &AgentId, label: &str, status: &str, text: &str);

    /// Without secrets.
    fn redact(&self, text: &str) -> String;
}

impl HostEvents for CrewHost<'_> {
    fn scope(&self) -> EventScope {
        self.core.scope()
    }

    fn publish(&self, scope: &EventScope, body: EventBody) {
        self.core.bus.publish(scope, body);
    }

    fn show(&mut self, scope: EventScope, body: EventBody) {
        self.core.show(scope, body);
    }

    fn notice(&self, notice: Notice) {
        self.core.notice(notice);
    }

    fn notice_after(&mut self, notice: Notice) {
        self.core.notice_after(notice);
    }

    fn done(&mut self, client: ClientId, cause: CommandId, said: String) {
        let reply = Box::new(ReplyEvent::DoneReply { said });
        self.core.saves.push_after(After { events: Vec::new(), then: Then::Reply { client, cause, reply } });
    }

    fn refuse(&self, client: ClientId, cause: CommandId, notice: Notice) {
        self.core.refuse(client, cause, notice);
    }

    fn reply_diff(&mut self, client: ClientId, cause: CommandId, path: String, session: SessionId) {
        session_diff::reply_diff(self.core, client, cause, path, session);
    }

    fn agent_ended(&mut self, id: &AgentId, label: &str, status: &str, text: &str) {
        if self.core.lifecycle.stop {
            // The engine ends: a hook would be killed in the middle of its work.
            return;
        }
        let about = json!({ "ended": id.0, "label": label, "status": status, "answer": text });
        hooks::fire(self.core, HookEvent::AgentEnd, about);
    }

    fn redact(&self, text: &str) -> String {
        self.core.redact(text)
    }
}
