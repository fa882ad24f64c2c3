//! How often the ranked search finds what was meant, and how long it takes.
//!
//! `cargo run --release -p tiller-store --example search_quality -- locomo FILE` reads `locomo10.json` of the LoCoMo
//! benchmark (CC BY-NC, never a part of this repository): a hit is any turn of the evidence in the first ten.
//! `... -- speed ENTRIES` makes so many entries and prints the times of queries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example for developers"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, IdSource, ManualClock, Message, ModelRef, Origin, Part, Profile,
    SearchQuery, SeqIds, SessionId, Time,
};
use tiller_store::search::rank::Weights;
use tiller_store::search::{Cancel, Lookup};
use tiller_store::{Append, MadeBy, NewSession, Options, Store};

const NOW: Time = Time(1_795_291_200_000);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["locomo", file] => locomo(file),
        ["speed", entries] => speed(entries.parse().expect("a number")),
        _ => println!("usage: search_quality locomo FILE | speed ENTRIES"),
    }
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

fn locomo(file: &str) {
    let all: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (together, ids) = (store(dir.path()), SeqIds::default());
    let mut questions: Vec<(usize, Store, String, String, Vec<EntryId>)> = Vec::new();
    let mut dirs = Vec::new();
    for (n, sample) in all.as_array().unwrap().iter().enumerate() {
        let project = format!("/talk/{n}");
        let own = tempfile::tempdir().unwrap();
        let alone = store(own.path());
        dirs.push(own);
        let mut turns: HashMap<String, Vec<EntryId>> = HashMap::new();
        for number in 1..60 {
            let Some(said) = sample["conversation"][format!("session_{number}")].as_array() else { continue };
            let texts: Vec<String> = said
                .iter()
                .map(|t| format!("{}: {}", t["speaker"].as_str().unwrap(), t["text"].as_str().unwrap()))
                .collect();
            let (a, b) =
                (session(&together, &ids, &project, &texts), session(&alone, &ids, &project, &texts));
            for ((turn, a), b) in said.iter().zip(a).zip(b) {
                turns.insert(turn["dia_id"].as_str().unwrap().to_owned(), vec![a, b]);
            }
        }
        for q in sample["qa"].as_array().unwrap() {
            let evidence = q["evidence"].as_array().map(Vec::as_slice).unwrap_or_default();
            if q["category"] == 5 || evidence.is_empty() {
                continue;
            }
            let evidence =
                evidence.iter().flat_map(|e| e.as_str().unwrap_or_default().split([';', ' ', ',']));
            let evidence = evidence.filter_map(|e| turns.get(e.trim())).flatten().copied().collect();
            let text = q["question"].as_str().unwrap().to_owned() + " ";
            questions.push((n, alone.clone(), project.clone(), text, evidence));
        }
    }
    let usual = Weights::default();
    for (name, weights, one) in [
        ("bare entries", Weights { neighbour: 0.0, ..usual }, false),
        ("with neighbours", usual, false),
        ("with neighbours, all ten talks in one index", usual, true),
        ("neighbour 0.3", Weights { neighbour: 0.3, ..usual }, false),
        ("neighbour 0.7", Weights { neighbour: 0.7, ..usual }, false),
        ("saturation 1.2", Weights { saturation: 1.2, ..usual }, false),
        ("length 0.5", Weights { length: 0.5, ..usual }, false),
    ] {
        let mut hits = 0;
        for (_, alone, project, text, evidence) in &questions {
            let store = if one { &together } else { alone };
            let query = SearchQuery {
                text: text.clone(),
                project: Some(project.clone()),
                limit: 10,
                ..SearchQuery::default()
            };
            let ranking =
                store.search().rank(&query, &Lookup::most(u64::MAX), weights).unwrap().unwrap_or_default();
            let page = store.search().page(&query, &ranking, &Cancel::default()).unwrap();
            hits += usize::from(page.hits.iter().any(|h| evidence.contains(&h.entry)));
        }
        println!("{name}: {:.1} % of {}", 100.0 * hits as f64 / questions.len() as f64, questions.len());
    }
}

/// Words by how common they are.
fn word(random: &mut u64) -> String {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let uniform = (*random >> 33) as f64 / f64::from(1u32 << 31);
    // Zipf: the word of rank r has a frequency of about 1/r.
    format!("w{}q", (50_000f64.powf(uniform)) as u32)
}

fn speed(count: usize) {
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
    let first = SearchQuery { text: "w100q w7q ".into(), limit: 20, ..SearchQuery::default() };
    let begun = Instant::now();
    let page = store.search().look_up(&first, &Lookup::prompt()).unwrap();
    println!(
        "first search after an import: {:.2} s, {} entries behind",
        begun.elapsed().as_secs_f64(),
        page.behind
    );
    let begun = Instant::now();
    store.search().index().unwrap();
    println!("indexed the rest in {:.1} s", begun.elapsed().as_secs_f64());
    for words in [1, 3, 6, 10] {
        let mut times = Vec::new();
        for _ in 0..100 {
            let text = (0..words).map(|_| word(&mut random)).collect::<Vec<_>>().join(" ") + " ";
            let query = SearchQuery { text, limit: 20, ..SearchQuery::default() };
            let begun = Instant::now();
            store.search().find(&query, 0).unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{words} words in {count} entries: p50 {:.1} ms, p95 {:.1} ms", times[50], times[95]);
    }
}
