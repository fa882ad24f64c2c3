//! Programs that nothing confines can change memory files and SOUL.md by themselves: what they write into memory has no power
//! over calls, and what they remove or replace is kept and shown.

use std::sync::Arc;

use tiller_memory::Memory;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{Access, EventBody, Notice, NoticeKind, Provenance, SessionId, Taint, ToolSet};
use tiller_tool::CommandProfile;
use tiller_tool::mcp::McpServers;

use crate::core::Core;
use crate::core::services::Exposure;
use crate::memory::unconfined::{BRINGS_BACK, UnconfinedProgram, UnconfinedStart, entries};
use crate::tool_call::CallTask;

impl CallTask {
    /// The memory that the call's program may change by itself; `None`: it starts none, or one that is confined.
    async fn exposed_memory(&self) -> Option<Arc<Memory>> {
        let runs = matches!(self.tool.info().set, ToolSet::Run | ToolSet::Code);
        let profile = self.cx.run.profile;
        let unconfined = profile != CommandProfile::Person && !self.cx.workspace.confines_here(profile);
        let Exposure { memory, mcp } = self.services.user.exposed();
        let memory = memory?;
        ((runs && unconfined) || self.reaches_unconfined_server(mcp).await).then_some(memory)
    }

    /// Whether it calls an MCP server that nothing confines.
    async fn reaches_unconfined_server(&self, servers: Option<Arc<dyn McpServers>>) -> bool {
        let Some(servers) = servers else { return false };
        let access = self.tool.access(&self.args, &self.cx).unwrap_or_default();
        let server = access.into_iter().find_map(|a| match a {
            Access::Mcp { server, .. } => Some(server),
            _ => None,
        });
        let Some(server) = server else { return false };
        // A panic there is no reason to trust it.
        tokio::task::spawn_blocking(move || servers.writes_files(&server)).await.unwrap_or(true)
    }

    /// Takes note of what is in the files before a program runs that nothing confines. The call runs, for what vanishes from
    /// memory, until this is dropped.
    pub(crate) async fn before_unconfined_program(&self) -> Option<UnconfinedProgram> {
        let memory = self.exposed_memory().await?;
        let (call, from) = (self.cx.call_id.clone(), self.origin.of_call(&self.cx.agent, self.cx.session));
        let config = self.services.places.config.clone();
        UnconfinedStart { memory, config, call, from }.noted().await
    }

    /// Looks for what the program may have written or removed, and shows the user notices about it.
    pub(crate) async fn after_unconfined_program(&self, program: Option<UnconfinedProgram>) {
        let Some(program) = program else { return };
        for notice in program.changes(self.cx.session).await {
            self.bus.publish(&self.origin.scope, EventBody::State(StateEvent::Notice { notice }));
        }
    }
}

const ARCHIVED: &str = "/memory lists the archive; search finds it; models do not get it";

/// The origin of what happens while a turn of the agent runs.
pub(crate) fn of_turn(core: &Core) -> Provenance {
    Provenance {
        session: Some(core.session.id),
        entry: None,
        branch: core.session.head.name.clone(),
        agent: core.identity.id.clone(),
        taint: Taint::ToolOutput,
    }
}

/// A turn begins: what vanishes from memory from now on vanished while it ran.
pub(crate) fn turn_began(core: &mut Core) {
    let Some(memory) = core.services.user.memory.clone() else { return };
    let from = of_turn(core);
    core.spawn(async move {
        // A panic there leaves the turn unknown to what vanishes.
        let _ = tokio::task::spawn_blocking(move || memory.turn_began(from)).await;
    });
}

/// The turn of a session is over. Shows the user a notice about entries that vanished beside its calls, and about those that moved
/// into an archive.
pub(crate) fn turn_over(core: &mut Core) {
    let Some(memory) = core.services.user.memory.clone() else { return };
    let (session, bus, scope): (SessionId, _, _) = (core.session.id, Arc::clone(&core.bus), core.scope());
    core.spawn(async move {
        let ended = move || (memory.turn_ended(session), memory.newly_archived());
        let (removed, archived) = tokio::task::spawn_blocking(ended).await.unwrap_or_default();
        let show = |said: String, hint: &str| {
            let notice = Notice::new(NoticeKind::Info, said).hint(hint);
            bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
        };
        if removed > 0 {
            show(format!("{} while the agent worked", entries(removed, "removed or changed")), BRINGS_BACK);
        }
        if archived > 0 {
            let moved = entries(archived, "moved into the archive");
            show(format!("{moved}, since the file was over its budget"), ARCHIVED);
        }
    });
}
