//! Makes an entry of what the user typed: attachments are read, the prefix is awaited, and the message is sent,
//! queued, or returned with a reason.

pub(crate) mod entries;

use crate::files::record;
use crate::turn::begin::{self, TurnStart};
use std::sync::Arc;

use futures_util::FutureExt;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::view::LayerCost;
use tiller_protocol::{
    Attachment, CommandId, EntryBody, EventBody, HookEvent, Message, Notice, NoticeKind, Origin, Part,
    QueueId, Queued, SendMode, StopReason, Taint,
};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;
use crate::context::compaction::shorten;
use crate::context::mentions;
use crate::context::prefix::layers::{self, Layers, PromptFacts};
use crate::core::Core;
use crate::core::hooks;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::core::services::Services;
use crate::learning::{for_message, set_mode};
use crate::money;
use crate::prompts::compose::entries::{prefix_entries, save_in_turn, user_entry};
use crate::prompts::doing::JobKind;
use crate::prompts::files_read;
use crate::prompts::message_commands::waiting;
use crate::prompts::msg::{
    Destination, FilesRead, NamedText, PrefixTask, PreparedItem, PreparedMessage, PromptMsg,
};
use crate::prompts::named;
use crate::prompts::servers::Servers;
use crate::prompts::skills;
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
    if !files_read::is_due(core, &messages) {
        return prepare(core, goal, messages);
    }
    let doing = match (&goal, messages.first()) {
        (Destination::Prompt { .. }, None) => return,
        (goal, first) => job_kind(goal, first),
    };
    let no = if doing.is_some() { core.next_job() } else { 0 };
    let task = files_read::start(core, FilesRead { goal, messages, no });
    keep_busy(core, no, doing, task);
}

/// The files were read: the messages are prepared, unless they were stopped meanwhile.
pub(crate) fn files_were_read(core: &mut Core, read: FilesRead) {
    let goes_on = match read.goal {
        Destination::Steer { turn } => core.is_live(turn),
        Destination::Prompt { .. } | Destination::Continue { .. } => core.job_done(read.no),
    };
    if goes_on {
        prepare(core, read.goal, read.messages);
    }
}

/// The job that prepares a message; `None`: the turn in flight does. `first`: the first of the messages.
fn job_kind(goal: &Destination, first: Option<&(Option<QueueId>, Message)>) -> Option<JobKind> {
    match (goal, first) {
        (Destination::Steer { .. }, _) | (Destination::Prompt { .. }, None) => None,
        (Destination::Continue { cause }, _) => Some(JobKind::Continue { cause: *cause }),
        (Destination::Prompt { client }, Some((queued, message))) => {
            Some(JobKind::Message { client: *client, queued: *queued, message: message.clone() })
        }
    }
}

fn keep_busy(core: &mut Core, no: u64, doing: Option<JobKind>, task: JoinHandle<()>) {
    if let Some(doing) = doing {
        core.busy_with(no, doing, task);
    } else if let Some(live) = &mut core.turn.live {
        // An interrupt drops the turn and this task with it.
        live.tasks.timer = Some(AbortOnDropHandle::new(task));
    }
}

/// Reads attachments and waits for the prefix, away from the engine's own task.
fn prepare(core: &mut Core, goal: Destination, messages: Vec<(Option<QueueId>, Message)>) {
    // Which files may be read depends on the present rules.
    core.services.permit.refresh().into_iter().for_each(|n| core.notice(n));
    // A program of another vendor has a prompt of its own.
    let ours = core.identity.external().is_none();
    let prefix = (ours && !core.session.has_prefix()).then(|| core.turn.prefix.clone());
    let fast = shorten::fast(core);
    let (tx, workspace) = (core.tx.clone(), Arc::clone(&core.services.workspace));
    let books = money::day_matters(core).then(|| Arc::clone(&core.services));
    let (root, writes) = (workspace.root.clone(), core.watching.writes.clone());
    let doing = match (&goal, messages.first()) {
        (Destination::Prompt { .. }, None) => return,
        (goal, first) => job_kind(goal, first),
    };
    let no = if doing.is_some() { core.next_job() } else { 0 };
    let servers = Servers::of(core);
    let names = servers.as_ref().map_or_else(Vec::new, |servers| servers.names.clone());
    // The task that another agent gives a child: the user's messages to a child have a client.
    let gives_task = matches!(goal, Destination::Prompt { client: None })
        && core.identity.child().is_some_and(|child| !child.assignment.task_of_user);
    let messages: Vec<_> = messages
        .into_iter()
        .map(|(id, message)| {
            let mut files = message.clone();
            // Text of others loads no skill, calls no command, and attaches nothing.
            let mut nothing = Message::default();
            let queued_of_others = core.prompts.queue.iter().any(|q| Some(q.id) == id && q.taint.is_some());
            let others = queued_of_others || (gives_task && id.is_none());
            let taken = skills::take(core, if others { &mut nothing } else { &mut files });
            // Programs of other vendors have skills of their own.
            for hint in taken.hints().into_iter().filter(|_| ours) {
                core.notice(hint);
            }
            let named = if others { Vec::new() } else { named::take(&mut files, &root, &names) };
            let texts = named::texts(core, named);
            (id, message, files, others, texts, (taken.terms(core), taken))
        })
        .collect();
    let (store, me) = (core.services.store.clone(), core.identity.id.clone());
    // The task of an agent that begins is no message of the user's.
    let begins = core.identity.is_child() && core.session.last_message().is_none();
    let event = if begins { HookEvent::AgentStart } else { HookEvent::UserPrompt };
    let hook = hooks::job(core, event);
    let may_learn = ours && core.services.user.may_learn;
    let learnings = core.services.user.learnings.clone().filter(|_| may_learn);
    if let Some(learnings) = &learnings {
        set_mode(learnings, &core.services.config());
        crate::learning::pairing::read_before(core);
    }
    let (bus, scope, session) = (Arc::clone(&core.bus), core.scope(), core.session.id);
    let prompt = matches!(goal, Destination::Prompt { .. });
    let mut opened = if prompt { core.prompts.opened.take() } else { None };
    let task = async move {
        let mut items = Vec::new();
        for (id, message, files, others, texts, (terms, mut taken)) in messages {
            let commands = std::mem::take(&mut taken.runs);
            let freeze = if others { mentions::freeze_unnamed } else { mentions::freeze };
            // Text typed by hand may name a file as well.
            let typed = files.text.clone();
            let reads = files.text.contains('@')
                || files.attachments.iter().any(|a| matches!(a, Attachment::File { .. }));
            let mut taint = None;
            let content = if reads {
                let (workspace, store, texts) = (Arc::clone(&workspace), store.clone(), texts.clone());
                let read = move || {
                    let mut parts = freeze(&files, &workspace)?;
                    named::attach(&mut parts, &texts, &store)?;
                    Ok(parts)
                };
                tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| {
                    Err(Notice::new(NoticeKind::Internal, "the attachments could not be read"))
                })
            } else {
                freeze(&files, &workspace)
            };
            // What is more than the typed words was read.
            if content.as_ref().is_ok_and(|content| !is_text(content, &typed)) {
                let sessions = texts.iter().any(|(what, _)| matches!(what, NamedText::Session(_)));
                taint = Some(if sessions { Taint::Web } else { Taint::ToolOutput });
            }
            taint = taint.max(taken.taint());
            let content = match content {
                Ok(mut content) => taken.add_to(&mut content).await.map(|()| content),
                wrong => wrong,
            };
            let content = match (content, servers.as_ref().filter(|_| !others)) {
                (Ok(mut content), Some(servers)) => {
                    let before = content.clone();
                    let added = servers.add_to(&mut content, &message, &texts).await;
                    taint = taint.max((content != before).then_some(Taint::Web));
                    added.map(|()| content)
                }
                (content, _) => content,
            };
            let before_hooks = content.as_ref().map_or(0, Vec::len);
            let content = match (content, &hook) {
                (Ok(content), Some(hook)) => hook.message(&message.text, content).await,
                (content, _) => content,
            };
            let added = match opened.take() {
                Some(opened) => opened.await,
                None => Vec::new(),
            };
            let content = content.map(|content| hooks::with_texts(content, added));
            if content.as_ref().is_ok_and(|content| content.len() > before_hooks) {
                // Hooks print what they read.
                taint = taint.max(Some(Taint::ToolOutput));
            }
            let mut numbers = Vec::new();
            let content = match (content, &learnings) {
                (Ok(mut content), Some(learnings)) => {
                    let text = message.text.clone();
                    let found =
                        for_message(Arc::clone(learnings), Arc::clone(&bus), scope.clone(), session, text);
                    let added = found.await;
                    taint = taint.max(added.taint);
                    content.extend(added.texts);
                    numbers = added.numbers;
                    Ok(content)
                }
                (content, _) => content,
            };
            items.push(PreparedItem { id, message, content, taint, learnings: numbers, terms, commands });
        }
        let prefix = match prefix {
            Some(p) => Some(shorten::prefix(&*p.await, fast).await),
            None => None,
        };
        let today = match books {
            // When the day's spending cannot be read, the known one stays.
            Some(services) => tokio::task::spawn_blocking(move || money::today::today(&services))
                .await
                .ok()
                .and_then(Result::ok),
            None => None,
        };
        writes.look(&me, &workspace).await;
        // The engine may have ended.
        let _ = tx
            .send(Msg::Prompt(PromptMsg::PreparedMessage(Box::new(PreparedMessage {
                goal,
                items,
                prefix,
                today,
                no,
            }))))
            .await;
    };
    keep_busy(core, no, doing, tokio::spawn(task));
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
        Some(message) => {
            compose(core, Destination::Prompt { client }, vec![(Some(id), message)]);
        }
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

/// Whether a content is this text and nothing else.
fn is_text(content: &[Part], typed: &str) -> bool {
    matches!(content, [Part::Text { text }] if text == typed)
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
