//! How often the search finds what was meant. How long it takes is measured by `search_speed`.
//!
//! `cargo run --release -p tiller-search --example search_quality -- FILE [TABLE]` reads `locomo10.json` of the LoCoMo
//! benchmark (CC BY-NC, never a part of this repository): a hit is any turn of the evidence in the first ten. With a folder of a
//! static model (`model.safetensors`, `tokenizer.json`) it measures words and vectors together, too. What is fitted may be fitted
//! on the talks with an even number only; the others check it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example for developers"
)]

#[path = "../testing.rs"]
mod testing;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tiller_protocol::{EntryId, SearchPage, SearchQuery, SeqIds};
use tiller_search::finder::WEIGHT;
use tiller_search::{Embedder, Finder, table};
use tiller_store::Store;
use tiller_store::search::rank::Weights;
use tiller_store::search::{Cancel, Lookup};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [file] => locomo(file, None),
        [file, table] => locomo(file, Some(table)),
        _ => println!("usage: search_quality FILE [TABLE]"),
    }
}

/// A search with the table of this folder.
fn finder(store: &Store, table: Option<&str>) -> Arc<Finder> {
    let place = tempfile::tempdir().unwrap();
    let import = |folder: &str| table::import(Path::new(folder), &place.path().join("table")).unwrap();
    Arc::new(Finder::new(store.clone(), table.map(import).map(Embedder::Table)))
}

/// A question of the benchmark.
struct Question {
    talk: usize,
    /// The store with this talk alone.
    alone: Store,
    query: SearchQuery,
    evidence: Vec<EntryId>,
}

/// The questions, and a store with all talks.
fn questions(file: &str, dirs: &mut Vec<tempfile::TempDir>) -> (Vec<Question>, Store) {
    let all: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut scratch = || {
        dirs.push(tempfile::tempdir().unwrap());
        testing::open(dirs.last().unwrap().path())
    };
    let (together, ids) = (scratch(), SeqIds::default());
    let mut questions = Vec::new();
    for (n, sample) in all.as_array().unwrap().iter().enumerate() {
        let (project, alone) = (format!("/talk/{n}"), scratch());
        let mut turns: HashMap<String, [EntryId; 2]> = HashMap::new();
        for number in 1..60 {
            let Some(said) = sample["conversation"][format!("session_{number}")].as_array() else { continue };
            let text =
                |t: &Value| format!("{}: {}", t["speaker"].as_str().unwrap(), t["text"].as_str().unwrap());
            let texts: Vec<String> = said.iter().map(text).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let both = [&together, &alone].map(|store| testing::talk(store, &ids, &project, &texts));
            for (n, turn) in said.iter().enumerate() {
                turns.insert(turn["dia_id"].as_str().unwrap().to_owned(), [both[0][n], both[1][n]]);
            }
        }
        for q in sample["qa"].as_array().unwrap() {
            let evidence = q["evidence"].as_array().map(Vec::as_slice).unwrap_or_default();
            if q["category"] == 5 || evidence.is_empty() {
                continue;
            }
            let named = evidence.iter().flat_map(|e| e.as_str().unwrap_or_default().split([';', ' ', ',']));
            let evidence = named.filter_map(|e| turns.get(e.trim())).flatten().copied().collect();
            let text = q["question"].as_str().unwrap().to_owned() + " ";
            let query =
                SearchQuery { text, project: Some(project.clone()), limit: 10, ..SearchQuery::default() };
            questions.push(Question { talk: n, alone: alone.clone(), query, evidence });
        }
    }
    (questions, together)
}

fn locomo(file: &str, table: Option<&str>) {
    let mut dirs = Vec::new();
    let (questions, together) = questions(file, &mut dirs);
    let report = |name: &str, find: &mut dyn FnMut(&Question) -> SearchPage| {
        // Hits, the sum of one through the place of the first hit, and questions: of even and of odd talks.
        let mut halves = [(0.0, 0.0, 0.0); 2];
        for question in &questions {
            let page = find(question);
            let at = page.hits.iter().position(|h| question.evidence.contains(&h.entry));
            let half = &mut halves[question.talk % 2];
            half.0 += f64::from(u8::from(at.is_some()));
            half.1 += at.map_or(0.0, |at| 1.0 / (at + 1) as f64);
            half.2 += 1.0;
        }
        let [even, odd] = halves;
        let all = (even.0 + odd.0, even.1 + odd.1, even.2 + odd.2);
        print!("{name}:");
        for (part, (hits, places, count)) in [("even", even), ("odd", odd), ("all", all)] {
            print!(" {part} {:.1} % of {count} (MRR {:.3})", 100.0 * hits / count, places / count);
        }
        println!();
    };
    let usual = Weights::default();
    for (name, weights, one) in [
        ("bare entries", Weights::alone(), false),
        ("with neighbours", usual, false),
        ("with neighbours, all ten talks in one index", usual, true),
    ] {
        report(name, &mut |q| {
            let store = if one { &together } else { &q.alone };
            let ranking = store.search().rank(&q.query, &Lookup::most(u64::MAX), weights).unwrap();
            store.search().page(&q.query, &ranking.unwrap_or_default(), &Cancel::default()).unwrap()
        });
    }
    if table.is_none() {
        return;
    }
    for weight in [0.2, WEIGHT, 0.5, 0.8] {
        let mut finders: HashMap<String, Arc<Finder>> = HashMap::new();
        report(&format!("words and vectors, weight {weight}"), &mut |q| {
            let project = q.query.project.clone().unwrap();
            let finder = finders.entry(project).or_insert_with(|| {
                let finder = Arc::try_unwrap(finder(&q.alone, table)).ok().unwrap();
                let finder = Arc::new(finder.weighted(weight));
                finder.index_blocking().unwrap();
                finder
            });
            finder.search_blocking(&q.query, &Lookup::most(u64::MAX)).unwrap()
        });
    }
}
