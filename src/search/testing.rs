//! Stores, sessions and tables for the tests of this room and for its examples, which include this file.

#![allow(dead_code, reason = "each of those that include it uses a part")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, IdSource, ManualClock, Message, ModelRef, Origin, Part, Profile,
    SeqIds, SessionId, Time,
};
use tiller_store::{Append, MadeBy, NewSession, Options, Store};

/// 2026-11-21T20:00:00Z.
pub(crate) const NOW: Time = Time(1_795_291_200_000);
/// Entries in one commit.
const AT_ONCE: usize = 1_000;

/// The store in this folder, at a fixed time.
pub(crate) fn open(dir: &Path) -> Store {
    let options = Options { clock: Arc::new(ManualClock::new(NOW)), network: |_| None, ..Options::default() };
    Store::open(&dir.join("tiller.db"), options).unwrap()
}

/// Makes a session of messages, one below the other; returns the id of each.
pub(crate) fn talk(store: &Store, ids: &SeqIds, project: &str, texts: &[&str]) -> Vec<EntryId> {
    let session = SessionId(ids.next(NOW));
    let new = NewSession {
        id: session,
        project: project.into(),
        title: "talk".into(),
        model: ModelRef("demo/x".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let (mut parent, mut made) = (None, Vec::with_capacity(texts.len()));
    for texts in texts.chunks(AT_ONCE) {
        let mut entries = Vec::with_capacity(texts.len());
        for text in texts {
            let id = EntryId(ids.next(NOW));
            let text = (*text).to_owned();
            let content = vec![Part::Text { text: text.clone() }];
            let body = EntryBody::User {
                message: Message::text(text),
                origin: Origin::Prompt,
                content,
                taint: None,
                learnings: Vec::new(),
            };
            let agent = AgentId::main();
            entries.push(Entry { id, parent, session, agent, time: NOW, body, snapshot: None });
            parent = Some(id);
            made.push(id);
        }
        store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
    }
    made
}

/// Writes a static model of these words in the published form into a folder, as an import reads it.
pub(crate) fn model(dir: &Path, rows: &[(&str, Vec<f32>)]) {
    let (count, dimensions) = (rows.len(), rows[0].1.len());
    let bytes = count * dimensions * 4;
    let header = format!(
        r#"{{"embeddings":{{"dtype":"F32","shape":[{count},{dimensions}],"data_offsets":[0,{bytes}]}}}}"#
    );
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header.bytes());
    tensors.extend(rows.iter().flat_map(|(_, vector)| vector).flat_map(|x| x.to_le_bytes()));
    std::fs::write(dir.join("model.safetensors"), tensors).unwrap();
    let mut vocab = String::new();
    for (row, (word, _)) in rows.iter().enumerate() {
        let comma = if row == 0 { "" } else { "," };
        write!(vocab, "{comma}{word:?}:{row}").unwrap();
    }
    let tokenizer = format!(r#"{{"model":{{"type":"WordPiece","vocab":{{{vocab}}}}}}}"#);
    std::fs::write(dir.join("tokenizer.json"), tokenizer).unwrap();
}
