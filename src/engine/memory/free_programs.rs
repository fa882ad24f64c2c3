//! Programs that nothing confines can write memory files by themselves: what they write has no power over calls.

use std::sync::Arc;

use tiller_memory::Memory;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind, ToolSet};
use tiller_tool::CommandProfile;

use crate::tool_call::CallTask;

impl CallTask {
    /// The memory that the call's program may write by itself; `None`: it starts none, or one that is confined.
    fn exposed_memory(&self) -> Option<Arc<Memory>> {
        let runs = matches!(self.tool.info().set, ToolSet::Run | ToolSet::Code);
        let profile = self.cx.run.profile;
        let free = profile != CommandProfile::Person && !self.cx.workspace.confines_here(profile);
        self.services.user.memory.clone().filter(|_| runs && free)
    }

    /// Takes note of what is in the memory files before a program runs that nothing confines.
    pub(crate) async fn before_free_program(&self) {
        if let Some(memory) = self.exposed_memory() {
            // A panic there leaves the entries without an origin, as those of an editor.
            let _ = tokio::task::spawn_blocking(move || memory.before_free_program()).await;
        }
    }

    /// Looks for entries that the program may have written, and shows the user a notice about them.
    pub(crate) async fn after_free_program(&self) {
        let Some(memory) = self.exposed_memory() else { return };
        let session = self.cx.session;
        let found = tokio::task::spawn_blocking(move || memory.free_entries(session)).await;
        let said = match found {
            Ok(0) | Err(_) => return,
            Ok(1) => "1 entry of memory was written while a program ran outside the sandbox".to_owned(),
            Ok(n) => format!("{n} entries of memory were written while a program ran outside the sandbox"),
        };
        let notice = Notice::new(NoticeKind::User, said)
            .hint("it is no rule until you accept it in /memory, where you can remove it as well");
        self.bus.publish(&self.origin.scope, EventBody::State(StateEvent::Notice { notice }));
    }
}
