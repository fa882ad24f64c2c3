//! Reports the branch that was left once its length is known, so that a summary of it can be offered. Changing the
//! branch never waits for it.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{BranchName, CommandId, EntryBody, EntryId, EventBody};

use crate::core::Core;
use crate::session::load::blocking;

/// Entries that are searched for a reply.
const LOOK: u64 = 200;

/// Reports the branch `name` with its last entry `tip`, when it has replies that the open branch does not have.
pub(crate) fn branch_left(core: &mut Core, cause: CommandId, name: BranchName, tip: Option<EntryId>) {
    let (Some(from), false) = (tip, core.session.read_only) else { return };
    let (store, bus, scope) = (core.services.store.clone(), core.bus.clone(), core.scope_of(Some(cause)));
    let (here, saved) = (core.session.head.id, core.saves.barrier());
    core.spawn(async move {
        saved.await;
        let own = blocking(move || {
            let own = match here {
                Some(here) => store.tree().divergence(from, here)?.left,
                None => store.paths().tail_at(from, 1)?.earlier + 1,
            };
            let look = u32::try_from(own.min(LOOK)).unwrap_or(0);
            let said =
                look > 0
                    && store.paths().tail_at(from, look)?.entries.iter().any(|e| {
                        matches!(e.body, EntryBody::Assistant { .. } | EntryBody::BranchSummary { .. })
                    });
            Ok(if said { own } else { 0 })
        });
        match own.await {
            Ok(0) => {}
            Ok(entries) => {
                bus.publish(&scope, EventBody::State(StateEvent::BranchLeft { from, name, entries }));
            }
            Err(error) => tracing::warn!(%error, "the previous branch could not be read"),
        }
    });
}
