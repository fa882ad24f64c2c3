//! Taking, comparing, restoring, undoing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::world::{World, agent, diff, restore, undo};
use crate::{Answer, Conflict, Goal, Id, Kind, Reason, SkipReason, SnapshotError, State, TextChange};

#[test]
fn an_edit_is_seen_restored_undone_and_redone() {
    let w = World::new();
    w.put("a.txt", "one\n");
    w.put("dir/b.txt", "two\n");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert_eq!(s.snapshot().unwrap(), first, "unchanged");
    let step = agent(&mut s, || {
        w.put("a.txt", "one changed\n");
        w.put("new/deep/c.txt", "three\n");
        w.remove("dir/b.txt");
    });
    let then = w.tree();
    assert_eq!(diff(&s, step.before, step.after), "~a.txt -dir/b.txt +new/deep/c.txt");
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.left, []);
    assert_eq!(w.get("a.txt"), "one\n");
    assert_eq!(w.get("dir/b.txt"), "two\n");
    assert!(!w.work().join("new").exists());
    assert_eq!(done.after.tree, first.tree);
    let back = undo(&mut s, &done);
    assert_eq!(w.tree(), then);
    undo(&mut s, &back);
    assert_eq!(w.get("a.txt"), "one\n");
    assert_eq!(s.snapshot().unwrap().tree, first.tree);
}

#[test]
fn what_somebody_else_changed_is_a_conflict_and_stays() {
    let w = World::new();
    w.put("mine.txt", "0");
    w.put("both.txt", "0");
    w.put("yours.txt", "0");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let one = agent(&mut s, || {
        w.put("mine.txt", "agent");
        w.put("both.txt", "agent");
    });
    w.put("both.txt", "agent, then person");
    w.put("yours.txt", "person");
    w.put("found.txt", "person's new file");
    let two = agent(&mut s, || w.put("mine.txt", "agent again"));
    let plan = s.plan(&Goal::back(first.id, vec![one, two])).unwrap();
    let conflicts: Vec<_> = plan.conflicts().map(|i| i.diff.path.to_string_lossy().into_owned()).collect();
    assert_eq!(conflicts, ["both.txt", "found.txt", "yours.txt"]);
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(done.done, [PathBuf::from("mine.txt")]);
    assert_eq!(w.get("mine.txt"), "0");
    assert_eq!(w.get("both.txt"), "agent, then person");
    assert_eq!(w.get("found.txt"), "person's new file");
    assert!(done.left.iter().all(|l| l.why == SkipReason::Conflict));
    // Selected by name, they are removed; and come back.
    let plan = s.plan(&Goal::back(first.id, vec![one, two])).unwrap();
    let answers: BTreeMap<_, _> = plan.items.iter().map(|i| (i.diff.path.clone(), Answer::Restore)).collect();
    let all = s.restore(&plan, &answers).unwrap();
    assert_eq!(all.after.tree, first.tree);
    undo(&mut s, &all);
    assert_eq!(w.get("both.txt"), "agent, then person");
    assert_eq!(w.get("found.txt"), "person's new file");
}

#[test]
fn the_changes_of_a_turn_go_from_its_first_state_of_each_path_to_its_last() {
    let w = World::new();
    for name in ["kept.txt", "both.txt", "back.txt", "gone.txt", "old.txt", "yours.txt"] {
        w.put(name, "0\n");
    }
    let mut s = w.open();
    let one = agent(&mut s, || {
        w.put("both.txt", "1\n");
        w.put("back.txt", "1\n");
        w.put("made.txt", "1\n");
        w.put("short.txt", "1\n");
        w.remove("gone.txt");
    });
    w.put("yours.txt", "person\n");
    w.put("both.txt", "1\nperson\n");
    let two = agent(&mut s, || {
        w.put("both.txt", "1\nperson\n2\n");
        w.put("back.txt", "0\n");
        w.remove("short.txt");
        fs::rename(w.work().join("old.txt"), w.work().join("new.txt")).unwrap();
    });
    let shown = |steps: &[crate::Step]| -> Vec<String> {
        let diffs = s.turn_changes(steps).unwrap();
        diffs.iter().map(|d| format!("{:?} {}", d.change, d.path.display())).collect()
    };
    let all = ["Modified both.txt", "Deleted gone.txt", "Added made.txt", "Added new.txt", "Deleted old.txt"];
    assert_eq!(shown(&[one, two]), all, "neither what is as it was nor what is only another's");
    assert_eq!(shown(&[one]).len(), 5);
    assert_eq!(shown(&[]), Vec::<String>::new());
    let both = s.turn_changes(&[one, two]).unwrap().remove(0);
    assert!(matches!(s.text(&both).unwrap(), TextChange::Lines { added: 3, removed: 1, .. }), "{both:?}");
}

#[test]
fn a_change_after_the_plan_was_shown_is_kept() {
    let w = World::new();
    w.put("a", "0");
    w.put("b", "0");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put("a", "agent");
        w.put("b", "agent");
    });
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    assert_eq!(plan.conflicts().count(), 0);
    w.put("a", "person");
    let done = s.restore(&plan, &BTreeMap::from([("a".into(), Answer::Restore)])).unwrap();
    assert_eq!((w.get("a"), w.get("b")), ("person".into(), "0".into()));
    assert_eq!(done.left[0].why, SkipReason::ChangedSince);
}

#[test]
fn files_can_be_chosen_and_contents_given() {
    let w = World::new();
    for name in ["a", "b", "d/c", "d/e"] {
        w.put(name, "0");
    }
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || ["a", "b", "d/c", "d/e"].into_iter().for_each(|n| w.put(n, "1")));
    let mut goal = Goal::back(first.id, vec![step]);
    goal.select = Some(vec!["d".into(), "b".into()]);
    let plan = s.plan(&goal).unwrap();
    let answers =
        BTreeMap::from([("d/c".into(), Answer::Keep), ("b".into(), Answer::Content(b"merged".to_vec()))]);
    s.restore(&plan, &answers).unwrap();
    assert_eq!(["a", "b", "d/c", "d/e"].map(|n| w.get(n)), ["1", "merged", "1", "0"]);
}

#[test]
fn every_kind_of_file_comes_back() {
    let w = World::new();
    w.put("crlf.txt", "a\r\nb\r\n");
    w.put("binary", [0_u8, 255, 10, 13, 0]);
    w.put("empty", "");
    w.put("run.sh", "#!/bin/sh\n");
    w.put("secret", "x");
    w.put("becomes-folder", "file");
    w.put("becomes-file/x", "in folder");
    fs::create_dir_all(w.work().join("hollow/inner")).unwrap();
    fs::create_dir(w.work().join("private")).unwrap();
    w.put("private/p", "p");
    let mode = |name: &str, mode| {
        fs::set_permissions(w.work().join(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    mode("run.sh", 0o755);
    mode("secret", 0o600);
    mode("private", 0o700);
    symlink("../outside", w.work().join("link")).unwrap();
    symlink("nowhere", w.work().join("becomes-plain")).unwrap();
    let odd = OsStr::from_bytes(b"odd \xff\n name%");
    fs::write(w.work().join(odd), "odd").unwrap();
    let before = w.tree();
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert_eq!(first.uncovered, []);
    assert_eq!(s.read(first.id, Path::new(odd)).unwrap().unwrap(), b"odd");
    assert_eq!(s.read(first.id, Path::new("link")).unwrap().unwrap(), b"../outside");
    let step = agent(&mut s, || {
        w.sh("rm -rf hollow private becomes-folder becomes-file becomes-plain link run.sh secret odd* crlf.txt");
        w.put("becomes-folder/deep/x", "now");
        w.put("becomes-file", "now");
        w.put("becomes-plain", "now");
        w.put("crlf.txt", "a\nb\n");
        symlink("x", w.work().join("run.sh")).unwrap();
        fs::set_permissions(w.work().join("binary"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    let after = w.tree();
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.left, []);
    assert_eq!(w.tree(), before);
    assert_eq!(done.after.tree, first.tree);
    undo(&mut s, &done);
    assert_eq!(w.tree(), after);
    // A new value has the same information.
    drop(s);
    let mut s = w.open();
    assert_eq!(s.snapshot().unwrap().tree, done.before.tree);
}

#[test]
fn build_output_is_neither_kept_nor_deleted_unless_named() {
    let w = World::new();
    w.put(".gitignore", "out/\n*.log\n!keep.log\n.env\n");
    w.put("out/big", "x");
    w.put("sub/a.log", "x");
    w.put("sub/keep.log", "x");
    w.put(".env", "SECRET=1");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let names: Vec<_> = s.files(first.id).unwrap().into_iter().map(|(p, _)| p).collect();
    assert_eq!(names, [PathBuf::from(".env"), ".gitignore".into(), "sub/keep.log".into()]);
    // A named path is covered from then on, in every snapshot.
    let before = s.snapshot_touched(&[".env", "out/deep/new"]).unwrap();
    w.put(".env", "SECRET=2");
    w.put("out/deep/new", "by the agent");
    let after = s.snapshot_touched(&[".env", "out/deep/new"]).unwrap();
    assert_eq!(diff(&s, before.id, after.id), "~.env +out/deep/new");
    assert_eq!(s.snapshot().unwrap().tree, after.tree);
    drop(s);
    let mut s = w.open();
    assert_eq!(s.snapshot().unwrap().tree, after.tree);
    let step = crate::Step { before: before.id, after: after.id };
    let plan = s.plan(&Goal::back(before.id, vec![step])).unwrap();
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get(".env"), "SECRET=1");
    assert!(!w.work().join("out/deep").exists());
    assert_eq!(w.get("out/big"), "x");
    // The first snapshot did not cover it, so going back there leaves it.
    w.put("out/deep/new", "by the agent again");
    let plan = s.plan(&Goal::back(first.id, vec![])).unwrap();
    assert_eq!(plan.items, []);
    assert_eq!(plan.left.iter().map(|l| &l.why).collect::<Vec<_>>(), [&SkipReason::UnknownThen]);
}

#[test]
fn a_file_that_becomes_ignored_or_is_no_longer_is_not_taken_for_deleted_or_new() {
    let w = World::new();
    w.put("data/x", "old data");
    w.put(".gitignore", "cache\n");
    w.put("cache/y", "not seen");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || w.put(".gitignore", "data\n"));
    assert_eq!(diff(&s, step.before, step.after), "~.gitignore ?cache/y");
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.done, [PathBuf::from(".gitignore")]);
    assert_eq!((w.get("data/x"), w.get("cache/y")), ("old data".into(), "not seen".into()));
    assert_eq!(s.state(first.id, Path::new("cache/y")).unwrap(), State::Unknown);
    assert_eq!(s.state(first.id, Path::new("other")).unwrap(), State::Absent);
}

#[test]
fn a_quick_look_sees_only_what_is_named() {
    let w = World::new();
    w.put("src/a", "0");
    w.put("src/b", "0");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    w.put("src/a", "1");
    w.put("src/b", "1");
    w.put("new/x/y", "1");
    let quick =
        s.snapshot_touched(&[w.work().join("src/a"), "new/x/y".into(), "/etc/passwd".into()]).unwrap();
    assert_eq!(diff(&s, first.id, quick.id), "+new/x/y ~src/a");
    let full = s.snapshot().unwrap();
    assert_eq!(diff(&s, quick.id, full.id), "~src/b");
    w.sh("rm -r new src/a");
    let gone = s.snapshot_touched(&["new/x/y", "src/a"]).unwrap();
    assert_eq!(diff(&s, full.id, gone.id), "-new/x/y -src/a");
    s.settle().unwrap();
    assert_eq!(s.snapshot().unwrap().tree, gone.tree);
}

#[test]
fn what_is_not_covered_is_listed() {
    let mut w = World::new();
    w.limits.file_bytes = 1000;
    w.put("large", vec![b'x'; 1001]);
    w.put("fits", vec![b'x'; 1000]);
    w.sh("mkfifo pipe; mkdir bare.git && cd bare.git && git init -q --bare");
    let _socket = std::os::unix::net::UnixListener::bind(w.work().join("socket")).unwrap();
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let list: Vec<_> = first.uncovered.iter().map(|u| (u.path.to_str().unwrap(), u.reason)).collect();
    let wanted = [
        ("bare.git", Reason::BareRepository),
        ("large", Reason::TooLarge),
        ("pipe", Reason::Special),
        ("socket", Reason::Special),
    ];
    assert_eq!(list, wanted);
    assert_eq!(first.uncovered(Path::new("bare.git/HEAD")), Some(Reason::BareRepository));
    // Growth is not deletion, and a file that cannot be stored is not replaced.
    w.put("fits", vec![b'y'; 5000]);
    let second = s.snapshot().unwrap();
    assert_eq!(diff(&s, first.id, second.id), "?fits");
    let plan = s.plan(&Goal::back(first.id, vec![])).unwrap();
    assert_eq!((plan.items.len(), &plan.left[0].why), (0, &SkipReason::UnknownNow));
    w.put("fits", "small again");
    let third = s.snapshot().unwrap();
    assert_eq!(diff(&s, first.id, third.id), "~fits");
}

#[test]
fn a_hard_link_is_kept_unless_asked_and_its_other_name_never_changes() {
    let w = World::new();
    let outside = w.top.join("outside");
    fs::write(&outside, "0").unwrap();
    fs::hard_link(&outside, w.work().join("linked")).unwrap();
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || w.put("linked", "1"));
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    assert_eq!(plan.items[0].conflict, Some(Conflict::Links(2)));
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get("linked"), "1");
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    s.restore(&plan, &BTreeMap::from([("linked".into(), Answer::Restore)])).unwrap();
    assert_eq!((w.get("linked"), fs::read_to_string(&outside).unwrap()), ("0".into(), "1".into()));
}

#[test]
fn texts_are_compared_by_line_and_merged() {
    let w = World::new();
    w.put("t", "a\nb\nc\n");
    w.put("bin", [0_u8, 1]);
    let mut s = w.open();
    let step = agent(&mut s, || {
        w.put("t", "a\nB\nc\n");
        w.put("bin", [0_u8, 1, 2]);
    });
    let all = s.compare(step.before, step.after).unwrap();
    assert_eq!(s.text(&all[0]).unwrap(), TextChange::Binary { before: 2, after: 3 });
    let diff = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n".to_owned();
    assert_eq!(s.text(&all[1]).unwrap(), TextChange::Lines { diff, added: 1, removed: 1 });
    let base = b"a\nb\nc\nd\ne\n";
    let merged = crate::merge(base, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n");
    assert_eq!(merged, crate::MergeResult::Clean(b"A\nb\nc\nd\nE\n".to_vec()));
    assert!(matches!(crate::merge(base, b"x\n", b"y\n"), crate::MergeResult::Conflict(_)));
}

#[test]
fn two_branches_can_be_changed_between_without_false_conflicts() {
    let w = World::new();
    w.put("a", "0");
    w.put("b", "0");
    let mut s = w.open();
    let fork = s.snapshot().unwrap();
    let one = agent(&mut s, || w.put("a", "branch one"));
    restore(&mut s, &fork, &[one]);
    let two = agent(&mut s, || w.put("b", "branch two"));
    // From two to the end of one, by way of the fork.
    let goal = Goal { base: fork.id, ..Goal::back(one.after, vec![two]) };
    let plan = s.plan(&goal).unwrap();
    assert_eq!(plan.conflicts().count(), 0);
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!((w.get("a"), w.get("b")), ("branch one".into(), "0".into()));
}

#[test]
fn a_store_of_another_folder_or_a_newer_program_is_left_alone() {
    let w = World::new();
    drop(w.open());
    fs::create_dir(w.top.join("other")).unwrap();
    let open = |dir: &str, store: PathBuf| {
        crate::Shadow::open(&w.top.join(dir), &store, w.limits.clone(), w.clock.clone()).map(|_| ())
    };
    assert!(matches!(open("other", w.store()), Err(SnapshotError::NotOurs { .. })));
    assert!(matches!(open("work", w.work().join("s")), Err(SnapshotError::Inside { .. })));
    fs::write(w.store().join("format"), "tiller snapshots 3\nx\n").unwrap();
    let before = super::world::tree(&w.store());
    assert!(matches!(open("work", w.store()), Err(SnapshotError::Newer { found: 3, .. })));
    assert_eq!(super::world::tree(&w.store()), before);
    let unknown: Id = "0".repeat(64).parse().unwrap();
    assert!("zz".parse::<Id>().is_err());
    fs::remove_dir_all(w.store()).unwrap();
    assert_eq!(w.open().find(unknown), Err(SnapshotError::Missing(unknown)));
}

#[test]
fn empty_folders_come_and_go() {
    let w = World::new();
    let mut s = w.open();
    let none = s.snapshot().unwrap();
    let step = agent(&mut s, || fs::create_dir_all(w.work().join("a/b")).unwrap());
    let all = s.files(step.after).unwrap();
    assert_eq!((all[0].0.to_str(), all[0].1.kind), (Some("a/b"), Kind::Folder));
    let done = restore(&mut s, &none, &[step]);
    assert_eq!(w.tree().len(), 0);
    undo(&mut s, &done);
    assert!(w.work().join("a/b").is_dir());
}

#[test]
fn a_damaged_journal_keeps_nobody_from_working_and_is_named() {
    let w = World::new();
    drop(w.open());
    fs::write(w.store().join("journal"), b"tiller-restore 1\n\xff").unwrap();
    let mut s = w.open();
    assert!(s.recovered().is_none());
    assert!(s.snapshot().is_ok());
    assert_eq!(s.verify().unwrap().problems.len(), 1);
}

#[test]
fn it_can_be_moved_to_another_thread() {
    fn send<T: Send>() {}
    send::<crate::Shadow>();
}
