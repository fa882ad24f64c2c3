//! Kills between any two changes to the file system, full disks, and concurrent writers. (W1, W2, S4, S9)

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::world::{Tree, World, agent, paths, sh, tree};
use crate::steps::Steps;
use crate::{Answer, Goal, Shadow, Snapshot, SnapshotError, Step};

/// Allows this many changes, then none.
#[derive(Clone, Default)]
pub(crate) struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    pub(crate) fn after(&self, steps: usize) {
        self.0.store(steps, Ordering::SeqCst);
    }

    /// Whether the limit was reached.
    pub(crate) fn blown(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// One change; returns whether it may happen.
    pub(crate) fn burn(&self) -> bool {
        let left = self.0.load(Ordering::SeqCst);
        if left == usize::MAX {
            return true;
        }
        self.0.store(left.saturating_sub(1), Ordering::SeqCst);
        left > 0
    }

    /// Changes fail with this error once the limit is reached.
    pub(crate) fn steps(&self, kind: io::ErrorKind) -> Steps {
        let fuse = self.clone();
        Steps::with(move |_| if fuse.burn() { Ok(()) } else { Err(io::Error::from(kind)) })
    }
}

/// A workspace with a repository, changed by the agent in every way, and by a person too.
fn scene(w: &World, s: &mut Shadow) -> (Snapshot, Step) {
    let first = s.snapshot().unwrap();
    let step = agent(s, || {
        w.put("a", "agent");
        w.put("made/deep/b", "agent");
        w.sh("rm -r gone kind; mkdir kind; echo x > kind/x; rm link; ln -s elsewhere link; mkdir hollow; chmod 755 mode; rm -r hole");
    });
    w.put("person", "edited");
    (first, step)
}

fn world() -> World {
    let w = World::new();
    // As a repository looks; the tests beside this use real ones.
    for name in ["HEAD", "index", "config", "refs/stash", "objects/ab/cdef", "hooks/pre-commit"] {
        w.put(&format!(".git/{name}"), name);
    }
    w.put("a", "0");
    w.put("gone/c", "0");
    w.put("kind", "0");
    w.put("mode", "0");
    w.put("person", "0");
    w.sh("ln -s here link; mkdir hole");
    w
}

fn all(s: &mut Shadow, first: &Snapshot, step: Step) -> crate::Result<crate::RestoreResult> {
    let plan = s.plan(&Goal::back(first.id, vec![step]))?;
    s.restore(&plan, &BTreeMap::new())
}

/// No temporary file of Tiller's is left.
pub(crate) fn clean(w: &World) {
    let list = || [paths(&w.work()), paths(&w.store())].concat();
    let mut names = list();
    // Packs may be joined in the background, whose file disappears when that ends. The file of a killed join is removed
    // at the next start that gets the lock; a process that another test forks holds a copy of the lock until it
    // executes.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while names.iter().any(|p| p.ends_with("tmp_join")) && std::time::Instant::now() < end {
        drop(w.open());
        std::thread::park_timeout(std::time::Duration::from_millis(5));
        names = list();
    }
    let ours = |p: &Path| {
        let name = p.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("tmp_") || name.starts_with(".tiller-") || name.starts_with("journal")
    };
    assert!(!names.iter().any(|p| ours(p)), "{names:?}");
}

/// The scene, stopped after this many changes, with the states before and after. `None`: it was not stopped.
fn stopped(n: usize, kind: io::ErrorKind) -> Option<(World, Tree, Snapshot, Step)> {
    let w = world();
    let fuse = Fuse::new();
    let mut s = w.open_with(fuse.steps(kind)).unwrap();
    let (first, step) = scene(&w, &mut s);
    let before = w.tree();
    fuse.after(n);
    let result = all(&mut s, &first, step);
    if fuse.blown() {
        if let Err(SnapshotError::Full { .. }) = &result {
            assert_eq!(kind, io::ErrorKind::StorageFull);
        }
        return Some((w, before, first, step));
    }
    result.unwrap();
    None
}

fn target() -> Tree {
    let w = world();
    let mut s = w.open();
    let (first, step) = scene(&w, &mut s);
    all(&mut s, &first, step).unwrap();
    without_git(w.tree())
}

fn without_git(mut tree: Tree) -> Tree {
    tree.retain(|p, _| !p.starts_with(".git"));
    tree
}

#[test]
fn a_restore_that_is_killed_anywhere_is_finished_or_taken_back() {
    let wanted = target();
    let (mut finished, mut n) = (0, 0);
    while let Some((w, before, ..)) = stopped(n, io::ErrorKind::Interrupted) {
        let git = tree(&w.work().join(".git"));
        // The next start is killed too, at another place each time.
        let fuse = Fuse::new();
        fuse.after(n * 7 % 23);
        let _ = w.open_with(fuse.steps(io::ErrorKind::Interrupted));
        let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::Interrupted)).unwrap();
        let now = without_git(w.tree());
        let before = without_git(before);
        assert!(now == before || now == wanted, "killed after {n}: {now:?}");
        assert_eq!(tree(&w.work().join(".git")), git);
        clean(&w);
        if let Some(recovered) = s.recovered() {
            assert_eq!(recovered.after.is_some(), now == wanted, "{}", recovered.sentence());
            assert_eq!(s.snapshot().unwrap().id, recovered.after.unwrap_or_else(|| s.last().unwrap().id));
            if let Some(goal) = recovered.undo() {
                finished += 1;
                let plan = s.plan(&goal).unwrap();
                s.restore(&plan, &BTreeMap::new()).unwrap();
                assert_eq!(without_git(w.tree()), before, "undone after {n}");
            }
        }
        assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
        n += 1;
    }
    assert!(n > 40 && finished > 10, "{n} places, {finished} finished");
}

#[test]
fn a_full_disk_stops_a_restore_before_it_changes_anything() {
    let wanted = target();
    let mut n = 0;
    while let Some((w, before, first, step)) = stopped(n, io::ErrorKind::StorageFull) {
        let now = without_git(w.tree());
        let before = without_git(before);
        // Each file is old or new, none is incomplete.
        for (path, state) in now.iter().filter(|(p, _)| !p.to_string_lossy().contains(".tiller-restore")) {
            let known = [before.get(path), wanted.get(path)];
            // Paths that change between folder and file may be in between.
            assert!(known.contains(&Some(state)) || state.0 == 'd', "after {n}: {path:?} {state:?}");
        }
        // There is space again.
        let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::StorageFull)).unwrap();
        let found = s.recovered();
        if without_git(w.tree()) == before {
            assert!(found.is_none_or(|r| r.after.is_none()));
            all(&mut s, &first, step).unwrap();
        }
        assert_eq!(without_git(w.tree()), wanted, "after {n}");
        clean(&w);
        n += 1;
    }
    assert!(n > 40);
}

#[test]
fn a_snapshot_that_is_killed_anywhere_leaves_the_old_or_the_new() {
    let w = world();
    for n in 0..300 {
        w.put(&format!("many/{}/{n}", n % 7), vec![b'a' + (n % 20) as u8; n]);
    }
    let first = w.open().snapshot().unwrap();
    let git = tree(&w.work().join(".git"));
    for n in 0.. {
        w.put("many/0/0", format!("change {n}"));
        w.put(&format!("many/new/{n}"), n.to_string());
        let fuse = Fuse::new();
        let mut s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
        fuse.after(n);
        let result = s.snapshot();
        let blown = fuse.blown();
        drop(s);
        let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::Interrupted)).unwrap();
        clean(&w);
        assert_eq!(s.verify().unwrap().problems, Vec::<String>::new(), "after {n}");
        assert_eq!(s.find(first.id).unwrap(), first);
        let now = s.snapshot().unwrap();
        assert_eq!(s.read(now.id, Path::new("many/0/0")).unwrap().unwrap(), format!("change {n}").as_bytes());
        if let Ok(killed) = result {
            assert_eq!(now.tree, killed.tree);
        }
        if !blown {
            assert!(n > 8);
            break;
        }
    }
    assert_eq!(tree(&w.work().join(".git")), git);
}

#[test]
fn a_store_that_is_killed_while_it_is_made_is_made_at_the_next_start() {
    for n in 0..20 {
        let w = World::new();
        w.put("a", "0");
        let fuse = Fuse::new();
        fuse.after(n);
        let _ = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).and_then(|mut s| s.snapshot());
        let mut s = w.open();
        assert_eq!(s.snapshot().unwrap().uncovered, []);
        clean(&w);
    }
}

/// Another process writes a file at the worst moments: its content stays, under its name or beside it.
#[test]
fn who_is_quicker_than_a_restore_keeps_what_they_wrote() {
    let moments = [
        "exchange",
        "exchange back",
        "move old",
        "move back",
        "place new",
        "make folder",
        "clear staged",
        "prune folder",
    ];
    for moment in moments {
        for path in ["edited", "deleted/x", "made/y"] {
            let w = World::new();
            w.put("edited", "0");
            w.put("deleted/x", "0");
            let target = w.work().join(path);
            let hook = {
                let target = target.clone();
                let armed = Arc::new(AtomicUsize::new(0));
                let arm = armed.clone();
                (
                    armed,
                    Steps::with(move |what| {
                        // At every such moment, as a program that saves repeatedly.
                        if arm.load(Ordering::SeqCst) > 0 && what == moment {
                            let n = arm.fetch_add(1, Ordering::SeqCst);
                            let _ = fs::create_dir_all(target.parent().unwrap());
                            fs::write(&target, format!("person {n}")).unwrap();
                        }
                        Ok(())
                    }),
                )
            };
            let mut s = w.open_with(hook.1).unwrap();
            let first = s.snapshot().unwrap();
            let step = agent(&mut s, || {
                w.put("edited", "1");
                w.sh("rm -r deleted");
                w.put("made/y", "1");
            });
            let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
            hook.0.store(1, Ordering::SeqCst);
            let done = s.restore(&plan, &BTreeMap::new()).unwrap();
            let wrote = hook.0.swap(0, Ordering::SeqCst);
            if wrote > 1 {
                let last = format!("person {}", wrote - 1);
                let found = tree(&w.work()).into_values().any(|(_, _, text)| text == last.as_bytes());
                assert!(found, "{moment} {path}: {:?} {done:?}", w.tree());
            }
            // Undoing it does not replace their file either.
            let plan = s.plan(&done.undo()).unwrap();
            s.restore(&plan, &BTreeMap::new()).unwrap();
            if wrote > 1 {
                let last = format!("person {}", wrote - 1);
                let found = tree(&w.work()).into_values().any(|(_, _, text)| text == last.as_bytes());
                assert!(found, "undo, {moment} {path}: {:?}", w.tree());
            }
        }
    }
}

/// Another process writes just before its file is swapped out, and the kill comes just after: the only copy is in the
/// staging folder.
#[test]
fn what_was_swapped_out_when_the_kill_came_goes_back() {
    for (moment, next, path) in [
        ("exchange", "exchange back", "edited"),
        ("move old", "move back", "made"),
        ("place new", "-", "gone"),
    ] {
        let w = World::new();
        w.put("edited", "0");
        w.put("gone", "0");
        let armed = Arc::new(AtomicUsize::new(0));
        let (arm, target) = (armed.clone(), w.work().join(path));
        let steps = Steps::with(move |what| match arm.load(Ordering::SeqCst) {
            1 if what == moment => {
                arm.store(2, Ordering::SeqCst);
                fs::write(&target, "person").unwrap();
                Ok(())
            }
            2 if what == next => {
                arm.store(3, Ordering::SeqCst);
                Err(io::Error::from(io::ErrorKind::Interrupted))
            }
            3 => Err(io::Error::from(io::ErrorKind::Interrupted)),
            _ => Ok(()),
        });
        let mut s = w.open_with(steps).unwrap();
        let first = s.snapshot().unwrap();
        let step = agent(&mut s, || {
            w.put("edited", "1");
            w.put("made", "1");
            w.remove("gone");
        });
        let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
        armed.store(1, Ordering::SeqCst);
        let result = s.restore(&plan, &BTreeMap::new());
        assert_eq!(result.is_err(), next != "-");
        drop(s);
        let mut s = w.open();
        assert_eq!(w.get(path), "person", "{moment}");
        if let Some(recovered) = s.recovered() {
            assert!(recovered.left.iter().any(|l| l.path == Path::new(path)), "{recovered:?}");
        }
        clean(&w);
    }
}

/// W2: 2,000 files, killed at sampled places; at all of them in the long run.
fn large(places: usize) {
    let w = World::new();
    w.sh(
        "for d in 0 1 2 3 4 5 6 7 8 9; do mkdir -p d$d; for i in $(seq 200); do echo 0 > d$d/$i; done; done",
    );
    let fuse = Fuse::new();
    let mut s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
    let first = s.snapshot().unwrap();
    let old = w.tree();
    // Half of them edited, a quarter deleted, a quarter created.
    let change = || {
        sh(
            &w.work(),
            "for d in 0 1 2 3 4; do for i in $(seq 200); do echo 1 > d$d/$i; done; done; rm -r d5 d6; mkdir n; for i in $(seq 500); do echo 1 > n/$i; done",
        );
    };
    let mut step = agent(&mut s, change);
    let mut total = usize::MAX;
    for place in 0..places {
        // The first run completes and counts the changes.
        let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
        assert!(plan.items.len() > 1800, "{}", plan.items.len());
        let far = 1 << 40;
        fuse.after(if place == 0 { far } else { total * place / places });
        let result = s.restore(&plan, &BTreeMap::new());
        if place == 0 {
            total = far - fuse.0.load(Ordering::SeqCst);
        }
        assert_eq!(result.is_ok(), !fuse.blown());
        drop(s);
        fuse.after(usize::MAX);
        s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
        if w.tree() != old {
            let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
            let answers = plan.items.iter().map(|i| (i.diff.path.clone(), Answer::Restore)).collect();
            assert!(s.recovered().is_none_or(|r| r.after.is_none()), "taken back or finished");
            s.restore(&plan, &answers).unwrap();
        }
        assert_eq!(w.tree(), old, "killed after {place} of {places}");
        clean(&w);
        step = agent(&mut s, change);
    }
}

#[test]
fn a_large_restore_that_is_killed_is_finished() {
    large(4);
}

#[test]
#[ignore = "minutes: many places of a restore of 2,000 files"]
fn a_large_restore_that_is_killed_at_many_places_is_finished() {
    large(60);
}
