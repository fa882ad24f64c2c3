//! What is left behind when another branch is gone to: told once it is known, so that a summary of it can be offered.
//! The way itself never waits for it.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{BranchName, CommandId, EntryBody, EntryId, EventBody};

use crate::core::Core;
use crate::session::load::blocking;

/// Entries that are looked through for something that was said.
const LOOK: u64 = 200;

/// The person left `name` at its end `tip`. What was answered there and is not here is worth a summary.
pub(crate) fn branch_left(core: &mut Core, cause: CommandId, name: BranchName, tip: Option<EntryId>) {
    let (Some(from), false) = (tip, core.session.read_only) else { return };
    let (store, bus, place) = (core.services.store.clone(), core.bus.clone(), core.place_of(Some(cause)));
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
                bus.publish(&place, EventBody::State(StateEvent::BranchLeft { from, name, entries }));
            }
            Err(error) => tracing::warn!(%error, "the previous branch could not be read"),
        }
    });
}
