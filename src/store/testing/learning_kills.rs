//! Learnings of a process that is killed at any moment: what was acknowledged is there, and nothing is there by half (S1, S2).

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tiller_protocol::{Learning, LearningState};

use crate::testing::child::{command, lines, say};
use crate::testing::kill_tests::killed_at_storage_calls;
use crate::testing::*;
use crate::{Retirement, Store};

const KILLS: u64 = 40;
/// Kill points of each kind of call.
const POINTS: usize = 6;
/// Learnings of one import.
const IMPORTED: usize = 20;

fn learning(fix: &str, state: LearningState, times_used: u32) -> Learning {
    Learning { state, times_used, ..crate::testing::learning("git push", "rejected", fix) }
}

/// Saves, accepts, consolidates and imports in rounds, and prints what was acknowledged.
pub(super) fn work(path: &Path, rounds: u32) {
    let store = Store::open(path, options()).unwrap();
    let l = store.learnings();
    let run = std::process::id();
    for round in 1..=rounds {
        let name = format!("{run}-{round}");
        let id = l.add(learning(&format!("{name} a"), LearningState::Proposed, 1)).wait().unwrap().0;
        say(&format!("saved {name}"));
        l.change(id, Some(LearningState::Active), None).wait().unwrap();
        say(&format!("accepted {name}"));
        let other = l.add(learning(&format!("{name} b"), LearningState::Active, 2)).wait().unwrap().0;
        let seen = l.get(other).unwrap();
        let merge = Retirement { seen, into: Some(id), context: format!("merged into {id}") };
        assert_eq!(l.consolidate(vec![merge]).wait().unwrap(), 1);
        say(&format!("merged {name}"));
        let many = (0..IMPORTED)
            .map(|n| learning(&format!("{name} import{n}"), LearningState::Proposed, 0))
            .collect();
        assert_eq!(l.add_all(many).wait().unwrap(), IMPORTED);
        say(&format!("imported {name}"));
    }
    say("done");
}

/// Checks the learnings of all rounds against what was acknowledged (`saved 1-2`).
fn check(store: &Store, acknowledged: &BTreeSet<String>) {
    let all = store.learnings().list("", None, 1_000_000).unwrap();
    let names: BTreeSet<&str> = all.iter().filter_map(|l| l.fix.split(' ').next()).collect();
    let of = |name: &str, what: &str| all.iter().find(|l| l.fix == format!("{name} {what}"));
    for name in names {
        let said = |what: &str| acknowledged.contains(&format!("{what} {name}"));
        // A learning is there as a whole.
        let first = of(name, "a").expect("it was saved before all others of its round");
        let state = &first.state;
        assert!(*state == LearningState::Active || (*state == LearningState::Proposed && !said("accepted")));
        let second = of(name, "b").map(|l| (l.state.clone(), l.times_used));
        match (first.times_used, second) {
            (1, None | Some((LearningState::Active, 2))) => assert!(!said("merged")),
            (3, Some((LearningState::Retired, 0))) => {}
            half => panic!("half of a consolidation is stored: {half:?}"),
        }
        let imported = all.iter().filter(|l| l.fix.starts_with(&format!("{name} import"))).count();
        assert!(imported == IMPORTED || (imported == 0 && !said("imported")), "{imported} of an import");
    }
    for line in acknowledged.iter().filter_map(|line| line.strip_prefix("saved ")) {
        assert!(of(line, "a").is_some(), "{line} was acknowledged and is lost");
    }
}

#[test]
fn s1_learnings_of_a_process_that_is_killed_at_random_moments_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let mut acknowledged = BTreeSet::new();
    for trial in 0..KILLS {
        let mut child = command(&[], "learnings 1000", &path).spawn().unwrap();
        let said = lines(&mut child);
        let patience = Duration::from_micros(trial * 3_301 % 80_000);
        let (acknowledges, acknowledged_one) = std::sync::mpsc::channel::<()>();
        let killer = std::thread::spawn(move || {
            // Each second one comes far enough, however slow the machine is.
            if trial % 2 == 1 {
                let _ = acknowledged_one.recv();
            }
            std::thread::park_timeout(patience);
            child.kill().unwrap();
            child.wait().unwrap();
        });
        for line in said {
            acknowledged.insert(line);
            let _ = acknowledges.send(());
        }
        drop(acknowledges);
        killer.join().unwrap();
        let store = Store::open(&path, options()).unwrap();
        assert!(store.notices().is_empty(), "{:?}", store.notices());
        check(&store, &acknowledged);
        if trial % 10 == 9 {
            assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
        }
    }
    assert!(!acknowledged.is_empty(), "no child came far enough");
    eprintln!("{KILLS} kills, {} changes of learnings acknowledged, none lost", acknowledged.len());
}

#[test]
fn s2_learnings_of_a_process_that_is_killed_at_storage_calls_are_whole() {
    killed_at_storage_calls("learnings 2", POINTS, |store, said| {
        check(store, &said.iter().cloned().collect())
    });
}
