//! Carries out what a turn decides. Nothing here decides anything about the turn itself.

use crate::bus::agent_view;
use crate::context::compaction;
use crate::context::windows;
use crate::money;
use crate::prompts::compose;
use crate::prompts::message_commands::{deliver, waiting};
use crate::questions::asking;
use crate::session::model;
use crate::tool_call::calls;
use crate::turn::prepare;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::json;
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::{
    AskBody, Block, Cost, EntryBody, EventBody, HookEvent, Notice, StopReason, ToolOutcome,
};
use tiller_provider::{ProviderError, transport::retry};
use tiller_store::ModelCall;
use tokio_util::task::AbortOnDropHandle;

use super::machine::reply::ReplyUsage;
use super::part::{Deltas, TurnTasks};
use super::stream::stream;
use super::{Delta, Effect, Input};
use crate::context::{request, tokens};
use crate::core::Core;
use crate::core::hooks;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::questions::about::About;
use crate::turn::msg::{Awaited, TurnMsg};

/// Gives the turn its inputs and carries out its effects, until there are no inputs.
pub(crate) fn pump(core: &mut Core) {
    while let Some(input) = core.turn.inputs.pop_front() {
        let Some(live) = &mut core.turn.live else {
            core.turn.inputs.clear();
            return;
        };
        for effect in live.machine.step(input) {
            perform(core, effect);
        }
    }
}

fn perform(core: &mut Core, effect: Effect) {
    match effect {
        Effect::Prepare { may_compact } => prepare::prepare(core, may_compact),
        Effect::Request { n } => request(core, n),
        Effect::CancelStream => {
            core.with_live(|l| l.tasks.stream = None);
            waited(core);
            core.external_driver().close(StopReason::Interrupted);
        }
        Effect::Delta(Delta::Text(text)) => text_delta(core, &text),
        Effect::Delta(Delta::Thinking(text)) => thinking_delta(core, &text),
        Effect::Delta(Delta::CallStarted(name)) => {
            flush_deltas(core);
            turn_event(core, TurnEvent::ToolCallBegun { name });
        }
        Effect::AppendReply { blocks, stop, used } => append_reply(core, blocks, stop, &used),
        Effect::Spent { used } => spent_for_nothing(core, &used),
        Effect::RunTool { call } => calls::run_tool(core, call),
        Effect::CancelTool { call_id, hard } => {
            if let Some(call) = core.turn.live.as_ref().and_then(|l| l.calls.running.get(&call_id)) {
                call.cancel.cancel();
                if hard {
                    call.hard.cancel();
                }
            }
        }
        Effect::AppendResult { call_id, name, result } => calls::append_result(core, &call_id, name, result),
        Effect::Backoff { n, attempt, of, error, discard } => {
            back_off(core, n, attempt, of, &error, discard);
        }
        Effect::EndBackoff => {
            core.with_live(|l| l.tasks.timer = None);
            turn_event(core, TurnEvent::RetryEnded {});
        }
        Effect::Compact { overflow, round } => {
            if let Some(error) =
                core.turn.live.as_ref().filter(|_| overflow).and_then(|l| l.machine.too_long().cloned())
            {
                let model = core.session.model.clone();
                windows::learn_window(core, &model, &error, core.session.context_tokens().0);
            }
            waited(core);
            let turn = core.turn.live.as_ref().map(|l| l.no);
            compaction::compact(core, turn, overflow, round, None, None);
        }
        Effect::CancelCompact => core.with_live(|l| l.tasks.compaction = None),
        Effect::DeliverSteer => {
            if let Some(no) = core.turn.live.as_ref().map(|l| l.no) {
                compose::deliver_steer(core, no);
            }
        }
        Effect::DeliverMessage => deliver::deliver(core),
        Effect::Tell { text, taint } => compose::tell_model(core, &text, taint),
        Effect::CheckAnswer { text, again } => check_answer(core, text, again),
        Effect::AskRepeats { calls, rounds } => ask_repeats(core, calls, rounds),
        Effect::Finish { status, text, notice } => finish(core, status, text, notice),
    }
}

/// Publishes more text of the reply, without secrets.
pub(crate) fn text_delta(core: &mut Core, more: &str) {
    publish_deltas(core, |deltas| deltas.text(more));
}

/// Publishes more thinking of the reply, without secrets.
pub(crate) fn thinking_delta(core: &mut Core, more: &str) {
    publish_deltas(core, |deltas| deltas.thinking(more));
}

/// Publishes that the first token is awaited.
pub(crate) fn awaited(core: &mut Core, n: u32, wait: &Awaited) {
    if core.turn.live.as_ref().is_some_and(|l| l.machine.n() == n && l.machine.unanswered()) {
        let event = TurnEvent::Awaiting {
            seconds: wait.since.as_secs_f64(),
            limit: wait.end.as_ref().map(|(end, _)| end.as_secs_f64()),
            setting: wait.end.as_ref().map(|(_, setting)| setting.clone()).unwrap_or_default(),
            progress: wait.progress,
        };
        core.with_live(|l| l.tasks.awaited = true);
        turn_event(core, event);
    }
}

/// Publishes that the first token is no longer awaited, where no other event says so.
fn waited(core: &mut Core) {
    if core.turn.live.as_mut().is_some_and(|l| std::mem::take(&mut l.tasks.awaited)) {
        turn_event(core, TurnEvent::RetryEnded {});
    }
}

/// Publishes what was withheld, when nothing has come for a while.
pub(crate) fn pause_deltas(core: &mut Core) {
    publish_deltas(core, Deltas::pause);
}

/// Publishes what was withheld, at the end of a reply.
pub(crate) fn flush_deltas(core: &mut Core) {
    publish_deltas(core, Deltas::finish);
}

fn publish_deltas(core: &mut Core, change: impl FnOnce(&mut Deltas) -> Vec<TurnEvent>) {
    let Some(live) = &mut core.turn.live else { return };
    for event in change(&mut live.deltas) {
        turn_event(core, event);
    }
}

fn turn_event(core: &mut Core, event: TurnEvent) {
    core.show(core.scope(), EventBody::Turn(event));
}

pub(crate) fn request(core: &mut Core, n: u32) {
    if core.identity.external().is_some() {
        return core.external_driver().check_trust();
    }
    leave_trace(core);
    core.with_live(|l| l.tasks.awaited = false);
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    let provider = model::provider(core, &core.session.model);
    let request = request::build(&core.session.history.path, &prepare::settings(core));
    let tx = core.tx.clone();
    let task = async move {
        let result = match (provider, request) {
            (Ok(p), Some(r)) => {
                let work = AssertUnwindSafe(stream(p, r, turn, n, &tx)).catch_unwind();
                work.await.unwrap_or_else(|_| {
                    Err(ProviderError::Rejected(
                        "internal error in the provider; this is a bug in Tiller".into(),
                    ))
                })
            }
            (Err(e), _) => Err(e),
            (_, None) => Err(ProviderError::Rejected("the session has no prefix".into())),
        };
        // The engine may have ended.
        let _ = tx.send(Msg::Turn(TurnMsg::StreamEnded { turn, n, result })).await;
    };
    let handle = AbortOnDropHandle::new(tokio::spawn(task));
    core.with_live(|l| l.tasks.stream = Some(handle));
    agent_view::agent_changed(core);
}

/// Records the cost of a request whose reply is not stored.
fn spent_for_nothing(core: &mut Core, used: &ReplyUsage) {
    // An external program reports its own usage.
    if core.identity.external().is_some() {
        return;
    }
    let call = spend(core, used);
    let mut append = core.append();
    append.calls.push(call);
    core.save(append, vec![(core.scope(), usage_event(core))], Then::Nothing);
}

fn append_reply(core: &mut Core, blocks: Vec<Block>, stop: StopReason, used: &ReplyUsage) {
    flush_deltas(core);
    let call = spend(core, used);
    let usage = call.usage;
    let body =
        EntryBody::Assistant { blocks, stop, model: core.session.model.clone(), usage, cost: call.cost };
    let entry = core.session.grow(&core.services, body);
    let blocks: &[Block] = if let EntryBody::Assistant { blocks, .. } = &entry.body { blocks } else { &[] };
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|b| if let Block::Text { text } = b { Some(text.as_str()) } else { None })
        .collect();
    let text = texts.join("\n\n");
    if let Some(live) = &mut core.turn.live {
        live.calls.args = blocks
            .iter()
            .filter_map(|b| {
                if let Block::ToolCall(c) = b { Some((c.id.clone(), c.arguments.clone())) } else { None }
            })
            .collect();
    }
    let scope = core.scope();
    let event = TurnEvent::AssistantMessage { entry: entry.id, text, node: Box::new(entry.clone()) };
    let events = vec![(scope.clone(), EventBody::Turn(event)), (scope, usage_event(core))];
    let mut append = core.append().entries(vec![entry]);
    append.calls.push(call);
    core.save(append, events, Then::Nothing);
}

fn usage_event(core: &Core) -> EventBody {
    EventBody::Turn(TurnEvent::Usage {
        usage: core.session.totals.usage,
        cost_usd: core.session.totals.cost.map(Cost::usd),
        context: core.session.context_tokens().0,
        window: model::window(core),
    })
}

/// Records the cost of a request to the session's model.
fn spend(core: &mut Core, used: &ReplyUsage) -> ModelCall {
    let model = core.session.model.clone();
    let tier = model::tier(core);
    let path = request::live(&core.session.history.path);
    let output = tokens::Calibration::of(&path).written(used.arrived);
    let request = tokens::next_request(&path);
    let usage = tokens::completed(used.usage, used.whole, request, output);
    if used.whole && !usage.estimated {
        windows::window_took(core, &model, usage.context());
    }
    let call = money::book(core, &model, tier, usage);
    core.money.reservations.release(&core.identity.id);
    money::tell_budget(core);
    call
}

fn back_off(core: &mut Core, n: u32, attempt: u32, of: u32, error: &ProviderError, discard: bool) {
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    let wait = retry::wait(error, attempt.saturating_sub(1), of, retry::random())
        .unwrap_or(retry::FIRST)
        .mul_f64(core.services.models.retry_scale);
    flush_deltas(core);
    turn_event(
        core,
        TurnEvent::Retrying { attempt, of, seconds: wait.as_secs_f64(), why: error.to_string(), discard },
    );
    let after = wait.as_secs_f64();
    let trace = core.redact(&format!("Sent again (try {attempt} of {of}) after {after:.0} s: {error}"));
    let tx = core.tx.clone();
    let timer = tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        let _ = tx.send(Msg::Turn(TurnMsg::WaitOver { turn, n })).await;
    });
    core.with_live(|l| {
        l.tasks.stream = None;
        l.tasks.timer = Some(AbortOnDropHandle::new(timer));
        l.tasks.trace = Some(trace);
    });
    agent_view::agent_changed(core);
}

/// Notes in the conversation that a request is sent again. The note is no part of requests.
fn leave_trace(core: &mut Core) {
    let Some(text) = core.turn.live.as_mut().and_then(|l| l.tasks.trace.take()) else { return };
    let entry = core.session.grow(&core.services, EntryBody::Note { text });
    let node = Box::new(entry.clone());
    let events = vec![(core.scope(), EventBody::Turn(TurnEvent::EntryAdded { node }))];
    let append = core.append().entries(vec![entry]);
    core.save(append, events, Then::Nothing);
}

/// Asks whether repeated calls continue. Where no one can answer, they stop.
fn ask_repeats(core: &mut Core, calls: String, rounds: u32) {
    if core.services.user.human == Human::Absent {
        return core.turn.inputs.push_back(Input::Repeats { go_on: false });
    }
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    asking::ask_self(core, About::Repeats { turn }, AskBody::Repeats { calls, rounds });
}

/// Has hooks look at the answer. A denial sends its reason to the model.
fn check_answer(core: &mut Core, text: String, again: bool) {
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    let Some(hook) = hooks::job(core, HookEvent::BeforeResponse) else {
        return core.turn.inputs.push_back(Input::Checked { tell: None });
    };
    let (tx, text) = (core.tx.clone(), core.redact(&text));
    let task = tokio::spawn(async move {
        let answer = hook.run(json!({ "answer": text, "again": again })).await;
        let tell =
            answer.deny.map(|denial| format!("[The turn does not end yet: {}. Go on.]", denial.words()));
        // The engine may have ended.
        let _ = tx.send(Msg::Turn(TurnMsg::Checked { turn, tell })).await;
    });
    core.with_live(|l| l.tasks.timer = Some(AbortOnDropHandle::new(task)));
}

/// Ends the turn because of a limit or a failed store.
pub(crate) fn halt(core: &mut Core, status: TurnStatus, notice: Notice) {
    if let Some(live) = &mut core.turn.live {
        live.end.forced.get_or_insert((status, notice));
        core.feed(Input::Interrupt { hard: true });
    }
}

pub(crate) fn finish(core: &mut Core, status: TurnStatus, text: String, notice: Option<Notice>) {
    waiting::turn_ends(core);
    let Some(live) = &mut core.turn.live else { return };
    let turn = live.no;
    live.end.over = true;
    live.tasks = TurnTasks::default();
    core.money.reservations.release(&core.identity.id);
    let Some(live) = &mut core.turn.live else { return };
    let (status, notice) = match live.end.forced.take() {
        Some((status, notice)) => (status, Some(notice)),
        None => (status, notice),
    };
    let scope = live.scope.clone();
    let why = notice.clone();
    live.end.text.clone_from(&text);
    live.end.notice = why;
    if status == TurnStatus::Interrupted {
        core.context.news.set("stopped", "the user stopped your last turn before it ended");
    }
    let text = core.redact(&text);
    let mut events = Vec::new();
    let note = ending_note(core, status, notice.as_ref());
    let mut append = core.append();
    if let Some(text) = note {
        let entry = core.session.grow(&core.services, EntryBody::Note { text });
        if notice.is_none() {
            let node = Box::new(entry.clone());
            events.push((scope.clone(), EventBody::Turn(TurnEvent::EntryAdded { node })));
        }
        append = core.append().entries(vec![entry]);
    }
    append.running = Some(None);
    events.push((scope, finished_event(core, status, text, notice)));
    core.save(append, events, Then::TurnOver { turn, status });
}

/// A note in the conversation that the turn did not end well, where no entry says so. Present clients are shown the
/// notice itself.
fn ending_note(core: &Core, status: TurnStatus, notice: Option<&Notice>) -> Option<String> {
    let told = match core.session.history.path.last().map(|e| &e.body) {
        Some(EntryBody::Assistant { stop, .. }) => !matches!(stop, StopReason::EndTurn | StopReason::ToolUse),
        // The result says that it was interrupted, and not why.
        Some(EntryBody::ToolResult { outcome, .. }) => {
            *outcome == ToolOutcome::Interrupted && notice.is_none()
        }
        _ => false,
    };
    match (status, notice) {
        (TurnStatus::Done | TurnStatus::Refused, _) => None,
        _ if told => None,
        (TurnStatus::Interrupted, None) => Some("Stopped by you before the model answered.".into()),
        (_, Some(notice)) => Some(format!("The turn ended early: {}", notice.message)),
        (_, None) => None,
    }
}

/// The event of the end of a turn. Its usage and cost are those of all calls since the end of the turn before it: of this agent, of
/// those below it, and beside the conversation, so that the turns of a session add up to all that it has used.
pub(crate) fn finished_event(
    core: &mut Core,
    status: TurnStatus,
    text: String,
    error: Option<Notice>,
) -> EventBody {
    let (reservations, id) = (&core.money.reservations, &core.identity.id);
    let live = core.turn.live.as_mut();
    let sum = live.map(|l| l.end.sum.get_or_insert_with(|| reservations.take_sum(id)).clone());
    let sum = sum.unwrap_or_default();
    let cost_usd = sum.cost().map(Cost::usd);
    EventBody::Turn(TurnEvent::TurnFinished { status, text, usage: sum.usage, cost_usd, error })
}
