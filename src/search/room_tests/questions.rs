//! The questions that ship. Neighbours must not make keywords worse, and vectors must not make both worse.
//!
//! The table of vectors is made of a copy of the project's own documentation, which does not change with it, by counting which
//! words occur near each other (random indexing). It is small: what it shows is that a weak table at a low weight does no harm.
//! How much a good one helps is measured with `cargo run -p tiller-search --example search_quality` and a published table.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_protocol::{EntryId, SearchQuery, SeqIds};
use tiller_store::Store;
use tiller_store::search::rank::Weights;
use tiller_store::search::stem::words;
use tiller_store::search::words::is_stop;
use tiller_store::search::{Cancel, Lookup};

use super::{ask, scratch, talk};
use crate::embedder::Embedder;
use crate::finder::{Finder, WEIGHT};
use crate::table::{Table, written};

const SESSIONS: &str = include_str!("../../../tests/search/sessions.txt");
const QUESTIONS: &str = include_str!("../../../tests/search/questions.txt");
/// What the table is made of.
const TEXTS: &str = include_str!("../../../tests/search/texts.txt");
const DIMENSIONS: usize = 64;

struct Question {
    text: &'static str,
    wanted: Vec<EntryId>,
}

fn set(store: &Store) -> Vec<Question> {
    let ids = SeqIds::default();
    let mut keys: HashMap<&str, EntryId> = HashMap::new();
    for session in SESSIONS.split("\n\n") {
        let lines = session.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
        let lines: Vec<(&str, &str)> = lines
            .map(|l| {
                let (key, rest) = l.split_once(' ').unwrap();
                (key, rest.split_once(' ').unwrap().1)
            })
            .collect();
        let texts: Vec<&str> = lines.iter().map(|(_, t)| *t).collect();
        if !texts.is_empty() {
            keys.extend(lines.iter().map(|(k, _)| *k).zip(talk(store, &ids, &texts)));
        }
    }
    let lines = QUESTIONS.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    let question = |line: &'static str| {
        let (wanted, text) = line.split_once(' ').unwrap();
        Question { text, wanted: wanted.split(',').map(|k| keys[k]).collect() }
    };
    let set: Vec<Question> = lines.map(question).collect();
    assert_eq!(set.len(), 60);
    set
}

/// Vectors of words by what stands near them.
fn table() -> Table {
    let mut vectors: HashMap<String, Vec<f32>> = HashMap::new();
    for paragraph in TEXTS.split("\n\n") {
        let all: Vec<String> =
            words(paragraph).map(|(a, b)| paragraph[a..b].to_lowercase()).filter(|w| !is_stop(w)).collect();
        for (n, word) in all.iter().enumerate() {
            let vector = vectors.entry(word.clone()).or_insert_with(|| vec![0.0; DIMENSIONS]);
            for other in &all[n.saturating_sub(4)..(n + 5).min(all.len())] {
                // A word's own direction: some places of it, by its hash.
                let hash = blake3_of(other);
                for pair in hash.chunks_exact(2).take(6) {
                    vector[usize::from(pair[0]) % DIMENSIONS] += if pair[1] & 1 == 0 { 1.0 } else { -1.0 };
                }
            }
        }
    }
    let mut rows: Vec<(&str, &[f32])> = vectors.iter().map(|(w, v)| (w.as_str(), v.as_slice())).collect();
    rows.sort_by_key(|(word, _)| *word);
    Table::read(&written(DIMENSIONS, rows.into_iter())).unwrap()
}

fn blake3_of(word: &str) -> [u8; 32] {
    *blake3::hash(word.as_bytes()).as_bytes()
}

/// The share of questions with a hit in the first ten, and the mean of one through the place of the first hit.
fn measure(set: &[&Question], mut find: impl FnMut(&SearchQuery) -> Vec<EntryId>) -> (f32, f32) {
    let (mut hits, mut places) = (0.0, 0.0);
    for question in set {
        let found = find(&ask(question.text));
        if let Some(at) = found.iter().take(10).position(|e| question.wanted.contains(e)) {
            hits += 1.0;
            #[allow(clippy::cast_precision_loss, reason = "at most ten")]
            let place = (at + 1) as f32;
            places += 1.0 / place;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "sixty")]
    let all = set.len() as f32;
    (100.0 * hits / all, places / all)
}

fn keywords(store: &Store, query: &SearchQuery, weights: Weights) -> Vec<EntryId> {
    let ranking = store.search().rank(query, &Lookup::most(u64::MAX), weights).unwrap().unwrap_or_default();
    let page = store.search().page(query, &ranking, &Cancel::default()).unwrap();
    page.hits.iter().map(|h| h.entry).collect()
}

#[test]
fn hybrid_is_never_below_keywords_nor_keywords_with_neighbours_below_without() {
    let (_dir, store) = scratch();
    let set = set(&store);
    let fitting: Vec<&Question> = set.iter().step_by(2).collect();
    let check: Vec<&Question> = set.iter().skip(1).step_by(2).collect();
    let all: Vec<&Question> = set.iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hybrid = |weight: f32| {
        let finder = Arc::new(Finder::new(store.clone(), Some(Embedder::Table(table()))).weighted(weight));
        runtime.block_on(finder.index());
        finder
    };
    let by_meaning = |finder: &Arc<Finder>, query: &SearchQuery| {
        let page = runtime.block_on(finder.search(query.clone(), Lookup::most(u64::MAX), None)).unwrap();
        page.hits.iter().map(|h| h.entry).collect::<Vec<_>>()
    };
    for (name, part) in [("fitting", &fitting), ("check", &check), ("all", &all)] {
        let bare = measure(part, |q| keywords(&store, q, Weights::alone()));
        let near = measure(part, |q| keywords(&store, q, Weights::default()));
        println!(
            "{name}: bare keywords {:.1} % (MRR {:.3}), with neighbours {:.1} % ({:.3})",
            bare.0, bare.1, near.0, near.1
        );
        assert!(near.0 >= bare.0, "{name}: neighbours lose hits: {near:?} {bare:?}");
        for weight in [0.1, WEIGHT, 0.6, 1.0] {
            let finder = hybrid(weight);
            let both = measure(part, |q| by_meaning(&finder, q));
            println!("{name}: hybrid at {weight}: {:.1} % (MRR {:.3})", both.0, both.1);
            if (weight - WEIGHT).abs() < 1e-6 {
                assert!(both.0 >= near.0, "{name}: vectors lose hits: {both:?} {near:?}");
                assert!(both.1 >= near.1 - 0.06, "{name}: vectors move hits far down: {both:?} {near:?}");
            }
        }
    }
    // Far above chance, and what is reached now is kept: ten of 120 entries by chance are 8 %.
    let near = measure(&all, |q| keywords(&store, q, Weights::default()));
    assert!(near.0 >= 75.0, "{near:?}");
}
