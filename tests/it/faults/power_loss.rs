//! S3 with the whole program: power is lost while a turn writes files. Everything that was printed is in the database,
//! and every state of files that the database refers to can be restored completely.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tiller::protocol::{EntryId, SystemClock};
use tiller::snapshot::{Id, Limits, Shadow};
use tiller::store::{Filter, Options, Store};
use tiller_testkit::ScriptServer;
use tiller_testkit::power::{Recording, tracer};

use crate::common::{Place, TILLER, calls, says, strace};

fn losses(turns: usize, states: usize) {
    if !strace() {
        return;
    }
    let script = (0..turns).map(|n| {
        let text = format!("version {n} {}\n", "x".repeat(n * 37 % 9_000));
        calls(&format!("c{n}"), "write_file", json!({"path": format!("f{}.txt", n % 5), "content": text}))
    });
    let server = ScriptServer::start(script.chain([says("All is written.")]));
    let place = Place::anthropic(&server);
    let data = place.home.join("data");
    std::fs::create_dir(&data).unwrap();
    let log = place.user.join("log");
    let mut words = tracer(&log);
    words.extend(
        [TILLER, "exec", "--json", "--profile", "full", "--max-turns", "1000", "write them"].map(Into::into),
    );
    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let out = place.program(&words[0], &args).stdin(Stdio::null()).output().unwrap();
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    if log.is_empty() {
        eprintln!("skipped: strace may not trace here: {}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let recording = Recording::read(&log, &data);
    let (mut looked, mut found) = (0, 0);
    recording.states(states, 0x0ff, |n, state| {
        let at = format!("state {n}, after {} of {} acts", state.after, recording.len());
        let disk = place.user.join(format!("state-{n}"));
        state.write(&disk).unwrap();
        let store =
            Store::open(&disk.join("tiller.db"), Options::default()).unwrap_or_else(|e| panic!("{at}: {e}"));
        let damage: Vec<_> = store.notices().iter().filter(|n| n.message.contains("damaged")).collect();
        assert!(damage.is_empty(), "{at}: {damage:?}");
        assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new(), "{at}");
        // What was printed, by its entries.
        let said = state.said.concat();
        let events = said.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        let told: Vec<(EntryId, String)> = events
            .filter_map(|e| Some((e["entry"].as_str()?.parse().ok()?, e["type"].to_string())))
            .collect();
        let sessions = store.sessions().list(&Filter { exec: true, ..Filter::default() }).unwrap();
        let mut stored = HashSet::new();
        let mut snapshots = HashSet::new();
        for s in &sessions {
            stored.extend(store.paths().all(s.id).unwrap().iter().map(|e| e.id));
            for step in store.steps().list(s.id, 0).unwrap() {
                snapshots.extend(step.before);
                snapshots.insert(step.after);
            }
        }
        for (id, what) in &told {
            assert!(stored.contains(id), "{at}: {what} {id} was told and is lost");
        }
        looked += told.len();
        // And the states of files that the database refers to.
        if let Some(shadow) = std::fs::read_dir(disk.join("snapshots")).ok().and_then(|mut d| d.next()) {
            let dir = shadow.unwrap().path();
            let limits = Limits { home: Some(place.user.clone()), ..Limits::default() };
            let clock = Arc::new(SystemClock::default());
            let shadow =
                Shadow::open(&place.work, &dir, limits, clock).unwrap_or_else(|e| panic!("{at}: {e}"));
            let ids: Vec<Id> = snapshots.iter().map(|s| s.parse().unwrap()).collect();
            for id in &ids {
                shadow.find(*id).unwrap_or_else(|e| panic!("{at}: snapshot {id}: {e}"));
            }
            let whole = shadow.verify().unwrap();
            let bad: Vec<&String> =
                whole.problems.iter().filter(|p| ids.iter().any(|id| p.contains(&id.short()))).collect();
            assert!(bad.is_empty(), "{at}: {bad:?}");
            found += ids.len();
        } else {
            assert!(snapshots.is_empty(), "{at}: the store of snapshots is lost");
        }
        drop(store);
        std::fs::remove_dir_all(&disk).unwrap();
    });
    eprintln!(
        "{states} losses of power over {} acts: {looked} entries, {found} snapshots looked for",
        recording.len()
    );
    assert!(looked > states && found > states, "{looked} entries, {found} snapshots");
}

#[test]
fn s3_quick_the_power_goes_while_files_are_written() {
    losses(12, 40);
}

#[test]
#[ignore = "the full figures take minutes"]
fn s3_five_hundred_losses_of_power_while_files_are_written() {
    losses(60, 500);
}
