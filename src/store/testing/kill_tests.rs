//! Processes that are killed at any moment (S1, S2), and many at once (S11).

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use tiller_protocol::{EntryId, SessionId};
use tiller_testkit::thread_cpu_time;

use crate::testing::child::{command, lines};
use crate::testing::*;
use crate::{Filter, Store};

/// For S1; the nightly figure is 1,000.
const KILLS: u64 = 50;
/// Kill points of S2 for each kind of call; the nightly run takes all.
const POINTS: usize = 8;
/// For S11; the nightly figures are 20 and 500, with slowed flushes.
const PROCESSES: usize = 20;
const WRITES: usize = 25;

/// What the store acknowledged to a child as saved.
#[derive(Default)]
struct Told {
    session: Option<SessionId>,
    entries: Vec<EntryId>,
    approvals: Vec<String>,
    turns: (u32, u32),
    done: bool,
}

impl Told {
    fn hear(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("session", id)) => self.session = Some(id.parse().unwrap()),
            Some(("ack", id)) => self.entries.push(id.parse().unwrap()),
            Some(("audit", id)) => self.approvals.push(id.into()),
            _ if line == "mid" => self.turns.0 += 1,
            _ if line == "end" => self.turns.1 += 1,
            _ if line == "done" => self.done = true,
            _ => panic!("the child said {line}"),
        }
    }

    /// Checks that all acknowledged data is stored, the tree is complete, and the interrupted turn is known.
    fn check(&self, store: &Store) {
        let Some(session) = self.session else { return };
        let tail = store.paths().tail(session, "main", 10_000).unwrap();
        let stored: HashSet<EntryId> = tail.entries.iter().map(|e| e.id).collect();
        for id in &self.entries {
            assert!(stored.contains(id), "{id} was acknowledged and is lost");
        }
        // At most the unacknowledged write may be stored in addition.
        assert!(tail.entries.len() <= self.entries.len() + 1);
        assert_eq!((tail.earlier, tail.damaged), (0, 0));
        let approvals: HashSet<String> =
            store.audit().list(Some(session), "", 0).unwrap().into_iter().map(|row| row.what).collect();
        for id in &self.approvals {
            assert!(approvals.contains(id), "the approval of {id} is lost");
        }
        let in_turn = !tail.entries.len().is_multiple_of(4);
        assert_eq!(store.unfinished().interrupted(session, "main").unwrap().is_some(), in_turn);
    }
}

fn killed(trials: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let mut acknowledged = 0;
    let mut slowest = Duration::ZERO;
    for trial in 0..trials {
        let mut child = command(&[], "turns 1000", &path).spawn().unwrap();
        let said = lines(&mut child);
        // Spread over start, first commits and steady running, in uneven steps.
        let patience = Duration::from_micros(trial * 1_237 % 60_000);
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
        let mut told = Told::default();
        for line in said {
            told.hear(&line);
            if !told.entries.is_empty() {
                let _ = acknowledges.send(());
            }
        }
        drop(acknowledges);
        killer.join().unwrap();
        acknowledged += told.entries.len();

        let began = thread_cpu_time();
        let store = Store::open(&path, options()).unwrap();
        store.sessions().list(&Filter::default()).unwrap();
        slowest = slowest.max(thread_cpu_time() - began);
        assert!(store.notices().is_empty(), "{:?}", store.notices());
        told.check(&store);
        if trial % 10 == 9 {
            assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
        }
        // Left as after a crash for several runs, so that their logs accumulate.
        drop(store);
    }
    assert!(acknowledged > 0, "no child came far enough");
    eprintln!(
        "{trials} kills, {acknowledged} entries acknowledged, none lost; restart takes {slowest:?} of cpu time at most"
    );
    assert!(slowest < Duration::from_millis(300), "restart to usable took {slowest:?} of cpu time");
}

#[test]
fn s1_killed_at_random_moments_nothing_acknowledged_is_lost() {
    killed(KILLS);
}

#[test]
#[ignore = "the row's size"]
fn s1_whole_1_000_kills() {
    killed(1_000);
}

/// How often a child in the role `part` makes each call. `None` without a tracer that is permitted to trace.
fn calls_made(part: &str, path: &std::path::Path) -> Option<Vec<(&'static str, usize)>> {
    let log = path.parent()?.with_extension("trace");
    let mut child = command(
        &[
            "strace",
            "-f",
            "-qq",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=pwrite64,fdatasync,fsync,ftruncate,unlink",
        ],
        part,
        path,
    )
    .spawn()
    .ok()?;
    let finished = lines(&mut child).any(|line| line == "done");
    child.wait().unwrap();
    let trace = std::fs::read_to_string(&log).ok()?;
    if !finished || trace.is_empty() {
        return None;
    }
    Some(counted(&trace, &["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"]))
}

/// How often each of these calls stands in a trace, of the thread that makes it most often. The tracer counts for each thread,
/// too: a line begins with the thread's number.
fn counted<'a>(trace: &str, names: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut counts: std::collections::BTreeMap<(&str, &str), usize> = std::collections::BTreeMap::new();
    for line in trace.lines() {
        if let Some((thread, call)) = line.split_once(' ')
            && let Some((name, _)) = call.trim_start().split_once('(')
        {
            *counts.entry((name, thread)).or_default() += 1;
        }
    }
    let most =
        |name: &str| counts.iter().filter(|((n, _), _)| *n == name).map(|(_, c)| *c).max().unwrap_or(0);
    names.iter().map(|name| (*name, most(name))).collect()
}

/// Kills a child with this job at `points` of each kind of storage call that it makes, evenly spread. `check` gets the store
/// that is left, and what the child has said.
pub(super) fn killed_at_storage_calls(job: &str, points: usize, check: impl Fn(&Store, &[String])) {
    let dir = tempfile::tempdir().unwrap();
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let Some(calls) = calls_made(job, &dir.path().join("count/tiller.db")) else {
        eprintln!("skipped: strace may not trace here");
        return;
    };
    let (mut killed, mut trials) = (0, 0);
    for (name, count) in calls {
        for point in 0..count.min(points) {
            let when = 1 + point * count / count.min(points);
            let path = dir.path().join(format!("{name}-{when}/tiller.db"));
            let (trace, inject) = (format!("trace={name}"), format!("inject={name}:signal=KILL:when={when}"));
            let tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let mut child = command(&tracer, job, &path).spawn().unwrap();
            let said: Vec<String> = lines(&mut child).collect();
            trials += 1;
            killed += usize::from(!child.wait().unwrap().success());
            let store = Store::open(&path, options()).unwrap();
            check(&store, &said);
            assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new(), "{name} {when}");
        }
    }
    assert!(killed * 10 > trials * 8, "only {killed} of {trials} were killed");
}

#[test]
fn s2_quick_killed_at_storage_calls_nothing_acknowledged_is_lost() {
    killed_at_storage_calls("turns 3", POINTS, |store, said| {
        let mut told = Told::default();
        said.iter().for_each(|line| told.hear(line));
        told.check(store);
    });
}

/// The calls by which a process opens or closes a database, counted for one file and each thread.
const CALLS: [&str; 5] = ["openat", "unlink", "pwrite64", "ftruncate", "fsync"];

/// A process is killed at each such call on each file. The next one finds nothing that is worth a notice, whether there was a
/// database before or not.
#[test]
fn s1_killed_while_it_opens_or_closes_the_next_one_has_nothing_to_tell() {
    let dir = tempfile::tempdir().unwrap();
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let clean = dir.path().join("clean/tiller.db");
    drop(Store::open(&clean, options()).unwrap());
    let traced = format!("trace={}", CALLS.join(","));
    let (mut killed, mut runs) = (0, 0);
    for (start, made) in [("clean", true), ("none", false)] {
        for suffix in ["", "-wal", ".clean", ".unlogged"] {
            let run = |name: &str, log: &str, inject: &[&str]| {
                let path = dir.path().join(format!("{start}{suffix}-{name}/tiller.db"));
                let folder = path.parent().unwrap();
                std::fs::create_dir(folder).unwrap();
                for file in std::fs::read_dir(clean.parent().unwrap()).unwrap().filter(|_| made) {
                    let file = file.unwrap();
                    // With its times: the stamp has them.
                    let copied = Command::new("cp").arg("-p").arg(file.path()).arg(folder).status().unwrap();
                    assert!(copied.success());
                }
                if made {
                    let stamp = crate::open::folder::stamp_of(&path);
                    std::fs::write(crate::open::folder::beside(&path, ".clean"), stamp).unwrap();
                }
                let only = crate::open::folder::beside(&path, suffix);
                let tracer = ["strace", "-f", "-qq", "-o", log, "-P", only.to_str().unwrap(), "-e", &traced];
                let mut child = command(&[&tracer, inject].concat(), "open", &path).spawn().unwrap();
                let said: Vec<String> = lines(&mut child).collect();
                (path, child.wait().unwrap().success(), said)
            };
            let log = dir.path().join(format!("{start}{suffix}.trace"));
            let (.., said) = run("count", log.to_str().unwrap(), &[]);
            if said.is_empty() {
                eprintln!("skipped: strace may not trace here");
                return;
            }
            for (call, count) in counted(&std::fs::read_to_string(&log).unwrap(), &CALLS) {
                for when in 1..=count {
                    let inject = format!("inject={call}:signal=KILL:when={when}");
                    let (path, ended, _) = run(&format!("{call}-{when}"), "/dev/null", &["-e", &inject]);
                    runs += 1;
                    killed += usize::from(!ended);
                    let store = Store::open(&path, options()).unwrap();
                    let notices = store.notices();
                    assert!(notices.is_empty(), "{start}, {call} {when} of {suffix:?}: {notices:?}");
                }
            }
        }
    }
    assert!(killed > 20 && killed * 10 > runs * 8, "only {killed} of {runs} were killed");
}

/// S6: a flush fails once. Nothing is acknowledged on it; after reopening everything is stored exactly once.
#[test]
fn s6_a_failed_flush_is_not_acknowledged_and_nothing_is_written_twice() {
    let dir = tempfile::tempdir().unwrap();
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    // Counted for each thread: these are in the writer's commits, the opening has fewer.
    for when in [3, 6, 9] {
        let path = dir.path().join(format!("{when}/tiller.db"));
        drop(Store::open(&path, options()).unwrap());
        let inject = format!("inject=fdatasync,fsync:error=EIO:when={when}");
        let mut child = command(
            &["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", &inject],
            "turns 3",
            &path,
        )
        .spawn()
        .unwrap();
        let mut told = Told::default();
        lines(&mut child).for_each(|line| told.hear(&line));
        child.wait().unwrap();
        if told.session.is_none() {
            eprintln!("skipped: strace may not trace here");
            return;
        }
        assert!(told.done, "the child did not recover from a failed flush at {when}");
        let store = Store::open(&path, options()).unwrap();
        told.check(&store);
        assert_eq!(told.entries.len(), 12);
        assert_eq!(store.sessions().get(told.session.unwrap()).unwrap().summary.entries, 12);
        assert_eq!(store.audit().list(told.session, "", 0).unwrap().len(), 6);
    }
}

/// Processes that write at once, with a tracer that slows their flushes or without one. Returns the 99th percentile.
fn writers(tracer: &[&str], writes: usize) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    let part = format!("write {writes}");
    let mut children: Vec<_> =
        (0..PROCESSES).map(|_| command(tracer, &part, &path).spawn().unwrap()).collect();
    let mut took: Vec<u64> = Vec::new();
    for child in &mut children {
        let mut done = false;
        for line in lines(child) {
            match line.split_once(' ') {
                Some(("took", micros)) => took.push(micros.parse().unwrap()),
                _ if line == "done" => done = true,
                _ => panic!("a writer said {line}"),
            }
        }
        child.wait().unwrap();
        assert!(done, "a writer did not come through");
    }
    assert_eq!(took.len(), PROCESSES * writes);
    took.sort_unstable();
    let p99 = Duration::from_micros(took[took.len() * 99 / 100]);
    eprintln!("20 processes: p50 {} us, p99 {p99:?}", took[took.len() / 2]);
    let store = Store::open(&path, options()).unwrap();
    let doctor = store.doctor().unwrap();
    assert_eq!((doctor.sessions, doctor.entries), (PROCESSES as u64, (PROCESSES * writes) as u64));
    assert_eq!(doctor.problems, Vec::<String>::new());
    p99
}

#[test]
fn s11_quick_twenty_processes_start_and_write_at_once() {
    let p99 = writers(&[], WRITES);
    // The row says 500 ms on a quiet machine; this one may be shared with other builds.
    assert!(p99 < Duration::from_secs(20), "{p99:?}");
}

/// Twenty flushes of 50 ms in a row take a second already: the test only checks that no process gives up.
#[test]
#[ignore = "the row's size: ten minutes"]
fn s11_whole_twenty_processes_with_slow_flushes() {
    let slow = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync,fsync",
        "-e",
        "inject=fdatasync,fsync:delay_exit=50000",
    ];
    writers(&slow, 500);
}
