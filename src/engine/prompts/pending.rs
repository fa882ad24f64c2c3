//! Adds entries that waited for a safe point.

use crate::core::Core;
use tiller_protocol::{Entry, EntryBody};

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
