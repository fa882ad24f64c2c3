//! How often the search finds what was meant, and how long it takes.
//!
//! `cargo run --release -p tiller-search --example search_quality -- locomo FILE [TABLE]` reads `locomo10.json` of the LoCoMo
//! benchmark (CC BY-NC, never a part of this repository): a hit is any turn of the evidence in the first ten. With a folder of a
//! static model (`model.safetensors`, `tokenizer.json`) it measures words and vectors together, too.
//! `... -- speed ENTRIES [TABLE]` makes so many entries and prints the times of queries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example for developers"
)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, IdSource, ManualClock, Message, ModelRef, Origin, Part, Profile,
    SearchPage, SearchQuery, SeqIds, SessionId, Time,
};
use tiller_search::finder::WEIGHT;
use tiller_search::{Embedder, Finder, table};
use tiller_store::search::rank::Weights;
use tiller_store::search::{Cancel, Lookup};
use tiller_store::{Append, MadeBy, NewSession, Options, Store};

const NOW: Time = Time(1_795_291_200_000);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["locomo", file] => locomo(file, None),
        ["locomo", file, table] => locomo(file, Some(table)),
        ["speed", entries] => speed(entries.parse().expect("a number"), None),
        ["speed", entries, table] => speed(entries.parse().expect("a number"), Some(table)),
        _ => println!("usage: search_quality locomo FILE [TABLE] | speed ENTRIES [TABLE]"),
    }
}

/// A search with the table of this folder.
fn finder(store: &Store, table: Option<&str>) -> Arc<Finder> {
    let place = tempfile::tempdir().unwrap();
    let import = |folder: &str| table::import(Path::new(folder), &place.path().join("table")).unwrap();
    Arc::new(Finder::new(store.clone(), table.map(import).map(Embedder::Table)))
}

fn store(dir: &std::path::Path) -> Store {
    let options = Options { clock: Arc::new(ManualClock::new(NOW)), ..Options::default() };
    Store::open(&dir.join("tiller.db"), options).unwrap()
}

fn session(store: &Store, ids: &SeqIds, project: &str, texts: &[String]) -> Vec<EntryId> {
    let id = SessionId(ids.next(NOW));
    let new = NewSession {
        id,
        project: project.into(),
        title: "talk".into(),
        model: ModelRef("demo/x".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let (mut parent, mut made, mut entries) = (None, Vec::new(), Vec::new());
    for text in texts {
        let entry = Entry {
            id: EntryId(ids.next(NOW)),
            parent,
            session: id,
            agent: AgentId::main(),
            time: NOW,
            body: EntryBody::User {
                message: Message::text(text.clone()),
                origin: Origin::Prompt,
                content: vec![Part::Text { text: text.clone() }],
            },
            snapshot: None,
        };
        parent = Some(entry.id);
        made.push(entry.id);
        entries.push(entry);
    }
    for part in entries.chunks(1000) {
        store.entries().append(Append::new(id, "main").entries(part.to_vec())).wait().unwrap();
    }
    made
}

/// A question of the benchmark.
struct Question {
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
        store(dirs.last().unwrap().path())
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
            let both = [&together, &alone].map(|store| session(store, &ids, &project, &texts));
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
            questions.push(Question { alone: alone.clone(), query, evidence });
        }
    }
    (questions, together)
}

fn locomo(file: &str, table: Option<&str>) {
    let mut dirs = Vec::new();
    let (questions, together) = questions(file, &mut dirs);
    let report = |name: &str, find: &mut dyn FnMut(&Question) -> SearchPage| {
        let found = |q: &&Question, page: SearchPage| page.hits.iter().any(|h| q.evidence.contains(&h.entry));
        let hits = questions.iter().filter(|q| found(q, find(q))).count();
        println!("{name}: {:.1} % of {}", 100.0 * hits as f64 / questions.len() as f64, questions.len());
    };
    let usual = Weights::default();
    for (name, weights, one) in [
        ("bare entries", Weights { neighbour: 0.0, ..usual }, false),
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

/// Words by how common they are.
fn word(random: &mut u64) -> String {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let uniform = (*random >> 33) as f64 / f64::from(1u32 << 31);
    // Zipf: the word of rank r has a frequency of about 1/r.
    format!("w{}q", (50_000f64.powf(uniform)) as u32)
}

fn speed(count: usize, table: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    let (store, ids) = (store(dir.path()), SeqIds::default());
    let mut random = 7;
    let mut left = count;
    while left > 0 {
        let size = left.min(500);
        let texts: Vec<String> =
            (0..size).map(|_| (0..40).map(|_| word(&mut random)).collect::<Vec<_>>().join(" ")).collect();
        session(&store, &ids, "/p", &texts);
        left -= size;
    }
    let finder = finder(&store, table);
    let first = SearchQuery { text: "w100q w7q ".into(), limit: 20, ..SearchQuery::default() };
    let begun = Instant::now();
    let page = finder.search_blocking(&first, &Lookup::prompt()).unwrap();
    let took = begun.elapsed().as_secs_f64();
    println!("first search after an import: {took:.2} s, {} entries behind", page.behind);
    let begun = Instant::now();
    finder.index_blocking().unwrap();
    println!("indexed the rest in {:.1} s", begun.elapsed().as_secs_f64());
    let mut all = Vec::new();
    for words in [1, 3, 6, 10] {
        let mut times = Vec::new();
        for _ in 0..100 {
            let text = (0..words).map(|_| word(&mut random)).collect::<Vec<_>>().join(" ") + " ";
            let query = SearchQuery { text, limit: 20, ..SearchQuery::default() };
            let begun = Instant::now();
            finder.search_blocking(&query, &Lookup::most(0)).unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        print(&format!("{words} words"), count, &mut times);
        all.extend(times);
    }
    print("all", count, &mut all);
}

fn print(name: &str, count: usize, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{name} in {count} entries: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
        at(0.5),
        at(0.95),
        at(0.99)
    );
}
