//! Sends a message once its commands have run.

use tiller_protocol::Queued;

use crate::core::Core;
use crate::files::record;
use crate::prompts::compose::entries;
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
    let (mut all, mut events) = entries::prefix_entries(core, None, &scope);
    let taint = held.taint.max(queued.taint);
    let learnings = std::mem::take(&mut held.learnings);
    let prompt = queued.message.text.clone();
    let (entry, event) =
        entries::user_entry_as(core, held.entry, queued.message, queued.origin, (content, taint), learnings);
    events.push((scope, event));
    events.extend(core.child_driver().take_receipt(held.id));
    all.push(entry);
    let root = core.session.last_prompt();
    core.with_live(|live| live.root = root);
    let mut points = record::spoken(&all);
    // Its own state is that before its commands ran.
    points.retain(|id| *id != held.entry);
    // A message of another agent is not part of the user's prompt history.
    let prompt = (queued.origin.is_prompt() && core.identity.talks_to_user()).then_some(prompt);
    entries::save_in_turn(core, turn, (all, events), prompt, points);
    let steering = core.prompts.steering();
    core.feed(Input::Steer(steering));
}
