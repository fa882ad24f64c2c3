//! How long a search takes among many entries: `cargo run --release -p tiller-search --example search_speed -- ENTRIES [TABLE | DIMENSIONS | endpoint:DIMENSIONS]`.
//! `cargo xtask bench search-speed` shows it with the budgets.
//!
//! The text is this repository's own: an entry is a run of lines of its documents and sources, short like a question or long
//! like the output of a tool. Half of the queries are the questions in `tests/search`, the others are words of entries, common
//! words as often as they occur; some end in an unfinished word, some look in one folder only. `TABLE` is the folder of a static
//! model (`model.safetensors`, `tokenizer.json`); without one a table of random directions is made, in which words in threes are
//! near each other: its hits mean nothing, but they take as long. `DIMENSIONS` is the length of its vectors, 256 if left out.
//! `endpoint` measures the vectors of a server, which are not shortened: it runs here, and its time counts, too.
//!
//! Each line of the output is a name, a tab, and milliseconds. Those of the processor change less with the load of the machine
//! than those of the clock.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an example for developers"
)]

#[path = "../testing.rs"]
mod testing;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tiller_config::Embeddings;
use tiller_protocol::{SearchQuery, SeqIds};
use tiller_search::{Embedder, Endpoint, Finder, Table, table};
use tiller_store::Store;
use tiller_store::search::Lookup;
use tiller_store::search::stem::words;

const QUESTIONS: &str = include_str!("../../../tests/search/questions.txt");
/// Entries of a session, and folders that the sessions belong to.
const SESSION: usize = 200;
const FOLDERS: usize = 10;
/// Queries whose words are those of entries.
const MADE: usize = 140;
/// Dimensions of the made table, where no others are asked for.
const DIMENSIONS: usize = 256;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(count) = args.first().and_then(|n| n.parse().ok()) else {
        println!("usage: search_speed ENTRIES [TABLE | DIMENSIONS | endpoint:DIMENSIONS]");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (store, mut random) = (testing::open(dir.path()), Random(7));
    let lines = lines();
    fill(&store, &lines, count, &mut random);
    let queries = queries(&lines, &mut random);
    first_answer(&store, &queries);

    let words = Arc::new(Finder::new(store.clone(), None));
    timed("index words", || words.index_blocking().unwrap());
    let place = dir.path().join("table");
    let model = args.get(1).map_or("", String::as_str);
    let (embedder, with_model) = match (model.strip_prefix("endpoint:"), model.parse()) {
        (Some(dimensions), _) => {
            (Embedder::Endpoint(server(dimensions.parse().unwrap())), "with an endpoint")
        }
        (None, Ok(dimensions)) => {
            (Embedder::Table(made(dimensions, &lines, dir.path(), &mut random)), "with a table")
        }
        (None, Err(_)) if model.is_empty() => {
            (Embedder::Table(made(DIMENSIONS, &lines, dir.path(), &mut random)), "with a table")
        }
        (None, Err(_)) => (Embedder::Table(table::import(Path::new(model), &place).unwrap()), "with a table"),
    };
    let both = Arc::new(Finder::new(store, Some(embedder)));
    timed("index vectors", || both.index_blocking().unwrap());
    timed(&format!("first search {with_model}"), || search(&both, &queries[0]));
    // In turns, so that both meet the same load of the machine.
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for query in &queries {
        alone.push(timing(|| search(&words, query)));
        with.push(timing(|| search(&both, query)));
    }
    for (name, times) in [("keywords", alone), (with_model, with)] {
        let (clock, processor): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        for (kind, times) in [("", clock), (" of the processor", processor)] {
            for (share, part) in [(0.5, "p50"), (0.95, "p95"), (1.0, "longest")] {
                println!("{name}{kind} {part}\t{:.2}", at(&times, share));
            }
        }
    }
}

/// Milliseconds of the clock, and of the processor.
fn timing(work: impl FnOnce()) -> (f64, f64) {
    let (begun, used) = (Instant::now(), processor());
    work();
    (begun.elapsed().as_secs_f64() * 1e3, processor() - used)
}

/// Milliseconds of the processor that this process has used.
fn processor() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn at(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * share).round() as usize]
}

fn timed(name: &str, work: impl FnOnce()) {
    println!("{name}\t{:.2}", timing(work).0);
}

fn search(finder: &Arc<Finder>, query: &SearchQuery) {
    finder.search_blocking(query, &Lookup::most(0)).unwrap();
}

/// The first searches after an import: alone, and while entries are indexed in the background.
fn first_answer(store: &Store, queries: &[SearchQuery]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let finder = Arc::new(Finder::new(store.clone(), None));
    let ask = |query: &SearchQuery| {
        let page = runtime.block_on(finder.search(query.clone(), Lookup::prompt(), None)).unwrap();
        assert!(
            page.behind > 0 || !page.hits.is_empty(),
            "neither hits nor a number of entries that are left"
        );
    };
    timed("first answer after an import", || ask(&queries[0]));
    runtime.block_on(async { finder.refresh() });
    let times: Vec<f64> = queries.iter().take(10).map(|query| timing(|| ask(query)).0).collect();
    println!("answer while it indexes, p50\t{:.2}", at(&times, 0.5));
    println!("answer while it indexes, longest\t{:.2}", at(&times, 1.0));
    runtime.shutdown_background();
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// The lines of the documents and sources of this repository.
fn lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut found, mut folders) =
        (Vec::new(), vec![root.join("src"), root.join("tests"), root.join("skills")]);
    let mut files: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|f| root.join(f)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.path() {
                path if entry.file_type().unwrap().is_dir() => folders.push(path),
                path if path.extension().is_some_and(|e| e == "rs" || e == "md") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        found.extend(text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
    }
    found
}

fn fill(store: &Store, lines: &[String], count: usize, random: &mut Random) {
    let ids = SeqIds::default();
    let mut left = count;
    let mut number = 0;
    while left > 0 {
        let size = left.min(SESSION);
        let texts: Vec<String> = (0..size).map(|n| text(lines, left - n, random)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        testing::talk(store, &ids, &folder(number), &texts);
        left -= size;
        number += 1;
    }
}

fn folder(number: usize) -> String {
    format!("/work/{}", number % FOLDERS)
}

/// One to three lines, or a page.
fn text(lines: &[String], number: usize, random: &mut Random) -> String {
    let size = match random.below(10) {
        0..5 => 1 + random.below(3),
        5..8 => 4 + random.below(12),
        _ => 16 + random.below(40),
    };
    let from = random.below(lines.len() - size);
    // Something that nothing else has, as ids and paths are.
    format!("{}\njob-{number:x}", lines[from..from + size].join("\n"))
}

fn queries(lines: &[String], random: &mut Random) -> Vec<SearchQuery> {
    let query = |text: String, project: Option<String>| SearchQuery {
        text,
        project,
        limit: 20,
        ..SearchQuery::default()
    };
    let asked = QUESTIONS.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(' '));
    let mut all: Vec<SearchQuery> = asked.map(|(_, text)| query(format!("{text} "), None)).collect();
    for n in 0..MADE {
        let mut text = String::new();
        for _ in 0..[1, 2, 3, 5, 8][n % 5] {
            let line = &lines[random.below(lines.len())];
            let all: Vec<&str> = words(line).map(|(from, to)| &line[from..to]).collect();
            text += all.get(random.below(all.len())).copied().unwrap_or("parser");
            text.push(' ');
        }
        if n % 3 == 0 {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(3).max(3)));
        }
        all.push(query(text, (n % 4 == 0).then(|| folder(n))));
    }
    all
}

/// A table of the words of these lines, with vectors of this length.
fn made(dimensions: usize, lines: &[String], dir: &Path, random: &mut Random) -> Table {
    let known: HashSet<String> =
        lines.iter().flat_map(|l| words(l).map(|(a, b)| l[a..b].to_lowercase())).collect();
    let mut known: Vec<&str> = known.iter().map(String::as_str).filter(|w| w.is_ascii()).collect();
    known.sort_unstable();
    let mut near = vec![0.0; dimensions];
    let mut rows: Vec<(&str, Vec<f32>)> = Vec::new();
    for (n, word) in known.iter().enumerate() {
        if n % 3 == 0 {
            near = (0..dimensions).map(|_| random.below(255) as f32 - 127.0).collect();
        }
        rows.push((word, near.iter().map(|x| x + random.below(101) as f32 - 50.0).collect()));
    }
    testing::model(dir, &rows);
    table::import(dir, &dir.join("table")).unwrap()
}

/// The settings of a server on this machine with vectors of this length. It runs until the process ends.
fn server(dimensions: usize) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream, dimensions));
        }
    });
    let settings =
        Embeddings { url: Some(url), model: Some("m".into()), batch: 512, ..Embeddings::default() };
    Endpoint::new(&settings, &|_| None).unwrap().unwrap()
}

/// Answers requests until the client closes the connection: each text gets the sum of the directions of its first words.
fn answer(mut stream: &TcpStream, dimensions: usize) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let mut data = Vec::new();
        for (n, text) in body["input"].as_array().unwrap().iter().enumerate() {
            let text = text.as_str().unwrap();
            let mut sum = vec![0i64; dimensions];
            for (from, to) in words(text).take(8) {
                let seed =
                    text[from..to].bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
                let mut random = Random(seed);
                sum.iter_mut().for_each(|x| *x += random.below(255) as i64 - 127);
            }
            data.push(serde_json::json!({"index": n, "embedding": sum}));
        }
        let body = serde_json::json!({"data": data}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    }
}
