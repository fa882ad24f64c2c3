//! What the person asks of the crew.

use tiller_protocol::{AgentCommand, AgentId, CommandId, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;

impl Core {
    pub(crate) fn agent_command(&mut self, client: ClientId, cause: CommandId, command: AgentCommand) {
        let id = match command {
            AgentCommand::Pause { id }
            | AgentCommand::Resume { id }
            | AgentCommand::Cancel { id, .. }
            | AgentCommand::Retry { id, .. }
            | AgentCommand::Raise { id, .. }
            | AgentCommand::Background { id }
            | AgentCommand::Diff { id } => id,
            AgentCommand::Spawn { .. } | AgentCommand::ResumeAll | AgentCommand::CancelAll => AgentId::main(),
        };
        let notice = Notice::new(NoticeKind::User, format!("there is no agent {id}"));
        self.refuse(client, cause, notice);
    }
}
