//! The room as a whole: the set of questions, a server that misbehaves, tables from hostile files.

mod documents;
mod endpoint;
mod questions;
mod table;

use std::sync::Arc;

use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, IdSource, ManualClock, Message, ModelRef, Origin, Part, Profile,
    SearchQuery, SeqIds, SessionId, Time,
};
use tiller_store::{Append, MadeBy, NewSession, Options, Store};

/// 2026-11-21T20:00:00Z.
pub(crate) const NOW: Time = Time(1_795_291_200_000);

/// A store in a folder of its own.
pub(crate) fn scratch() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    (dir, store)
}

pub(crate) fn open(dir: &std::path::Path) -> Store {
    let options = Options { clock: Arc::new(ManualClock::new(NOW)), network: |_| None, ..Options::default() };
    Store::open(&dir.join("tiller.db"), options).unwrap()
}

/// A session of messages; returns the id of each.
pub(crate) fn talk(store: &Store, ids: &SeqIds, texts: &[&str]) -> Vec<EntryId> {
    let session = SessionId(ids.next(NOW));
    let new = NewSession {
        id: session,
        project: "/work/p".into(),
        title: "talk".into(),
        model: ModelRef("demo/x".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let (mut parent, mut made, mut entries) = (None, Vec::new(), Vec::new());
    for text in texts {
        let id = EntryId(ids.next(NOW));
        let text = (*text).to_owned();
        let content = vec![Part::Text { text: text.clone() }];
        let body = EntryBody::User { message: Message::text(text), origin: Origin::Prompt, content };
        entries.push(Entry { id, parent, session, agent: AgentId::main(), time: NOW, body, snapshot: None });
        parent = Some(id);
        made.push(id);
    }
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
    made
}

pub(crate) fn ask(text: &str) -> SearchQuery {
    SearchQuery { text: format!("{text} "), limit: 10, ..SearchQuery::default() }
}
