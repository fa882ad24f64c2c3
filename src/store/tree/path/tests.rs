use std::time::{Duration, Instant};

use tiller_protocol::EntryBody;

use super::*;
use crate::open::Store;
use crate::testing::*;
use crate::{Append, Options};

pub(in crate::tree::path) fn ids(entries: &[Entry]) -> Vec<u128> {
    entries.iter().map(|e| e.id.0.as_u128() & 0xffff_ffff).collect()
}

#[test]
fn tails_and_pages_join_without_gap_or_overlap() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    assert_eq!(store.paths().tail(session, "main", 10).unwrap(), Tail::default());
    grow(&store, session, 1, 25);
    let tail = store.paths().tail(session, "main", 10).unwrap();
    assert_eq!((ids(&tail.entries), tail.earlier), ((16..=25).collect(), 15));
    let page = store.paths().page_before(entry_id(16), 10).unwrap();
    assert_eq!((ids(&page.entries), page.earlier), ((6..=15).collect(), 5));
    let first = store.paths().page_before(entry_id(6), 10).unwrap();
    assert_eq!((ids(&first.entries), first.earlier), ((1..=5).collect(), 0));
    assert_eq!(store.paths().page_before(entry_id(1), 10).unwrap(), Tail::default());
    assert_eq!(store.paths().tail(session, "main", 0).unwrap(), Tail::default());
    assert_eq!(store.paths().page_before(entry_id(99), 1), Err(StoreError::NoEntry(entry_id(99))));
}

#[test]
fn a_branch_has_its_own_path() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    grow(&store, session, 1, 4);
    store.heads().set(session, "b", Some(entry_id(2)), None).wait().unwrap();
    assert_eq!(store.sessions().get(session).unwrap().head, "b");
    let more = vec![user(session, entry_id(10), Some(entry_id(2)), "other way")];
    store.entries().append(Append::new(session, "b").entries(more)).wait().unwrap();
    assert_eq!(ids(&store.paths().tail(session, "b", 9).unwrap().entries), vec![1, 2, 10]);
    assert_eq!(ids(&store.paths().tail(session, "main", 9).unwrap().entries), vec![1, 2, 3, 4]);
    assert_eq!(
        store.heads().list(session).unwrap(),
        vec![("b".into(), Some(entry_id(10))), ("main".into(), Some(entry_id(4)))]
    );
}

#[test]
fn the_messages_of_the_person_from_an_entry_on_are_counted_on_the_path_of_the_head() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    let mut all = Vec::new();
    for n in 1..=6 {
        all.push(user(session, entry_id(n), (n > 1).then(|| entry_id(n - 1)), "a message"));
    }
    if let EntryBody::User { origin, .. } = &mut all[4].body {
        *origin = tiller_protocol::Origin::Engine;
    }
    store.entries().append(Append::new(session, "main").entries(all)).wait().unwrap();
    let count = |head: &str, n| store.paths().prompts_from(session, head, entry_id(n)).unwrap();
    assert_eq!((count("main", 1), count("main", 4), count("main", 6)), (Some(5), Some(2), Some(1)));
    assert_eq!((count("main", 99), count("other", 1)), (None, None));
    store.heads().set(session, "b", Some(entry_id(2)), None).wait().unwrap();
    assert_eq!((count("b", 1), count("b", 3)), (Some(2), None), "it is on another path");
}

fn prefix(session: SessionId, n: u128, parent: Option<u128>) -> Entry {
    let body = EntryBody::Prefix { system: format!("system {n}"), tools: vec![], layers: vec![] };
    entry(session, entry_id(n), parent.map(entry_id), body)
}

fn compaction(session: SessionId, n: u128, parent: u128, kept: Option<u128>) -> Entry {
    let body = EntryBody::Compaction {
        summary: "short".into(),
        focus: None,
        kept_from: kept.map(entry_id),
        tokens_before: 9,
        tokens_after: 1,
        taint: None,
        carried: tiller_protocol::Carried::default(),
    };
    entry(session, entry_id(n), Some(entry_id(parent)), body)
}

#[test]
fn the_context_begins_at_the_latest_compaction() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let say = |n: u128, parent: u128| user(s, entry_id(n), Some(entry_id(parent)), "x");
    let add = |entries| store.entries().append(Append::new(s, "main").entries(entries)).wait().unwrap();
    assert_eq!(store.paths().context(s, "main").unwrap(), ContextPath::default());

    add(vec![prefix(s, 1, None), say(2, 1), say(3, 2), say(4, 3)]);
    let context = store.paths().context(s, "main").unwrap();
    assert_eq!(context.prefix.map(|e| e.id), Some(entry_id(1)));
    assert_eq!((context.compaction, ids(&context.kept), ids(&context.after)), (None, vec![], vec![2, 3, 4]));

    add(vec![compaction(s, 5, 4, Some(3)), prefix(s, 6, Some(5)), say(7, 6)]);
    let context = store.paths().context(s, "main").unwrap();
    assert_eq!(context.prefix.map(|e| e.id), Some(entry_id(6)));
    assert_eq!(context.compaction.map(|e| e.id), Some(entry_id(5)));
    assert_eq!((ids(&context.kept), ids(&context.after)), (vec![3, 4], vec![7]));

    // Nothing is kept; the prefix from before stays in force.
    add(vec![compaction(s, 8, 7, None), say(9, 8)]);
    let context = store.paths().context(s, "main").unwrap();
    assert_eq!(context.prefix.map(|e| e.id), Some(entry_id(6)));
    assert_eq!((ids(&context.kept), ids(&context.after)), (vec![], vec![9]));

    // A pointer to another branch keeps nothing.
    store.heads().set(s, "side", Some(entry_id(4)), None).wait().unwrap();
    store
        .entries()
        .append(Append::new(s, "side").entries(vec![compaction(s, 20, 4, Some(9))]))
        .wait()
        .unwrap();
    let context = store.paths().context(s, "side").unwrap();
    assert_eq!((ids(&context.kept), ids(&context.after)), (vec![], vec![]));
    // The old path is still there.
    assert_eq!(ids(&store.paths().context_at(entry_id(4)).unwrap().after), vec![2, 3, 4]);
}

/// S16: a session of 50,000 entries opens and pages as fast as a small one. (A bench of the whole program measures
/// memory.)
#[test]
fn s16_a_long_session_opens_like_a_small_one() {
    const ENTRIES: u128 = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let session = {
        let store = Store::open(&path, options()).unwrap();
        let session = session(&store, 1);
        let mut n = 1;
        while n <= ENTRIES {
            grow(&store, session, n, 10_000);
            n += 10_000;
        }
        let last = user(session, entry_id(ENTRIES + 2), Some(entry_id(ENTRIES + 1)), "after");
        let entries = vec![compaction(session, ENTRIES + 1, ENTRIES, Some(ENTRIES - 3)), last];
        store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
        session
    };
    let began = Instant::now();
    let store = Store::open(&path, Options { clock: options().clock, ..options() }).unwrap();
    let tail = store.paths().tail(session, "main", 200).unwrap();
    assert_eq!((tail.entries.len(), tail.earlier), (200, 49_802));
    let page = store.paths().page_before(tail.entries[0].id, 200).unwrap();
    assert_eq!((page.entries.len(), page.earlier), (200, 49_602));
    let context = store.paths().context(session, "main").unwrap();
    assert_eq!((context.kept.len(), context.after.len()), (4, 1));
    assert_eq!(store.sessions().list(&crate::Filter::default()).unwrap()[0].entries, 50_002);
    let took = began.elapsed();
    // The first search indexes everything; the next ones only query.
    store.search().index().unwrap();
    let began = Instant::now();
    let order = tiller_protocol::SearchOrder::Newest;
    let query =
        tiller_protocol::SearchQuery { text: "message 777".into(), order, limit: 20, ..Default::default() };
    let hits = store.search().find(&query, u64::MAX).unwrap().hits;
    let found = began.elapsed();
    assert_eq!((hits.len(), hits.last().map(|h| h.preview.as_str())), (11, Some("message 777")));
    eprintln!("50,000 entries: opened and paged in {took:?}, searched in {found:?}");
    assert!(took < Duration::from_secs(20) && found < Duration::from_secs(20), "{took:?}, {found:?}");
}
