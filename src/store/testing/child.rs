//! Child processes for tests: this test binary again, with its role in the child's environment.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use tiller_protocol::{EntryId, SessionId};

use crate::testing::*;
use crate::{AcquireMode, Append, Health, Options, Running, Store, StoreError};

const PART: &str = "TILLER_STORE_TEST_PART";
const PATH: &str = "TILLER_STORE_TEST_PATH";

/// The command for the role `part` on the database at `path`, run by `wrapper` (a tracer, a namespace).
pub(crate) fn command(wrapper: &[&str], part: &str, path: &Path) -> Command {
    let me = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = wrapper.iter().map(|w| w.as_ref()).collect();
    words.push(me.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.args(["--exact", "testing::child::part_of_another_test", "--nocapture", "--test-threads=1"]);
    command.env(PART, part).env(PATH, path).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Lines of a child's output that begin with `> ` (the test harness prints others).
pub(crate) fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out: ChildStdout = child.stdout.take().unwrap();
    BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned()))
}

/// Prints a line for the test.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("> {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Does nothing by itself; in a child process it runs the role.
#[test]
fn part_of_another_test() {
    let (Ok(part), Ok(path)) = (std::env::var(PART), std::env::var(PATH)) else { return };
    let path = Path::new(&path);
    let (part, rest) = part.split_once(' ').unwrap_or((part.as_str(), ""));
    match part {
        "turns" => turns(path, rest.parse().unwrap()),
        "learnings" => super::learning_kills::work(path, rest.parse().unwrap()),
        "hold" => hold(path),
        "write" => write(path, rest),
        "open" => match Store::open(path, options()) {
            Ok(_) => say("opened"),
            Err(error) => say(&format!("{error}")),
        },
        "index" => index(path),
        "small-disk" => small_disk(path),
        other => panic!("no part {other}"),
    }
}

/// Ids of a run: a child must not use those of another.
fn run_entry(run: u128, n: u128) -> EntryId {
    entry_id(run * 1_000_000 + n)
}

/// A session with turns of three tools each. Prints `ack N` after each acknowledged entry, `audit N` after each
/// approval, `mid` and `end` around each turn.
fn turns(path: &Path, count: u128) {
    let run = u128::from(std::process::id());
    let store = Store::open(path, options()).unwrap();
    let session = session(&store, run);
    say(&format!("session {session}"));
    let mut parent: Option<EntryId> = None;
    let mut n = 0;
    for turn in 1..=count {
        for step in 0..4 {
            n += 1;
            let id = run_entry(run, n);
            let mut append = Append::new(session, "main").entries(vec![user(session, id, parent, "words")]);
            append.running = match step {
                0 => Some(Some(Running { agent: "main".into(), what: format!("turn {turn}"), since: NOW })),
                3 => Some(None),
                _ => None,
            };
            store.entries().append(append).wait().unwrap();
            say(&format!("ack {id}"));
            match step {
                0 => say("mid"),
                3 => say("end"),
                _ => {
                    let row = tiller_protocol::view::AuditRow {
                        time: NOW,
                        session,
                        agent: "main".into(),
                        tool: "terminal".into(),
                        what: format!("{id}"),
                        decision: tiller_protocol::PermissionOutcome::Allowed,
                        by: "rule".into(),
                        seconds: 0.0,
                        outcome: "ok".into(),
                    };
                    store.audit().record(row).wait().unwrap();
                    say(&format!("audit {id}"));
                }
            }
            parent = Some(id);
        }
    }
    say("done");
}

/// Takes session 1 and writes to it until it is killed or loses the lease.
fn hold(path: &Path) {
    let store = Store::open(path, options()).unwrap();
    let lease = store.leases().acquire(session_id(1), "main", AcquireMode::IfFree).wait().unwrap();
    say("held");
    let run = u128::from(std::process::id());
    for n in 1.. {
        let parent = store.heads().get(session_id(1), "main").unwrap();
        let append = Append {
            expect: Some(parent),
            lease: Some(lease.clone()),
            ..Append::new(session_id(1), "main").entries(vec![user(
                session_id(1),
                run_entry(run, n),
                parent,
                "mine",
            )])
        };
        match store.entries().append(append).wait() {
            Ok(()) => {}
            Err(StoreError::Held { .. }) => return say("lost"),
            Err(error) => return say(&format!("failed {error}")),
        }
    }
}

/// Writes this many entries to a session of its own and prints how long each took, in microseconds.
fn write(path: &Path, count: &str) {
    let store = Store::open(path, Options { network: |_| None, ..Options::default() }).unwrap();
    let run = u128::from(std::process::id());
    let session: SessionId = session(&store, run);
    for n in 1..=count.parse().unwrap() {
        let began = std::time::Instant::now();
        let parent = (n > 1).then(|| run_entry(run, n - 1));
        let append =
            Append::new(session, "main").entries(vec![user(session, run_entry(run, n), parent, "x")]);
        match store.entries().append(append).wait() {
            Ok(()) => say(&format!("took {}", began.elapsed().as_micros())),
            Err(error) => say(&format!("failed {error}")),
        }
    }
    if store.health().borrow().ok() {
        say("done");
    }
}

/// Indexes all entries, step by step. Prints `left N` after each.
fn index(path: &Path) {
    let store = Store::open(path, options()).unwrap();
    loop {
        let left = store.search().index_some(500).unwrap();
        say(&format!("left {left}"));
        if left == 0 {
            return;
        }
    }
}

/// On a disk of 4 MiB with a ballast file beside the database: writes until the disk is full, then removes the ballast.
fn small_disk(path: &Path) {
    let store = Store::open(path, options()).unwrap();
    let session = session(&store, 1);
    let text = "x".repeat(20_000);
    let mut n = 0;
    let mut parent = None;
    let stuck = loop {
        n += 1;
        let entry = user(session, entry_id(n), parent, &text);
        let ticket = store.entries().append(Append::new(session, "main").entries(vec![entry]));
        parent = Some(entry_id(n));
        let waiting = std::thread::spawn(move || ticket.wait());
        let mut full = false;
        eventually("an answer or a full disk", || {
            full = matches!(&*store.health().borrow(), Health::Failing(StoreError::Full { .. }));
            full || waiting.is_finished()
        });
        if full {
            break waiting;
        }
        waiting.join().unwrap().unwrap();
    };
    assert!(!stuck.is_finished(), "acknowledged on a full disk");
    assert_eq!(store.heads().get(session, "main").unwrap(), (n > 1).then(|| entry_id(n - 1)));
    say("full");
    std::fs::remove_file(path.with_file_name("ballast")).unwrap();
    store.retry();
    stuck.join().unwrap().unwrap();
    assert!(store.health().borrow().ok());
    assert_eq!(store.heads().get(session, "main").unwrap(), Some(entry_id(n)));
    assert_eq!(store.sessions().get(session).unwrap().summary.entries, u64::try_from(n).unwrap());
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
    say("saved");
}
