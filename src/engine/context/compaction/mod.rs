//! Carries out a compaction: a model writes the summary, then summary, prefix and todo list are added to the tree.

pub(crate) mod carried;
pub(crate) mod compact;
pub(crate) mod shorten;

use crate::context::prefix;
use crate::context::side_call;
use crate::core::follow_up::FollowUp;
use crate::money;
use crate::prompts::compose::entries::added;
use crate::session::change;
use crate::session::model;
use crate::turn::begin;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::view::LayerCost;
use tiller_protocol::{
    Entry, EntryBody, EventBody, HookEvent, Message, ModelRef, Notice, NoticeKind, Origin, Part, Taint,
};
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;
use crate::context::compaction::compact::{CompactedSize, KeepLimits, Plan};
use crate::context::msg::{CompactionResult, ContextMsg};
use crate::context::prefix::layers;
use crate::context::side_call::SideCall;
use crate::context::{request, todo, tokens};
use crate::core::Core;
use crate::core::hooks::{self, HookJob};
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::lock::lock;
use crate::memory::{condense, origin, save};
use crate::prompts::doing::JobKind;
use crate::tool_call::calls;
use crate::turn::Input;

/// Tokens kept verbatim, by round: each forced round keeps less; the last keeps two messages only.
const KEEP: [u64; ROUNDS as usize] = [8_000, 2_000, 0];
/// Forced rounds.
const ROUNDS: u32 = 3;
/// Percentage of the summariser's window that the transcript may fill.
const FILL: u64 = 60;
/// The window, in tokens, where none is known.
pub(crate) const WINDOW: u64 = 100_000;
/// Tokens of a summary; more after a summary that was cut off.
const SUMMARY: u64 = 4_000;
/// Attempts, each with a shorter transcript, when the summariser's server rejects the request as too long.
const TRIES: u32 = 3;

/// Starts a compaction. `turn`: the turn that waits for it; `client`: the client that requested it.
pub(crate) fn compact(
    core: &mut Core,
    turn: Option<u64>,
    overflow: bool,
    round: u32,
    focus: Option<String>,
    client: Option<(ClientId, tiller_protocol::CommandId)>,
) {
    let plan = match overflow {
        // A round that can do nothing is followed by the next, which keeps less.
        true => (round.max(1)..=ROUNDS)
            .find_map(|round| compact::plan(&core.session.history.path, keep_of_round(core, round))),
        false => compact::plan(&core.session.history.path, keep(core)),
    };
    let nothing = match turn {
        Some(_) => format!("nothing more can be left out; the largest parts are {}", largest_parts(core)),
        None => compact::nothing_to_do(&core.session.history.path),
    };
    let model = summariser(core);
    let demo = model::is_demo(core, &model);
    // A compaction never exceeds a budget: without one the conversation stays as long as it is.
    let provider = money::may_ask(core, &model)
        .and_then(|()| model::provider(core, &model).map_err(|e| crate::bus::notices::provider(&e)));
    let (facts, settings) = (begin::facts(core), core.services.config().context.clone());
    let (tx, services) = (core.tx.clone(), Arc::clone(&core.services));
    let side = provider.map(|p| side_call::side_call(core, p, &model));
    let fast = shorten::fast(core);
    let no = if core.turn.live.is_none() { core.next_job() } else { 0 };
    let hook = hooks::job(core, HookEvent::ContextCompact);
    // Too long a context leaves no time: the turn waits, and its next round summarises the same entries.
    let save = plan.as_ref().filter(|plan| !overflow && plan.sums_up());
    let save = save.and_then(|_| save::before_compaction(core));
    let (folder, most) = (calls::spill(core), summary_bytes(core));
    let trigger = if client.is_some() { "user" } else { "size" };
    let task = async move {
        let mut plan = plan;
        let (denied, focus) = match (&plan, hook) {
            (Some(_), Some(hook)) => hooked(&hook, trigger, focus).await,
            _ => (None, focus),
        };
        if let Some(save) = save.filter(|_| denied.is_none()) {
            // Before the layers are read: the new prefix has what was kept.
            save.run().await;
        }
        let taint = match &plan {
            Some(plan) => origin::of_summary(&services, &plan.goes).await,
            None => Taint::Agent,
        };
        let prefix = tokio::task::spawn_blocking(move || {
            condense::without_model(&services);
            layers::layers(&facts, &settings)
        });
        let result = match (&plan, denied) {
            (None, _) => Err(Notice::new(NoticeKind::User, nothing)),
            (Some(_), Some(denied)) => Err(denied),
            (Some(plan), None) if !plan.sums_up() => Ok(plan.earlier()),
            (Some(plan), None) if demo => Ok(compact::extract(&plan.goes)),
            (Some(plan), None) => match side {
                Err(notice) => Err(notice),
                Ok(side) => summarise(&side, compact::PROMPT, &plan.goes, focus.as_deref()).await,
            },
        };
        let result = result.map(|summary| compact::bounded(summary, most));
        if result.is_ok()
            && let Some(plan) = &mut plan
        {
            shorten_long(plan, folder).await;
        }
        let layers = prefix.await.unwrap_or_else(|_| layers::Layers::bare());
        // Without a summary there is no new prefix.
        let prefix = shorten::prefix(&layers, fast.filter(|_| result.is_ok())).await;
        let done = CompactionResult { turn, overflow, no, client, focus, plan, result, prefix, taint };
        let _ = tx.send(Msg::Context(ContextMsg::Compacted(Box::new(done)))).await;
    };
    let task = tokio::spawn(task);
    if let Some(live) = &mut core.turn.live {
        live.tasks.compaction = Some(AbortOnDropHandle::new(task));
    } else if let Some((client, cause)) = client {
        core.busy_with(no, JobKind::Other { client, cause }, task);
    }
}

/// The most bytes of a summary: four times what is asked for, and an eighth of what triggers a compaction.
fn summary_bytes(core: &Core) -> usize {
    let limit = compact::limit(&core.services.config().context, model::window(core));
    tokens::bytes((4 * SUMMARY).min(limit / 8))
}

/// The two largest parts of the next request, for people.
fn largest_parts(core: &Core) -> String {
    let live = request::live(&core.session.history.path);
    let mut parts = vec![("the messages".to_owned(), live.iter().skip(1).map(|e| tokens::of_entry(e)).sum())];
    if let Some(EntryBody::Prefix { tools, layers, .. }) = live.first().map(|e| &e.body) {
        parts.push(("the tools".into(), tokens::of_tools(tools)));
        parts.extend(layers.iter().map(|l| (format!("{} ({})", l.name, l.source), l.tokens)));
    }
    parts.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let parts: Vec<String> =
        parts.iter().take(2).map(|(name, tokens)| format!("{name} with about {tokens} tokens")).collect();
    parts.join(" and ")
}

/// Shows one notice for a context that is over its limit even when it is compacted.
fn tell_too_large(core: &mut Core, before: Option<CompactedSize>) {
    let limit = compact::limit(&core.services.config().context, model::window(core));
    let over = |size: Option<CompactedSize>| size.filter(|size| size.tokens > limit);
    let Some(now) = over(core.context.compacted).filter(|_| over(before).is_none()) else { return };
    let text = format!(
        "the compacted context still has about {} tokens, over its limit of {limit}; its largest parts are {}",
        now.tokens,
        largest_parts(core)
    );
    let hint = "context.layers in config.toml bounds each part; /model chooses a model with a larger window";
    core.notice(Notice::new(NoticeKind::Info, text).hint(hint));
}

/// Shortens the long contents of the plan.
async fn shorten_long(plan: &mut Plan, folder: PathBuf) {
    let long = std::mem::take(&mut plan.long);
    if long.is_empty() {
        return;
    }
    let short = tokio::task::spawn_blocking(move || carried::shorten(&long, &folder)).await;
    let short = short.unwrap_or_default();
    plan.carried.shortened.retain(|earlier| short.iter().all(|s| s.entry != earlier.entry));
    plan.carried.shortened.extend(short);
}

/// The denial of the hooks, and the focus with what they add to it.
async fn hooked(hook: &HookJob, trigger: &str, focus: Option<String>) -> (Option<Notice>, Option<String>) {
    let answer = hook.run(json!({ "trigger": trigger, "focus": focus })).await;
    let denied = answer.deny.map(|denial| Notice::new(NoticeKind::Denied, denial.words()));
    let added = answer.add.into_iter().map(|(_, text)| text);
    let focus: Vec<String> = focus.into_iter().chain(added).collect();
    (denied, (!focus.is_empty()).then(|| focus.join("\n")))
}

/// Each forced round keeps less of the end, and leaves the whole request half the room of the one before. The first leaves
/// messages whole.
fn keep_of_round(core: &Core, round: u32) -> KeepLimits {
    let at = (round.max(1) - 1).min(ROUNDS - 1);
    let request = core.session.context_tokens().0;
    let window = model::window(core).map_or(request, |window| window.min(request));
    let keep = KeepLimits::tokens(KEEP[at as usize], window >> (at + 1));
    KeepLimits { shorten_words: at > 0, ..keep }
}

/// Keeps a fifth of the tokens that trigger a compaction, within bounds, and half of the messages that do; of a
/// shorter conversation, a fifth.
pub(crate) fn keep(core: &Core) -> KeepLimits {
    let settings = &core.services.config().context;
    let limit = settings.compact_tokens.or(model::window(core)).unwrap_or(WINDOW);
    let messages = settings.compact_messages.map(|most| most / 2);
    // What grows afterwards has some room, too.
    let room = compact::limit(settings, model::window(core)) / 10 * 7;
    KeepLimits { tokens: (limit / 5).clamp(500, 20_000), messages, share: 20, room, shorten_words: false }
}

/// The fast tier's model; the session's model where there is none or its budget is used up.
pub(crate) fn summariser(core: &Core) -> ModelRef {
    summariser_of(core, &core.session.model)
}

/// The model that sums up a session which was led with this model: the fast tier, else that model. No other one gets to see the
/// session.
pub(crate) fn summariser_of(core: &Core, own: &ModelRef) -> ModelRef {
    let fast = core.services.config().tiers.fast.clone().map(ModelRef);
    fast.filter(|f| model::provider(core, f).is_ok() && money::may_ask(core, f).is_ok())
        .unwrap_or_else(|| own.clone())
}

pub(crate) fn compacted(core: &mut Core, done: CompactionResult) {
    let stopped = match done.turn {
        Some(turn) => !core.is_live(turn),
        None => !core.job_done(done.no),
    };
    if stopped {
        return;
    }
    let before = core.context.compacted;
    let result = match (done.result, done.plan) {
        (Ok(summary), Some(plan)) => {
            // What the summary leaves out is shown again.
            if let Some(learnings) = &core.services.user.learnings {
                learnings.forget(core.session.id);
            }
            let cause = done.client.map(|(_, cause)| cause);
            put_compaction(core, cause, (summary, done.focus), &plan, &done.prefix, done.taint);
            condense::with_model(core);
            Ok(())
        }
        (Err(notice), _) => Err(notice),
        (Ok(_), None) => Err(Notice::new(NoticeKind::Internal, "an empty summary")),
    };
    if done.turn.is_some() || result.is_ok() {
        let limit = compact::limit(&core.services.config().context, model::window(core));
        core.context.compacted = CompactedSize::of(&core.session.history.path, limit);
    }
    if result.is_ok() {
        tell_too_large(core, before);
    }
    match (done.turn, done.client, result) {
        (Some(_), _, result) => {
            if let Err(notice) = &result
                && !done.overflow
            {
                core.notice(notice.clone());
            }
            with_compaction_over(core, result);
        }
        (None, Some((client, cause)), Err(notice)) => core.refuse(client, cause, notice),
        _ => {}
    }
    if done.turn.is_none() {
        core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Done));
    }
}

fn with_compaction_over(core: &mut Core, result: Result<(), Notice>) {
    if let Some(live) = &mut core.turn.live {
        live.tasks.compaction = None;
    }
    core.feed(Input::Compacted(result));
}

/// Adds summary, new prefix and todo list in one commit. The old path stays in the tree. `cause`: the command that
/// requested it, whose client waits for the event.
fn put_compaction(
    core: &mut Core,
    cause: Option<tiller_protocol::CommandId>,
    (summary, focus): (String, Option<String>),
    plan: &Plan,
    prefix: &(String, Vec<LayerCost>),
    taint: Taint,
) {
    let mut scope = core.scope();
    scope.cause = cause.or(scope.cause);
    let tokens_after = plan.tokens_kept + tokens::of_text(&summary);
    let (tokens_before, kept_from) = (plan.tokens_before, plan.kept_from);
    let before = core.session.head.id;
    let body = EntryBody::Compaction {
        summary,
        focus,
        kept_from,
        tokens_before,
        tokens_after,
        taint: Some(taint),
        carried: plan.carried.clone(),
    };
    let node = core.session.grow(&core.services, body);
    let entry = node.id;
    let mut events = vec![(scope.clone(), Core::entry_event(&node))];
    let mut entries = vec![node];
    let body = prefix::prefix_body(core, prefix.0.clone(), prefix.1.clone());
    entries.push(core.session.grow(&core.services, body));
    let items = lock(&core.context.todo).items.clone();
    if !items.is_empty() {
        let text = todo::render(&items);
        let content = vec![Part::Text { text: text.clone() }];
        let body = EntryBody::User {
            message: Message::text(text),
            origin: Origin::Engine,
            content,
            taint: None,
            learnings: Vec::new(),
        };
        entries.push(core.session.grow(&core.services, body));
    }
    events.extend(entries[1..].iter().map(|e| (scope.clone(), added(e))));
    let cause = scope.cause;
    events.push((scope, EventBody::Turn(TurnEvent::Compacted { entry, tokens_before, tokens_after })));
    // The model no longer sees what it read, but those files still count as read.
    core.session.trim();
    let change = OpChange::Compaction { name: core.session.head.name.clone(), before, after: entry };
    let mut append = core.append().entries(entries);
    append.op = Some(change::op(core, core.session.id, cause, "compact", change));
    core.save(append, events, Then::Nothing);
}

/// Summarises entries with the model of `side`.
pub(crate) async fn summarise(
    side: &SideCall,
    prompt: &str,
    entries: &[Arc<Entry>],
    focus: Option<&str>,
) -> Result<String, Notice> {
    // About 2.5 characters a token.
    let window = side.window().unwrap_or(WINDOW);
    let mut most = usize::try_from(window / 100 * FILL * 5 / 2).unwrap_or(usize::MAX);
    let mut room = SUMMARY;
    let mut tries = 0;
    let error = loop {
        tries += 1;
        let text = compact::transcript(entries, focus, most);
        match side.ask(prompt, text, Some(room)).await {
            Ok(answer) if answer.cut && tries < TRIES => room *= 2,
            // A summary that was cut off would lose its end.
            Ok(answer) if answer.cut => {
                let why = format!("could not summarize: {} reached its output limit each time", side.model());
                return Err(Notice::new(NoticeKind::Network, why)
                    .hint("choose another model with /model or for tiers.fast, then compact again"));
            }
            Ok(answer) if answer.text.trim().is_empty() => {
                return Err(Notice::new(NoticeKind::Network, "the summary was empty"));
            }
            Ok(answer) => return Ok(answer.text),
            Err(e) if e.too_long() && tries < TRIES => most /= 2,
            Err(e) if side.wait(&e, tries, TRIES).await => {}
            Err(e) => break side.too_long_a_wait(&e).unwrap_or(e),
        }
    };
    let notice = crate::bus::notices::provider(&error);
    Err(Notice { message: format!("could not summarize: {}", notice.message), ..notice })
}
