//! Memory follows the session to another place of its tree.

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::memory::msg::MemoryMsg;

/// Takes what the session wrote on the branch that it left out of the memory files, and brings back what belongs to the
/// branch that is open now.
pub(crate) fn follow(core: &mut Core) {
    let Some(memory) = core.services.user.memory.clone().filter(|_| core.identity.owns_session()) else {
        return;
    };
    let (session, head) = (core.session.id, core.session.head.id);
    let (tx, saves) = (core.tx.clone(), core.saves.barrier());
    core.spawn(async move {
        // The entries of the branch may still be being written.
        saves.await;
        let moved = tokio::task::spawn_blocking(move || memory.head_moved(session, head)).await;
        if let Ok(moved) = moved {
            let _ = tx.send(Msg::Context(ContextMsg::Memory(MemoryMsg::Moved(moved)))).await;
        }
    });
}
