use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use serde_json::json;

use super::*;
use crate::files::{EditFile, ReadFile};
use crate::testing::Bench;

fn slot(dir: &Path, leaf: &str) -> Slot {
    Slot { dir: File::open(dir).unwrap().into(), leaf: leaf.into() }
}

fn old(path: &Path) -> Old {
    let stat = rustix::fs::stat(path).unwrap();
    Old {
        stat,
        hash: *blake3::hash(&std::fs::read(path).unwrap()).as_bytes(),
        attributes: tiller_fs::attributes::read(File::open(path).unwrap()),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with files a, b and c, and changes of all kinds.
fn scene() -> (tempfile::TempDir, Vec<(Slot, Change)>) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    for name in ["a", "b"] {
        std::fs::write(dir.join(name), name).unwrap();
    }
    let changes = vec![
        (slot(dir, "a"), Change::Replace { old: old(&dir.join("a")), bytes: b"A".to_vec() }),
        (slot(dir, "new"), Change::Create { bytes: b"N".to_vec(), like: None }),
        (slot(dir, "b"), Change::Remove { old: old(&dir.join("b")) }),
    ];
    (tmp, changes)
}

fn go(changes: &[(Slot, Change)], plain: bool, hold: &dyn Fn() -> bool) -> Result<(), Fault> {
    commit(changes, CommitOptions { token: "t", hold, plain, at: &|_| {} }, None)
}

#[test]
fn all_or_nothing() {
    all_or_nothing_with(false);
}

#[test]
fn all_or_nothing_without_exchange() {
    all_or_nothing_with(true);
}

fn all_or_nothing_with(plain: bool) {
    let (tmp, changes) = scene();
    go(&changes, plain, &|| true).unwrap();
    assert_eq!(names(tmp.path()), ["a", "new"]);
    assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"A");

    // Stopped at the last moment: as before.
    let (tmp, changes) = scene();
    assert!(go(&changes, plain, &|| false).is_err());
    assert_eq!(names(tmp.path()), ["a", "b"]);
    assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"a");

    // The last of the changes meets a foreign one: the first are taken back, the foreign one stands.
    let (tmp, changes) = scene();
    std::fs::write(tmp.path().join("b"), "theirs").unwrap();
    assert!(matches!(go(&changes, plain, &|| true), Err(Fault::Conflict(2))));
    assert_eq!(names(tmp.path()), ["a", "b"]);
    assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"a");
    assert_eq!(std::fs::read(tmp.path().join("b")).unwrap(), b"theirs");

    // A name that must be new is taken.
    let (tmp, changes) = scene();
    std::fs::write(tmp.path().join("new"), "theirs").unwrap();
    assert!(matches!(go(&changes, plain, &|| true), Err(Fault::Conflict(1))));
    assert_eq!(names(tmp.path()), ["a", "b", "new"]);
    assert_eq!(std::fs::read(tmp.path().join("new")).unwrap(), b"theirs");
}

#[test]
fn w10_a_late_writer_into_the_old_file_is_noticed() {
    let (tmp, changes) = scene();
    let path = tmp.path().join("a");
    // Another program has the file open and writes after the exchange.
    let held = std::cell::RefCell::new(std::fs::OpenOptions::new().append(true).open(&path).unwrap());
    let write = || {
        held.borrow_mut().write_all(b"+late").unwrap();
        true
    };
    assert!(matches!(go(&changes, false, &write), Err(Fault::Conflict(0))));
    assert_eq!(std::fs::read(&path).unwrap(), b"a+late");
    assert_eq!(names(tmp.path()), ["a", "b"]);
}

#[test]
fn w10_taking_back_never_covers_a_newer_file() {
    newer_file_stands(false);
    newer_file_stands(true);
}

fn newer_file_stands(plain: bool) {
    // While all is published, another program renames its file over the new one; then the set is taken back.
    let (tmp, changes) = scene();
    let dir: PathBuf = tmp.path().into();
    let race = || {
        std::fs::write(dir.join("x"), "theirs").unwrap();
        std::fs::rename(dir.join("x"), dir.join("a")).unwrap();
        std::fs::write(dir.join("new"), "their new").unwrap();
        std::fs::remove_file(dir.join("new")).unwrap();
        std::fs::write(dir.join("new"), "their new").unwrap();
        std::fs::write(dir.join("b"), "their b").unwrap();
        false
    };
    assert!(go(&changes, plain, &race).is_err());
    assert_eq!(std::fs::read(dir.join("a")).unwrap(), b"theirs");
    assert_eq!(std::fs::read(dir.join("b")).unwrap(), b"their b");
    assert_eq!(names(&dir), ["a", "b", "new"]);
}

#[test]
fn identity_stays_for_mode_and_new_files_follow_the_umask() {
    let (tmp, changes) = scene();
    let plain = tmp.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    go(&changes, false, &|| true).unwrap();
    let mode = |p: &Path| std::fs::metadata(p).unwrap().mode() & 0o7777;
    assert_eq!(mode(&tmp.path().join("new")), mode(&plain));
}

/// In each round another program saves the file, by renaming or in place, while the edit tool works on it. What
/// they saved must be there in the end, in either order.
fn race(rounds: u64) {
    let bench = Bench::new();
    let path = bench.file("f.txt", "start\n");
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let round = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let (start, end) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let racer = std::thread::spawn({
        let (path, round, stop) = (path.clone(), round.clone(), stop.clone());
        let (start, end) = (start.clone(), end.clone());
        move || {
            loop {
                start.wait();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let n = round.load(Ordering::SeqCst);
                // Spread over the time that an edit takes.
                for _ in 0..(n * 7919) % 200_000 {
                    std::hint::spin_loop();
                }
                let text = format!("theirs {n}\n");
                if n % 2 == 0 {
                    let side = path.with_extension("side");
                    std::fs::write(&side, &text).unwrap();
                    std::fs::rename(&side, &path).unwrap();
                } else {
                    std::fs::write(&path, &text).unwrap();
                }
                end.wait();
            }
        }
    });
    let (mut edited, mut refused) = (0, 0);
    for n in 0..rounds {
        std::fs::write(&path, "start\n").unwrap();
        rt.block_on(bench.say(&ReadFile, json!({"path": "f.txt"})));
        round.store(n, Ordering::SeqCst);
        start.wait();
        let said = rt.block_on(bench.say(&EditFile, json!({"path": "f.txt", "old": "start", "new": "mine"})));
        end.wait();
        if said.starts_with("edited") {
            edited += 1;
        } else {
            assert!(
                said.contains("changed by someone else")
                    || said.contains("not found")
                    || said.contains("does not exist"),
                "{said}"
            );
            refused += 1;
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("theirs {n}\n"), "round {n}: {said}");
        assert_eq!(names(&bench.root), ["f.txt"], "round {n}");
    }
    stop.store(true, Ordering::SeqCst);
    start.wait();
    racer.join().unwrap();
    println!("{rounds} rounds: {edited} edits, {refused} refused, none of theirs lost");
    assert!(refused > 0, "the race never met: {edited} edits");
}

#[test]
fn w10_external_edits_are_never_lost() {
    race(400);
}

#[test]
#[ignore = "the row's size"]
fn w10_whole_10_000_races() {
    race(10_000);
}

#[test]
fn a_full_or_broken_disk_changes_nothing() {
    // The name of the temporary file is taken: staging of the second change fails after the first.
    let (tmp, changes) = scene();
    std::fs::create_dir(tmp.path().join(".tiller-t-1.tmp")).unwrap();
    assert!(matches!(go(&changes, false, &|| true), Err(Fault::Io(1, _))));
    assert_eq!(names(tmp.path()), [".tiller-t-1.tmp", "a", "b"]);
    assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"a");
}
