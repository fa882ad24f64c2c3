//! Writes a session directly into the store. The driven test of large sessions uses it too.

use tiller_protocol::{
    AgentId, Block, Clock, Entry, EntryBody, EntryId, IdSource, Message, ModelRef, Origin, Part, RandomIds,
    SessionId, StopReason, SystemClock, Usage,
};
use tiller_store::{Append, NewSession, Result, Store};

/// Entries in one commit.
const AT_ONCE: usize = 5_000;

/// A fresh id for a session.
pub(crate) fn new_id() -> SessionId {
    SessionId(RandomIds.next(SystemClock::default().now()))
}

/// A message of the person.
pub(crate) fn question(text: String) -> EntryBody {
    EntryBody::User {
        message: Message::text(text.clone()),
        origin: Origin::Prompt,
        content: vec![Part::Text { text }],
        taint: None,
        learnings: Vec::new(),
    }
}

/// A reply of a model without calls.
pub(crate) fn answer(text: String, model: &ModelRef) -> EntryBody {
    EntryBody::Assistant {
        blocks: vec![Block::Text { text }],
        stop: StopReason::EndTurn,
        model: model.clone(),
        usage: Usage::default(),
        cost: None,
    }
}

/// Creates the session with these entries, one below the other.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn write(store: &Store, new: NewSession, bodies: impl Iterator<Item = EntryBody>) -> Result<()> {
    let (clock, session) = (SystemClock::default(), new.id);
    store.sessions().create(new).wait()?;
    let mut parent = None;
    let mut bodies = bodies.peekable();
    while bodies.peek().is_some() {
        let mut entries = Vec::new();
        for body in bodies.by_ref().take(AT_ONCE) {
            let (time, agent) = (clock.now(), AgentId::main());
            let id = EntryId(RandomIds.next(time));
            entries.push(Entry { id, parent, session, agent, time, body, snapshot: None });
            parent = Some(id);
        }
        store.entries().append(Append::new(session, "main").entries(entries)).wait()?;
    }
    Ok(())
}
