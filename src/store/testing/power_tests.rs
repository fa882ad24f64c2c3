//! S3: loss of power. A tracer records the writes of a process, and every possible resulting state of the disk is
//! opened: acknowledged data is there, and nothing is damaged.

use std::collections::HashSet;
use std::process::{Command, Stdio};

use tiller_protocol::EntryId;
use tiller_testkit::power::{Recording, tracer};

use crate::testing::child::command;
use crate::testing::options;
use crate::{Filter, Store};

/// Runs a role of a child and records it. `None`: no tracer here.
fn record(part: &str, data: &std::path::Path, log: &std::path::Path) -> Option<Recording> {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return None;
    }
    let words = tracer(log);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let out = command(&words, part, &data.join("tiller.db")).stdin(Stdio::null()).output().unwrap();
    let log = std::fs::read_to_string(log).unwrap_or_default();
    if !out.status.success() || log.is_empty() {
        eprintln!("skipped: strace may not trace here");
        return None;
    }
    Some(Recording::read(&log, data))
}

/// What the child reported as saved, by its words.
fn told(said: &[String], word: &str) -> Vec<String> {
    let lines = said.iter().flat_map(|s| s.lines());
    lines.filter_map(|l| l.rsplit_once("> ")?.1.strip_prefix(word).map(|id| id.trim().to_owned())).collect()
}

fn losses(turns: u32, states: usize) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let data = root.join("data");
    std::fs::create_dir(&data).unwrap();
    let Some(recording) = record(&format!("turns {turns}"), &data, &root.join("log")) else { return };
    let (mut acknowledged, mut most) = (0, 0);
    recording.states(states, 0x5eed, |n, state| {
        let place = root.join(format!("state-{n}"));
        state.write(&place).unwrap();
        let at = format!("state {n}, after {} of {} acts", state.after, recording.len());
        let store = Store::open(&place.join("tiller.db"), options()).unwrap_or_else(|e| panic!("{at}: {e}"));
        let damage: Vec<_> = store.notices().iter().filter(|n| n.message.contains("damaged")).collect();
        assert!(damage.is_empty(), "{at}: {damage:?}");
        let acks: Vec<EntryId> = told(&state.said, "ack ").iter().map(|id| id.parse().unwrap()).collect();
        let sessions = store.sessions().list(&Filter::default()).unwrap();
        let stored: HashSet<EntryId> = sessions
            .iter()
            .flat_map(|s| store.paths().tail(s.id, "main", 100_000).unwrap().entries)
            .map(|e| e.id)
            .collect();
        for id in &acks {
            assert!(stored.contains(id), "{at}: {id} was acknowledged and is lost");
        }
        let approvals: HashSet<String> =
            store.audit().list(None, "", 0).unwrap().into_iter().map(|row| row.what).collect();
        for id in told(&state.said, "audit ") {
            assert!(approvals.contains(&id), "{at}: the approval of {id} is lost");
        }
        let doctor = store.doctor().unwrap();
        assert_eq!((doctor.problems, doctor.damaged_entries), (vec![], 0), "{at}");
        acknowledged += acks.len();
        most = most.max(acks.len());
        drop(store);
        std::fs::remove_dir_all(&place).unwrap();
    });
    eprintln!(
        "{states} losses of power over {} acts: {acknowledged} acknowledgements looked for",
        recording.len()
    );
    assert!(most as u32 == turns * 4, "{most} acknowledgements were heard");
}

#[test]
fn s3_quick_after_a_loss_of_power_what_was_acknowledged_is_there() {
    losses(40, 60);
}

#[test]
#[ignore = "the full figures take minutes"]
fn s3_a_thousand_losses_of_power() {
    losses(400, 1_000);
}
