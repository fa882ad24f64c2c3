//! `list_agents`: the agents of a session.

use serde_json::{Value, json};
use tiller_protocol::{AgentState, SessionId, SessionSummary};
use tiller_store::{AgentRow, Store};

use super::{Entry, OfSession, position, read, schema};
use crate::library::{Library, Refusal};
use crate::page::{self, Page, short};

/// Agents in a page: each is a read of its session.
const MOST: usize = 50;

pub(super) const ENTRY: Entry = Entry {
    name: "list_agents",
    description: "List the agents of a session as a tree (each names its parent): task, state, model, tokens, cost, \
                  result, and the session that read_session reads.",
    schema: schema::<OfSession>,
    run,
};

fn run(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: OfSession = read(arguments)?;
    let from = position(args.cursor.as_deref())? as usize;
    let session = library.session(store, &args.session)?.summary;
    let rows = store.agents().list(session.id)?;
    let mut items = Vec::new();
    if from == 0 {
        let mut main = json!({
            "agent": "main", "state": if session.open_in.is_some() { "open" } else { "closed" },
            "model": library.safe(&session.model.0), "session": session.id,
        });
        spent(store, session.id, &mut main)?;
        items.push(main);
    }
    // The main agent is the first item of the first page.
    let skipped = from.saturating_sub(1);
    for row in rows.iter().skip(skipped).take(MOST) {
        items.push(agent(library, store, &session, row)?);
    }
    let more = rows.len() > skipped + MOST;
    Ok(page::listed("agents", items, from, more))
}

fn agent(
    library: &Library,
    store: &Store,
    session: &SessionSummary,
    row: &AgentRow,
) -> Result<Value, Refusal> {
    // An agent is at work only while a process has its session open.
    let state = match row.state {
        state if state.at_work() && session.open_in.is_none() => AgentState::Interrupted,
        state => state,
    };
    // The engine's form: what is missing is left out.
    let text = |path: &str| row.brief.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut item = json!({
        "agent": row.id, "parent": row.id.parent(), "state": state, "session": row.session,
        "started": row.created.to_rfc3339(),
    });
    let report = |key: &str| row.report.as_ref()?.get(key)?.as_str().filter(|text| !text.is_empty());
    let words = [
        ("label", text("/label")),
        ("role", text("/brief/agent")),
        ("program", text("/brief/cli")),
        ("model", text("/model")),
        ("task", text("/brief/goal")),
        ("result", report("summary")),
        ("error", report("error")),
    ];
    if let Some(members) = item.as_object_mut() {
        for (name, words) in words {
            if let Some(words) = words {
                members.insert(name.into(), json!(short(&library.safe(words))));
            }
        }
    }
    spent(store, row.session, &mut item)?;
    Ok(item)
}

/// Adds what a session has used.
fn spent(store: &Store, session: SessionId, item: &mut Value) -> Result<(), Refusal> {
    let work = store.agents().work(session)?;
    if let Some(members) = item.as_object_mut() {
        members.insert("replies".into(), json!(work.replies));
        members.insert("tokens_in".into(), json!(work.usage.context()));
        members.insert("tokens_out".into(), json!(work.usage.output));
        members.insert("cost_usd".into(), json!(work.cost.usd()));
    }
    Ok(())
}
