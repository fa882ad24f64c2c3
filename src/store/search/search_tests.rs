use std::sync::Arc;

use tiller_protocol::{
    AgentId, Block, EntryBody, EntryId, ModelRef, SearchOrder, SearchPage, SearchQuery, SearchRole,
    StopReason,
};

use super::*;

use crate::testing::{NOW, entry, entry_id, options, scratch, session, session_id, user};
use crate::{Append, Options, Store};

fn add(store: &Store, s: tiller_protocol::SessionId, n: u128, text: &str) {
    let parent = (n % 100 > 1).then(|| entry_id(n - 1));
    store
        .entries()
        .append(Append::new(s, "main").entries(vec![user(s, entry_id(n), parent, text)]))
        .wait()
        .unwrap();
}

/// All words, newest first.
fn ask(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), limit: 9, order: SearchOrder::Newest, ..SearchQuery::default() }
}

/// Any word, best first.
fn best(text: &str) -> SearchQuery {
    SearchQuery { order: SearchOrder::Best, ..ask(text) }
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

/// Sessions of a few messages each, all under one root each; entry `100 * session + n`.
fn talk(store: &Store, n: u128, texts: &[&str]) {
    let s = session(store, n);
    for (at, text) in (1..).zip(texts) {
        add(store, s, 100 * n + at, text);
    }
}

fn order(store: &Store, text: &str) -> Vec<EntryId> {
    found(store, &best(text))
}

#[test]
fn a_ranked_search_finds_any_word_in_any_form_and_puts_the_best_first() {
    let (_dir, store) = scratch();
    talk(&store, 1, &["the retry logic ignores the header", "unrelated words about lunch"]);
    talk(&store, 2, &["we cached every connection of the pool", "the header of the page is blue"]);
    talk(&store, 3, &["fn parseRetryAfter(value)", "a word", "another one"]);
    assert_eq!(order(&store, "retries headers ")[0], entry_id(101), "both words, in other forms");
    assert_eq!(order(&store, "caching connections ")[0], entry_id(201));
    assert!(order(&store, "retry after ").contains(&entry_id(301)), "a name in camel case");
    assert!(order(&store, "zebra header ").contains(&entry_id(202)), "one of two words is enough");
    assert_eq!(order(&store, "zebra "), []);
    // The last word may be unfinished: `connectio` is the stem of nothing.
    assert_eq!(order(&store, "connectio")[0], entry_id(201));
    assert_eq!(order(&store, "why does it ignore the headers? ")[0], entry_id(101), "a question");
    // What is quoted is required, what is excluded is absent, also in the neighbours' hits.
    assert_eq!(order(&store, "\"the header\" blue "), [entry_id(202), entry_id(101)]);
    assert_eq!(order(&store, "header -blue "), [entry_id(101)]);
}

#[test]
fn neighbours_count_for_a_hit() {
    let (_dir, store) = scratch();
    talk(&store, 1, &["which port does the staging gateway use?", "it is 8443 behind a tunnel", "thanks"]);
    talk(&store, 2, &["the gateway is down", "so be it"]);
    talk(&store, 3, &["staging is slow", "yes"]);
    let hits = order(&store, "port of the staging gateway ");
    assert_eq!(hits[0], entry_id(101));
    assert_eq!(hits[1], entry_id(102), "the answer has none of the words: {hits:?}");
    let mut alone = best("port of the staging gateway ");
    alone.roles = vec![SearchRole::User];
    assert!(!found(&store, &alone).contains(&entry_id(102)), "a filter is for the entry itself");
    // So do the entries beyond those beside it. Without them the newer one would come first.
    talk(&store, 4, &["the tunnel is down", "again?", "restart the daemon then"]);
    talk(&store, 5, &["lunch is at noon", "again?", "restart the daemon later"]);
    let hits = order(&store, "tunnel daemon ");
    let place = |n: u128| hits.iter().position(|hit| *hit == entry_id(n));
    assert!(place(403) < place(503) && place(503).is_some(), "{hits:?}");
}

#[test]
fn an_old_hit_comes_after_an_equal_new_one_and_copies_come_last() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let put = |n: u128, days: i64, text: &str| {
        let mut e = user(s, entry_id(n), None, text);
        e.time = Time(NOW.millis() - days * 86_400_000);
        store.entries().append(Append::new(s, format!("b{n}")).entries(vec![e])).wait().unwrap();
    };
    // The newer one has the smaller row.
    put(1, 0, "deploy the gateway");
    put(2, 300, "deploy the gateway");
    put(3, 0, "deploy that gateway with care and with a plan for when it fails");
    let hits = order(&store, "deploy gateway ");
    assert_eq!(hits, [entry_id(1), entry_id(3), entry_id(2)]);
}

#[test]
fn pages_of_a_ranked_search_are_one_list() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    crate::testing::grow(&store, s, 1, 120);
    let mut whole = best("message ");
    whole.limit = 500;
    let all = found(&store, &whole);
    assert_eq!(all.len(), 120);
    let mut page = best("message ");
    let mut seen = Vec::new();
    loop {
        let got = store.search().find(&page, u64::MAX).unwrap();
        seen.extend(ids(&got));
        page.offset += 9;
        if !got.more {
            break;
        }
    }
    assert_eq!(seen, all);
}

#[test]
fn a_typing_error_gets_a_suggestion_that_is_found_here() {
    let (_dir, store) = scratch();
    talk(&store, 1, &["the certificate expired yesterday", "renew the certificate"]);
    let suggested = |query: &SearchQuery| store.search().find(query, u64::MAX).unwrap().suggestion;
    assert_eq!(suggested(&best("certifcate expired ")).as_deref(), Some("certificate expired "));
    assert_eq!(suggested(&best("Certificat")), None, "the beginning of a word is found");
    assert_eq!(suggested(&best("certificates ")), None, "another form is found");
    assert_eq!(suggested(&best("zzzzzz ")), None);
    let mut elsewhere = best("certifcate ");
    elsewhere.project = Some("/other".into());
    assert_eq!(suggested(&elsewhere), None, "no words of other folders");
}

#[test]
fn a_search_can_be_cancelled_before_and_while_it_runs() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    crate::testing::grow(&store, s, 1, 3000);
    let cancel = Cancel::new();
    let lookup = Lookup { cancel: cancel.clone(), ..Lookup::most(u64::MAX) };
    cancel.cancel();
    let cancelled = |result: Result<SearchPage>| matches!(result, Err(StoreError::Cancelled));
    assert!(cancelled(store.search().look_up(&best("message "), &lookup)));
    assert!(cancelled(store.search().look_up(&ask("message "), &lookup)));
    assert_eq!(found(&store, &best("\"message 2999\" ")), [entry_id(2999)], "the next one is not");
    // From another thread, in the midst of searches that follow each other: one of them ends early.
    let cancel = Cancel::new();
    let lookup = Lookup { cancel: cancel.clone(), ..Lookup::most(u64::MAX) };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            loop {
                if let Err(error) = store.search().look_up(&best("message word text "), &lookup) {
                    return error;
                }
            }
        });
        cancel.cancel();
        assert_eq!(run.join().unwrap(), StoreError::Cancelled);
    });
}

#[test]
fn a_limit_of_time_answers_from_what_is_indexed() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    crate::testing::grow(&store, s, 1, 2400);
    let lookup = Lookup { within: Some(std::time::Duration::ZERO), ..Lookup::prompt() };
    let page = store.search().look_up(&best("\"message 7\" "), &lookup).unwrap();
    assert_eq!((ids(&page), page.behind), (vec![entry_id(7)], 1400), "some are indexed in any case");
    let page = store.search().look_up(&best("\"message 7\" "), &lookup).unwrap();
    assert_eq!(page.behind, 400, "each search goes on");
}

#[test]
fn an_index_that_is_deleted_or_damaged_under_an_open_store_is_made_again() {
    let (dir, store) = scratch();
    talk(&store, 1, &["needle in the hay"]);
    assert_eq!(order(&store, "needle "), [entry_id(101)]);
    let path = dir.path().canonicalize().unwrap().join("data/search.db");
    // Another process works on it at the same time.
    let other = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    assert_eq!(order(&other, "needle "), [entry_id(101)]);
    std::fs::remove_file(&path).unwrap();
    talk(&store, 2, &["a second needle"]);
    assert_eq!(order(&store, "needle ").len(), 2);
    assert_eq!(order(&other, "needle ").len(), 2);
    // Damage of the file that is open.
    other.search().forget_index();
    assert_eq!(order(&other, "needle ").len(), 2);
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in bytes.iter_mut().skip(100) {
        *byte ^= 0x5a;
    }
    std::fs::write(&path, bytes).unwrap();
    talk(&store, 3, &["a third needle"]);
    assert_eq!(order(&store, "needle ").len(), 3);
    assert_eq!(
        order(&Store::open(&dir.path().join("data/tiller.db"), options()).unwrap(), "needle ").len(),
        3
    );
}

#[test]
fn an_index_of_an_earlier_version_is_replaced() {
    let (dir, store) = scratch();
    talk(&store, 1, &["needle in the hay"]);
    drop(store);
    let path = dir.path().join("data/search.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE docs (seq INTEGER PRIMARY KEY, entry BLOB NOT NULL, session BLOB NOT NULL, time INTEGER NOT NULL) STRICT;
         CREATE VIRTUAL TABLE words USING fts5(text, tags, content='', columnsize=0); PRAGMA user_version=1;",
    )
    .unwrap();
    drop(old);
    let store = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    assert_eq!(order(&store, "needles "), [entry_id(101)]);
}

#[test]
fn vectors_go_on_after_an_interruption_stand_beside_those_of_another_model_and_obey_filters() {
    let (_dir, store) = scratch();
    talk(&store, 1, &["first of one", "second of one", "third of one"]);
    store.search().index().unwrap();
    let search = store.search();
    let put = |model: &str, rows: &[(i64, String)]| {
        let vectors: Vec<(i64, Vec<u8>)> =
            rows.iter().map(|(seq, t)| (*seq, t.as_bytes()[..1].to_vec())).collect();
        search.put_vectors(model, &vectors).unwrap()
    };
    let rows = search.without_vector("a", 2).unwrap();
    assert_eq!(rows[0].1, "first of one");
    assert!(put("a", &rows));
    let rest = search.without_vector("a", 9).unwrap();
    assert_eq!(rest.iter().map(|r| r.1.as_str()).collect::<Vec<_>>(), ["third of one"], "it goes on");
    assert!(put("a", &rest));
    assert!(search.without_vector("a", 9).unwrap().is_empty());
    let all: Vec<i64> = search.vectors("a", 0).unwrap().into_iter().map(|v| v.row).collect();
    assert_eq!(all.len(), 3);
    assert_eq!(search.vectors("a", all[0]).unwrap().len(), 2);
    // Another model has its own; those of a model that the index does not know are refused.
    let others = search.without_vector("b", 2).unwrap();
    assert_eq!(others.len(), 2);
    assert!(put("b", &others) && !put("c", &others));
    assert_eq!(search.vectors("b", 0).unwrap().len(), 2);
    let first = &search.vectors("a", 0).unwrap()[0];
    assert_eq!(
        (first.session, first.time, first.role),
        (session_id(1), NOW.millis(), Some(SearchRole::User))
    );
    assert!(search.sessions_of("/work/p").unwrap().contains(&session_id(1)));
    assert!(search.sessions_of("/other").unwrap().is_empty());
    let admitted = |query: &SearchQuery| search.admitted(query, &all, &Cancel::default()).unwrap().len();
    assert_eq!(admitted(&best("anything")), 3);
    assert_eq!(admitted(&best("anything -second")), 2);
    assert_eq!(admitted(&best("anything \"third of\" -second")), 1);
    let mut elsewhere = best("anything");
    elsewhere.project = Some("/other".into());
    assert_eq!(admitted(&elsewhere), 0);
}

/// Each of two processes with two models would otherwise make all vectors again after each turn.
#[test]
fn two_models_that_take_turns_keep_their_vectors_and_an_unused_one_loses_them_after_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let clock = Arc::new(tiller_protocol::ManualClock::new(NOW));
    let open = || Store::open(&path, Options { clock: Arc::clone(&clock) as _, ..options() }).unwrap();
    let (one, two) = (open(), open());
    talk(&one, 1, &["first of one", "second of one"]);
    one.search().index().unwrap();
    let made = |store: &Store, model: &str| {
        let rows = store.search().without_vector(model, 9).unwrap();
        let vectors: Vec<(i64, Vec<u8>)> = rows.iter().map(|(seq, _)| (*seq, vec![1, 2])).collect();
        assert!(store.search().put_vectors(model, &vectors).unwrap());
        vectors.len()
    };
    assert_eq!((made(&one, "a"), made(&two, "b")), (2, 2));
    for _ in 0..3 {
        assert_eq!((made(&one, "a"), made(&two, "b")), (0, 0), "nothing is made again");
    }
    // The second process uses its model within a day, and the next time after more than a day.
    let hours = |n: u64| std::time::Duration::from_secs(n * 3600);
    clock.advance(hours(20));
    assert_eq!(made(&one, "a"), 0);
    clock.advance(hours(3));
    assert_eq!((made(&one, "a"), made(&two, "b")), (0, 0));
    clock.advance(hours(25));
    assert_eq!(made(&one, "a"), 0);
    clock.advance(hours(2));
    assert_eq!((made(&one, "a"), made(&two, "b")), (0, 2));
    // A length that changes concerns its own model only.
    assert!(!one.search().put_vectors("a", &[(1, vec![1, 2, 3])]).unwrap());
    assert_eq!((one.search().vectors("a", 0).unwrap().len(), made(&two, "b")), (0, 0));
    one.search().forget_vectors("b").unwrap();
    assert_eq!((made(&one, "a"), made(&two, "b")), (2, 2));
}

#[test]
fn a_write_that_fails_leaves_no_transaction_open() {
    let (dir, store) = scratch();
    talk(&store, 1, &["first of one"]);
    store.search().index().unwrap();
    let other = rusqlite::Connection::open(dir.path().join("data/search.db")).unwrap();
    for table in ["vector_models", "vectors", "text_vectors", "docs"] {
        other
            .execute_batch(&format!(
                "CREATE TRIGGER no_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
            ))
            .unwrap();
    }
    let search = store.search();
    let free = |table: &str| other.execute_batch(&format!("DROP TRIGGER no_{table}"));
    search.without_vector("a", 9).unwrap_err();
    free("vector_models").unwrap();
    let rows = search.without_vector("a", 9).unwrap();
    assert_eq!(rows.len(), 1);
    search.put_vectors("a", &[(rows[0].0, vec![1])]).unwrap_err();
    free("vectors").unwrap();
    assert!(search.put_vectors("a", &[(rows[0].0, vec![1])]).unwrap());
    search.put_text_vectors("a", &[([1; 16], vec![1])]).unwrap_err();
    free("text_vectors").unwrap();
    search.put_text_vectors("a", &[([1; 16], vec![1])]).unwrap();
    talk(&store, 2, &["first of two"]);
    search.index().unwrap_err();
    free("docs").unwrap();
    search.index().unwrap();
    assert_eq!(order(&store, "two "), [entry_id(201)]);
}

#[test]
fn what_comes_after_a_removed_session_is_found() {
    let (_dir, store) = scratch();
    talk(&store, 1, &["an early needle"]);
    talk(&store, 2, &["a word", "a walnut", "a third word"]);
    assert_eq!(order(&store, "walnut ")[0], entry_id(202));
    store.trash().discard(crate::testing::session_id(2)).wait().unwrap();
    talk(&store, 3, &["a late needle", "a second line", "a third line", "a fourth line"]);
    assert_eq!(order(&store, "late ")[0], entry_id(301), "its rows are no rows of the removed session");
    assert_eq!(order(&store, "fourth ")[0], entry_id(304));
    assert_eq!(order(&store, "walnut "), [], "not beside an entry that has its row");
}

#[test]
fn a_session_that_is_not_kept_leaves_no_words_and_no_vectors() {
    let (dir, store) = scratch();
    let s = crate::testing::session_id(1);
    let new = crate::NewSession { made_by: crate::MadeBy::Ephemeral, ..crate::testing::new_session(1) };
    store.sessions().create(new).wait().unwrap();
    add(&store, s, 101, "the walnut");
    assert_eq!(order(&store, "walnut "), []);
    assert_eq!(store.search().without_vector("m", 9).unwrap(), [(1, String::new())]);
    for file in ["search.db", "search.db-wal"] {
        let bytes = std::fs::read(dir.path().join("data").join(file)).unwrap();
        assert!(!bytes.windows(6).any(|w| w == b"walnut"), "not in {file}");
    }
    // A session that is continued is kept.
    store.sessions().adopt(s).wait().unwrap();
    assert_eq!(order(&store, "walnut "), [entry_id(101)]);
}

/// The writer of the database waits for no search, and a search that runs meanwhile does not keep the session out of the index.
#[test]
fn a_session_is_kept_while_the_index_is_in_use() {
    let (_dir, store) = scratch();
    let new = crate::NewSession { made_by: crate::MadeBy::Ephemeral, ..crate::testing::new_session(1) };
    store.sessions().create(new).wait().unwrap();
    add(&store, session_id(1), 101, "the walnut");
    assert_eq!(order(&store, "walnut "), []);
    let (done, kept) = std::sync::mpsc::channel();
    let kept = store.inner.index.with(&store, &Cancel::default(), |_| {
        let (store, done) = (store.clone(), done.clone());
        std::thread::spawn(move || done.send(store.sessions().adopt(session_id(1)).wait().is_ok()));
        Ok(kept.recv_timeout(std::time::Duration::from_secs(90)))
    });
    assert_eq!(kept.unwrap(), Ok(true));
    assert_eq!(order(&store, "walnut "), [entry_id(101)]);
}

/// What was written is found: each language by its own name, in both orders, and excluded by it.
#[test]
fn words_are_told_apart_by_their_signs() {
    let (_dir, store) = scratch();
    let texts = [
        "templates in C++ are slow",
        "generics in C# are fine",
        "plain C is small",
        "unions in F# match",
        "the .NET runtime starts",
        "the net was cast",
        "node.js reads the file",
        "C++ and C# side by side",
        "the option c++17 is set",
        "ask @ann about #retry",
        "ann said retry",
    ];
    for (n, text) in (1_u128..).zip(texts) {
        // A session each: entries beside each other are neighbours.
        let s = session(&store, n);
        let entry = user(s, entry_id(n), None, text);
        store.entries().append(Append::new(s, "main").entries(vec![entry])).wait().unwrap();
    }
    for order in [SearchOrder::Best, SearchOrder::Newest] {
        let found = |text: &str| {
            let query = SearchQuery { text: text.into(), limit: 99, order, ..SearchQuery::default() };
            let page = store.search().find(&query, u64::MAX).unwrap();
            let mut hits: Vec<u128> = page.hits.iter().map(|h| h.entry.0.as_u128() & 0xff).collect();
            hits.sort_unstable();
            hits
        };
        for (text, is) in [
            ("C++", &[1, 8, 9][..]),
            ("c++ ", &[1, 8, 9]),
            ("\"C++\"", &[1, 8, 9]),
            ("C#", &[2, 8]),
            ("F# ", &[4]),
            (".NET ", &[5]),
            (".ne", &[5]),
            ("node.js ", &[7]),
            ("@ann ", &[10]),
            ("#retry", &[10]),
            ("C# -C++", &[2]),
            ("side -C++", &[]),
            ("J# ", &[]),
        ] {
            assert_eq!(found(text), is, "{text} {order:?}");
        }
        // A page begins where the one before ended.
        let query = |offset, limit| SearchQuery {
            text: "C++ ".into(),
            offset,
            limit,
            order,
            ..SearchQuery::default()
        };
        let page = |offset| store.search().find(&query(offset, 1), u64::MAX).unwrap();
        let all: Vec<_> = (0..3).map(|n| page(n).hits[0].entry).collect();
        assert_eq!(all.len(), all.iter().collect::<std::collections::HashSet<_>>().len(), "{order:?}");
        assert!(page(1).more && !page(2).more && page(3).hits.is_empty(), "{order:?}");
    }
    let query = SearchQuery { text: "C++".into(), limit: 9, ..SearchQuery::default() };
    for hit in store.search().find(&query, u64::MAX).unwrap().hits {
        assert!(hit.preview[hit.mark.0..hit.mark.1].eq_ignore_ascii_case("c++"), "{hit:?}");
    }
}

/// Rows of which the text must be read are read up to a bound, and no longer than the search goes on.
#[test]
fn texts_that_are_read_for_signs_have_a_bound_and_an_end() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    for n in 1..=9 {
        add(&store, s, n, if n == 1 { "written in C#" } else { "plain C" });
    }
    let (query, cancel) = (ask("C# "), Cancel::new());
    let words = Words::parse(&query.text);
    let read = |left: usize, cancel: &Cancel| {
        let mut found = Collector::new(&store, &query, &words, words.with_signs(true), cancel);
        found.left = left;
        for n in (1..=9).rev() {
            if !found.take(entry_id(n).0, s.0)? {
                return Ok((n, found.page.hits.len()));
            }
        }
        Ok((0, found.page.hits.len()))
    };
    assert_eq!(read(9, &cancel), Ok((0, 1)));
    assert_eq!(read(4, &cancel), Ok((5, 0)), "the fifth text is not read");
    cancel.cancel();
    assert_eq!(read(9, &cancel), Err(StoreError::Cancelled));
}

/// A letter that is also written as two is found in both spellings, from both sides.
#[test]
fn a_letter_and_the_two_that_it_is_also_written_as_are_the_same() {
    let (_dir, store) = scratch();
    let texts = ["die Straße ist zu", "die STRASSE ist zu", "Cæsar kam", "Caesar kam", "die \u{1e9e}-Taste"];
    for (n, text) in (1_u128..).zip(texts) {
        let s = session(&store, n);
        let entry = user(s, entry_id(n), None, text);
        store.entries().append(Append::new(s, "main").entries(vec![entry])).wait().unwrap();
    }
    for order in [SearchOrder::Best, SearchOrder::Newest] {
        for (text, is) in [
            ("straße ", &[1, 2][..]),
            ("strasse ", &[1, 2]),
            ("STRASSE", &[1, 2]),
            ("stra", &[1, 2]),
            ("\"die straße\"", &[1, 2]),
            ("caesar ", &[3, 4]),
            ("cæsar ", &[3, 4]),
            ("kam -caesar", &[]),
            ("zu -straße", &[]),
        ] {
            let query = SearchQuery { text: text.into(), limit: 99, order, ..SearchQuery::default() };
            let page = store.search().find(&query, u64::MAX).unwrap();
            let mut hits: Vec<u128> = page.hits.iter().map(|h| h.entry.0.as_u128() & 0xff).collect();
            hits.sort_unstable();
            assert_eq!(hits, is, "{text} {order:?}");
            if text == "strasse " {
                let marks = page.hits.iter().map(|h| h.preview[h.mark.0..h.mark.1].to_lowercase());
                assert!(marks.into_iter().all(|mark| mark == "straße" || mark == "strasse"), "{page:?}");
            }
        }
    }
}
