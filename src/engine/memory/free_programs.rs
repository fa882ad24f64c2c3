//! Programs that nothing confines can change memory files and SOUL.md by themselves: what they write into memory has no power
//! over calls, and what they remove or replace is kept and shown.

use std::sync::Arc;

use tiller_config::soul::CharacterTexts;
use tiller_memory::Memory;
use tiller_memory::files::FreeCall;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{Access, EventBody, Notice, NoticeKind, Provenance, SessionId, Taint, ToolSet};
use tiller_tool::CommandProfile;

use crate::core::Core;
use crate::tool_call::CallTask;

impl CallTask {
    /// The memory that the call's program may change by itself; `None`: it starts none, or one that is confined.
    async fn exposed_memory(&self) -> Option<Arc<Memory>> {
        let runs = matches!(self.tool.info().set, ToolSet::Run | ToolSet::Code);
        let profile = self.cx.run.profile;
        let free = profile != CommandProfile::Person && !self.cx.workspace.confines_here(profile);
        let memory = self.services.user.memory.clone()?;
        ((runs && free) || self.reaches_free_server().await).then_some(memory)
    }

    /// Whether it calls an MCP server that nothing confines.
    async fn reaches_free_server(&self) -> bool {
        let Some(servers) = self.services.user.mcp.clone() else { return false };
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
    pub(crate) async fn before_free_program(&self) -> Option<FreeProgram> {
        let memory = self.exposed_memory().await?;
        let (call, from) = (self.cx.call_id.clone(), self.origin.of_call(&self.cx.agent, self.cx.session));
        let config = self.services.places.config.clone();
        let noted = tokio::task::spawn_blocking(move || {
            memory.before_free_program();
            let running = memory.call_began(&call, from);
            FreeProgram { characters: CharacterTexts::read(&config), memory, running }
        });
        // A panic there leaves the entries without an origin, as those of an editor.
        noted.await.ok()
    }

    /// Looks for what the program may have written or removed, and shows the user notices about it.
    pub(crate) async fn after_free_program(&self, program: Option<FreeProgram>) {
        let Some(program) = program else { return };
        let session = self.cx.session;
        let found = tokio::task::spawn_blocking(move || {
            let memory = &program.memory;
            let found =
                (memory.free_entries(session), memory.vanished(session), program.characters.changed());
            drop(program.running);
            found
        });
        let (written, removed, changed) = found.await.unwrap_or_default();
        let notice = |said: String, hint: &str| {
            let notice = Notice::new(NoticeKind::User, said).hint(hint);
            self.bus.publish(&self.origin.scope, EventBody::State(StateEvent::Notice { notice }));
        };
        if written > 0 {
            let entries = entries(written, "written");
            notice(
                format!("{entries} while a program ran outside the sandbox"),
                "/memory accepts or removes it; until then it has no power as a rule",
            );
        }
        if removed > 0 {
            notice(
                format!("{} while a program ran outside the sandbox", entries(removed, "removed")),
                BRINGS_BACK,
            );
        }
        if let Some(first) = changed.first() {
            let name = first.file_name().unwrap_or_default().to_string_lossy();
            let more = match changed.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            notice(
                format!("{name}{more} changed while a program ran outside the sandbox"),
                "/personality has the earlier text and puts it back",
            );
        }
    }
}

/// A program at work that nothing confines.
pub(crate) struct FreeProgram {
    memory: Arc<Memory>,
    running: Option<FreeCall>,
    /// SOUL.md and the definitions of agents before it.
    characters: CharacterTexts,
}

const ARCHIVED: &str = "/memory lists the archive; search finds it; models do not get it";
const BRINGS_BACK: &str = "/memory lists what was removed, and brings it back";

/// `2 entries of memory were removed`.
fn entries(n: usize, done: &str) -> String {
    if n == 1 {
        format!("1 entry of memory was {done}")
    } else {
        format!("{n} entries of memory were {done}")
    }
}

/// The origin of what happens while a turn of the agent runs.
fn of_turn(core: &Core) -> Provenance {
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
            show(format!("{} while the agent worked", entries(removed, "removed")), BRINGS_BACK);
        }
        if archived > 0 {
            let moved = entries(archived, "moved into the archive");
            show(format!("{moved}, since the file was over its budget"), ARCHIVED);
        }
    });
}
