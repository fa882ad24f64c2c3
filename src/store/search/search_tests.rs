use std::sync::Arc;

use tiller_protocol::{AgentId, Block, EntryBody, ModelRef, SearchPage, SearchQuery, SearchRole, StopReason};

use super::*;
use crate::testing::{NOW, entry, entry_id, options, scratch, session, session_id, user};
use crate::{Append, Options};

fn add(store: &Store, s: tiller_protocol::SessionId, n: u128, text: &str) {
    let parent = (n % 100 > 1).then(|| entry_id(n - 1));
    store
        .entries()
        .append(Append::new(s, "main").entries(vec![user(s, entry_id(n), parent, text)]))
        .wait()
        .unwrap();
}

fn ask(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), limit: 9, ..SearchQuery::default() }
}

fn ids(page: &SearchPage) -> Vec<EntryId> {
    page.hits.iter().map(|h| h.entry).collect()
}

fn found(store: &Store, query: &SearchQuery) -> Vec<EntryId> {
    ids(&store.search().find(query, u64::MAX).unwrap())
}

#[test]
fn words_are_found_and_marked() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let texts = [
        "the QUICK \"brown\" fox",
        "Größe und ÄRGER, İstanbul",
        "50% off_sale",
        "重試邏輯要看標頭",
        "a => b",
    ];
    for (n, text) in (1..).zip(texts) {
        add(&store, s, n, text);
    }
    for (query, n, marked) in [
        ("quick", 1, "QUICK"),
        ("fox quick", 1, "fox"),
        ("bro", 1, "bro"),
        ("\"quick brown\"", 1, "QUICK"),
        ("ärger", 2, "ÄRGER"),
        ("arger", 2, ""),
        ("off_sa", 3, "off_sa"),
        ("標頭", 4, "標頭"),
        ("=>", 5, "=>"),
    ] {
        let hits = store.search().find(&ask(query), u64::MAX).unwrap().hits;
        assert_eq!(hits.len(), 1, "{query}: {hits:?}");
        let (from, to) = hits[0].mark;
        let mark = &hits[0].preview[from..to];
        assert_eq!(hits[0].entry, entry_id(n), "{query}");
        assert!(mark == marked || query.starts_with("\"quick"), "{query}: {mark}");
    }
    for none in ["message", "  ", "\"brown quick\"", "quick -fox", "uick", "\"bro\""] {
        assert_eq!(found(&store, &ask(none)), [], "{none}");
    }
    assert_eq!(found(&store, &ask("quick -cat")), [entry_id(1)]);
}

#[test]
fn queries_with_marks_of_the_query_language_are_words() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    add(&store, s, 1, "NEAR the AND gate: text:OR (x) col* ^y");
    for query in
        ["NEAR", "AND gate", "text:OR", "(x)", "col*", "^y", "a\"b", "\"", "-", "*", "x OR", "(", "{a}"]
    {
        let _ = store.search().find(&ask(query), u64::MAX).unwrap();
    }
    assert_eq!(found(&store, &ask("text:OR")), [entry_id(1)]);
    assert_eq!(found(&store, &ask("(x) col*")), [entry_id(1)]);
}

#[test]
fn filters_narrow_and_pages_go_on() {
    let (_dir, store) = scratch();
    let (one, two) = (session(&store, 1), session(&store, 2));
    for n in 1..=6 {
        add(&store, one, n, "needle of one");
    }
    add(&store, two, 101, "needle of two");
    let reply = EntryBody::Assistant {
        blocks: vec![Block::Text { text: "a needle in the reply".into() }],
        stop: StopReason::EndTurn,
        model: ModelRef("demo/x".into()),
        usage: tiller_protocol::Usage::default(),
        cost: None,
    };
    let mut said = entry(two, entry_id(102), Some(entry_id(101)), reply);
    said.agent = AgentId("a1".into());
    said.time = Time(NOW.millis() + 1000);
    store.entries().append(Append::new(two, "side").entries(vec![said])).wait().unwrap();

    let all = found(&store, &ask("needle"));
    assert_eq!(all.len(), 8);
    assert_eq!(all[0], entry_id(102), "newest first");
    let with = |change: fn(&mut SearchQuery)| {
        let mut q = ask("needle");
        change(&mut q);
        found(&store, &q)
    };
    assert_eq!(with(|q| q.roles = vec![SearchRole::Assistant]), [entry_id(102)]);
    assert_eq!(with(|q| q.roles = vec![SearchRole::User]).len(), 7);
    assert_eq!(with(|q| q.session = Some(session_id(2))), [entry_id(102), entry_id(101)]);
    assert_eq!(with(|q| q.project = Some("/elsewhere".into())), []);
    assert_eq!(with(|q| q.project = Some("/work/p".into())).len(), 8);
    assert_eq!(with(|q| q.agent = Some("a1".into())), [entry_id(102)]);
    assert_eq!(with(|q| q.since = Some(Time(NOW.millis() + 1))), [entry_id(102)]);
    assert_eq!(with(|q| q.until = Some(Time(NOW.millis() + 1))).len(), 7);
    assert_eq!(with(|q| q.branch = Some("side".into())), [entry_id(102), entry_id(101)]);
    let mut page = ask("needle");
    page.limit = 3;
    let mut seen = Vec::new();
    loop {
        let got = store.search().find(&page, u64::MAX).unwrap();
        seen.extend(ids(&got));
        page.offset += 3;
        if !got.more {
            break;
        }
    }
    assert_eq!(seen, all, "three pages are the whole");
    store.trash().set_trashed(session_id(2), true).wait().unwrap();
    assert_eq!(found(&store, &ask("needle")).len(), 6, "the trash is not searched");
}

#[test]
fn what_is_new_is_taken_in_and_a_bound_is_said() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    crate::testing::grow(&store, s, 1, 1200);
    let first = store.search().find(&ask("\"message 1\""), 1).unwrap();
    assert_eq!((ids(&first), first.behind), (vec![entry_id(1)], 700));
    let all = store.search().find(&ask("\"message 1200\""), u64::MAX).unwrap();
    assert_eq!((ids(&all), all.behind), (vec![entry_id(1200)], 0));
    crate::testing::grow(&store, s, 1201, 1);
    assert_eq!(found(&store, &ask("\"message 1201\"")), [entry_id(1201)]);
}

#[test]
fn a_lost_damaged_or_foreign_index_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let open = || Store::open(&path, options()).unwrap();
    let index = dir.path().canonicalize().unwrap().join("data/search.db");
    let store = open();
    let s = session(&store, 1);
    add(&store, s, 1, "needle");
    assert_eq!(found(&store, &ask("needle")), [entry_id(1)]);
    drop(store);
    let good = std::fs::read(&index).unwrap();
    let of_another = {
        let (other, store) = scratch();
        let s = session(&store, 7);
        add(&store, s, 701, "needle");
        assert_eq!(found(&store, &ask("needle")), [entry_id(701)]);
        drop(store);
        std::fs::read(other.path().join("data/search.db")).unwrap()
    };
    for bytes in [Vec::new(), b"no database at all, but long enough to be looked at".repeat(9), of_another] {
        std::fs::write(&index, bytes).unwrap();
        assert_eq!(found(&open(), &ask("needle")), [entry_id(1)]);
    }
    // Damage in the middle, noticed only during a search.
    let mut torn = good;
    for byte in &mut torn[4096 + 200..] {
        *byte ^= 0x5a;
    }
    std::fs::write(&index, torn).unwrap();
    assert_eq!(found(&open(), &ask("needle")), [entry_id(1)]);
    open().search().forget_index();
    assert!(!index.exists());
    assert_eq!(found(&open(), &ask("needle")), [entry_id(1)]);
}

#[test]
fn two_processes_index_each_entry_once() {
    let (dir, store) = scratch();
    let s = session(&store, 1);
    crate::testing::grow(&store, s, 1, 3000);
    let path = dir.path().join("data/tiller.db");
    let stores: Vec<Store> = (0..3).map(|_| Store::open(&path, Options { ..options() }).unwrap()).collect();
    let start = Arc::new(std::sync::Barrier::new(stores.len()));
    std::thread::scope(|scope| {
        for store in &stores {
            let start = Arc::clone(&start);
            scope.spawn(move || {
                start.wait();
                store.search().index().unwrap();
            });
        }
    });
    assert_eq!(found(&store, &ask("\"message 2999\"")), [entry_id(2999)]);
    let mut every = ask("message");
    every.limit = 5000;
    every.offset = 2500;
    assert_eq!(found(&store, &every).len(), 500);
}

#[test]
fn a_folder_without_room_for_an_index_is_searched_all_the_same() {
    let (dir, store) = scratch();
    let s = session(&store, 1);
    add(&store, s, 1, "needle here");
    // A folder of this name cannot be opened as a database.
    std::fs::create_dir(dir.path().join("data/search.db")).unwrap();
    assert_eq!(found(&store, &ask("needle")), [entry_id(1)]);
}
