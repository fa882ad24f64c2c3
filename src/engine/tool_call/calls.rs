//! Tool calls in the loop: starting them, publishing them, and adding their results to the conversation.

use crate::bus::agent_view;
use crate::files::record;
use crate::questions::planning;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tiller_protocol::PermissionOutcome;
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::Display;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{
    Addition, Additions, Entry, EntryBody, EntryId, EventBody, Part, Taint, TodoItem, ToolCall, ToolOutcome,
    ToolVerb, Touch,
};
use tiller_tool::shell::Witness;
use tiller_tool::{Tool, ToolCx, ToolFolders};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::context::clean;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::ports::CallPorts;
use crate::core::saves::Then;
use crate::crew::CrewMailbox;
use crate::decision::HookedCall;
use crate::decision::held::HeldJudge;
use crate::lock::lock;
use crate::tool_call::{CallFiles, CallOrigin, CallTask, share, text_of, what};
use crate::turn::msg::CallDone;
use crate::turn::msg::TurnMsg;
use crate::turn::part::RunningCall;
use crate::turn::{CallResult, Input};

/// Pieces of live output that may wait for the bus. A tool drops what does not fit.
const PROGRESS: usize = 64;

pub(crate) fn tool_cx(core: &Core, call_id: &str, call: Option<String>) -> (ToolCx, mpsc::Receiver<String>) {
    let (progress, live) = mpsc::channel(PROGRESS);
    let ports = CallPorts {
        delegation: Arc::clone(&core.services.crew.delegation),
        call,
        tx: core.tx.clone(),
        todo: Arc::clone(&core.context.todo),
        writes: core.watching.writes.clone(),
        store: core.services.store.clone(),
        search: core.services.user.search.clone(),
        remembers: core.services.user.memory_rights != tiller_protocol::MemoryRights::Off,
        main: CrewMailbox::new(
            core.identity.child().map_or_else(|| core.tx.clone(), |c| c.main.main().clone()),
        ),
        root: core.identity.child().map_or(core.session.id, |c| c.root),
        entry: last_reply(core),
        prompt: core.session.history.path.iter().rev().find(|e| e.body.begins_turn()).map(|e| e.id),
        turn: core.turn.live.as_ref().map(|l| l.no),
        tools: core.services.tools.visible.clone(),
        held: HeldJudge {
            services: Arc::clone(&core.services),
            bus: Arc::clone(&core.bus),
            scope: core.scope(),
            profile: core.session.profile,
            root: core.identity.child().map_or(core.session.id, |c| c.root),
        },
    };
    let cx = ToolCx {
        session: core.session.id,
        agent: core.identity.id.clone(),
        call_id: call_id.to_owned(),
        workspace: Arc::clone(&core.services.workspace),
        cancel: CancellationToken::new(),
        hard: CancellationToken::new(),
        progress,
        ports: Arc::new(ports),
        clock: Arc::clone(&core.services.clock),
        limits: Arc::new(crate::core::services::limits(
            &core.services.config(),
            &core.services.tools.variables,
        )),
        folders: ToolFolders { spill: spill(core), plans: planning::plans(core) },
        child_env: core.services.tools.env.now(),
        run: Arc::default(),
        witness: Witness::default(),
        state: Arc::clone(&lock(&core.services.tools.state)),
    };
    (cx, live)
}

/// The reply that made the calls that begin now.
fn last_reply(core: &Core) -> Option<EntryId> {
    let mut tail = core.session.history.tail.iter().rev();
    tail.find(|e| matches!(e.body, EntryBody::Assistant { .. })).map(|e| e.id)
}

/// Where full outputs of this session are kept.
pub(crate) fn spill(core: &Core) -> PathBuf {
    core.services.places.state.join("spill").join(core.session.id.to_string())
}

pub(crate) fn run_tool(core: &mut Core, call: ToolCall) {
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    // The turn's machine runs only tools of its table, which was made from this list.
    let Some(tool) = core.services.tool(&call.name) else { return };
    let scope = core.scope();
    let target = tool.target(&call.arguments);
    let (cx, mut live_output) = tool_cx(core, &call.id, Some(call.id.clone()));
    let (cancel, hard) = (cx.cancel.clone(), cx.hard.clone());
    // Published after the reply that requested it, even when it runs before that is on disk.
    let mut arguments = call.arguments.clone();
    clean::value(&core.services.redaction.redact, &mut arguments);
    let target = core.redact(&target);
    let started = ToolEvent::ToolStarted {
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments,
        verb: tool.verb(),
        target: target.clone(),
    };
    core.show(scope.clone(), EventBody::Tool(started));
    let barrier = core.saves.barrier();
    let (bus, at, id) = (Arc::clone(&core.bus), scope, call.id.clone());
    let mut words = clean::Stream::new(&core.services.redaction);
    let forward = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(text) = words.next_of(&mut live_output).await {
            bus.publish(&at, EventBody::Tool(ToolEvent::ToolProgress { call_id: id.clone(), text }));
        }
    }));
    let job = task(core, tool, call.arguments, cx);
    let (tx, call_id) = (core.tx.clone(), call.id.clone());
    let running = tokio::spawn(async move {
        // A read-only call may run while the reply that requested it is still being saved.
        if !matches!(tool.touch(), Touch::Read | Touch::Plan) {
            barrier.await;
        }
        let done = Box::new(job.run().await);
        drop(forward);
        // The engine may have ended.
        let _ = tx.send(Msg::Turn(TurnMsg::ToolDone { turn, call_id, done })).await;
    });
    let act = format!("{} {target}", tool.verb());
    if let Some(live) = &mut core.turn.live {
        let running = RunningCall { cancel, hard, _task: AbortOnDropHandle::new(running), act };
        live.calls.running.insert(call.id, running);
    }
    agent_view::agent_changed(core);
}

/// A call that is ready to run.
pub(crate) fn task(core: &Core, tool: &'static dyn Tool, args: Value, cx: ToolCx) -> CallTask {
    let held = core.turn.live.as_ref().and_then(|live| live.message.as_deref());
    let command = held.and_then(|held| held.source(&cx.call_id, &core.services.workspace.root));
    CallTask {
        services: Arc::clone(&core.services),
        bus: Arc::clone(&core.bus),
        tx: core.tx.clone(),
        tool,
        args,
        cx,
        origin: CallOrigin {
            scope: core.scope(),
            root: core.identity.child().map_or(core.session.id, |c| c.root),
            prompt: core.turn.live.as_ref().and_then(|l| l.root),
            command,
            reply: last_reply(core),
            branch: core.session.head.name.clone(),
            init: CallOrigin::in_init(core),
            path: if tool.touch() == Touch::Network || tool.info().starts_agents {
                core.session.history.path.clone()
            } else {
                Vec::new()
            },
        },
        files: CallFiles {
            reviews: Arc::clone(&core.files.reviews),
            writes: core.watching.writes.clone(),
            watched: record::watched(core),
            written: Vec::new(),
            touched: Vec::new(),
        },
        permit: core.services.permit.clone(),
        profile: core.session.profile,
        asked: false,
        changed: None,
        hooked: HookedCall::default(),
        reach: None,
        inner: None,
    }
}

pub(crate) fn tool_done(core: &mut Core, call_id: &str, mut done: CallDone) {
    if let Some(step) = done.step.take() {
        record::keep_step(core, call_id, step);
    }
    if let Some(child) = core.identity.child_mut() {
        child.work.calls += 1;
        let root = &core.services.workspace.root;
        let names =
            done.wrote.iter().map(|p| tiller_protocol::names::written(p.strip_prefix(root).unwrap_or(p)));
        child.files.extend(names);
    }
    if let Some(note) = done.note.take() {
        crate::learning::seen(core, *note);
    }
    if done.result.unanswered {
        core.child_driver().record_refusal();
    }
    core.child_driver().report_work();
    if let Some(live) = &mut core.turn.live {
        live.calls.running.remove(call_id);
        live.calls.audits.insert(call_id.to_owned(), done.audit);
        if let Some(mut args) = done.args {
            clean::value(&core.services.redaction.redact, &mut args);
            live.calls.args.insert(call_id.to_owned(), args);
        }
    }
    core.feed(Input::ToolDone { call_id: call_id.to_owned(), result: done.result });
}

/// Adds the result to the conversation, with reminders and news at its end, and its row to the audit.
pub(crate) fn append_result(core: &mut Core, call_id: &str, name: String, mut result: CallResult) {
    let arguments = core
        .turn
        .live
        .as_mut()
        .and_then(|l| l.calls.args.remove(call_id))
        .unwrap_or(Value::Object(serde_json::Map::new()));
    // Commands of a message are no work of the agent's.
    if let Some(live) = core.turn.live.as_mut().filter(|_| !ToolCall::is_of_message(call_id)) {
        live.record.call_ended(&name, &arguments, result.outcome.ok());
    }
    if let Some(skill) = crate::turn::record::loaded(&name, &arguments).filter(|_| result.outcome.ok()) {
        crate::turn::hold::loaded(core, skill);
    }
    if ToolCall::is_of_message(call_id) {
        if let Some(held) = core.turn.live.as_mut().and_then(|live| live.message.as_deref_mut()) {
            held.ended(call_id, &mut result);
        }
    } else {
        add_news(core, &name, &mut result);
    }
    if !ToolCall::is_of_message(call_id) {
        share::share_window(core, call_id, &mut result);
    }
    super::inner::in_short(core, call_id, &mut result.display);
    let audit =
        core.turn.live.as_mut().and_then(|l| l.calls.audits.remove(call_id)).unwrap_or_else(|| AuditRow {
            time: core.services.clock.now(),
            session: core.session.id,
            agent: core.identity.id.0.clone(),
            tool: name.clone(),
            what: what(&core.services.redaction.redact, &arguments),
            decision: PermissionOutcome::Undecided,
            by: "engine".into(),
            seconds: 0.0,
            outcome: result.outcome.into(),
        });
    let call = FinishedCall {
        id: call_id.to_owned(),
        name,
        arguments,
        outcome: result.outcome,
        content: result.content,
        display: result.display,
        seconds: result.seconds,
        learnings: result.learnings,
        taint: result.taint,
        added: result.added,
    };
    let (entry, event) = call.enter(core);
    let scope = core.scope();
    let mut append = core.append().entries(vec![entry]);
    append.audit.push(audit);
    core.save(append, vec![(scope, EventBody::Tool(event))], Then::Nothing);
}

/// Adds reminders and news to the end of a result.
fn add_news(core: &mut Core, name: &str, result: &mut CallResult) {
    // The tools of the list itself are not counted.
    if !core.services.tools.all.find(name).is_some_and(|t| t.verb() == ToolVerb::Todo)
        && let Some(hint) = lock(&core.context.todo).called(result.outcome)
    {
        result.put_behind(Addition::Reminder, Part::Text { text: hint });
    }
    result.taint = result.taint.max(core.context.news.taint());
    if let Some(news) = core.news_part() {
        result.put_behind(Addition::News, news);
    }
}

/// A call that has ended, of the engine's tools or of an external program.
pub(crate) struct FinishedCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Redacted.
    pub(crate) arguments: Value,
    pub(crate) outcome: ToolOutcome,
    pub(crate) content: Vec<Part>,
    pub(crate) display: Option<Display>,
    pub(crate) seconds: f64,
    /// The numbers of the learnings at the end of `content`.
    pub(crate) learnings: Vec<i64>,
    /// As that of its entry.
    pub(crate) taint: Option<Taint>,
    /// As that of its entry.
    pub(crate) added: Additions,
}

impl FinishedCall {
    /// Adds its result to the session; the entry, which is not saved yet, and the event of the finished call. Its output
    /// and display are those of the entry: redacted.
    pub(crate) fn enter(self, core: &mut Core) -> (Entry, ToolEvent) {
        let Self { id, name, arguments, outcome, content, display, seconds, learnings, taint, added } = self;
        let body = EntryBody::ToolResult {
            call_id: id.clone(),
            name: name.clone(),
            outcome,
            content,
            display,
            seconds,
            learnings,
            taint,
            added,
        };
        let entry = core.session.grow(&core.services, body);
        let (output, display) = stored(&entry);
        let event = ToolEvent::ToolFinished {
            call_id: id,
            name,
            arguments,
            ok: outcome.ok(),
            outcome,
            output,
            seconds,
            display,
            node: Box::new(entry.clone()),
        };
        (entry, event)
    }
}

/// Output and display of a result entry.
fn stored(entry: &Entry) -> (String, Option<Display>) {
    match &entry.body {
        EntryBody::ToolResult { content, display, .. } => (text_of(content), display.clone()),
        _ => (String::new(), None),
    }
}

pub(crate) fn set_todos(
    core: &mut Core,
    mut items: Vec<TodoItem>,
    reply: oneshot::Sender<Result<(), String>>,
) {
    items.iter_mut().for_each(|i| i.content = core.redact(&i.content));
    lock(&core.context.todo).replace(items.clone());
    todos_saved(core, items, false);
    let _ = reply.send(Ok(()));
}

pub(crate) fn todos_saved(core: &mut Core, todos: Vec<TodoItem>, by_person: bool) {
    let mut append = core.append();
    append.todos = Some(todos.clone());
    let event = tiller_protocol::event::StateEvent::TodoChanged { todos, by_person };
    let scope = core.scope();
    core.save(append, vec![(scope, EventBody::State(event))], Then::Nothing);
}
