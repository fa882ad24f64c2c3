//! Adds a summary of another branch to the open one.

use crate::context::compaction;
use crate::context::side_call;
use crate::core::follow_up::FollowUp;
use crate::money;
use crate::session::model;
use std::sync::Arc;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Entry, EntryBody, EntryId, Notice, NoticeKind, Taint};

use crate::bus::ClientId;
use crate::context::compaction::compact;
use crate::context::compaction::summarise;
use crate::context::request;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::memory::origin;
use crate::prompts::doing::JobKind;
use crate::session::load::blocking;
use crate::session::msg::{CarryReport, SessionMsg};

/// The prompt of the summariser.
const PROMPT: &str = include_str!("../../../../assets/prompts/branch.md");

pub(crate) fn carry_over(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    from: EntryId,
    focus: Option<String>,
) {
    let model = compaction::summariser(core);
    let demo = model::is_demo(core, &model);
    let why = if core.session.read_only {
        Some(Notice::new(NoticeKind::User, "this session is open read-only"))
    } else if core.occupied() {
        Some(Notice::new(NoticeKind::User, "a turn is running: stop it first"))
    } else {
        money::may_ask(core, &model).err()
    };
    let provider = match (why, model::provider(core, &model)) {
        (Some(why), _) => return core.refuse(client, cause, why),
        (None, Err(e)) if !demo => return core.refuse(client, cause, crate::bus::notices::provider(&e)),
        (None, provider) => provider,
    };
    let focus = focus.map(|f| core.redact(f.trim())).filter(|f| !f.is_empty());
    let (no, store, session, head) =
        (core.next_job(), core.services.store.clone(), core.session.id, core.session.head.id);
    let (tx, services) = (core.tx.clone(), Arc::clone(&core.services));
    let side = provider.map(|p| side_call::side_call(core, p, &model));
    let task = tokio::spawn(async move {
        let read = blocking(move || {
            let tip = store.entries().get(from)?;
            if tip.session != session {
                return Err(tiller_store::StoreError::NoEntry(from));
            }
            let own = match head {
                Some(head) => store.tree().divergence(from, head)?.left,
                None => u64::MAX,
            };
            let most = u32::try_from(own).unwrap_or(u32::MAX);
            Ok(if own == 0 { Vec::new() } else { store.paths().tail_at(from, most)?.entries })
        });
        let read = read.await.map(said);
        let taint = match &read {
            Ok(entries) => origin::of_summary(&services, entries).await,
            Err(_) => Taint::Web,
        };
        let result = match read {
            Err(e) => Err(e.notice()),
            Ok(entries) if entries.is_empty() => Err(Notice::new(
                NoticeKind::User,
                "that branch has no messages that are missing from this one",
            )),
            Ok(entries) if demo => Ok(compact::extract(&entries)),
            Ok(entries) => match side {
                Err(e) => Err(crate::bus::notices::provider(&e)),
                Ok(side) => summarise(&side, PROMPT, &entries, focus.as_deref()).await,
            },
        };
        let done = CarryReport { no, client, cause, from, focus, result, taint };
        let _ = tx.send(Msg::Session(SessionMsg::CarryReport(Box::new(done)))).await;
    });
    core.busy_with(no, JobKind::Other { client, cause }, task);
}

pub(crate) fn carried(core: &mut Core, report: CarryReport) {
    let waited = core.job_done(report.no);
    let summary = match report.result {
        Ok(summary) if waited => summary,
        Ok(_) => return,
        Err(notice) => {
            if waited {
                core.refuse(report.client, report.cause, notice);
                core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Interrupted));
            }
            return;
        }
    };
    let body = EntryBody::BranchSummary {
        summary,
        from: report.from,
        focus: report.focus,
        taint: Some(report.taint),
    };
    let node = core.session.grow(&core.services, body);
    let scope = core.scope_of(Some(report.cause));
    let events = vec![(scope, Core::entry_event(&node))];
    let append = core.append().entries(vec![node]);
    // The client receives the reply when the entry is on disk: it may read the session at once.
    let said = "The summary of that branch was added.".to_owned();
    let reply = Box::new(ReplyEvent::DoneReply { said });
    core.save(append, events, Then::Reply { client: report.client, cause: report.cause, reply });
    core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Done));
}

/// The entries that a model would see.
fn said(entries: Vec<Entry>) -> Vec<Arc<Entry>> {
    let said = |e: &Entry| request::is_message(e) || matches!(e.body, EntryBody::Compaction { .. });
    entries.into_iter().filter(said).map(Arc::new).collect()
}
