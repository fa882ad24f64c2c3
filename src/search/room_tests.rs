//! The room as a whole: the set of questions, a server that misbehaves, tables from hostile files.

mod documents;
mod endpoint;
mod questions;
mod table;

use tiller_protocol::{EntryId, SearchQuery, SeqIds};
use tiller_store::Store;

pub(crate) use crate::testing::{NOW, open};

/// A store in a folder of its own.
pub(crate) fn scratch() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    (dir, store)
}

/// A session of messages; returns the id of each.
pub(crate) fn talk(store: &Store, ids: &SeqIds, texts: &[&str]) -> Vec<EntryId> {
    crate::testing::talk(store, ids, "/work/p", texts)
}

pub(crate) fn ask(text: &str) -> SearchQuery {
    SearchQuery { text: format!("{text} "), limit: 10, ..SearchQuery::default() }
}
