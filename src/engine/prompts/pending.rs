//! What waits: entries for a safe point, and messages in the queue.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, Entry, EntryBody, QueueId, Queued, QueuedState};

use crate::core::Core;
use crate::core::saves::Then;

/// Publishes the queue and saves it; messages of `queued` are `accepted` once they are on disk.
pub(crate) fn queue_changed(core: &mut Core, cause: Option<CommandId>) {
    core.state(cause, StateEvent::QueueChanged { queue: core.prompts.queue.clone() });
    let mut append = core.append();
    append.queue = Some(core.prompts.queue.clone());
    let write = core.prompts.queue_writes.begin(&core.prompts.queue);
    core.save(append, Vec::new(), Then::Accepted(write));
}

/// Which of the waiting messages are on disk as they are now.
#[derive(Default)]
pub(crate) struct QueueWrites {
    /// Number of the last write of the queue.
    last: u64,
    /// Messages that are not on disk as they are now, each with the first write that holds it so.
    unsaved: Vec<(QueueId, u64)>,
}

impl QueueWrites {
    /// The number of a write of this queue, which begins now.
    fn begin(&mut self, queue: &[Queued]) -> u64 {
        self.last += 1;
        self.unsaved.retain(|(id, _)| queue.iter().any(|q| q.id == *id));
        for q in queue.iter().filter(|q| q.state == QueuedState::Queued) {
            if !self.unsaved.iter().any(|(id, _)| *id == q.id) {
                self.unsaved.push((q.id, self.last));
            }
        }
        self.last
    }

    /// A message has another text: no write so far holds it.
    pub(crate) fn edited(&mut self, id: QueueId) {
        self.unsaved.retain(|(unsaved, _)| *unsaved != id);
    }

    /// The messages that are on disk as they are now, once this write is done.
    pub(crate) fn done(&mut self, write: u64) -> Vec<QueueId> {
        self.unsaved.extract_if(.., |(_, first)| *first <= write).map(|(id, _)| id).collect()
    }
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

#[cfg(test)]
mod tests {
    use tiller_protocol::{Message, SendMode};

    use super::*;

    /// A write that began before a message was edited does not make the new text durable.
    #[test]
    fn a_message_is_accepted_by_a_write_that_holds_its_text() {
        let id = |n| QueueId(uuid::Uuid::from_u128(n));
        let queued = |n, text: &str| Queued::new(id(n), Message::text(text), SendMode::Queue);
        let mut writes = QueueWrites::default();
        let mut queue = vec![queued(1, "one")];
        let first = writes.begin(&queue);
        queue.push(queued(2, "two"));
        let second = writes.begin(&queue);
        queue[0].message = Message::text("one, changed");
        writes.edited(id(1));
        let third = writes.begin(&queue);
        assert!(writes.done(first).is_empty(), "it holds the former text");
        assert_eq!(writes.done(second), [id(2)]);
        assert_eq!(writes.done(third), [id(1)]);
        // A failed write is made up for by the next one; what was removed is forgotten.
        queue = vec![queued(3, "three"), queued(4, "four")];
        writes.begin(&queue);
        queue.remove(1);
        let last = writes.begin(&queue);
        assert_eq!(writes.done(last), [id(3)]);
    }
}
