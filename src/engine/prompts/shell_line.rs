//! `!` and `!!` lines: commands of the user's own. The output of `!!` stays with the user, and no rule applies to it;
//! that of `!` is shared with the model, so it must not show files that may not be read.
//!
//! They run in a shell of their own, so that the agent's commands never wait for them. One runs at a time; later ones
//! wait, and clients receive both states.

use crate::prompts::compose::entries;
use crate::tool_call::calls;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::json;
use tiller_protocol::event::{ReplyEvent, ToolEvent};
use tiller_protocol::tool::Display;
use tiller_protocol::view::{AuditRow, ShellLineView};
use tiller_protocol::{CommandId, EventBody, Notice, NoticeKind};
use tiller_protocol::{PermissionOutcome, ProcessRow, ShellRecord};
use tiller_tool::shell::run_line;
use tiller_tool::{CommandProfile, CommandRun, ToolError, run_guarded};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::lock::lock;
use crate::prompts::msg::{PromptMsg, RunningLine, ShellDone, WaitingLine};
use crate::tool_call::{AUDIT_TEXT, cut, failed, text_of};
use crate::turn::Input;

/// Characters of output kept in the note of a private line.
const NOTE: usize = 4_000;

/// Suffix of the name of the shell that runs the user's lines; the agent's shell has none.
const OWN: &str = "!";

fn started(view: &ShellLineView) -> EventBody {
    EventBody::Tool(ToolEvent::ShellStarted { line: view.clone() })
}

pub(crate) fn shell_line(core: &mut Core, client: ClientId, cause: CommandId, line: String, share: bool) {
    let off = core.services.tool("terminal").is_none();
    if off || core.session.read_only {
        let why = if off { "commands are turned off" } else { "this session is open read-only" };
        return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }
    if line.trim().is_empty() {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "the command is empty"));
    }
    core.services.permit.refresh().into_iter().for_each(|n| core.notice(n));
    let root = &core.services.workspace.root;
    if let Some(why) = core.services.permit.unshared(&core.identity.id, &line, root).filter(|_| share) {
        let notice = Notice::new(
            NoticeKind::User,
            format!("the model would see its output, but this is not allowed: {why}"),
        )
        .hint("!! runs it and keeps its output private");
        return core.refuse(client, cause, notice);
    }
    let view = ShellLineView {
        call_id: format!("line-{}", cause.0),
        line: core.redact(&line),
        shared: share,
        waits: core.prompts.typed.running.is_some(),
    };
    let typed = WaitingLine { scope: core.scope_of(Some(cause)), line, view };
    if typed.view.waits {
        core.bus.publish(&typed.scope, started(&typed.view));
        core.prompts.typed.waiting.push_back(typed);
    } else {
        run_typed(core, typed);
    }
}

fn run_typed(core: &mut Core, typed: WaitingLine) {
    let WaitingLine { scope, line, mut view } = typed;
    view.waits = false;
    core.bus.publish(&scope, started(&view));
    let (id, share) = (view.call_id.clone(), view.shared);
    core.prompts.typed.running = Some(view);
    let (mut cx, mut live) = calls::tool_cx(core, &id, None);
    // A shell of its own beside the agent's.
    cx.agent.0.push_str(OWN);
    cx.run = Arc::new(CommandRun::new(CommandProfile::Person));
    let running = RunningLine { line: line.clone(), cancel: cx.cancel.clone(), hard: cx.hard.clone() };
    core.prompts.lines.insert(id.clone(), running);
    let head = core.session.head.name.clone();
    let (services, time, began) =
        (Arc::clone(&core.services), core.services.clock.now(), core.services.clock.mono());
    let (tx, bus) = (core.tx.clone(), std::sync::Arc::clone(&core.bus));
    let mut words = crate::context::clean::Stream::new(&core.services.redaction);
    core.spawn(async move {
        let typed = line.clone();
        let run = AssertUnwindSafe(run_line(&cx, &typed)).catch_unwind();
        tokio::pin!(run);
        let result = loop {
            tokio::select! {
                result = &mut run => break result.unwrap_or_else(|_| {
                    Err(ToolError::Tell("internal error while running the command; this is a bug in Tiller".into()))
                }),
                Some(text) = words.next_of(&mut live) => {
                    let event = ToolEvent::ToolProgress { call_id: id.clone(), text };
                    bus.publish(&scope, EventBody::Tool(event));
                }
            }
        };
        let (output, exit, outcome) = match result {
            Ok(out) => {
                let exit =
                    if let Some(Display::Output { exit, .. }) = &out.display { *exit } else { None };
                (text_of(&out.content), exit, out.outcome)
            }
            Err(e) => {
                let failed = failed(e);
                (text_of(&failed.content), None, failed.outcome)
            }
        };
        let seconds = services.since(began);
        let done = ShellDone { id, scope, head, line, share, output, exit, time, seconds, outcome };
        let _ = tx.send(Msg::Prompt(PromptMsg::LineDone(Box::new(done)))).await;
    });
}

pub(crate) fn shell_done(core: &mut Core, done: ShellDone) {
    keep_line(core, done);
    while core.prompts.typed.running.is_none()
        && let Some(next) = core.prompts.typed.waiting.pop_front()
    {
        // A line that was typed in another session must not run in this folder and conversation.
        if next.scope.session == core.session.id && core.lifecycle.quitting.is_none() {
            run_typed(core, next);
        } else {
            not_run(core, next);
        }
    }
}

/// A waiting line is dropped.
fn not_run(core: &Core, typed: WaitingLine) {
    let WaitingLine { scope, view, .. } = typed;
    let event = ToolEvent::ShellLine {
        line: view.line,
        output: "(not run: it was removed from the queue)".into(),
        exit: None,
        shared: view.shared,
        call_id: view.call_id,
    };
    core.bus.publish(&scope, EventBody::Tool(event));
}

fn keep_line(core: &mut Core, done: ShellDone) {
    let ShellDone { id, scope, head, line, share, output, exit, time, seconds, outcome } = done;
    core.prompts.lines.remove(&id);
    core.prompts.typed.running.take_if(|v| v.call_id == id);
    let (line, output) = (core.redact(&line), core.redact(&output));
    let event =
        ToolEvent::ShellLine { line: line.clone(), output: output.clone(), exit, shared: share, call_id: id };
    core.bus.publish(&scope, EventBody::Tool(event));
    let kept = if share { output } else { output.chars().take(NOTE).collect() };
    let body = ShellRecord { line: line.clone(), output: kept, shared: share }.body();
    let audit = AuditRow {
        time,
        session: scope.session,
        agent: "you".into(),
        tool: if share { "!" } else { "!!" }.into(),
        what: cut(&line, AUDIT_TEXT),
        decision: PermissionOutcome::Allowed,
        by: "your own command".into(),
        seconds,
        outcome: outcome.into(),
    };
    if scope.session != core.session.id {
        // Another session was opened meanwhile: it waits in its own.
        let told = After { events: Vec::new(), then: Then::Nothing };
        core.saves.push(core.services.store.unfinished().add_pending(scope.session, &head, body), told);
        let told = After { events: Vec::new(), then: Then::Nothing };
        core.saves.push(core.services.store.audit().record(audit), told);
        return;
    }
    if core.occupied() || core.lifecycle.stop {
        // No entry may stand between a call and its result: it waits for a safe point. At the end a call may be left open
        // for the next start.
        core.prompts.pending.push(body);
        let mut append = core.append();
        append.pending = Some(core.prompts.pending.clone());
        append.audit.push(audit);
        core.save(append, Vec::new(), Then::Nothing);
        if core.turn.live.is_some() {
            core.feed(Input::Steer(true));
        }
        return;
    }
    let entry = core.session.grow(&core.services, body);
    let event = entries::added(&entry);
    let mut append = core.append().entries(vec![entry]);
    append.audit.push(audit);
    core.save(append, vec![(scope, event)], Then::Nothing);
}

/// Replies with the background processes.
pub(crate) fn processes(core: &mut Core, client: ClientId, cause: CommandId) {
    let state = Arc::clone(&lock(&core.services.tools.state));
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let redact = Arc::clone(&core.services.redaction.redact);
    core.spawn(async move {
        // Their last output may be on a terminal that is read under a lock.
        let rows = tokio::task::spawn_blocking(move || state.shells.rows()).await.unwrap_or_default();
        let clean = |row: ProcessRow| ProcessRow {
            intervention: redact(&row.intervention),
            command: redact(&row.command),
            last: redact(&row.last),
            ..row
        };
        let rows = rows.into_iter().map(clean).collect();
        bus.reply(client, &scope, ReplyEvent::ProcessesReply { rows });
    });
}

/// Ends a background process, or a line of the user's.
pub(crate) fn stop_process(core: &mut Core, client: ClientId, cause: CommandId, id: String) {
    if id == crate::prompts::msg::LINE {
        // All side questions that are running.
        let asides =
            core.prompts.lines.iter().filter(|(name, _)| name.starts_with(crate::prompts::msg::LINE));
        asides.for_each(|(_, line)| line.cancel.cancel());
        return;
    }
    if let Some(at) = core.prompts.typed.waiting.iter().position(|t| t.view.call_id == id) {
        if let Some(typed) = core.prompts.typed.waiting.remove(at) {
            not_run(core, typed);
        }
        return;
    }
    if let Some(line) = core.prompts.lines.get(&id) {
        // The second stop kills it.
        if line.cancel.is_cancelled() {
            line.hard.cancel();
        }
        line.cancel.cancel();
        return;
    }
    process_tool(core, client, cause, json!({ "action": "kill", "id": id }), |said| ReplyEvent::DoneReply {
        said,
    });
}

fn process_tool(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    args: serde_json::Value,
    reply: impl FnOnce(String) -> ReplyEvent + Send + 'static,
) {
    let Some(tool) = core.services.tool("process") else {
        let notice = Notice::new(NoticeKind::User, "there are no background processes");
        return core.refuse(client, cause, notice);
    };
    let (cx, live) = calls::tool_cx(core, "process", None);
    let (bus, scope) = (std::sync::Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        let event = match run_guarded(tool, args, &cx).await {
            Ok(out) => reply(text_of(&out.content)),
            Err(ToolError::Tell(why)) => {
                ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) }
            }
            Err(e) => ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, e.to_string()) },
        };
        drop(live);
        bus.reply(client, &scope, event);
    });
}
