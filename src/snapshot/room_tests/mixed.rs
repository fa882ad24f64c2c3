//! Changes of others while the agent changed files: left out of its step, and kept beside what a restore writes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::kills::Fuse;
use super::world::{World, agent, restore, undo};
use crate::{Answer, Goal};

/// An edit by the person, and the paths that differ then.
type Edit = (fn(&World), &'static [&'static str]);

const EDITS: &[Edit] = &[
    (|w| w.put("b.txt", "person"), &["b.txt"]),
    (|w| w.put("new.txt", "person"), &["new.txt"]),
    (|w| w.put("new/deep/x.txt", "person"), &["new/deep/x.txt"]),
    (|w| w.put("dir/beside the agent.txt", "person"), &["dir/beside the agent.txt"]),
    (|w| w.put("made by agent/x.txt", "person"), &["made by agent/x.txt"]),
    (|w| w.remove("b.txt"), &["b.txt"]),
    (|w| fs::remove_dir_all(w.work().join("lib")).unwrap(), &["lib/1.txt", "lib/in/2.txt"]),
    (
        |w| fs::rename(w.work().join("lib"), w.work().join("lib2")).unwrap(),
        &["lib/1.txt", "lib/in/2.txt", "lib2/1.txt", "lib2/in/2.txt"],
    ),
    (|w| fs::set_permissions(w.work().join("b.txt"), fs::Permissions::from_mode(0o755)).unwrap(), &["b.txt"]),
    (|w| symlink("a.txt", w.work().join("link")).unwrap(), &["link"]),
    (
        |w| {
            w.remove("b.txt");
            w.put("b.txt/now a folder", "person");
        },
        &["b.txt", "b.txt/now a folder"],
    ),
];

fn before() -> World {
    let w = World::new();
    for name in ["a.txt", "b.txt", "dir/c.txt", "lib/1.txt", "lib/in/2.txt"] {
        w.put(name, "before");
    }
    w
}

fn work(w: &World) {
    w.put("a.txt", "agent");
    w.put("made by agent/1.txt", "agent");
    w.remove("dir/c.txt");
    w.put("dir/d.txt", "agent");
}

/// The state without the others' changes is that of a step of the agent alone.
#[test]
fn w19_a_state_without_the_changes_of_others_is_that_of_an_agent_alone() {
    let alone = before();
    let mut s = alone.open();
    s.snapshot().unwrap();
    work(&alone);
    let wanted = s.snapshot().unwrap().tree;
    for (edit, paths) in EDITS {
        let w = before();
        let mut s = w.open();
        let first = s.snapshot().unwrap();
        work(&w);
        edit(&w);
        let seen = s.snapshot().unwrap();
        let others: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let after = s.without(first.id, seen.clone(), &others).unwrap();
        assert_eq!(after.tree, wanted, "{paths:?}");
        let step = crate::Step { before: first.id, after: after.id };
        let done = restore(&mut s, &first, &[step]);
        let kept: Vec<&str> = done.left.iter().filter_map(|left| left.path.to_str()).collect();
        assert_eq!(kept, *paths, "a restore keeps them");
        undo(&mut s, &done);
        assert_eq!(s.snapshot().unwrap().tree, seen.tree, "{paths:?}: the undo");
    }
}

#[test]
fn what_both_may_have_written_is_restored_and_kept_beside() {
    let w = before();
    w.put("a.txt.kept-1", "of an earlier restore");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put("a.txt", "both");
        w.put("made.txt", "both");
        w.remove("b.txt");
        w.put("dir/c.txt", "the agent's");
    });
    let mixed = ["a.txt", "made.txt", "b.txt"].map(PathBuf::from).to_vec();
    let goal = Goal { mixed, ..Goal::back(first.id, vec![step]) };
    let then = w.tree();
    let plan = s.plan(&goal).unwrap();
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(done.kept, ["a.txt.kept-2", "made.txt.kept-1"].map(PathBuf::from));
    assert_eq!((w.get("a.txt").as_str(), w.get("a.txt.kept-2").as_str()), ("before", "both"));
    assert_eq!((w.get("b.txt").as_str(), w.get("dir/c.txt").as_str()), ("before", "before"));
    assert_eq!(w.get("made.txt.kept-1"), "both");
    assert!(!w.work().join("made.txt").exists());
    let back = undo(&mut s, &done);
    assert_eq!(w.tree(), then);
    undo(&mut s, &back);
    assert_eq!(w.get("a.txt.kept-2"), "both");
}

#[test]
fn a_choice_for_a_file_that_both_may_have_written_counts() {
    let rows = [
        (Answer::Keep, "both", 0),
        (Answer::Restore, "before", 1),
        (Answer::Content(b"some".into()), "some", 1),
    ];
    for (answer, text, kept) in rows {
        let w = before();
        let mut s = w.open();
        let first = s.snapshot().unwrap();
        let step = agent(&mut s, || w.put("a.txt", "both"));
        let goal = Goal { mixed: vec!["a.txt".into()], ..Goal::back(first.id, vec![step]) };
        let plan = s.plan(&goal).unwrap();
        let done = s.restore(&plan, &BTreeMap::from([("a.txt".into(), answer)])).unwrap();
        assert_eq!((w.get("a.txt").as_str(), done.kept.len()), (text, kept));
    }
}

/// However many files a step changed that no witness saw: a restore litters nothing, and keeps what stood there in one folder.
#[test]
fn w19_what_no_witness_saw_is_restored_and_kept_in_one_folder() {
    const FILES: usize = 300;
    let w = before();
    let name = |n: usize| format!("many/{}/{n}.txt", n % 50);
    (0..FILES).for_each(|n| w.put(&name(n), "before"));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let then = w.tree();
    let step = agent(&mut s, || {
        (0..FILES).for_each(|n| w.put(&name(n), format!("command {n}")));
        w.put("new.txt", "command, then person");
        w.put("empty.txt", "");
        w.remove("b.txt");
    });
    for unseen in
        [vec![PathBuf::new()], (0..FILES).map(|n| name(n).into()).chain(["new.txt".into()]).collect()]
    {
        let goal = Goal { unseen, ..Goal::back(first.id, vec![step]) };
        let plan = s.plan(&goal).unwrap();
        let done = s.restore(&plan, &BTreeMap::new()).unwrap();
        assert_eq!(w.tree(), then, "nothing lies beside");
        assert!(done.left.is_empty() && done.kept.is_empty(), "{:?}", done.left);
        let apart = done.apart.clone().unwrap();
        assert_eq!(apart.paths.len(), FILES + 1);
        for path in &apart.paths {
            let text = fs::read_to_string(apart.folder.join(path)).unwrap();
            assert!(text.starts_with("command"), "{path:?}: {text}");
        }
        let text = fs::read_to_string(apart.folder.join("new.txt")).unwrap();
        assert_eq!(text, "command, then person");
        let mode = fs::metadata(&apart.folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "only its owner reads it");
        undo(&mut s, &done);
        assert_eq!(w.get("new.txt"), "command, then person");
    }
}

#[test]
fn no_copy_is_kept_of_what_a_restore_leaves_as_it_is() {
    let w = before();
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || w.put("a.txt", "command"));
    let goal = Goal { unseen: vec!["a.txt".into()], ..Goal::back(first.id, vec![step]) };
    let plan = s.plan(&goal).unwrap();
    let keep = BTreeMap::from([("a.txt".into(), Answer::Keep)]);
    assert_eq!(s.restore(&plan, &keep).unwrap().apart, None);
    w.put("a.txt", "person, after the plan");
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!((w.get("a.txt").as_str(), done.apart), ("person, after the plan", None));
}

/// The place of a copy is longer than that of its file, and may be too long: it has a number then.
#[test]
fn w19_a_name_that_the_store_cannot_have_does_not_stop_a_restore() {
    let w = before();
    let mut long = String::new();
    let free = 4_090 - w.work().as_os_str().len() - 1;
    while long.len() + 201 < free {
        long.push_str(&format!("{}/", "d".repeat(200)));
    }
    long.push_str(&"f".repeat((free - long.len()).min(200)));
    w.put(&long, "before");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put(&long, "command, long");
        w.put("1", "command, one");
    });
    let goal = Goal { unseen: vec![PathBuf::new()], ..Goal::back(first.id, vec![step]) };
    let plan = s.plan(&goal).unwrap();
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get(&long), "before");
    let apart = done.apart.unwrap();
    let copy = |name: &str| fs::read_to_string(apart.folder.join(name)).unwrap();
    assert_eq!((apart.paths.len(), copy("1"), copy("2")), (2, "command, one".into(), "command, long".into()));
}

/// Wherever a restore is cut off: once it has changed a file, its error and the next start name the folder with the copies, and
/// one that cannot be written leaves none.
#[test]
fn w19_an_interrupted_restore_names_its_copies() {
    let (mut finished, mut failed) = (0, 0);
    for n in 0.. {
        let w = before();
        let fuse = Fuse::new();
        let mut s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
        let first = s.snapshot().unwrap();
        let step = agent(&mut s, || w.put("a.txt", "command"));
        let goal = Goal { unseen: vec!["a.txt".into()], ..Goal::back(first.id, vec![step]) };
        let plan = s.plan(&goal).unwrap();
        fuse.after(n);
        let result = s.restore(&plan, &BTreeMap::new());
        drop(s);
        let folders = || fs::read_dir(w.store().join("kept")).map_or(0, Iterator::count);
        let Err(error) = result else { break };
        let restored = w.get("a.txt") == "before";
        if restored {
            assert!(error.to_string().contains("is kept for 30 days in "), "{n}: {error}");
            failed += 1;
        }
        let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::Interrupted)).unwrap();
        let said = s.recovered().map(|r| (r.after.is_some(), r.sentence()));
        match said {
            Some((true, said)) => {
                let folder = said.split_once("is kept for 30 days in ").unwrap().1.trim_end_matches('.');
                assert_eq!(fs::read_to_string(Path::new(folder).join("a.txt")).unwrap(), "command", "{said}");
                finished += 1;
            }
            Some((false, said)) => assert!(!said.contains("30 days") && folders() == 0, "{n}: {said}"),
            None => {}
        }
    }
    assert!(finished > 0 && failed > 0, "{finished} {failed}");
}

/// Prints what the copies of 5,000 files cost a restore.
#[test]
#[ignore = "prints figures"]
fn figures_of_copies_of_a_restore() {
    const FILES: usize = 5_000;
    let w = World::new();
    let name = |n: usize| format!("many/{}/{n}.txt", n % 50);
    (0..FILES).for_each(|n| w.put(&name(n), "before"));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || (0..FILES).for_each(|n| w.put(&name(n), format!("command {n}"))));
    for round in 0..3 {
        for unseen in [Vec::new(), vec![PathBuf::new()]] {
            let copies = unseen.len() * FILES;
            let goal = Goal { unseen, ..Goal::back(first.id, vec![step]) };
            let begun = std::time::Instant::now();
            let plan = s.plan(&goal).unwrap();
            let done = s.restore(&plan, &BTreeMap::new()).unwrap();
            println!("{round}: {} files restored, {copies} copies: {:.2?}", done.done.len(), begun.elapsed());
            undo(&mut s, &done);
        }
    }
}
