//! `list_sessions`: sessions by the time of their last use.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::SessionSummary;
use tiller_store::{Filter, Store};

use super::{Entry, limit, position, read, schema};
use crate::library::{Library, Refusal};
use crate::page::{self, Page, short};

/// Sessions in a page.
const MOST: u32 = 100;

pub(super) const ENTRY: Entry = Entry {
    name: "list_sessions",
    description: "List Tiller's sessions, the last used first: title, model, cost, number of messages, and whether one \
                  is open now.",
    schema: schema::<Args>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Words that must all occur in title or first message
    #[serde(default)]
    text: String,
    /// Also archived sessions
    #[serde(default)]
    archived: bool,
    /// At most 100
    #[serde(default)]
    limit: Option<u32>,
    /// next_cursor of the page before
    #[serde(default)]
    cursor: Option<String>,
}

fn run(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: Args = read(arguments)?;
    let (offset, limit) = (position(args.cursor.as_deref())?, limit(args.limit, MOST));
    let filter = Filter {
        project: library.project().map(str::to_owned),
        text: args.text,
        archived: args.archived,
        exec: true,
        // One more than the page has tells whether there is a next one.
        limit: offset.saturating_add(limit).saturating_add(1),
        ..Filter::default()
    };
    let mut rows: Vec<SessionSummary> =
        store.sessions().list(&filter)?.into_iter().skip(offset as usize).collect();
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let items = rows.iter().map(|row| summary(library, row)).collect();
    Ok(page::listed("sessions", items, offset as usize, more))
}

/// A session in a list.
pub(super) fn summary(library: &Library, row: &SessionSummary) -> Value {
    let title = if row.title.is_empty() { &row.preview } else { &row.title };
    let mut item = json!({
        "session": row.id,
        "title": short(&library.safe(title)),
        "folder": library.safe(&row.project),
        "last_used": row.used.to_rfc3339(),
        "messages": row.entries,
        "model": library.safe(&row.model.0),
        "open": row.open_in.is_some(),
    });
    if let Some(members) = item.as_object_mut() {
        if let Some(cost) = row.cost {
            members.insert("cost_usd".into(), json!(cost.usd()));
        }
        if row.archived {
            members.insert("archived".into(), json!(true));
        }
        if let Some(what) = &row.interrupted {
            members.insert("interrupted".into(), json!(short(&library.safe(what))));
        }
    }
    item
}
