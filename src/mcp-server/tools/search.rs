//! `search_sessions`: full-text search.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::search::parse_time;
use tiller_protocol::{SearchQuery, SearchRole, Time};
use tiller_store::Store;

use super::{Entry, limit, position, read, schema};
use crate::library::{Library, Refusal};
use crate::page::{self, Page};

/// Hits in a page.
const MOST: u32 = 50;
/// New entries that a search adds to the index first.
const INDEXED: u64 = 20_000;

pub(super) const ENTRY: Entry = Entry {
    name: "search_sessions",
    description: "Search what was said and done in Tiller's sessions, best first. Any of the words are enough; \
                  \"quoted words\" are required and adjacent; -word is absent. Each hit names its session and message.",
    schema: schema::<Args>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    /// Only this session: its id
    #[serde(default)]
    session: Option<String>,
    /// user, assistant, tool, summary or note
    #[serde(default)]
    role: Option<String>,
    /// From this time on: 2026-11-20, an RFC 3339 time, or an age such as 3d
    #[serde(default)]
    since: Option<String>,
    /// Before this time
    #[serde(default)]
    until: Option<String>,
    /// At most 50
    #[serde(default)]
    limit: Option<u32>,
    /// next_cursor of the page before
    #[serde(default)]
    cursor: Option<String>,
}

fn run(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: Args = read(arguments)?;
    let time = |text: &Option<String>| -> Result<Option<Time>, Refusal> {
        let Some(text) = text else { return Ok(None) };
        parse_time(text, library.now(), &jiff::tz::TimeZone::system()).map(Some).ok_or_else(|| {
            Refusal::new(format!("wrong arguments: '{}' is not a time", tiller_text::clean::plain(text)))
        })
    };
    let role = |name: &String| {
        SearchRole::parse(name).ok_or_else(|| {
            let names = SearchRole::ALL.map(SearchRole::name).join(", ");
            Refusal::new(format!("wrong arguments: role must be one of {names}"))
        })
    };
    let session = args.session.as_deref().map(|id| library.session(store, id)).transpose()?;
    let query = SearchQuery {
        text: args.query,
        // A session that may be read may belong to an agent in another folder.
        project: if session.is_some() { None } else { library.project().map(str::to_owned) },
        session: session.map(|row| row.summary.id),
        roles: args.role.iter().map(role).collect::<Result<_, _>>()?,
        since: time(&args.since)?,
        until: time(&args.until)?,
        limit: limit(args.limit, MOST),
        offset: position(args.cursor.as_deref())?,
        ..SearchQuery::default()
    };
    let found = store.search().find(&query, INDEXED)?;
    let hits = found.hits.iter().map(|hit| {
        json!({
            "session": hit.session, "title": library.safe(&hit.title), "message": hit.entry,
            "role": hit.role, "agent": hit.agent, "time": hit.time.to_rfc3339(), "text": library.safe(&hit.preview),
        })
    });
    let mut page = page::listed("hits", hits.collect(), query.offset as usize, found.more);
    if found.behind > 0 {
        page.insert("messages_not_indexed_yet".into(), json!(found.behind));
    }
    Ok(page)
}
