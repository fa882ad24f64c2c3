//! Processes that are killed while they index, and searches while much is imported.

use std::sync::atomic::{AtomicBool, Ordering};

use tiller_protocol::{SearchOrder, SearchQuery};

use crate::search::Lookup;
use crate::testing::child::{command, lines};
use crate::testing::*;
use crate::{Append, Store};

/// Entries of the killed indexing; the nightly figure is ten times as many.
const KILLED: u128 = 3_000;
/// Entries that are imported while others search; the row's size is 100,000.
const IMPORTED: u128 = 6_000;

fn newest(text: &str, limit: u32) -> SearchQuery {
    SearchQuery { text: text.into(), order: SearchOrder::Newest, limit, ..SearchQuery::default() }
}

/// Kills each process after another number of steps, one in the midst of a step, until one comes to the end.
fn killed(entries: u128) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let store = Store::open(&path, options()).unwrap();
    grow(&store, session(&store, 1), 1, entries);
    let mut left = u64::try_from(entries).unwrap();
    for trial in 0.. {
        assert!(trial < 100, "no process came to the end");
        let mut child = command(&[], "index", &path).spawn().unwrap();
        let mut said = lines(&mut child);
        for _ in 0..=trial % 3 {
            if let Some(n) = said.next().and_then(|line| line.strip_prefix("left ")?.parse::<u64>().ok()) {
                assert!(n < left, "what was indexed is lost: {n} of {left}");
                left = n;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if left == 0 {
            break;
        }
        // Another process searches at once.
        let other = Store::open(&path, options()).unwrap();
        let page = other.search().look_up(&newest("\"message 1\"", 5), &Lookup::most(0)).unwrap();
        assert_eq!(page.hits.len(), 1, "{left} left");
    }
    let count = u32::try_from(entries).unwrap();
    let mut all = newest("message", 1_000);
    let mut found = 0;
    loop {
        let page = store.search().find(&all, u64::MAX).unwrap();
        found += page.hits.len();
        all.offset += 1_000;
        if !page.more {
            break;
        }
    }
    assert_eq!(found, count as usize, "each entry once");
}

#[test]
fn killed_while_it_indexes_the_next_process_goes_on_and_nothing_is_there_twice() {
    killed(KILLED);
}

#[test]
#[ignore = "the row's size"]
fn index_whole_30_000_entries_killed_while_indexed() {
    killed(30_000);
}

/// One thread imports, another searches with the patience of a person, until all is found.
fn searched_during_an_import(entries: u128) {
    let (_dir, store) = scratch();
    let writer = store.clone();
    let over = AtomicBool::new(false);
    let (mut searches, mut highest) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let s = session(&writer, 1);
            let mut parent = None;
            for from in (1..=entries).step_by(1_000) {
                let mut part = Vec::new();
                for n in from..(from + 1_000).min(entries + 1) {
                    part.push(user(s, entry_id(n), parent, &format!("message {n} of the import")));
                    parent = Some(entry_id(n));
                }
                writer.entries().append(Append::new(s, "main").entries(part)).wait().unwrap();
            }
            over.store(true, Ordering::Release);
        });
        loop {
            let last = over.load(Ordering::Acquire);
            let query =
                SearchQuery { text: "import message 77 ".into(), limit: 20, ..SearchQuery::default() };
            let page = store.search().look_up(&query, &Lookup::prompt()).unwrap();
            searches += 1;
            highest = highest.max(page.behind);
            if last && page.behind == 0 {
                break;
            }
        }
    });
    let page = store.search().find(&newest(&format!("\"message {entries}\""), 5), 0).unwrap();
    assert_eq!(page.hits.len(), 1);
    eprintln!(
        "{searches} searches while {entries} entries were imported; at most {highest} were not indexed yet"
    );
}

#[test]
fn a_search_answers_while_much_is_imported() {
    searched_during_an_import(IMPORTED);
}

#[test]
#[ignore = "the row's size"]
fn search_whole_100_000_entries_imported_while_searched() {
    searched_during_an_import(100_000);
}
