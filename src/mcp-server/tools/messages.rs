//! `read_session`: a session's messages, a page at a time. `read_message`: one message as a whole.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{EntryBody, SearchRole};
use tiller_store::{Store, Tail};

use super::{Entry, limit, position, read, schema, sessions};
use crate::library::{Library, Refusal};
use crate::page::{self, Page, cut, fitting};

/// Messages in a page.
const MOST: u32 = 200;
/// Characters of a part of a message.
const PART: usize = 24_000;

pub(super) const SESSION: Entry = Entry {
    name: "read_session",
    description: "Read a session's messages: the last ones, oldest first; with the cursor, those before. Long messages \
                  are cut; read_message has them whole. Also reads an agent's own session (list_agents).",
    schema: schema::<Args>,
    run: session,
};

pub(super) const MESSAGE: Entry = Entry {
    name: "read_message",
    description: "Read one message of a session as a whole, in parts when it is long.",
    schema: schema::<MessageArgs>,
    run: message,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Its id, or the beginning of it
    session: String,
    /// Without calls of tools and their results
    #[serde(default)]
    without_tools: bool,
    /// At most 200
    #[serde(default)]
    limit: Option<u32>,
    /// next_cursor of the page before
    #[serde(default)]
    cursor: Option<String>,
}

fn session(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: Args = read(arguments)?;
    let row = library.session(store, &args.session)?;
    let limit = limit(args.limit, MOST);
    let Tail { entries, earlier, .. } =
        match args.cursor.as_deref().filter(|cursor| !cursor.trim().is_empty()) {
            None => store.paths().tail(row.summary.id, &row.head, limit)?,
            Some(cursor) => store.paths().page_before(library.entry(store, cursor)?.id, limit)?,
        };
    // From the last one back, as many as fit.
    let items: Vec<Option<Value>> = entries
        .iter()
        .rev()
        .map(|entry| {
            let role = role(&entry.body)?;
            if args.without_tools && role == SearchRole::Tool {
                return None;
            }
            let text = library.safe(&words(&entry.body, args.without_tools));
            if text.is_empty() {
                return None;
            }
            let length = text.chars().count();
            let (text, cut) = cut(&text, page::MESSAGE);
            let mut item = json!({
                "message": entry.id, "role": role, "time": entry.time.to_rfc3339(), "text": text,
            });
            if let (true, Some(members)) = (cut, item.as_object_mut()) {
                members.insert("cut".into(), json!(format!("{} of {length} characters", page::MESSAGE)));
            }
            if let (EntryBody::ToolResult { name, outcome, .. }, Some(members)) =
                (&entry.body, item.as_object_mut())
            {
                members.insert("tool".into(), json!(library.safe(name)));
                members.insert("outcome".into(), json!(outcome));
            }
            Some(item)
        })
        .collect();
    let fit = fitting(items.iter().flatten());
    // The entries before the first item that does not fit.
    let over = items.iter().enumerate().filter(|(_, item)| item.is_some()).nth(fit);
    let used = over.map_or(items.len(), |(at, _)| at);
    let mut shown: Vec<Value> = items.into_iter().take(used).flatten().collect();
    shown.reverse();
    let mut page = Page::new();
    page.insert("session".into(), sessions::summary(library, &row.summary));
    page.insert("messages".into(), shown.into());
    let first = entries.len().checked_sub(used).and_then(|at| entries.get(at));
    if let Some(first) = first.filter(|_| earlier > 0 || used < entries.len()) {
        page.insert("next_cursor".into(), json!(first.id));
    }
    Ok(page)
}

fn role(body: &EntryBody) -> Option<SearchRole> {
    SearchRole::of_kind(body.kind())
}

/// The text of an entry. `plain`: without calls of tools.
fn words(body: &EntryBody, plain: bool) -> String {
    match body {
        EntryBody::Assistant { blocks, .. } if plain => {
            let texts = blocks.iter().filter_map(|block| match block {
                tiller_protocol::Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        body => body.search_text(),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessageArgs {
    /// Its id, as search_sessions and read_session give it
    message: String,
    /// next_cursor of the part before
    #[serde(default)]
    cursor: Option<String>,
}

fn message(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: MessageArgs = read(arguments)?;
    let from = position(args.cursor.as_deref())? as usize;
    let entry = library.entry(store, &args.message)?;
    // Masked as a whole, so that no part of a secret is left at a border.
    let text = library.safe(&words(&entry.body, false));
    let rest: String = text.chars().skip(from).collect();
    let (part, more) = cut(&rest, PART);
    let mut page = Page::new();
    page.insert("message".into(), json!(entry.id));
    page.insert("session".into(), json!(entry.session));
    page.insert("role".into(), json!(role(&entry.body)));
    page.insert("time".into(), json!(entry.time.to_rfc3339()));
    page.insert("text".into(), json!(part));
    if more {
        page.insert("next_cursor".into(), json!((from + PART).to_string()));
    }
    Ok(page)
}
