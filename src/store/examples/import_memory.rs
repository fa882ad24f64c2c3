//! Prints the time and the peak of memory that the import of a large export takes, in a process of its own.
//! `cargo run --release -p tiller-store --example import_memory [FOLDER [MEGABYTES]]` (the folder decides which disk is used).
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and its errors end it")]

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use tiller_protocol::{
    AgentId, Clock, Entry, EntryBody, EntryId, IdSource, Message, ModelRef, Origin, Part, Profile, RandomIds,
    SessionId, SystemClock,
};
use tiller_store::{Append, ImportIds, ImportSource, NewSession, Options, Store};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [import, file, folder] = args.as_slice()
        && import == "import"
    {
        return import_file(Path::new(file), Path::new(folder));
    }
    let place = args.first().map_or(".", String::as_str);
    let megabytes: u64 = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    let dir = tempfile::tempdir_in(place).unwrap();
    let file = dir.path().join("export.jsonl");
    export(&dir.path().join("from"), &file, megabytes);
    println!("{} MB to import", file.metadata().unwrap().len() >> 20);
    let me = std::env::current_exe().unwrap();
    let status =
        std::process::Command::new(me).arg("import").args([&file, &dir.path().join("to")]).status().unwrap();
    assert!(status.success());
}

/// Writes an export of about this size: its entries have 4 KB each.
fn export(folder: &Path, file: &Path, megabytes: u64) {
    let store = Store::open(&folder.join("tiller.db"), Options::default()).unwrap();
    let now = SystemClock::default().now();
    let id = SessionId(RandomIds.next(now));
    let new = NewSession {
        id,
        project: "/work".into(),
        title: "large".into(),
        model: ModelRef("m".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: tiller_store::MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let text = "some words that a person or a model might write. ".repeat(40);
    let mut parent = None;
    for _ in 0..megabytes {
        let mut entries = Vec::new();
        for _ in 0..250 {
            let next = EntryId(RandomIds.next(now));
            let body = EntryBody::User {
                message: Message::text(text.clone()),
                origin: Origin::Prompt,
                content: vec![Part::Text { text: text.clone() }],
                taint: None,
                learnings: Vec::new(),
            };
            let agent = AgentId::main();
            entries.push(Entry { id: next, parent, session: id, agent, time: now, body, snapshot: None });
            parent = Some(next);
        }
        store.entries().append(Append::new(id, "main").entries(entries)).wait().unwrap();
    }
    store.transfer().export(id, &mut File::create(file).unwrap()).unwrap();
}

fn import_file(file: &Path, folder: &Path) {
    let store = Store::open(&folder.join("tiller.db"), Options::default()).unwrap();
    let began = Instant::now();
    let source = ImportSource::File(File::open(file).unwrap());
    let came = store.transfer().import_from(source, ImportIds::Keep).wait().unwrap();
    let took = began.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: not known here");
    println!("{} entries in {:.1} s, {peak}", came.entries, took.as_secs_f64());
}
