//! Queries of clients. They change nothing; the store is read away from the engine's task.

use crate::bus::read;
use crate::bus::search;
use crate::bus::view;
use crate::compare::look;
use crate::files::restore;
use crate::files::written;
use crate::prompts::finder::tmp::temporary;
use crate::prompts::named;
use crate::prompts::servers;
use crate::prompts::shell_line;
use crate::session::branch;
use crate::session::load::turn_changes;
use crate::session::model_choices;
use crate::tool_call::calls;
use crate::undo::tree;
use std::path::Path;
use std::sync::Arc;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{CommandId, Cost, EntryBody, Part};
use tiller_store::search::Lookup;
use tiller_store::{Filter, Store, StoreError};

use crate::bus::ClientId;
use crate::core::Core;
use crate::tool_call::text_of;

/// Rows of a list, at most.
pub(crate) const ROWS: u32 = 1_000;
/// Largest page of a path, in entries: a search asks for many at once.
const PAGE: u32 = 10_000;
/// Entries that are indexed before one search; the rest of a long history is indexed by later searches.
pub(crate) const INDEXED: u64 = 20_000;

pub(crate) fn query(core: &mut Core, client: ClientId, cause: CommandId, query: Query) {
    let scope = core.scope_of(Some(cause));
    let (store, session) = (core.services.store.clone(), core.session.id);
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    match query {
        Query::Snapshot => {
            let snapshot = view::snapshot(core);
            core.bus.reply(client, &scope, ReplyEvent::SnapshotReply { snapshot: Box::new(snapshot) });
        }
        Query::Processes => shell_line::processes(core, client, cause),
        Query::Hooks => {
            let rows = core.services.hooks.rows();
            core.bus.reply(client, &scope, ReplyEvent::HooksReply { rows });
        }
        Query::Workflows => {
            let source = core.services.crew.workflows.clone();
            read::read(core, client, cause, move || {
                let files = source.map_or_else(Vec::new, |s| (s.list)());
                Ok(ReplyEvent::WorkflowsReply { files })
            });
        }
        Query::Mcp => {
            let (servers, prompts) = (crate::session::mcp::views(core), crate::session::mcp::prompts(core));
            core.bus.reply(client, &scope, ReplyEvent::McpReply { servers, prompts });
        }
        Query::Learnings { query } => crate::learning::query(core, client, cause, query),
        Query::Screen { since } => core.external_driver().await_screen(client, cause, since),
        Query::Scrollback { lines } => core.external_driver().scrollback(client, cause, lines),
        Query::Skills { query } => crate::prompts::skills::query(core, client, cause, query),
        Query::Memory(query) => crate::memory::commands::query(core, client, cause, query),
        Query::Models => model_choices::models(core, client, cause),
        Query::Mentions { text, limit } => {
            let (finder, bus) = (Arc::clone(&core.prompts.finder), Arc::clone(&core.bus));
            let number = finder.asked();
            let offers = named::offers(core, &text);
            let (first, last) = servers::offers(core, &text);
            let workspace = Arc::clone(&core.services.workspace);
            core.spawn(async move {
                let limit = limit.min(ROWS) as usize;
                let mut mentions = finder.find(number, &text, limit).await;
                if text.starts_with("/tmp") {
                    let begun = text.clone();
                    let look = move || temporary(&workspace, &begun, limit);
                    let own = tokio::task::spawn_blocking(look).await.unwrap_or_default();
                    mentions.splice(0..0, own);
                }
                if let Some(look) = offers {
                    let more = tokio::task::spawn_blocking(look).await.unwrap_or_default();
                    mentions.splice(0..0, more);
                }
                mentions.splice(0..0, first);
                mentions.extend(last);
                bus.reply(client, &scope, ReplyEvent::MentionsReply { text, mentions });
            });
        }
        Query::Page { before, count } => read::read(core, client, cause, move || {
            let page = store.paths().page_before(before, count.min(PAGE))?;
            let turns = turn_changes(&store, session, &page.entries);
            Ok(ReplyEvent::PageReply { entries: page.entries, earlier: page.earlier, turns })
        }),
        Query::PathPart { before, at, count } => read::read(core, client, cause, move || {
            let part = store.paths().part(before, at, count.min(PAGE))?;
            let (entries, earlier, later) = (part.tail.entries, part.tail.earlier, part.later);
            let turns = turn_changes(&store, session, &entries);
            Ok(ReplyEvent::PathPartReply { before, at, entries, earlier, later, next: part.next, turns })
        }),
        Query::Sessions { everywhere, filter, archived, trashed } => {
            read::read(core, client, cause, move || {
                let project = (!everywhere).then_some(project);
                // Sessions of runs without a screen are listed with the archived ones.
                let filter = Filter { project, text: filter, archived, trashed, exec: archived, limit: ROWS };
                Ok(ReplyEvent::SessionsReply { sessions: store.sessions().list(&filter)? })
            })
        }
        Query::Audit { filter, limit } => read::read(core, client, cause, move || {
            Ok(ReplyEvent::AuditReply { rows: store.audit().list(Some(session), &filter, limit.min(ROWS))? })
        }),
        Query::Costs { by } => read::read(core, client, cause, move || {
            let rows = store.costs().with_agents(session, by)?;
            let known = rows.iter().filter_map(|r| r.cost);
            let total = rows.iter().any(|r| r.cost.is_some()).then(|| known.fold(Cost(0), Cost::plus));
            Ok(ReplyEvent::CostsReply { rows, total })
        }),
        Query::Ops { limit } => {
            let head = core.session.head.name.clone();
            // The last turn is in the log once its last state is kept.
            read::read_after(core, client, cause, written::written(core), move || {
                let mut ops = store.sessions().ops(session, ROWS)?;
                let next = |redo| crate::undo::next(&ops, redo, |op| crate::undo::fits(op, &head));
                let (undo, redo) = (next(false).map(|n| n.root), next(true).map(|n| n.root));
                ops.truncate(limit.min(ROWS) as usize);
                Ok(ReplyEvent::OpsReply { ops, undo, redo })
            })
        }
        Query::Compare { pair } => look::compare(core, client, cause, pair),
        Query::Branches => branch::branches(core, client, cause),
        Query::History { scope, filter, limit } => read::read(core, client, cause, move || {
            Ok(ReplyEvent::HistoryReply {
                prompts: store.prompts().list(session, scope, &filter, limit.min(ROWS))?,
            })
        }),
        Query::Search { query } if core.services.user.search.is_some() => {
            search::search(core, client, cause, query);
        }
        Query::Search { mut query } => read::read(core, client, cause, move || {
            query.limit = query.limit.min(ROWS);
            let page = store.search().look_up(&query, &Lookup { most: INDEXED, ..Lookup::prompt() })?;
            Ok(ReplyEvent::SearchReply { query, page })
        }),
        Query::RestorePreview { entry } => restore::restore_preview(core, client, cause, entry),
        Query::Tree { query } => tree::tree_query(core, client, cause, query),
        Query::ToolOutput { call_id } => {
            let (spill, redact) = (calls::spill(core), Arc::clone(&core.services.redaction.redact));
            read::read(core, client, cause, move || output(&store, session, call_id, &spill, &redact));
        }
    }
}

/// The full output of a call: from its spill file, where there is one.
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
    let (content, display) = match entry.body {
        EntryBody::ToolResult { content, display, .. } => (content, display),
        EntryBody::InnerCall { call, .. } => {
            return Ok(ReplyEvent::ToolOutputReply { call_id, text: call_text(&call), images: Vec::new() });
        }
        _ => return Err(StoreError::NotFound(format!("result of the call {call_id}"))),
    };
    let mut text = text_of(&content);
    if let Some(tiller_protocol::tool::Display::Calls { calls, .. }) = &display {
        text.push_str(&calls_text(calls, &store.entries().inner_calls(session, &call_id)?));
    }
    let full = match &display {
        Some(tiller_protocol::tool::Display::Output { full: Some(full), .. }) => Some(full.as_str()),
        // Other tools name the file in the mark that replaces the cut text.
        _ => text.lines().find_map(tiller_tool::output::pointed_at),
    };
    if let Some(full) = full
        // Reads only files that the engine wrote itself.
        && let Ok(below) = Path::new(full).strip_prefix(spill)
        && let Ok(bytes) = tiller_fs::beneath::read_below(spill, below, u64::MAX)
    {
        return Ok(ReplyEvent::ToolOutputReply {
            call_id,
            // The spill file is not redacted.
            text: redact(&tiller_tool::text::decoded(&bytes)),
            images: Vec::new(),
        });
    }
    let images = content.into_iter().filter(|part| matches!(part, Part::Image { .. })).collect();
    Ok(ReplyEvent::ToolOutputReply { call_id, text, images })
}

/// One call of a script: what it was given, what came of it, and who decided.
fn call_text(call: &InnerCall) -> String {
    let mut text = call.output.clone();
    for file in &call.files {
        text.push_str(&format!("\n\n{}\n{}", file.path, file.diff));
    }
    if !call.arguments.is_null() {
        let exact = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        text.push_str(&format!("\n\nArguments: {exact}"));
    }
    if let Some(decision) = &call.decision {
        text.push_str(&format!("\n\nDecided: {} ({})", decision.label(), call.by));
    }
    text.trim_start().to_owned()
}

/// The calls of a script with the beginnings of their results, below what the script printed.
fn calls_text(calls: &[InnerCall], entered: &[InnerCall]) -> String {
    let mut text = String::new();
    for call in calls {
        let call = entered.iter().find(|own| own.number == call.number).unwrap_or(call);
        let outcome = call.outcome.map_or("not made", |outcome| if outcome.ok() { "ok" } else { "failed" });
        let (number, verb, target, seconds) = (call.number, &call.verb, &call.target, call.seconds);
        text.push_str(&format!("\n\n{number}. {verb} {target} ({outcome}, {seconds:.1} s)\n{}", call.output));
        call.files.iter().for_each(|file| text.push_str(&format!("\n{}", file.diff)));
    }
    text
}
