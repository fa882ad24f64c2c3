//! Many searches in one process. A program of its own, since other tests open files and take memory, too.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../testing.rs"]
mod testing;

use std::sync::Arc;

use tiller_protocol::{DocumentKind, SearchOrder, SearchQuery, SeqIds};
use tiller_search::{Document, Embedder, Finder, Source, Table, table};
use tiller_store::Store;
use tiller_store::search::Lookup;

const SEARCHES: usize = 2_000;
const WORDS: [&str; 8] = ["parser", "retry", "tunnel", "deploy", "cache", "socket", "timer", "branch"];

fn fill(store: &Store) {
    let texts: Vec<String> =
        (0..600).map(|n| format!("the {} of the {} number {n}", WORDS[n % 8], WORDS[n / 8 % 8])).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    testing::talk(store, &SeqIds::default(), "/p", &texts);
}

/// A table with one dimension for each word.
fn one_for_each() -> Table {
    let dir = tempfile::tempdir().unwrap();
    let vector = |word: usize| (0..8).map(|at| if at == word { 127.0 } else { 1.0 }).collect();
    let rows: Vec<(&str, Vec<f32>)> = WORDS.iter().enumerate().map(|(n, w)| (*w, vector(n))).collect();
    testing::model(dir.path(), &rows);
    table::import(dir.path(), &dir.path().join("table")).unwrap()
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
    let store = testing::open(dir.path());
    fill(&store);
    let finder = Arc::new(Finder::new(store, Some(Embedder::Table(one_for_each()))));
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
