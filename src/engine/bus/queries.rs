//! Questions of clients. They change nothing; what must be read is read away from the engine's task.

use crate::bus::view;
use crate::compare::look;
use crate::core::calls;
use crate::files::restore;
use crate::prompts::named;
use crate::prompts::shell_line;
use crate::session::branch;
use crate::undo::tree;
use std::path::Path;
use std::sync::Arc;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ModelChoice;
use tiller_protocol::{CommandId, Cost, EntryBody, ModelRef, Notice, NoticeKind};
use tiller_provider::models;
use tiller_provider::registry::{self, Local};
use tiller_store::{Filter, Store, StoreError};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::services::Services;
use crate::job::text_of;

/// Rows of a list, at most.
const ROWS: u32 = 1_000;
/// Entries of a page of a path, at most: a search asks for many at once.
const PAGE: u32 = 10_000;
/// Entries that are taken into the index before one search; a long history is taken in by and by.
pub(crate) const INDEXED: u64 = 20_000;
/// How long a local server may take to accept a connection.
const PROBE: std::time::Duration = std::time::Duration::from_millis(200);

pub(crate) fn query(core: &mut Core, client: ClientId, cause: CommandId, query: Query) {
    let place = core.place_of(Some(cause));
    let (store, session) = (core.services.store.clone(), core.session.id);
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    match query {
        Query::Snapshot => {
            let snapshot = view::snapshot(core);
            core.bus.reply(client, &place, ReplyEvent::SnapshotReply { snapshot });
        }
        Query::Processes => shell_line::processes(core, client, cause),
        Query::Workflows => {
            let source = core.services.crew.workflows.clone();
            read(core, client, cause, move || {
                let files = source.map_or_else(Vec::new, |s| (s.list)());
                Ok(ReplyEvent::WorkflowsReply { files })
            });
        }
        Query::Screen { since } => core.look(client, cause, since),
        Query::Scrollback { lines } => core.scrolled(client, cause, lines),
        Query::Models => models(core, client, cause),
        Query::Mentions { text, limit } => {
            let (finder, bus) = (Arc::clone(&core.prompts.finder), Arc::clone(&core.bus));
            let number = finder.asked();
            let offers = named::offers(core, &text);
            core.spawn(async move {
                let mut mentions = finder.find(number, &text, limit.min(ROWS) as usize).await;
                if let Some(look) = offers {
                    let more = tokio::task::spawn_blocking(look).await.unwrap_or_default();
                    mentions.splice(0..0, more);
                }
                bus.reply(client, &place, ReplyEvent::MentionsReply { text, mentions });
            });
        }
        Query::Page { before, count } => read(core, client, cause, move || {
            let page = store.paths().page_before(before, count.min(PAGE))?;
            Ok(ReplyEvent::PageReply { entries: page.entries, earlier: page.earlier })
        }),
        Query::Sessions { everywhere, filter, archived, trashed } => {
            read(core, client, cause, move || {
                let project = (!everywhere).then_some(project);
                // Runs without a screen stand with what was put away: out of sight, and one key away.
                let filter = Filter { project, text: filter, archived, trashed, exec: archived, limit: ROWS };
                Ok(ReplyEvent::SessionsReply { sessions: store.sessions().list(&filter)? })
            })
        }
        Query::Audit { filter, limit } => read(core, client, cause, move || {
            Ok(ReplyEvent::AuditReply { rows: store.audit().list(Some(session), &filter, limit.min(ROWS))? })
        }),
        Query::Costs { by } => read(core, client, cause, move || {
            let rows = store.costs().by(Some(session), by)?;
            let known = rows.iter().filter_map(|r| r.cost);
            let total = rows.iter().any(|r| r.cost.is_some()).then(|| known.fold(Cost(0), Cost::plus));
            Ok(ReplyEvent::CostsReply { rows, total })
        }),
        Query::Ops { limit } => {
            let head = core.session.head_name.clone();
            read(core, client, cause, move || {
                let mut ops = store.sessions().ops(session, ROWS)?;
                let next = |redo| crate::undo::next(&ops, redo, |op| crate::undo::fits(op, &head));
                let (undo, redo) = (next(false).map(|n| n.root), next(true).map(|n| n.root));
                ops.truncate(limit.min(ROWS) as usize);
                Ok(ReplyEvent::OpsReply { ops, undo, redo })
            })
        }
        Query::Compare { pair } => look::compare(core, client, cause, pair),
        Query::Branches => branch::branches(core, client, cause),
        Query::History { scope, filter, limit } => read(core, client, cause, move || {
            Ok(ReplyEvent::HistoryReply {
                prompts: store.prompts().list(session, scope, &filter, limit.min(ROWS))?,
            })
        }),
        Query::Search { mut query } => read(core, client, cause, move || {
            query.limit = query.limit.min(ROWS);
            let page = store.search().find(&query, INDEXED)?;
            Ok(ReplyEvent::SearchReply { query, page })
        }),
        Query::RestorePreview { entry } => restore::restore_preview(core, client, cause, entry),
        Query::Tree { query } => tree::tree_query(core, client, cause, query),
        Query::ToolOutput { call_id } => {
            let (spill, redact) = (calls::spill(core), Arc::clone(&core.services.redact));
            read(core, client, cause, move || output(&store, session, call_id, &spill, &redact));
        }
    }
}

/// Answers from a thread that may block.
pub(crate) fn read(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    work: impl FnOnce() -> Result<ReplyEvent, StoreError> + Send + 'static,
) {
    read_after(core, client, cause, std::future::ready(()), work);
}

/// The same, once `before` is done.
pub(crate) fn read_after(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    before: impl Future<Output = ()> + Send + 'static,
    work: impl FnOnce() -> Result<ReplyEvent, StoreError> + Send + 'static,
) {
    let (bus, place) = (Arc::clone(&core.bus), core.place_of(Some(cause)));
    core.spawn(async move {
        before.await;
        let reply = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => ReplyEvent::ErrorReply { notice: error.notice() },
            Err(_) => ReplyEvent::ErrorReply {
                notice: Notice::new(NoticeKind::Internal, "the query could not be answered"),
            },
        };
        bus.reply(client, &place, reply);
    });
}

/// The models that are known, and those that their servers offer.
pub(crate) fn models(core: &mut Core, client: ClientId, cause: CommandId) {
    let (w, bus, place) = (Arc::clone(&core.services), Arc::clone(&core.bus), core.place_of(Some(cause)));
    let current = core.session.model.clone();
    core.spawn(async move {
        let models = choices(&w, &current).await;
        bus.reply(client, &place, ReplyEvent::ModelsReply { models });
    });
}

async fn choices(w: &Services, current: &ModelRef) -> Vec<ModelChoice> {
    let mut listed = Vec::new();
    let mut ready = Vec::new();
    {
        let providers = w.providers.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        for l in providers.list() {
            let name = || ModelRef(format!("{}/", l.name));
            match (providers.get(&l.name), &l.unavailable) {
                (Ok(p), _) => ready.push(p),
                (Err(_), Some(why)) => listed.push((name(), Some(why.clone()))),
                (Err(e), None) => listed.push((name(), Some(e.to_string()))),
            }
        }
    }
    // Only connects: nothing is said to them before the person's yes.
    let names: Vec<String> = ready.iter().map(|p| p.name().to_owned()).collect();
    let unknown: Vec<Local> =
        registry::LOCALS.iter().filter(|l| !names.iter().any(|n| n == l.name)).cloned().collect();
    let found = registry::probe_ports(&unknown, PROBE).await;
    listed.retain(|(m, _)| !found.iter().any(|l| l.name == m.provider()));
    let locals: Vec<ModelChoice> = found
        .iter()
        .map(|l| ModelChoice {
            model: ModelRef(format!("{}/", l.name)),
            window: None,
            price: None,
            long: Vec::new(),
            source: format!("local server on {}", l.port),
            unavailable: None,
        })
        .collect();
    let asks = ready.iter().map(|p| async move { (p.name().to_owned(), p.models().await) });
    for (name, models) in futures_util::future::join_all(asks).await {
        match models {
            Ok(models) => {
                listed.extend(models.into_iter().map(|m| (ModelRef(format!("{name}/{m}")), None)));
            }
            Err(e) => listed.push((ModelRef(format!("{name}/")), Some(e.to_string()))),
        }
    }
    let config = w.config();
    let configured = [&config.model, &config.tiers.fast, &config.tiers.main, &config.tiers.deep];
    let mut named: Vec<ModelRef> = configured.into_iter().flatten().map(|m| ModelRef(m.clone())).collect();
    named.push(current.clone());
    named.retain(|m| !m.0.is_empty() && !listed.iter().any(|(l, _)| l == m));
    named.dedup();
    listed.extend(named.into_iter().map(|m| (m, None)));
    let known = listed.into_iter().map(|(model, unavailable)| {
        let info = models::lookup(model.provider(), model.model(), &config);
        let source = if config.providers.contains_key(model.provider()) { "config" } else { "built in" };
        ModelChoice {
            window: info.window,
            price: info.input.zip(info.output),
            long: info.long.iter().map(|l| (l.over, l.input, l.output)).collect(),
            source: source.into(),
            unavailable,
            model,
        }
    });
    known.chain(locals).collect()
}

/// The full text of a result: the spill file's, where there is one.
fn output(
    store: &Store,
    session: tiller_protocol::SessionId,
    call_id: String,
    spill: &Path,
    redact: &crate::Redact,
) -> Result<ReplyEvent, StoreError> {
    let entry = store
        .entries()
        .tool_result(session, &call_id)?
        .ok_or_else(|| StoreError::NotFound(format!("result of the call {call_id}")))?;
    let EntryBody::ToolResult { content, display, .. } = entry.body else {
        return Err(StoreError::NotFound(format!("result of the call {call_id}")));
    };
    let text = text_of(&content);
    let full = match &display {
        Some(tiller_protocol::tool::Display::Output { full: Some(full), .. }) => Some(full.as_str()),
        // Other tools name the file in the mark that stands where they cut.
        _ => text.lines().find_map(tiller_tool::output::pointed_at),
    };
    if let Some(full) = full
        // Only files that we wrote ourselves.
        && Path::new(full).starts_with(spill)
        && let Ok(bytes) = std::fs::read(full)
    {
        return Ok(ReplyEvent::ToolOutputReply {
            call_id,
            // On disk it is as it came.
            text: redact(&String::from_utf8_lossy(&bytes)),
        });
    }
    Ok(ReplyEvent::ToolOutputReply { call_id, text })
}
