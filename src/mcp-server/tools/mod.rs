//! The tools. Adding one is a file and a line of [`TOOLS`].

mod agents;
mod messages;
mod search;
mod sessions;
mod todo;

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tiller_store::Store;

use crate::library::{Library, Refusal};
use crate::page::{Page, UNTRUSTED};

/// Items of a page without a `limit`.
const USUAL: u32 = 20;

/// One tool.
pub(crate) struct Entry {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Map<String, Value>,
    run: fn(&Library, &Store, Value) -> Result<Page, Refusal>,
}

/// All of them, as they are listed.
const TOOLS: [Entry; 6] =
    [search::ENTRY, sessions::ENTRY, messages::SESSION, messages::MESSAGE, agents::ENTRY, todo::ENTRY];

/// The tool with this name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    const ALL: &[Entry] = &TOOLS;
    ALL.iter().find(|tool| tool.name == name)
}

/// The tools for the client.
pub(crate) fn list() -> Vec<Tool> {
    let reads =
        || ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    TOOLS
        .iter()
        .map(|tool| {
            Tool::new(tool.name, tool.description, Arc::new((tool.schema)())).with_annotations(reads())
        })
        .collect()
}

/// Runs a tool. Blocks while the store is read.
pub(crate) fn run(tool: &Entry, library: &Library, arguments: Value) -> Result<String, Refusal> {
    let store = library.store()?;
    let found = (tool.run)(library, &store, arguments).inspect_err(|refusal| {
        if refusal.store {
            library.forget();
        }
    })?;
    let mut result = Map::new();
    result.insert("note".into(), json!(UNTRUSTED));
    result.extend(found);
    let mut result = Value::Object(result);
    library.mask(&mut result);
    Ok(result.to_string())
}

// Arguments of what lists things of one session. No doc comment: it would go to the client with the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfSession {
    /// Id of the session
    session: String,
    /// next_cursor of the page before
    #[serde(default)]
    cursor: Option<String>,
}

/// Reads arguments.
fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Refusal> {
    serde_json::from_value(arguments)
        .map_err(|e| Refusal::new(format!("wrong arguments: {}", tiller_text::clean::plain(&e.to_string()))))
}

/// The JSON schema of arguments.
fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    let Some(members) = schema.as_object_mut() else { return Map::new() };
    members.remove("title");
    std::mem::take(members)
}

/// The position that a cursor means.
fn position(cursor: Option<&str>) -> Result<u32, Refusal> {
    match cursor.map(str::trim).filter(|cursor| !cursor.is_empty()) {
        None => Ok(0),
        Some(cursor) => cursor.parse().map_err(|_| {
            Refusal::new("wrong arguments: the cursor must be the next_cursor of an earlier result")
        }),
    }
}

/// Number of items of a page.
fn limit(limit: Option<u32>, most: u32) -> u32 {
    limit.unwrap_or(USUAL).clamp(1, most)
}
