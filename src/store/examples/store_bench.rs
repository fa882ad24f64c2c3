//! Prints what the store costs: commit latency, opening and reading at 0, 2,000 and 100,000 entries, export
//! and import. `cargo run --release -p tiller-store --example store_bench [FOLDER]` (the folder decides which
//! disk is measured).
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and has nobody to give its errors to"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use tiller_protocol::{
    AgentId, Clock, Entry, EntryBody, EntryId, IdSource, Message, ModelRef, Origin, Part, Profile, RandomIds,
    SessionId, SystemClock,
};
use tiller_store::{Append, ImportIds, NewSession, Options, Store};

fn main() {
    let place = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(place).unwrap();
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "entries", "open", "first", "tail 200", "context", "list", "close"
    );
    for count in [0_u64, 2_000, 100_000] {
        let path = dir.path().join(format!("{count}/tiller.db"));
        let session = build(&path, count);
        measure(&path, session, count);
    }
    commits(&dir.path().join("commits/tiller.db"));
    let big = dir.path().join("100000/tiller.db");
    transfer(&big);
}

fn now() -> tiller_protocol::Time {
    SystemClock::default().now()
}

fn entry(session: SessionId, parent: Option<EntryId>, n: u64) -> Entry {
    let text = format!("message {n}: {}", "some words that a person or a model might write. ".repeat(8));
    Entry {
        id: EntryId(RandomIds.next(now())),
        parent,
        session,
        agent: AgentId::main(),
        time: now(),
        body: EntryBody::User {
            message: Message::text(text.clone()),
            origin: Origin::Prompt,
            content: vec![Part::Text { text }],
            taint: None,
            learnings: Vec::new(),
        },
        snapshot: None,
    }
}

fn build(path: &Path, count: u64) -> SessionId {
    let store = Store::open(path, Options::default()).unwrap();
    let session = SessionId(RandomIds.next(now()));
    let new = NewSession {
        id: session,
        project: "/bench".into(),
        title: "bench".into(),
        model: ModelRef("demo/planner".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: tiller_store::MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let mut parent = None;
    let mut n = 0;
    while n < count {
        let mut entries = Vec::new();
        for _ in 0..(count - n).min(5_000) {
            n += 1;
            let entry = entry(session, parent, n);
            parent = Some(entry.id);
            entries.push(entry);
        }
        // A compaction near the end, so that there is a context to find.
        if n == count {
            let id = EntryId(RandomIds.next(now()));
            let body = EntryBody::Compaction {
                summary: "short".into(),
                focus: None,
                kept_from: parent,
                tokens_before: 1,
                tokens_after: 1,
                taint: None,
                carried: tiller_protocol::Carried::default(),
            };
            entries.push(Entry { id, parent, body, ..entries[0].clone() });
        }
        store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
    }
    session
}

fn measure(path: &Path, session: SessionId, count: u64) {
    let mut rows: Vec<[Duration; 6]> = Vec::new();
    for _ in 0..15 {
        let mut times = [Duration::ZERO; 6];
        let mut step = |n: usize, work: &mut dyn FnMut()| {
            let began = Instant::now();
            work();
            times[n] = began.elapsed();
        };
        let mut store = None;
        step(0, &mut || store = Some(Store::open(path, Options::default()).unwrap()));
        let store = store.unwrap();
        step(1, &mut || drop(store.sessions().get(session).unwrap()));
        step(2, &mut || drop(store.paths().tail(session, "main", 200).unwrap()));
        step(3, &mut || drop(store.paths().context(session, "main").unwrap()));
        step(4, &mut || drop(store.sessions().list(&tiller_store::Filter::default()).unwrap()));
        let mut store = Some(store);
        step(5, &mut || drop(store.take()));
        rows.push(times);
    }
    let median = |n: usize| {
        let mut column: Vec<Duration> = rows.iter().map(|r| r[n]).collect();
        column.sort_unstable();
        format!("{:.2?}", column[column.len() / 2])
    };
    println!(
        "{count:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        median(0),
        median(1),
        median(2),
        median(3),
        median(4),
        median(5)
    );
}

fn commits(path: &Path) {
    let session = build(path, 0);
    let store = Store::open(path, Options::default()).unwrap();
    let mut took = Vec::new();
    let mut parent = None;
    for n in 0..500 {
        let entry = entry(session, parent, n);
        parent = Some(entry.id);
        let began = Instant::now();
        store.entries().append(Append::new(session, "main").entries(vec![entry])).wait().unwrap();
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    println!(
        "commit of one entry, fully synchronised: p50 {:.2?}, p95 {:.2?}, p99 {:.2?}",
        at(50),
        at(95),
        at(99)
    );
    println!("flush alone on this disk: {:.2?} (median)", flush(path));
}

/// The time that the disk itself takes: the minimum of any commit.
fn flush(path: &Path) -> Duration {
    use std::io::Write;
    let mut file = std::fs::File::create(path.with_file_name("flush")).unwrap();
    let mut took: Vec<Duration> = (0..100)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&[1; 20_000]).unwrap();
            file.sync_data().unwrap();
            began.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[took.len() / 2]
}

fn transfer(path: &Path) {
    let store = Store::open(path, Options::default()).unwrap();
    let session = store.sessions().list(&tiller_store::Filter::default()).unwrap()[0].id;
    let mut text = Vec::new();
    let began = Instant::now();
    store.transfer().export(session, &mut text).unwrap();
    println!("export of 100,000 entries: {:.2?} ({} MB)", began.elapsed(), text.len() / 1_000_000);
    let began = Instant::now();
    store.transfer().import(&mut text.as_slice(), ImportIds::Fresh).wait().unwrap();
    println!("import of 100,000 entries: {:.2?}", began.elapsed());
}
