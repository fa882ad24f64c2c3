//! `read_todo`: the todo list of a session.

use serde_json::{Value, json};
use tiller_store::Store;

use super::{Entry, OfSession, position, read, schema};
use crate::library::{Library, Refusal};
use crate::page::{self, Page};

pub(super) const ENTRY: Entry = Entry {
    name: "read_todo",
    description: "Read the todo list of a session, or of an agent's own session: each item with its status.",
    schema: schema::<OfSession>,
    run,
};

fn run(library: &Library, store: &Store, arguments: Value) -> Result<Page, Refusal> {
    let args: OfSession = read(arguments)?;
    let from = position(args.cursor.as_deref())? as usize;
    let row = library.session(store, &args.session)?;
    let list = store.todos().list(row.summary.id, &row.head)?;
    let items = list.iter().skip(from).map(|item| {
        json!({
            "id": library.safe(&item.id), "content": page::short(&library.safe(&item.content)),
            "status": item.status, "agent": item.agent,
        })
    });
    Ok(page::listed("todo", items.collect(), from, false))
}
