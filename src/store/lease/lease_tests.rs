use std::time::{Duration, Instant};

use super::*;
use crate::Append;
use crate::open::Store;
use crate::testing::child::{command, lines};
use crate::testing::*;

/// S10: a second process is refused; a killed holder is replaced in less than 2 s, and no other process writes in
/// between.
#[test]
fn s10_a_dead_holder_is_replaced_and_a_living_one_is_not() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let mut child = command(&[], "hold", &store.path()).spawn().unwrap();
    let mut said = lines(&mut child);
    assert_eq!(said.next().as_deref(), Some("held"));
    let pid = child.id();

    let refused = store.leases().acquire(s, "main", AcquireMode::IfFree).wait();
    assert_eq!(refused, Err(StoreError::Held { holder: format!("process {pid}") }));
    assert_eq!(store.leases().holder(s, "main").unwrap().map(|p| p.pid), Some(pid));
    eventually("the child's writing", || store.sessions().get(s).unwrap().summary.entries > 5);

    // Killed, but not reaped yet: a zombie holds nothing.
    child.kill().unwrap();
    let began = Instant::now();
    let mut lease = store.leases().acquire(s, "main", AcquireMode::IfFree).wait();
    while lease.is_err() && began.elapsed() < Duration::from_secs(90) {
        std::thread::park_timeout(Duration::from_millis(5));
        lease = store.leases().acquire(s, "main", AcquireMode::IfFree).wait();
    }
    let lease = lease.unwrap();
    assert!(began.elapsed() < Duration::from_secs(90));
    child.wait().unwrap();

    // The path is linear: each writer wrote after the one before.
    let count = store.sessions().get(s).unwrap().summary.entries;
    let tail = store.paths().tail(s, "main", u32::MAX).unwrap();
    assert_eq!(tail.entries.len() as u64, count);
    store.leases().check(&lease).unwrap();
}

#[test]
fn s10_one_who_lost_a_session_can_write_no_more() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let mut child = command(&[], "hold", &store.path()).spawn().unwrap();
    let mut said = lines(&mut child);
    assert_eq!(said.next().as_deref(), Some("held"));
    let lease = store.leases().acquire(s, "main", AcquireMode::Force).wait().unwrap();
    assert_eq!(said.next().as_deref(), Some("lost"));
    child.wait().unwrap();
    let parent = store.heads().get(s, "main").unwrap();
    let mine = Append {
        lease: Some(lease.clone()),
        ..Append::new(s, "main").entries(vec![user(s, entry_id(1), parent, "mine")])
    };
    store.entries().append(mine.clone()).wait().unwrap();

    // Two stores in one process exclude each other, too.
    assert!(matches!(
        store.leases().acquire(s, "main", AcquireMode::IfFree).wait(),
        Err(StoreError::Held { .. })
    ));
    store.leases().release(lease.clone()).wait().unwrap();
    assert_eq!(store.leases().holder(s, "main").unwrap(), None);
    assert!(matches!(store.leases().check(&lease), Err(StoreError::Held { .. })));
    assert!(matches!(store.entries().append(mine).wait(), Err(StoreError::Held { .. })));
}

#[test]
fn s10_each_head_has_a_holder_and_waiting_things_of_its_own() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    grow(&store, s, 1, 2);
    store.heads().set(s, "b", Some(entry_id(1)), None).wait().unwrap();
    let main = store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
    let b = store.leases().acquire(s, "b", AcquireMode::IfFree).wait().unwrap();
    assert!(matches!(
        store.leases().acquire(s, "b", AcquireMode::IfFree).wait(),
        Err(StoreError::Held { .. })
    ));
    // The lease of one head does not permit writes to another.
    let wrong = Append { lease: Some(main.clone()), ..Append::new(s, "b") };
    assert!(matches!(store.entries().append(wrong).wait(), Err(StoreError::Held { .. })));
    let running =
        |what: &str| Some(Some(crate::Running { agent: "main".into(), what: what.into(), since: NOW }));
    for (lease, what) in [(&main, "one"), (&b, "two")] {
        let append = Append {
            lease: Some(lease.clone()),
            running: running(what),
            pending: Some(vec![tiller_protocol::EntryBody::Note { text: what.into() }]),
            ..Append::new(s, lease.head.as_str())
        };
        store.entries().append(append).wait().unwrap();
    }
    store.leases().release(b).wait().unwrap();
    assert_eq!(store.unfinished().interrupted(s, "main").unwrap().unwrap().what, "one");
    assert_eq!(store.unfinished().interrupted(s, "b").unwrap().unwrap().what, "two");
    assert_eq!(store.unfinished().pending(s, "main").unwrap().len(), 1);
    assert!(
        store.leases().holder(s, "main").unwrap().is_some()
            && store.leases().holder(s, "b").unwrap().is_none()
    );
    // A session is opened next on the branch of the person's last message.
    let words = Append::new(s, "b").entries(vec![user(s, entry_id(9), Some(entry_id(1)), "here")]);
    store.entries().append(words).wait().unwrap();
    assert_eq!(store.sessions().get(s).unwrap().head, "b");
}

#[test]
fn a_process_is_pid_start_and_boot() {
    let me = Process::current();
    assert!(me.alive());
    let other = |change: fn(&mut Process)| {
        let mut process = me.clone();
        change(&mut process);
        process.alive()
    };
    assert!(!other(|p| p.boot = "another boot".into()));
    if cfg!(target_os = "linux") {
        assert!(!other(|p| p.start = "1".into()), "the pid was used again");
        assert!(!other(|p| p.pid = u32::MAX), "no such process");
        assert!(other(|p| p.space = "pid:[1]".into()), "of a container: cannot be judged");
    }
}

/// A lease as taken by a program that locks no file.
fn older(store: &Store, s: SessionId, process: Process) {
    store
        .leases()
        .acquire_as((s, "main"), AcquireMode::IfFree, process, (Uuid::now_v7(), None), NOW.0)
        .wait()
        .unwrap();
}

/// S18: a holder in another PID namespace counts as dead once it is dead, and not before.
#[test]
fn s18_a_lease_of_another_pid_name_space_ends_with_its_process() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let wrapper = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child=KILL"];
    let mut probe = std::process::Command::new(wrapper[0]);
    if !probe.args(&wrapper[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: no name spaces of processes here");
        return;
    }
    let mut child = command(&wrapper, "hold", &store.path()).spawn().unwrap();
    let mut said = lines(&mut child);
    assert_eq!(said.next().as_deref(), Some("held"));
    assert!(matches!(
        store.leases().acquire(s, "main", AcquireMode::IfFree).wait(),
        Err(StoreError::Held { .. })
    ));
    let holder = store.leases().holder(s, "main").unwrap().unwrap();
    assert_ne!(holder.space, Process::current().space);
    assert!(store.sessions().list(&crate::Filter::default()).unwrap().iter().all(|r| r.open_in.is_some()));

    child.kill().unwrap();
    child.wait().unwrap();
    // The namespace's other processes are killed with its first; then the lease is free at once.
    eventually("the end of its processes", || said.next().is_none());
    assert!(holder.alive(), "by its numbers it can never be told");
    assert_eq!(store.leases().holder(s, "main").unwrap(), None);
    store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
}

/// Leases of programs that locked no file: checked by their process; where that is not possible, dead when no other
/// process has the database open.
#[test]
fn s18_leases_of_older_programs_hold_while_they_may_be_alive() {
    let (dir, store) = scratch();
    let s = session(&store, 1);
    let foreign = Process { space: "pid:[1]".into(), ..Process::current() };
    older(&store, s, foreign);
    assert!(store.leases().holder(s, "main").unwrap().is_some());
    let path = store.path();
    let second = Store::open(&path, options()).unwrap();
    assert!(second.leases().holder(s, "main").unwrap().is_some(), "the other one may be its holder");
    drop((second, store));
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.leases().holder(s, "main").unwrap(), None);
    // A living process of this namespace keeps its lease.
    older(&store, s, Process::current());
    assert!(matches!(
        store.leases().acquire(s, "main", AcquireMode::IfFree).wait(),
        Err(StoreError::Held { .. })
    ));
    drop(dir);
}

#[test]
fn files_of_leases_do_not_pile_up() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let folder = crate::open::folder::beside(&store.path(), ".leases");
    for _ in 0..5 {
        let lease = store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
        assert!(store.leases().acquire(s, "main", AcquireMode::IfFree).wait().is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        store.leases().release(lease).wait().unwrap();
    }
    for n in 0..100 {
        std::fs::write(folder.join(format!("left-{n}")), "").unwrap();
    }
    let _lease = store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_holder_of_another_boot_is_replaced() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let old = Process { boot: "yesterday".into(), ..Process::current() };
    older(&store, s, old);
    assert_eq!(store.leases().holder(s, "main").unwrap(), None);
    store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
    assert!(store.leases().holder(s, "main").unwrap().is_some());
}
