//! The calls of messages, as they are stored: their results stand before the message.

use tiller_protocol::{Entry, EntryBody, EntryId, Origin, ToolCall};
use tiller_store::{Result, Store};

/// Most entries before a message that are read.
const UP: usize = 1_000;

/// The message whose command this entry is the result of. `None`: it is another entry.
pub(crate) fn message_of(body: &EntryBody) -> Option<EntryId> {
    match body {
        EntryBody::ToolResult { call_id, .. } => ToolCall::message_of(call_id),
        _ => None,
    }
}

/// Whether the entry may stand between the first result of a command of `message` and the message: such a result, or what
/// the user did while the commands ran.
pub(crate) fn may_precede(body: &EntryBody, message: EntryId) -> bool {
    match body {
        EntryBody::ToolResult { .. } => message_of(body) == Some(message),
        body => is_of_user(body),
    }
}

/// Whether the entry is of what the user does while commands of a message run, or between two of their runs.
pub(crate) fn is_of_user(body: &EntryBody) -> bool {
    matches!(
        body,
        EntryBody::User { origin: Origin::Shell, .. } | EntryBody::Note { .. } | EntryBody::Checkpoint { .. }
    )
}

/// The results of the commands of a message, newest first.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn results_before(store: &Store, message: &Entry) -> Result<Vec<Entry>> {
    let (mut results, mut at) = (Vec::new(), message.parent);
    for _ in 0..UP {
        let Some(id) = at else { break };
        let above = store.entries().get(id)?;
        if !may_precede(&above.body, message.id) {
            break;
        }
        at = above.parent;
        if message_of(&above.body).is_some() {
            results.push(above);
        }
    }
    Ok(results)
}
