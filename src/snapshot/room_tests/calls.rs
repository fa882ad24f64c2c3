//! Calls that were cut off by a kill.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::world::World;
use crate::{CallNote, Goal, Shadow, Step};

fn note(s: &Shadow, paths: Option<Vec<PathBuf>>) -> CallNote {
    let last = s.last().unwrap();
    CallNote { session: "s 1".into(), call: "c%1".into(), before: last.id, began: last.time, paths }
}

/// Sets the heartbeat of the only record so that a change up to now is the call's and no later one is.
fn last_sign_now(w: &World, path: &str) {
    let changed = w.work().join(path).symlink_metadata().unwrap();
    let nanos = u32::try_from(changed.ctime_nsec()).unwrap();
    let at = UNIX_EPOCH + Duration::new(u64::try_from(changed.ctime()).unwrap(), nanos);
    let record = fs::read_dir(w.store().join("calls")).unwrap().next().unwrap().unwrap().path();
    let file = fs::OpenOptions::new().write(true).open(record).unwrap();
    file.set_modified(at - Duration::from_secs(2)).unwrap();
    // The clock of a file system has ticks: later changes must have a later time.
    let probe = w.top.join("probe");
    loop {
        fs::write(&probe, "x").unwrap();
        let now = probe.symlink_metadata().unwrap();
        if (now.ctime(), now.ctime_nsec()) > (changed.ctime(), changed.ctime_nsec()) {
            return;
        }
    }
}

#[test]
fn its_work_is_told_from_what_the_person_changed_after_the_kill() {
    let w = World::new();
    for name in ["edited", "gone/by_call", "later/by_person", "mine"] {
        w.put(name, "old\n");
    }
    let mut s = w.open();
    let before = s.snapshot().unwrap();
    let open = s.begin_call(&note(&s, None)).unwrap();
    assert!(s.beat(), "it is under way");
    assert!(s.cut_calls().is_empty());
    w.put("edited", "by the call\n");
    w.put("made\u{e9}", "by the call\n");
    w.remove("gone/by_call");
    fs::rename(w.work().join("edited"), w.work().join("edited.new")).unwrap();
    fs::rename(w.work().join("edited.new"), w.work().join("edited")).unwrap();
    // The effect of a kill.
    drop(open);
    assert!(!s.beat());
    last_sign_now(&w, "edited");
    w.put("mine", "by the person\n");
    w.put("new", "by the person\n");
    w.remove("later/by_person");
    drop(s);
    let mut s = w.open();
    let now = s.snapshot().unwrap();
    let cut = s.cut_calls();
    assert_eq!(cut.len(), 1);
    assert_eq!((cut[0].note.session.as_str(), cut[0].note.call.as_str()), ("s 1", "c%1"));
    assert!(s.cut_calls().is_empty(), "nobody else gets it meanwhile");
    let (after, own) = s.work_of(&cut[0], &now).unwrap();
    let names: Vec<_> = own.iter().map(|d| d.path.to_str().unwrap()).collect();
    assert_eq!(names, ["edited", "gone/by_call", "made\u{e9}"]);
    for c in cut {
        c.end();
    }
    assert!(s.cut_calls().is_empty());
    // Going back undoes the call's changes, and the person's change is a conflict.
    let plan = s.plan(&Goal::back(before.id, vec![Step { before: before.id, after: after.id }])).unwrap();
    let conflicts: Vec<_> = plan.conflicts().map(|i| i.diff.path.to_str().unwrap()).collect();
    assert_eq!(conflicts, ["later/by_person", "mine", "new"]);
    assert_eq!(plan.items.len(), 6);
}

#[test]
fn a_call_that_names_its_files_changed_no_other_one() {
    let w = World::new();
    w.put("a", "old\n");
    let mut s = w.open();
    s.snapshot().unwrap();
    drop(s.begin_call(&note(&s, Some(vec![w.work().join("a"), w.work().join("b")]))).unwrap());
    for name in ["a", "b", "c"] {
        w.put(name, "new\n");
    }
    let now = s.snapshot().unwrap();
    let cut = s.cut_calls();
    let (_, own) = s.work_of(&cut[0], &now).unwrap();
    assert_eq!(own.iter().map(|d| d.path.to_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn temporary_files_are_in_no_state() {
    let w = World::new();
    w.put("a", "old\n");
    w.put("d/b", "old\n");
    let mut s = w.open();
    let clean = s.snapshot().unwrap();
    let token = "0123456789abcdef";
    w.put(&tiller_protocol::names::temporary(token, 3), "half");
    w.put(&format!("d/{}", tiller_protocol::names::second(token, 3)), "half");
    assert_eq!(s.snapshot().unwrap().tree, clean.tree);
    let named = s.snapshot_touched(&[format!("d/{}", tiller_protocol::names::temporary(token, 1))]).unwrap();
    assert_eq!(named.tree, clean.tree);
    drop(s);
    assert_eq!(w.open().snapshot().unwrap().tree, clean.tree);
}

#[test]
fn a_record_that_is_cut_or_odd_is_swept() {
    let w = World::new();
    let s = w.open();
    fs::create_dir_all(w.store().join("calls")).unwrap();
    for (n, text) in
        ["", "tiller-call 1\nsession a\n", "x", "tiller-call 1\nsession %ff\ncall a\n"].iter().enumerate()
    {
        fs::write(w.store().join(format!("calls/{n}")), text).unwrap();
    }
    assert!(s.cut_calls().is_empty());
    assert_eq!(fs::read_dir(w.store().join("calls")).unwrap().count(), 0);
}
