//! Continues where the last turn ended.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{CommandId, EntryBody, Notice, NoticeKind, StopReason};

use crate::bus::ClientId;
use crate::core::Core;
use crate::prompts::compose;
use crate::prompts::message_commands::waiting;
use crate::prompts::msg::Destination;
use crate::prompts::queue;

/// Continues a turn that was interrupted, cut off or parked. Where that turn ran the commands of a message that was not
/// sent, it is begun again: the model is asked nothing before it has that message.
pub(crate) fn go_on(core: &mut Core, client: ClientId, cause: CommandId) {
    let why = if core.session.read_only {
        "this session is open read-only"
    } else if core.occupied() {
        "a turn is already running"
    } else if let Some(message) = waiting::kept_back(core, ended_well(core)) {
        return queue::send_queued(core, message, Some((client, cause)));
    } else if core.session.last_message().is_some() {
        return compose::compose(core, Destination::Continue { cause }, Vec::new());
    } else if let Some(first) = core.prompts.queue.first().map(|q| q.id) {
        // The agent's first message was stopped before it was sent.
        return queue::send_queued(core, first, Some((client, cause)));
    } else {
        "there is nothing to continue"
    };
    let why = Notice::new(NoticeKind::User, why);
    core.refuse(client, cause, why.clone());
    if !core.occupied() {
        // A child counts as running from the moment of its command.
        core.child_driver().report_end(TurnStatus::Failed, String::new(), Some(why));
    }
}

/// Whether no message waits for the rest of its reply.
fn ended_well(core: &Core) -> bool {
    waiting::last_seen(core).is_none_or(|last| {
        matches!(last.body, EntryBody::Assistant { stop: StopReason::EndTurn | StopReason::Refusal(_), .. })
    })
}
