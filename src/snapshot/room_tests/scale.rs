//! Trees that are too large or too unusual for a complete scan. (W9, W12)

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use super::world::{World, diff};
use crate::{CostReason, Goal, Mode, Reason, SkipReason, State, Step};

#[test]
fn a_tree_that_is_too_large_is_covered_by_name_only_and_says_so() {
    let mut w = World::new();
    w.limits.files = 50;
    for n in 0..60 {
        w.put(&format!("d/{n}"), "0");
    }
    w.put("code", "0");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert_eq!(first.mode, Mode::Named(CostReason::Files(50)));
    assert!(first.notice().unwrap().contains("more than 50 files"), "{:?}", first.notice());
    assert_eq!(s.files(first.id).unwrap(), []);
    assert_eq!(s.state(first.id, Path::new("code")).unwrap(), State::Unknown);
    // Before and after each named edit.
    let before = s.snapshot_touched(&["code", "made/new"]).unwrap();
    w.put("code", "1");
    w.put("made/new", "1");
    let after = s.snapshot_touched(&["code", "made/new"]).unwrap();
    assert_eq!(diff(&s, before.id, after.id), "~code +made/new");
    assert_eq!(s.snapshot().unwrap().tree, after.tree);
    drop(s);
    let mut s = w.open();
    let step = Step { before: before.id, after: after.id };
    let plan = s.plan(&Goal::back(before.id, vec![step])).unwrap();
    assert_eq!(plan.conflicts().count(), 0);
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get("code"), "0");
    assert!(!w.work().join("made").exists());
    assert_eq!(w.tree().len(), 62);
    let plan = s.plan(&done.undo()).unwrap();
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!((w.get("code"), w.get("made/new")), ("1".into(), "1".into()));
    // The first checkpoint did not cover them, so it does not delete them.
    let plan = s.plan(&Goal::back(first.id, Vec::new())).unwrap();
    assert_eq!(plan.items, []);
    assert!(plan.left.iter().all(|l| l.why == SkipReason::UnknownThen));
    // Changes of the session itself are known from its first step on.
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    assert_eq!((plan.items.len(), plan.conflicts().count(), plan.left.len()), (2, 0, 0));
    // Once it is small enough, all of it is covered again.
    w.sh("rm -r d");
    drop(s);
    assert_eq!(w.open().snapshot().unwrap().mode, Mode::Full);
}

#[test]
fn too_much_content_and_too_much_time_are_limits_too() {
    let mut w = World::new();
    for n in 0..600 {
        w.put(&format!("{n}"), vec![b'x'; 100]);
    }
    w.limits.tree_bytes = 50_000;
    let mode = w.open().snapshot().unwrap().mode;
    assert_eq!(mode, Mode::Named(CostReason::Bytes(50_000)));
    w.limits.tree_bytes = u64::MAX;
    // On this clock no time passes, so the scan is never too slow; on an expired one it is.
    assert_eq!(w.open().snapshot().unwrap().mode, Mode::Full);
    let late = std::sync::Arc::new(Late::default());
    w.limits.scan = Duration::from_secs(1);
    let (work, store) = (w.work(), w.store());
    let mut s = crate::Shadow::open(&work, &store, w.limits, late).unwrap();
    assert_eq!(s.snapshot().unwrap().mode, Mode::Named(CostReason::Slow(1)));
}

/// A clock on which each reading advances two seconds.
#[derive(Default)]
struct Late(std::sync::atomic::AtomicU64);

impl tiller_protocol::Clock for Late {
    fn now(&self) -> tiller_protocol::Time {
        tiller_protocol::Time(0)
    }

    fn mono(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(2, std::sync::atomic::Ordering::SeqCst))
    }
}

#[test]
fn a_folder_that_grows_too_large_under_a_named_path_is_not_taken_for_deleted() {
    let mut w = World::new();
    w.limits.files = 30;
    w.put("code", "0");
    w.put("old/x", "0");
    let mut s = w.open();
    let first = s.snapshot_touched(&["code", "old"]).unwrap();
    assert_eq!(first.mode, Mode::Full);
    for n in 0..40 {
        w.put(&format!("old/{n}"), "0");
    }
    let second = s.snapshot_touched(&["old"]).unwrap();
    assert_eq!(second.mode, Mode::Named(CostReason::Files(30)));
    assert_eq!(diff(&s, first.id, second.id), "?code ?old/x");
    let plan = s.plan(&Goal::back(first.id, vec![])).unwrap();
    assert_eq!(plan.items, []);
    assert_eq!(w.tree().len(), 43);
}

#[test]
fn a_home_folder_is_never_looked_through() {
    let mut w = World::new();
    w.put(".profile", "0");
    for home in [w.work(), w.work().join("user")] {
        fs::create_dir_all(&home).unwrap();
        w.limits.home = Some(home);
        let mut s = w.open();
        let first = s.snapshot().unwrap();
        assert_eq!(first.mode, Mode::Named(CostReason::Home));
        assert_eq!(s.files(first.id).unwrap(), []);
        let named = s.snapshot_touched(&[".profile"]).unwrap();
        assert_eq!(s.read(named.id, Path::new(".profile")).unwrap().unwrap(), b"0");
        drop(s);
        fs::remove_dir_all(w.store()).unwrap();
    }
    // A project in it is covered completely.
    w.limits.home = Some(w.top.clone());
    assert_eq!(w.open().snapshot().unwrap().mode, Mode::Full);
}

#[test]
fn huge_sparse_and_endless_files_are_not_read() {
    let w = World::new();
    w.put("code", "0");
    let sparse = File::create(w.work().join("sparse")).unwrap();
    sparse.set_len(5 << 30).unwrap();
    w.sh("mkfifo pipe; ln -s /dev/zero endless; ln -s pipe to-pipe; ln -s . loop");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let list: Vec<_> = first.uncovered.iter().map(|u| (u.path.to_str().unwrap(), u.reason)).collect();
    assert_eq!(list, [("pipe", Reason::Special), ("sparse", Reason::TooLarge)]);
    assert_eq!(s.read(first.id, Path::new("endless")).unwrap().unwrap(), b"/dev/zero");
    // By name, they are not read either.
    let quick = s.snapshot_touched(&["sparse", "pipe", "to-pipe", "loop/code"]).unwrap();
    assert_eq!(quick.tree, first.tree);
    assert!(s.bytes().unwrap() < 100_000);
    // A pipe in place of a file that is to be restored stays, and the restore does not block on it.
    let step = super::world::agent(&mut s, || w.put("code", "1"));
    w.sh("rm code; mkfifo code");
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    let answers = plan.items.iter().map(|i| (i.diff.path.clone(), crate::Answer::Restore)).collect();
    let done = s.restore(&plan, &answers).unwrap();
    assert!(done.done.is_empty() && plan.items.len() + plan.left.len() == 1);
    assert_eq!(w.tree()[Path::new("code")].0, 's');
}

#[test]
fn folders_that_cannot_be_read_are_listed() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: root reads every folder");
        return;
    }
    let w = World::new();
    w.put("closed/x", "0");
    w.put("open", "0");
    w.sh("chmod 000 closed");
    let first = w.open().snapshot().unwrap();
    w.sh("chmod 755 closed");
    assert_eq!(first.uncovered(Path::new("closed/x")), Some(Reason::Unreadable));
}

#[test]
fn deep_and_wide_trees_work() {
    let w = World::new();
    let deep = vec!["d"; 150].join("/");
    w.put(&format!("{deep}/leaf"), "0");
    for n in 0..3000 {
        w.put(&format!("wide/{n}"), "0");
    }
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert_eq!(s.files(first.id).unwrap().len(), 3001);
    let before = s.bytes().unwrap();
    w.put("wide/7", "1");
    let second = s.snapshot_touched(&["wide/7"]).unwrap();
    assert_eq!(diff(&s, first.id, second.id), "~wide/7");
    assert!(s.bytes().unwrap() - before < 200_000);
}

#[test]
fn a_file_that_changes_within_one_tick_and_keeps_its_size_is_seen() {
    let w = World::new();
    w.put("a", "0000");
    let mut s = w.open();
    let mut last = s.snapshot().unwrap();
    for n in 1..200 {
        // In place, with the same size, as fast as possible: stamps may be equal.
        w.put("a", format!("{n:04}"));
        let now = if n % 2 == 0 { s.snapshot() } else { s.snapshot_touched(&["a"]) }.unwrap();
        assert_ne!(now.tree, last.tree, "{n}");
        last = now;
    }
}
