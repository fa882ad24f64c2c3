//! The cost of a ranked search: it is bounded, however many entries there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::search::index::SCHEMA;

/// An index of so many entries. One word is in every entry, others in each 4th, 50th and 1,000th.
fn index(entries: i64) -> Connection {
    let index = Connection::open_in_memory().unwrap();
    index.execute_batch(SCHEMA).unwrap();
    index.execute_batch("BEGIN").unwrap();
    let mut doc = index
        .prepare(
            "INSERT INTO docs(seq, entry, session, time, prev, next, len) VALUES(?1, ?2, ?2, ?1, ?3, ?4, 6)",
        )
        .unwrap();
    let mut text =
        index.prepare("INSERT INTO words(rowid, text, stems, tags) VALUES(?1, ?2, '', 'p1')").unwrap();
    for seq in 1..=entries {
        let (prev, next) = ((seq > 1).then_some(seq - 1), (seq < entries).then_some(seq + 1));
        doc.execute(params![seq, Uuid::from_u128(seq.unsigned_abs().into()), prev, next]).unwrap();
        let word = |every: i64, word: &str| if seq % every == 0 { word.to_owned() } else { String::new() };
        let words = [word(1, "every"), word(4, "common"), word(50, "seldom"), word(1000, "rare")].join(" ");
        text.execute(params![seq, words]).unwrap();
    }
    drop((doc, text));
    let known = [("every", 1), ("common", 4), ("seldom", 50), ("rare", 1000)];
    for (word, every) in known {
        index
            .execute("INSERT INTO vocabulary(word, n) VALUES(?1, ?2)", params![word, entries / every])
            .unwrap();
    }
    index.execute_batch("COMMIT").unwrap();
    index
}

/// Steps that SQLite takes for a query, and the rows that are found.
fn steps(index: &mut Connection, text: &str) -> (u64, usize) {
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let step = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    index.progress_handler(1, Some(step)).unwrap();
    let query = SearchQuery { text: text.into(), ..SearchQuery::default() };
    let words = Words::parse(text);
    let terms = words.terms().unwrap();
    let look = Look { cancel: &Cancel::default(), holds: &|_, _, _| Ok(true) };
    let found = rank(index, &words, &terms, &query, (Weights::default(), 0, look)).unwrap();
    index.progress_handler(0, None::<fn() -> bool>).unwrap();
    (count.load(Ordering::Relaxed), found.scored.len())
}

#[test]
fn ten_times_as_many_entries_cost_a_query_little_more() {
    let (mut small, mut large) = (index(5_000), index(50_000));
    for text in ["every ", "rare ", "common seldom ", "every common seldom rare ", "every common nothing "] {
        let (few, many) = (steps(&mut small, text), steps(&mut large, text));
        println!("{text}: {few:?} and {many:?} steps and hits");
        assert!(many.0 < 4 * few.0.max(20_000), "{text}: {few:?} {many:?}");
        // What is read is bounded, whatever is asked.
        assert!(many.0 < 250_000, "{text}: {many:?}");
        assert!(few.1 > 0 && many.1 >= few.1.min(1_000), "{text}: {few:?} {many:?}");
    }
}
