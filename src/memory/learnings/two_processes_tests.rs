//! Two processes that save, use and consolidate learnings at once.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tiller_config::schema::LearningsSetting;
use tiller_protocol::{LearningState, ManualClock, Provenance, SeqIds, SessionId};
use tiller_store::{Options, Store};

use super::*;
use crate::testing::NOW;

/// Learnings that each process saves, and how many of them are alike.
const SAVED: u32 = 40;
const ALIKE: u32 = 4;
const DIR: &str = "TILLER_LEARNINGS_DIR";
const NAME: &str = "TILLER_LEARNINGS_NAME";

fn open(dir: &Path) -> Learnings {
    let store = Store::open(&dir.join("tiller.db"), Options::default()).unwrap();
    let learnings = Learnings::new(store, Arc::new(ManualClock::new(NOW)));
    learnings.set(LearningsSetting::Save, crate::learnings::LEARNING_TOKENS);
    learnings
}

/// Takes part in a consolidation as [`Learnings::consolidate_if_due`] does, which does so once a day only.
fn consolidated(learnings: &Learnings) -> usize {
    let all = learnings.store().learnings().list("", None, 10_000).unwrap();
    learnings.store().learnings().consolidate(consolidate(&all, NOW)).wait().unwrap()
}

/// What each process does: it saves, uses what is in use, and consolidates after each.
fn work(dir: &Path, name: &str) {
    let learnings = open(dir);
    let session = Some(SessionId::fresh(&SeqIds::default(), NOW));
    let from = Provenance { session, ..Provenance::default() };
    let mut used = 0;
    for n in 0..SAVED {
        let (group, variant) = (n / ALIKE, n % ALIKE);
        // One variant is saved by both processes; the others differ in a word.
        let by = if variant == 0 { "both" } else { name };
        let saved = SavedLearning {
            pattern: format!("tool{group} push"),
            error: "error: the remote has work that is not here".into(),
            fix: format!(
                "fetch the remote work of group{group} first and rebase the own work onto it {by}{variant}"
            ),
            ..SavedLearning::default()
        };
        // An alike one may be known already: it is stored as if it was written by an import.
        let subjects = [format!("tool{group}")];
        if learnings.save(saved.clone(), &from).unwrap().is_none() {
            let known = learnings.store().learnings().about("terminal", &subjects, false, 9).unwrap();
            let mut another = known[0].clone();
            (another.fix, another.state, another.times_used) = (saved.fix, LearningState::Active, 0);
            learnings.store().learnings().add(another).wait().unwrap();
        }
        let active = learnings.store().learnings().about("terminal", &subjects, true, 9).unwrap();
        let ids: Vec<i64> = active.iter().map(|l| l.id).take(2).collect();
        used += ids.len();
        learnings.store().learnings().used(ids).wait().unwrap();
        consolidated(&learnings);
    }
    std::fs::write(dir.join(format!("used-{name}")), used.to_string()).unwrap();
}

#[test]
fn two_processes_that_save_and_consolidate_at_once_lose_and_double_nothing() {
    if let (Some(dir), Ok(name)) = (std::env::var_os(DIR), std::env::var(NAME)) {
        return work(Path::new(&dir), &name);
    }
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let test = "two_processes_that_save_and_consolidate_at_once_lose_and_double_nothing";
    let child = |name: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("learnings::two_processes_tests::{test}"), "--nocapture"])
            .env(DIR, dir.path())
            .env(NAME, name)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    for mut child in ["a", "b"].map(child) {
        assert!(child.wait().unwrap().success());
    }
    let uses = |name: &str| -> u32 {
        std::fs::read_to_string(dir.path().join(format!("used-{name}"))).unwrap().parse().unwrap()
    };
    let learnings = open(dir.path());
    consolidated(&learnings);
    let all = learnings.store().learnings().list("", None, 10_000).unwrap();
    assert_eq!(all.iter().map(|l| l.times_used).sum::<u32>(), uses("a") + uses("b"), "each use counts once");
    let mut fixes: Vec<&str> = all.iter().map(|l| l.fix.as_str()).collect();
    fixes.sort_unstable();
    let before = fixes.len();
    fixes.dedup();
    assert_eq!(fixes.len(), before, "each learning is there once");
    for group in 0..SAVED / ALIKE {
        let of: Vec<_> = all.iter().filter(|l| l.fix.contains(&format!("group{group} "))).collect();
        // Three that each process words differently, and one of both.
        assert_eq!(of.len(), 2 * (ALIKE as usize - 1) + 1, "group {group}: {of:#?}");
        let active: Vec<_> = of.iter().filter(|l| l.state == LearningState::Active).collect();
        assert_eq!(active.len(), 1, "group {group}: {of:#?}");
    }
}
