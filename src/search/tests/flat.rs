//! Many searches in one process. A program of its own, since other tests open files and take memory, too.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use tiller_protocol::{
    AgentId, DocumentKind, Entry, EntryBody, EntryId, IdSource, Message, ModelRef, Origin, Part, Profile,
    SearchOrder, SearchQuery, SeqIds, SessionId, Time,
};
use tiller_search::{Document, Embedder, Finder, Source, Table};
use tiller_store::search::Lookup;
use tiller_store::{Append, MadeBy, NewSession, Options, Store};

const NOW: Time = Time(1_795_291_200_000);
const SEARCHES: usize = 2_000;
const WORDS: [&str; 8] = ["parser", "retry", "tunnel", "deploy", "cache", "socket", "timer", "branch"];

fn fill(store: &Store) {
    let ids = SeqIds::default();
    let session = SessionId(ids.next(NOW));
    let new = NewSession {
        id: session,
        project: "/p".into(),
        title: "talk".into(),
        model: ModelRef("demo/x".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let (mut parent, mut entries) = (None, Vec::new());
    for n in 0..600 {
        let id = EntryId(ids.next(NOW));
        let text = format!("the {} of the {} number {n}", WORDS[n % 8], WORDS[n / 8 % 8]);
        let content = vec![Part::Text { text: text.clone() }];
        let body = EntryBody::User { message: Message::text(text), origin: Origin::Prompt, content };
        entries.push(Entry { id, parent, session, agent: AgentId::main(), time: NOW, body, snapshot: None });
        parent = Some(id);
    }
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
}

/// A table with one dimension for each word.
fn table() -> Table {
    let mut bytes = b"TILLEMB1".to_vec();
    bytes.extend(8u32.to_le_bytes());
    bytes.extend(8u32.to_le_bytes());
    for (n, word) in WORDS.iter().enumerate() {
        bytes.extend(u16::try_from(word.len()).unwrap().to_le_bytes());
        bytes.extend(word.bytes());
        bytes.extend(1f32.to_le_bytes());
        bytes.extend((0..8).map(|at| if at == n { 127u8 } else { 1 }));
    }
    Table::read(&bytes).unwrap()
}

struct Notes;

impl Source for Notes {
    fn kind(&self) -> DocumentKind {
        DocumentKind::Memory
    }

    fn documents(&self) -> Vec<Document> {
        let note = |n: usize| Document {
            key: n.to_string(),
            text: format!("note {n} of the {}", WORDS[n % 8]),
            ..Document::default()
        };
        (0..100).map(note).collect()
    }
}

/// Open descriptors, and bytes of memory.
fn used() -> (usize, usize) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    (open, pages * 4096)
}

#[test]
fn two_thousand_searches_keep_neither_memory_nor_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("tiller.db"), Options::default()).unwrap();
    fill(&store);
    let finder = Arc::new(Finder::new(store, Some(Embedder::Table(table()))));
    finder.add(Arc::new(Notes));
    finder.index_blocking().unwrap();
    let search = |n: usize| {
        // Each is another text; some have a word that nothing contains, a phrase, no word at all.
        let text = match n % 5 {
            0 => format!("{} {n}", WORDS[n % 8]),
            1 => format!("{} {} ", WORDS[n % 8], WORDS[n / 8 % 8]),
            2 => format!("\"the {}\" {n}", WORDS[n % 8]),
            3 => format!("parsr {n} "),
            _ => format!("-> {n}"),
        };
        let order = if n.is_multiple_of(7) { SearchOrder::Newest } else { SearchOrder::Best };
        let query = SearchQuery { text, order, limit: 20, ..SearchQuery::default() };
        finder.search_blocking(&query, &Lookup::prompt()).unwrap();
    };
    (0..SEARCHES / 4).for_each(search);
    let before = used();
    (0..SEARCHES).for_each(|n| search(n + SEARCHES));
    let after = used();
    println!("{before:?} before, {after:?} after {SEARCHES} searches");
    assert_eq!(after.0, before.0, "descriptors");
    assert!(after.1 < before.1 + (6 << 20), "memory: {before:?} {after:?}");
}
