//! Makes an entry of what the user typed: attachments are read, the prefix is awaited, and the message is sent,
//! queued, or returned with a reason.

pub(crate) mod entries;
mod prepare;

use crate::files::record;
use crate::turn::begin::{self, TurnStart};
use std::sync::Arc;

use futures_util::FutureExt;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::view::LayerCost;
use tiller_protocol::{
    CommandId, EntryBody, EventBody, Message, Origin, Part, QueueId, Queued, SendMode, StopReason, Taint,
};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;
use crate::context::prefix::layers::{self, Layers, PromptFacts};
use crate::core::Core;
use crate::core::saves::Then;
use crate::core::services::Services;
use crate::money;
use crate::prompts::compose::entries::{prefix_entries, save_in_turn, user_entry};
use crate::prompts::doing::JobKind;
use crate::prompts::files_read;
use crate::prompts::message_commands::waiting;
use crate::prompts::msg::{Destination, MessageJob, PrefixTask, PreparedItem, PreparedMessage};
use crate::turn::{Input, hold};

/// Before a session is open.
pub(crate) fn no_prefix() -> PrefixTask {
    async { Arc::new(Layers::bare()) }.boxed().shared()
}

/// Starts to make the prefix.
pub(crate) fn prefix(services: &Arc<Services>, facts: PromptFacts) -> PrefixTask {
    let settings = services.config().context.clone();
    let (specs, tools) = (Arc::clone(&services.tools.specs), services.tools.visible.clone());
    let all = Arc::clone(services);
    let made = tokio::task::spawn_blocking(move || {
        crate::memory::condense::without_model(&all);
        // Derived here, so that the first message does not wait for them.
        specs.of(&tools);
        layers::layers(&facts, &settings)
    });
    async move {
        // After a panic while files are read the prefix is the agent's own prompt.
        Arc::new(made.await.unwrap_or_else(|_| Layers::bare()))
    }
    .boxed()
    .shared()
}

pub(crate) fn deliver_steer(core: &mut Core, turn: u64) {
    let waiting: Vec<_> = core
        .prompts
        .queue
        .iter()
        .filter(|q| q.mode == SendMode::Steer)
        .map(|q| (Some(q.id), q.message.clone()))
        .collect();
    compose(core, Destination::Steer { turn }, waiting);
}

/// Prepares messages, after the files that they may name were read again.
pub(crate) fn compose(core: &mut Core, goal: Destination, messages: Vec<(Option<QueueId>, Message)>) {
    if files_read::is_due(core, &messages) {
        begin_job(core, goal, messages, |core, job| files_read::start(core, job));
    } else {
        begin_job(core, goal, messages, prepare::start);
    }
}

/// The files were read: the messages are prepared, unless they were stopped meanwhile.
pub(crate) fn files_were_read(core: &mut Core, read: MessageJob) {
    let goes_on = match read.goal {
        Destination::Steer { turn } => core.is_live(turn),
        Destination::Prompt { .. } | Destination::Continue { .. } => core.job_done(read.no),
    };
    if goes_on {
        begin_job(core, read.goal, read.messages, prepare::start);
    }
}

/// Begins the job of messages. The turn in flight has none: its interrupt stops the task.
fn begin_job(
    core: &mut Core,
    goal: Destination,
    messages: Vec<(Option<QueueId>, Message)>,
    start: fn(&mut Core, MessageJob) -> JoinHandle<()>,
) {
    let doing = match (&goal, messages.first()) {
        (Destination::Prompt { .. }, None) => return,
        (Destination::Steer { .. }, _) => None,
        (Destination::Continue { cause }, _) => Some(JobKind::Continue { cause: *cause }),
        (Destination::Prompt { client }, Some((queued, message))) => {
            Some(JobKind::Message { client: *client, queued: *queued, message: message.clone() })
        }
    };
    let no = if doing.is_some() { core.next_job() } else { 0 };
    let task = start(core, MessageJob { goal, messages, no });
    if let Some(doing) = doing {
        core.busy_with(no, doing, task);
    } else if let Some(live) = &mut core.turn.live {
        // An interrupt drops the turn and this task with it.
        live.tasks.timer = Some(AbortOnDropHandle::new(task));
    }
}

pub(crate) fn composed(core: &mut Core, prepared: PreparedMessage) {
    if let Some(today) = prepared.today {
        money::day_read(core, today);
    }
    match prepared.goal {
        Destination::Steer { turn } if core.is_live(turn) => steer_composed(core, turn, prepared.items),
        Destination::Steer { .. } => {}
        // Stopped meanwhile: the waiting task was notified.
        Destination::Prompt { .. } | Destination::Continue { .. } if !core.job_done(prepared.no) => {}
        Destination::Prompt { client } => {
            prompt_composed(core, client, prepared.items, prepared.prefix.as_deref())
        }
        Destination::Continue { cause } => continue_composed(core, cause, prepared.prefix.as_deref()),
    }
}

fn prompt_composed(
    core: &mut Core,
    client: Option<(ClientId, CommandId)>,
    items: Vec<PreparedItem>,
    prefix: Option<&(String, Vec<LayerCost>)>,
) {
    let Some(item) = items.into_iter().next() else { return };
    if item.content.is_ok() && !item.commands.is_empty() {
        return commands_begin(core, client, item, prefix);
    }
    let cause = client.map(|(_, cause)| cause);
    let content = match item.content {
        Ok(content) => content,
        Err(notice) => {
            core.child_driver().report_end(TurnStatus::Failed, String::new(), Some(notice.clone()));
            return match (client, item.id) {
                // The client still holds the draft.
                (Some((client, cause)), None) => core.refuse(client, cause, notice),
                (None, _) if core.identity.is_child() => core.notice(notice),
                // It stays in the queue, where it can be edited. Nothing more is sent by itself.
                _ => core.no_turn(cause, TurnStatus::Failed, Some(notice)),
            };
        }
    };
    let (mut origin, mut taint, mut of_others) = (Origin::Prompt, item.taint, false);
    if let Some(id) = item.id {
        let same = |q: &Queued| q.id == id && q.message == item.message;
        let Some(at) = core.prompts.queue.iter().position(same) else {
            return prepare_again(core, client, id);
        };
        let queued = core.prompts.queue.remove(at);
        (origin, taint, of_others) = (queued.origin, taint.max(queued.taint), queued.taint.is_some());
    }
    let scope = core.scope_of(cause);
    let (mut entries, mut events) = prefix_entries(core, prefix, &scope);
    let (prompt, message) = (item.message.text.clone(), item.message);
    let (entry, event) = user_entry(core, message, origin, (content, taint), item.learnings);
    events.push((scope.clone(), event));
    events.extend(match item.id {
        Some(id) => core.child_driver().take_receipt(id),
        None => cause.and_then(|cause| core.child_driver().receipt(cause)),
    });
    entries.push(entry);
    if item.id.is_some() {
        events.push((
            scope.clone(),
            EventBody::State(StateEvent::QueueChanged { queue: core.prompts.queue.clone() }),
        ));
    }
    let from_queue = item.id.is_some();
    hold::begin(core, item.terms);
    let start = TurnStart {
        prompt,
        of_others,
        entries,
        events,
        from_queue,
        in_history: origin.is_prompt(),
        ..TurnStart::new(scope)
    };
    begin::begin(core, start);
}

/// A waiting message was edited or removed while its files were read: they are read again, or no turn begins.
fn prepare_again(core: &mut Core, client: Option<(ClientId, CommandId)>, id: QueueId) {
    match core.prompts.queue.iter().find(|q| q.id == id).map(|q| q.message.clone()) {
        Some(message) => compose(core, Destination::Prompt { client }, vec![(Some(id), message)]),
        None => core.no_turn(client.map(|(_, cause)| cause), TurnStatus::Interrupted, None),
    }
}

/// Begins a turn with the commands of a message, which is sent after them.
fn commands_begin(
    core: &mut Core,
    client: Option<(ClientId, CommandId)>,
    mut item: PreparedItem,
    prefix: Option<&(String, Vec<LayerCost>)>,
) {
    let Ok(content) = std::mem::replace(&mut item.content, Ok(Vec::new())) else { return };
    let (prompt, terms) = (item.message.text.clone(), std::mem::take(&mut item.terms));
    let (queued, cause) = (item.id, client.map(|(_, cause)| cause));
    let Some((held, calls)) = waiting::hold(core, cause, item, content) else {
        return queued.into_iter().for_each(|id| prepare_again(core, client, id));
    };
    let scope = core.scope_of(cause);
    let (entries, events) = prefix_entries(core, prefix, &scope);
    hold::begin(core, terms);
    let first = (!held.again).then_some(held.entry);
    let start = TurnStart { prompt, entries, events, calls, message: Some(held), ..TurnStart::new(scope) };
    begin::begin(core, start);
    // Requested before the commands run, so that it precedes their changes.
    record::keep_points(core, first.into_iter().collect());
}

fn continue_composed(core: &mut Core, cause: CommandId, prefix: Option<&(String, Vec<LayerCost>)>) {
    let scope = core.scope_of(Some(cause));
    let (mut entries, mut events) = prefix_entries(core, prefix, &scope);
    let last = core.session.last_message().map(|e| e.body.clone());
    if let Some(EntryBody::Assistant { stop, .. }) = last {
        let text = match stop {
            StopReason::Cut(_) | StopReason::MaxTokens => {
                "Your last reply was cut off. Continue where it stopped."
            }
            StopReason::Interrupted => "Continue where you were interrupted.",
            _ => "Continue.",
        };
        let content = vec![Part::Text { text: text.into() }];
        let (entry, event) =
            user_entry(core, Message::text(text), Origin::Engine, (content, None), Vec::new());
        events.push((scope.clone(), event));
        entries.push(entry);
    }
    begin::begin(core, TurnStart { entries, events, ..TurnStart::new(scope) });
}

fn steer_composed(core: &mut Core, turn: u64, items: Vec<PreparedItem>) {
    let scope = core.scope();
    let (mut entries, mut events) = prefix_entries(core, None, &scope);
    let mut prompts = Vec::new();
    for item in items {
        // It was removed or edited while its files were read: then it waits for the next safe point.
        let Some(at) =
            core.prompts.queue.iter().position(|q| Some(q.id) == item.id && q.message == item.message)
        else {
            continue;
        };
        match item.content {
            // They run at the beginning of a turn of its own.
            Ok(_) if !item.commands.is_empty() => core.prompts.queue[at].mode = SendMode::Queue,
            Ok(content) => {
                let queued = core.prompts.queue.remove(at);
                let taint = item.taint.max(queued.taint);
                hold::join(core, item.terms);
                if queued.origin.is_prompt() {
                    prompts.push(item.message.text.clone());
                }
                let origin = queued.origin.within_turn();
                let (entry, event) = user_entry(core, item.message, origin, (content, taint), item.learnings);
                events.extend(item.id.and_then(|id| core.child_driver().take_receipt(id)));
                events.push((scope.clone(), event));
                entries.push(entry);
            }
            Err(notice) => {
                // It waits as a turn of its own until it is edited.
                core.prompts.queue[at].mode = SendMode::Queue;
                core.notice(notice);
            }
        }
    }
    let steering = core.prompts.steering();
    core.feed(Input::Steer(steering));
    if entries.is_empty() {
        core.state(None, StateEvent::QueueChanged { queue: core.prompts.queue.clone() });
        return core.feed(Input::Steered);
    }
    let prompt = (!prompts.is_empty()).then(|| prompts.join("\n"));
    let points = record::spoken(&entries);
    save_in_turn(core, turn, (entries, events), prompt, points);
}

/// Sends a message of the engine's to the model, in the middle of a turn. `taint`: that of the text of others in it.
pub(crate) fn tell_model(core: &mut Core, text: &str, taint: Option<Taint>) {
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    let scope = core.scope();
    let content = vec![Part::Text { text: text.to_owned() }];
    let (entry, event) = user_entry(core, Message::text(text), Origin::Engine, (content, taint), Vec::new());
    let append = core.append().entries(vec![entry]);
    core.save(append, vec![(scope, event)], Then::Steered(turn));
}
