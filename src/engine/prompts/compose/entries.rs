//! Entries of messages and of what precedes them, with their events.

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::view::LayerCost;
use tiller_protocol::{Entry, EntryBody, EntryId, EventBody, Message, Origin, Part, Taint};

use crate::bus::EventScope;
use crate::context::prefix;
use crate::core::Core;
use crate::core::saves::Then;
use crate::files::record;
use crate::prompts::pending;

/// New entries, and their events.
pub(crate) type NewEntries = (Vec<Entry>, Vec<(EventScope, EventBody)>);

/// Entries before a message: the prefix of a new session, and the output of the user's own commands.
pub(crate) fn prefix_entries(
    core: &mut Core,
    prefix: Option<&(String, Vec<LayerCost>)>,
    scope: &EventScope,
) -> NewEntries {
    let mut bodies = Vec::new();
    if let Some((system, layers)) = prefix
        && !core.session.has_prefix()
    {
        bodies.push(prefix::prefix_body(core, system.clone(), layers.clone()));
    }
    bodies.append(&mut core.prompts.pending);
    let mut entries = Vec::new();
    let mut events = Vec::new();
    for body in bodies {
        let entry = pending::grow_pending(core, body);
        events.push((scope.clone(), added(&entry)));
        entries.push(entry);
    }
    (entries, events)
}

/// The event of an entry by its kind.
pub(crate) fn added(entry: &Entry) -> EventBody {
    match &entry.body {
        EntryBody::User { message, .. } => EventBody::Turn(TurnEvent::UserMessage {
            entry: entry.id,
            text: message.text.clone(),
            node: Box::new(entry.clone()),
        }),
        _ => Core::entry_event(entry),
    }
}

/// A message with the news at its end. `taint`: the least trusted text of others in `content`. `learnings`: the numbers of
/// those in `content`.
pub(crate) fn user_entry(
    core: &mut Core,
    message: Message,
    origin: Origin,
    (content, taint): (Vec<Part>, Option<Taint>),
    learnings: Vec<i64>,
) -> (Entry, EventBody) {
    let id = EntryId::fresh(&*core.services.ids, core.services.clock.now());
    user_entry_as(core, id, message, origin, (content, taint), learnings)
}

/// Like [`user_entry`], with an id that the caller made.
pub(crate) fn user_entry_as(
    core: &mut Core,
    id: EntryId,
    message: Message,
    origin: Origin,
    (mut content, taint): (Vec<Part>, Option<Taint>),
    learnings: Vec<i64>,
) -> (Entry, EventBody) {
    let taint = taint.max(core.context.news.taint());
    content.extend(core.news_part());
    let body = EntryBody::User { message, origin, content, taint, learnings };
    let entry = core.session.grow_as(&core.services, id, body);
    let event = added(&entry);
    (entry, event)
}

/// Stores entries in the middle of a turn, with the queue and the output that still waits. `prompt`: the user's own words in
/// them, for the history of prompts. `points`: those of them at which the state of the files is kept.
pub(crate) fn save_in_turn(
    core: &mut Core,
    turn: u64,
    (entries, mut events): NewEntries,
    prompt: Option<String>,
    points: Vec<EntryId>,
) {
    let queue = core.prompts.queue.clone();
    events.push((core.scope(), EventBody::State(StateEvent::QueueChanged { queue: queue.clone() })));
    let mut append = core.append().entries(entries);
    append.queue = Some(queue);
    append.pending = Some(core.prompts.pending.clone());
    append.prompt = prompt;
    core.save(append, events, Then::Steered(turn));
    record::keep_points(core, points);
}
