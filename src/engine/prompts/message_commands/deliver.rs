//! Sends a message once its commands have run.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, Queued};

use crate::core::Core;
use crate::core::saves::Then;
use crate::files::record;
use crate::prompts::compose;
use crate::turn::Input;

/// Stores the message with the outputs of its commands, and takes it out of the queue.
pub(crate) fn deliver(core: &mut Core) {
    let Some(live) = &mut core.turn.live else { return };
    let turn = live.no;
    let Some(mut held) = live.message.take() else { return core.feed(Input::Steered) };
    let content = held.take_content();
    let waits = |q: &Queued| q.id == held.id && q.message == held.message;
    let Some(at) = core.prompts.queue.iter().position(waits) else {
        // It was removed or edited while its commands ran.
        return core.feed(Input::Interrupt { hard: false });
    };
    let queued = core.prompts.queue.remove(at);
    let scope = core.scope();
    let (mut entries, mut events) = compose::prefix_entries(core, None, &scope);
    let taint = held.taint.max(queued.taint);
    let learnings = std::mem::take(&mut held.learnings);
    let prompt = queued.message.text.clone();
    let (entry, event) =
        compose::user_entry_as(core, held.entry, queued.message, queued.origin, (content, taint), learnings);
    events.push((scope.clone(), event));
    events.extend(core.child_driver().take_receipt(held.id));
    entries.push(entry);
    let queue = core.prompts.queue.clone();
    events.push((scope, EventBody::State(StateEvent::QueueChanged { queue: queue.clone() })));
    let root = core.session.last_prompt();
    core.with_live(|live| live.root = root);
    let mut spoken = record::spoken(&entries);
    // Its own state is that before its commands ran.
    spoken.retain(|id| *id != held.entry);
    let mut append = core.append().entries(entries);
    append.queue = Some(queue);
    append.pending = Some(core.prompts.pending.clone());
    // A message of another agent is not part of the user's prompt history.
    append.prompt = (queued.origin.is_prompt() && core.identity.talks_to_user()).then_some(prompt);
    core.save(append, events, Then::Steered(turn));
    record::keep_points(core, spoken);
    let steering = core.prompts.steering();
    core.feed(Input::Steer(steering));
}
