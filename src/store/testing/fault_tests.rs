//! S9: a kill during a migration. S12: permanent readers, and the size of the log.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::Connection;
use tiller_protocol::{ManualClock, Time};

use crate::testing::child::{command, lines};
use crate::testing::*;
use crate::{Append, Options, Store, open::folder, open::migrate};

/// Creates a database of about this size, as version 3 wrote it. Returns the number of entries.
fn old_database(path: &Path, bytes: usize) -> u128 {
    const EACH: usize = 20_000;
    let count = (bytes / EACH) as u128;
    {
        let store = Store::open(path, options()).unwrap();
        let s = session(&store, 1);
        let text = "x".repeat(EACH);
        for first in (1..=count).step_by(100) {
            let entries = first..(first + 100).min(count + 1);
            let parent = |n: u128| (n > 1).then(|| entry_id(n - 1));
            let entries = entries.map(|n| user(s, entry_id(n), parent(n), &text)).collect();
            store.entries().append(Append::new(s, "main").entries(entries)).wait().unwrap();
        }
    }
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "DROP TABLE agents; DROP TABLE tags; ALTER TABLE heads DROP COLUMN label; ALTER TABLE heads DROP COLUMN archived;
         DROP INDEX entries_session; CREATE INDEX entries_session ON entries(session, seq);
         PRAGMA user_version=3; PRAGMA wal_checkpoint(TRUNCATE);",
    )
    .unwrap();
    count
}

/// Complete backups below a folder, each opened and checked.
fn backups(dir: &Path, count: u128) -> usize {
    let all = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let whole = all.filter(|p| p.extension().is_some_and(|e| e == "bak"));
    whole
        .map(|path| {
            let conn = Connection::open(&path).unwrap();
            assert_eq!(migrate::versions(&conn).unwrap().0, 3, "{path:?}");
            let ok: String = conn.query_row("PRAGMA quick_check", [], |r| r.get(0)).unwrap();
            let entries: i64 = conn.query_row("SELECT count(*) FROM entries", [], |r| r.get(0)).unwrap();
            assert_eq!((ok.as_str(), entries), ("ok", count as i64), "{path:?}");
        })
        .count()
}

fn migrations(bytes: usize, points: usize) {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old/tiller.db");
    let count = old_database(&old, bytes);
    let fresh = |name: &str| {
        let path = dir.path().join(format!("{name}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::copy(&old, &path).unwrap();
        path
    };
    // How often the migrating thread makes each call.
    let path = fresh("count");
    let log = dir.path().join("log");
    let calls = ["pwrite64", "fdatasync", "fsync", "ftruncate", "rename", "unlink"];
    let trace = format!("trace={}", calls.join(","));
    let log_name = log.to_str().unwrap();
    let mut child =
        command(&["strace", "-f", "-qq", "-o", log_name, "-e", &trace], "open", &path).spawn().unwrap();
    let said: Vec<String> = lines(&mut child).collect();
    child.wait().unwrap();
    let seen = std::fs::read_to_string(&log).unwrap_or_default();
    if said != ["opened"] || seen.is_empty() {
        eprintln!("skipped: strace may not trace here");
        return;
    }
    assert_eq!(backups(path.parent().unwrap(), count), 1);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let (mut killed, mut old_ones, mut new_ones) = (0, 0, 0);
    for name in calls {
        let made = seen.lines().filter(|l| l.contains(&format!(" {name}("))).count();
        for point in 0..made.min(points) {
            let when = 1 + point * made / made.min(points);
            let path = fresh(&format!("{name}-{when}"));
            let inject = format!("inject={name}:signal=KILL:when={when}");
            let one = format!("trace={name}");
            let mut child = command(
                &["strace", "-f", "-qq", "-o", "/dev/null", "-e", &one, "-e", &inject],
                "open",
                &path,
            )
            .spawn()
            .unwrap();
            lines(&mut child).for_each(drop);
            killed += usize::from(!child.wait().unwrap().success());
            // Old or new; a new one has a complete backup.
            let version = migrate::versions(&Connection::open(&path).unwrap()).unwrap().0;
            let whole = backups(path.parent().unwrap(), count);
            match version {
                3 => old_ones += 1,
                now => {
                    assert_eq!((now, whole), (migrate::latest(), 1), "{name} {when}");
                    new_ones += 1;
                }
            }
            let later =
                Options { clock: std::sync::Arc::new(ManualClock::new(Time(NOW.0 + 1))), ..options() };
            let store = Store::open(&path, later).unwrap_or_else(|e| panic!("{name} {when}: {e}"));
            let doctor = store.doctor().unwrap();
            assert_eq!((doctor.problems, doctor.entries), (vec![], count as u64), "{name} {when}");
            assert!(backups(path.parent().unwrap(), count) >= 1, "{name} {when}");
            drop(store);
            std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        }
    }
    eprintln!("{killed} kills: {old_ones} databases were still old, {new_ones} new");
    assert!(killed > points && old_ones > 0, "{killed} killed, {old_ones} old");
}

#[test]
fn s9_quick_killed_during_a_migration_it_is_old_or_new_with_a_backup() {
    migrations(1 << 20, 4);
}

#[test]
#[ignore = "the full figures take minutes"]
fn s9_killed_during_a_migration_of_100_megabytes() {
    migrations(100 << 20, 12);
}

/// Writes this many bytes (twice: a message is stored as typed and as sent) while two readers walk paths without pause.
/// Returns the maximum size of the log, in bytes.
fn log_under_readers(bytes: usize) -> u64 {
    const EACH: usize = 200_000;
    let (dir, store) = scratch();
    let log = folder::beside(&dir.path().join("data/tiller.db"), "-wal");
    let s = session(&store, 1);
    grow(&store, s, 1, 100);
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut longest = 0;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    store.paths().tail(s, "main", 50).unwrap();
                    store.transfer().export(s, &mut std::io::sink()).unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let text = "y".repeat(EACH);
        let w = session(&store, 2);
        let mut parent = None;
        for n in 0..(bytes / EACH) as u128 {
            let id = entry_id(1_000 + n);
            store
                .entries()
                .append(Append::new(w, "main").entries(vec![user(w, id, parent, &text)]))
                .wait()
                .unwrap();
            parent = Some(id);
            longest = longest.max(std::fs::metadata(&log).map_or(0, |m| m.len()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let reads = reads.into_inner();
    eprintln!("{} MB written during {reads} reads: the log was {} MB at most", bytes >> 20, longest >> 20);
    assert!(reads > 3);
    longest
}

#[test]
fn s12_quick_readers_that_never_rest_do_not_let_the_log_grow() {
    assert!(log_under_readers(36 << 20) < 64 << 20);
}

#[test]
#[ignore = "the full figures take minutes"]
fn s12_half_a_gigabyte_under_readers_that_never_rest() {
    assert!(log_under_readers(1 << 29) < 64 << 20);
}

/// A transaction of another process cannot be ended: the log grows with it, nothing is lost, and it shrinks afterwards.
#[test]
fn s12_a_reader_that_holds_on_costs_room_and_nothing_else() {
    let (dir, store) = scratch();
    let path = dir.path().join("data/tiller.db");
    let log = folder::beside(&path, "-wal");
    let s = session(&store, 1);
    grow(&store, s, 1, 10);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN").unwrap();
    let seen: i64 = other.query_row("SELECT count(*) FROM entries", [], |r| r.get(0)).unwrap();
    let text = "z".repeat(500_000);
    let add = |n: u128| {
        let entry = user(s, entry_id(n), Some(entry_id(n - 1)), &text);
        store.entries().append(Append::new(s, "main").entries(vec![entry])).wait().unwrap();
    };
    (11..=70).for_each(add);
    assert!(std::fs::metadata(&log).unwrap().len() > 40 << 20, "it held on to nothing");
    let still: i64 = other.query_row("SELECT count(*) FROM entries", [], |r| r.get(0)).unwrap();
    assert_eq!((seen, still), (10, 10), "a transaction sees one moment");
    other.execute_batch("COMMIT").unwrap();
    let mut n = 70;
    eventually("a short log", || {
        n += 1;
        add(n);
        std::fs::metadata(&log).unwrap().len() <= 33 << 20
    });
    assert_eq!(store.paths().tail(s, "main", 1_000).unwrap().entries.len() as u128, n);
}
