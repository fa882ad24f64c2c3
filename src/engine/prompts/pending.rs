//! What waits: entries for a safe point, and messages in the queue.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, Entry, EntryBody};

use crate::core::Core;
use crate::core::saves::Then;

/// Publishes the queue and saves it; messages of `queued` are `accepted` once they are on disk.
pub(crate) fn queue_changed(core: &mut Core, cause: Option<CommandId>) {
    core.state(cause, StateEvent::QueueChanged { queue: core.prompts.queue.clone() });
    let mut append = core.append();
    append.queue = Some(core.prompts.queue.clone());
    let ids = core.queued_ids();
    core.save(append, Vec::new(), Then::Accepted(ids));
}

/// Adds an entry that waited.
pub(crate) fn grow_pending(core: &mut Core, body: EntryBody) -> Entry {
    let id = match &body {
        EntryBody::Checkpoint { name } => core.files.named.iter().find(|n| n.name == *name).map(|n| n.entry),
        _ => None,
    };
    match id {
        Some(id) => core.session.grow_as(&core.services, id, body),
        None => core.session.grow(&core.services, body),
    }
}
