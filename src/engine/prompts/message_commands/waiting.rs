//! Keeps messages with commands in the queue: until their turn begins, and while their commands run.

use serde_json::json;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    CommandId, Entry, EntryId, Message, Notice, NoticeKind, Part, QueueId, Queued, QueuedRun, SendMode,
    ToolCall, ToolOutcome,
};

use super::held::{HeldMessage, MessageCommand, called};
use super::stored;
use crate::context::request;
use crate::core::Core;
use crate::core::services::Human;
use crate::prompts::msg::PreparedItem;
use crate::prompts::pending::queue_changed;
use crate::turn::CallResult;

/// The tool that runs them.
const TERMINAL: &str = "terminal";
/// Commands of one message that run.
const MOST: usize = 20;
/// Stands for an output that is not there.
const NOT_RUN: &str = "(not run)";

/// A call, with its result where it cannot run.
pub(crate) type MessageCall = (ToolCall, Option<CallResult>);

/// The mode of a message of the user's that is put in the queue: one with commands joins no turn.
pub(crate) fn mode(core: &Core, message: &Message, mode: SendMode) -> SendMode {
    if mode == SendMode::Steer && core.occupied() && has_commands(core, message) {
        SendMode::Queue
    } else {
        mode
    }
}

/// Messages with commands that wait in the queue do not join the turn that has begun.
pub(crate) fn hold_back(core: &mut Core) {
    let steers =
        |q: &Queued| q.mode == SendMode::Steer && q.taint.is_none() && has_commands(core, &q.message);
    let held: Vec<QueueId> = core.prompts.queue.iter().filter(|q| steers(q)).map(|q| q.id).collect();
    if held.is_empty() {
        return;
    }
    for queued in core.prompts.queue.iter_mut().filter(|q| held.contains(&q.id)) {
        queued.mode = SendMode::Queue;
    }
    queue_changed(core, None);
}

fn has_commands(core: &Core, message: &Message) -> bool {
    if core.identity.external().is_some() || !message.text.trim_start().starts_with('/') {
        return false;
    }
    let skills = core.services.skills();
    called(&skills, &message.text).is_some_and(|(command, _)| !command.runs().is_empty())
}

/// Keeps a message with commands in the queue, and gives the calls of the commands. `None`: it was removed or edited while
/// its files were read. `content`: of the item.
pub(crate) fn hold(
    core: &mut Core,
    cause: Option<CommandId>,
    item: PreparedItem,
    content: Vec<Part>,
) -> Option<(Box<HeldMessage>, Vec<MessageCall>)> {
    let id = wait_in_queue(core, item.id, &item.message)?;
    let (entry, again) = entry_of(core, id);
    match item.id {
        Some(_) => queue_changed(core, None),
        None => new_in_queue(core, cause, id),
    }
    let calls = calls(core, entry, &item.commands);
    let held = HeldMessage {
        id,
        entry,
        again,
        message: item.message,
        content,
        taint: item.taint,
        learnings: item.learnings,
        outputs: vec![NOT_RUN.to_owned(); item.commands.len()],
        commands: item.commands,
        calls: calls.iter().map(|(call, _)| call.id.clone()).collect(),
    };
    Some((Box::new(held), calls))
}

/// The last entry that a model sees, without the output of lines that the user ran since: they begin no turn.
pub(crate) fn last_seen(core: &Core) -> Option<&Entry> {
    let path = core.session.history.path.iter().rev();
    path.map(|e| &**e).find(|e| request::is_message(e) && !stored::is_of_user(&e.body))
}

/// The entry that the message becomes, and whether its commands ran before. Those that run again belong to the same entry,
/// unless the conversation went on in between: the state of the files before it is that before their first run. It is kept
/// with the message, so that it is the same after a restart.
fn entry_of(core: &mut Core, message: QueueId) -> (EntryId, bool) {
    let after = last_seen(core).map(|e| e.id);
    let fresh = EntryId::fresh(&*core.services.ids, core.services.clock.now());
    let Some(waiting) = core.prompts.queue.iter_mut().find(|q| q.id == message) else {
        return (fresh, false);
    };
    if let Some(run) = waiting.run.filter(|run| run.after == after) {
        return (run.entry, true);
    }
    waiting.run = Some(QueuedRun { entry: fresh, after });
    (fresh, false)
}

/// Puts the message at the front of the queue, or finds it there. `None`: it was removed or edited while its files were
/// read.
fn wait_in_queue(core: &mut Core, queued: Option<QueueId>, message: &Message) -> Option<QueueId> {
    let Some(id) = queued else {
        let id = QueueId::fresh(&*core.services.ids, core.services.clock.now());
        core.prompts.queue.insert(0, Queued::new(id, message.clone(), SendMode::Queue));
        return Some(id);
    };
    let waiting = core.prompts.queue.iter_mut().find(|q| q.id == id && q.message == *message)?;
    waiting.mode = SendMode::Queue;
    Some(id)
}

/// Publishes the queue with a message that is new in it, and stores the queue.
fn new_in_queue(core: &mut Core, cause: Option<CommandId>, id: QueueId) {
    if let (Some(child), Some(cause)) = (core.identity.child_mut(), cause) {
        child.receipts.insert(id, cause);
    }
    if of_no_person(core) {
        // It is not stored: a crash would lose it.
        core.state(cause, StateEvent::QueueChanged { queue: core.prompts.queue.clone() });
    } else {
        queue_changed(core, cause);
    }
}

/// The calls of the commands. One that cannot run has its result already.
fn calls(core: &Core, entry: EntryId, commands: &[MessageCommand]) -> Vec<MessageCall> {
    let fresh = QueueId::fresh(&*core.services.ids, core.services.clock.now());
    let no_tool = core.services.tool(TERMINAL).is_none();
    let call = |(at, command): (usize, &MessageCommand)| {
        let why = if no_tool {
            Some("Denied: this agent cannot run commands.".to_owned())
        } else if let Some(why) = command.refused {
            Some(format!("Denied: {why}."))
        } else {
            (at >= MOST).then(|| format!("Denied: at most {MOST} commands of a message are run."))
        };
        let call = ToolCall {
            id: ToolCall::id_in_message(entry, fresh, at + 1),
            name: TERMINAL.into(),
            arguments: json!({ "command": command.line }),
            malformed: None,
            vendor: None,
        };
        (call, why.map(|why| CallResult::text(ToolOutcome::Denied, why)))
    };
    commands.iter().enumerate().map(call).collect()
}

/// The message whose commands ran in the last turn and that was not sent: it waits in the queue. `ended_well`: the last
/// entry that a model sees is the end of a reply, so an interrupted turn after it had sent nothing.
pub(crate) fn kept_back(core: &Core, ended_well: bool) -> Option<QueueId> {
    let queue = &core.prompts.queue;
    let after = last_seen(core).map(|e| e.id);
    if let Some(waits) = queue.iter().find(|q| q.run.is_some_and(|run| run.after == after)) {
        return Some(waits.id);
    }
    // A queue of an earlier version has no such field.
    let last = core.session.history.tail.iter().rev().find(|e| !stored::is_of_user(&e.body));
    let unsent = last.is_some_and(|e| stored::message_of(&e.body).is_some());
    let stopped = ended_well && (unsent || core.session.interrupted.is_some());
    let own = |q: &&Queued| q.taint.is_none() && has_commands(core, &q.message);
    queue.iter().find(own).filter(|_| stopped).map(|q| q.id)
}

/// Whether the commands of this message run.
pub(crate) fn is_held(core: &Core, id: QueueId) -> bool {
    let live = core.turn.live.as_ref();
    live.and_then(|live| live.message.as_ref()).is_some_and(|held| held.id == id)
}

/// The main agent's messages are those of a run that no user sees.
fn of_no_person(core: &Core) -> bool {
    core.services.user.human == Human::Absent && !core.identity.is_child()
}

/// The turn ends. A message that was not sent stays in the queue, except in a run that no user sees.
pub(crate) fn turn_ends(core: &mut Core) {
    let held = core.turn.live.as_mut().and_then(|live| live.message.take());
    let Some(id) = held.map(|held| held.id) else { return };
    if !core.prompts.queue.iter().any(|q| q.id == id) {
        return;
    }
    if of_no_person(core) {
        core.prompts.queue.retain(|q| q.id != id);
        return queue_changed(core, None);
    }
    core.notice(
        Notice::new(NoticeKind::Info, "stopped: the message stays in the queue")
            .hint("continue to run its commands again and send it, or edit or remove it"),
    );
}
