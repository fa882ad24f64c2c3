//! The watcher on real folders.

use std::sync::mpsc::{Receiver, channel};

use tiller_protocol::view::GitOperation;
use tiller_protocol::{ChangeKind, SystemClock};

use super::*;
use crate::git::tests::{init, sh};

mod faults;

/// Time limit for expected reports.
const DEADLINE: Duration = Duration::from_secs(90);
/// Time in which an unwanted report would arrive.
const QUIET: Duration = Duration::from_millis(700);

struct Bench {
    dir: tempfile::TempDir,
    watcher: Watcher,
    /// Filled by the watcher's thread.
    from: Receiver<Report>,
    seen: Vec<FileChange>,
}

fn config() -> Config {
    Config { debounce: Duration::from_millis(60), ..Config::new(Arc::new(SystemClock::default())) }
}

impl Bench {
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        Self::with(config(), prepare)
    }

    fn with(config: Config, prepare: impl FnOnce(&Path)) -> Self {
        Self::through(config, prepare, || {})
    }

    /// `on` runs after each report on the watcher's thread, once it was passed on.
    fn through(config: Config, prepare: impl FnOnce(&Path), on: impl Fn() + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("w");
        std::fs::create_dir(&root).unwrap();
        prepare(&root);
        let (to, from) = channel();
        let sink: Sink = Arc::new(move |report| {
            let _ = to.send(report);
            on();
        });
        let watcher = Watcher::start(&root, config, sink);
        let mut bench = Self { dir, watcher, from, seen: Vec::new() };
        bench.wait("ready", |r| matches!(r, Report::Ready { .. }));
        bench
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("w")
    }

    /// At once: no look finds the file without its text.
    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        put(&self.root(), &path, text);
    }

    /// The next report for which `check` is true; earlier lines are kept in `seen`.
    fn wait(&mut self, what: &str, check: impl Fn(&Report) -> bool) -> Report {
        let end = Instant::now() + DEADLINE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(report) = self.from.recv_timeout(left) else {
                panic!("in vain: {what}; seen {:?}", self.seen);
            };
            if let Report::Changes(lines) = &report {
                self.seen.extend(lines.clone());
            }
            if check(&report) {
                return report;
            }
        }
    }

    /// The next line for this path.
    fn line(&mut self, path: &str) -> FileChange {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen.iter().position(|l| l.path == path) {
                return self.seen.remove(at);
            }
            assert!(Instant::now() < end, "no line for {path}: {:?}", self.seen);
            self.wait(path, |r| matches!(r, Report::Changes(_)));
        }
    }

    /// All lines that arrive while the test does nothing.
    fn rest(&mut self) -> Vec<FileChange> {
        while let Ok(report) = self.from.recv_timeout(QUIET) {
            if let Report::Changes(lines) = report {
                self.seen.extend(lines);
            }
        }
        std::mem::take(&mut self.seen)
    }
}

/// Writes a file beside `root`, which is not watched, and moves it to `path`.
fn put(root: &Path, path: &Path, text: &str) {
    let beside = root.with_file_name("beside");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

#[test]
fn changes_of_a_person_are_lines_with_what_happened() {
    let mut b = Bench::new(|root| std::fs::write(root.join("old"), "1\n2\n").unwrap());
    b.write("new", "a\nb\n");
    let line = b.line("new");
    assert_eq!((line.kind, line.who, line.lines), (ChangeKind::Added, Who::You, Some((2, 0))));
    b.write("new", "a\nc\nd\n");
    let line = b.line("new");
    assert_eq!((line.kind, line.lines), (ChangeKind::Modified, Some((2, 1))));
    std::fs::rename(b.root().join("new"), b.root().join("newer")).unwrap();
    assert_eq!(b.line("newer").kind, ChangeKind::Renamed);
    std::fs::remove_file(b.root().join("old")).unwrap();
    assert_eq!(b.line("old").kind, ChangeKind::Deleted);
    b.write("deep/er/file", "x");
    assert_eq!(b.line("deep/er/file").kind, ChangeKind::Added);
    b.write("deep/er/file", "y");
    assert_eq!(b.line("deep/er/file").kind, ChangeKind::Modified);
    std::fs::remove_dir_all(b.root().join("deep")).unwrap();
    assert_eq!(b.line("deep/er/file").kind, ChangeKind::Deleted);
    assert_eq!(b.rest(), []);
}

#[test]
fn a_moved_folder_is_watched_where_it_is() {
    let mut b = Bench::new(|root| {
        std::fs::create_dir_all(root.join("a/x")).unwrap();
        std::fs::write(root.join("a/x/f"), "1").unwrap();
    });
    std::fs::rename(b.root().join("a"), b.root().join("b")).unwrap();
    assert_eq!(b.line("b/x/f").kind, ChangeKind::Renamed);
    b.write("b/x/f", "22");
    assert_eq!(b.line("b/x/f").kind, ChangeKind::Modified);
    b.write("a/x/f", "new");
    assert_eq!(b.line("a/x/f").kind, ChangeKind::Added);
}

#[test]
fn ignored_things_are_silent_until_the_rules_change() {
    let mut b = Bench::new(|root| {
        std::fs::write(root.join(".gitignore"), "gen/\n").unwrap();
        std::fs::create_dir_all(root.join("gen")).unwrap();
        std::fs::create_dir_all(root.join("node_modules/x")).unwrap();
    });
    assert_eq!(b.watcher.stats().watches, 1);
    for path in ["gen/a", "gen/new/a", "node_modules/x/y", "target/debug/z", "a.swp", "b~"] {
        b.write(path, "1");
    }
    assert_eq!(b.rest(), []);
    b.write(".gitignore", "other/\n");
    assert_eq!(b.line(".gitignore").kind, ChangeKind::Modified);
    assert_eq!(b.line("gen/a").kind, ChangeKind::Added);
    b.write("gen/b", "1");
    assert_eq!(b.line("gen/b").kind, ChangeKind::Added);
}

#[test]
fn agents_and_their_commands_are_named() {
    let mut b = Bench::new(|root| std::fs::write(root.join("f"), "0").unwrap());
    let agent = AgentId("main/a1".into());
    let path = b.root().join("f");
    b.watcher.shell_running(&agent, "make", None, true);
    b.write("f", "by a command");
    let line = b.line("f");
    assert_eq!(line.who, Who::Shell { agent: agent.clone() });
    assert!(line.during.is_some_and(|d| !d.is_empty()), "the command is named");
    b.watcher.shell_running(&agent, "make", None, false);
    std::thread::park_timeout(QUIET);
    b.write("f", "by hand");
    assert_eq!(b.line("f").who, Who::You);
    let who = Who::Agent { agent: agent.clone() };
    b.watcher.expect(std::slice::from_ref(&path), &who);
    b.write("f", "by a tool, first the tool");
    b.watcher.wrote(std::slice::from_ref(&path), &who);
    assert_eq!(b.line("f").who, who);
    b.write("f", "and then the person right after");
    assert_eq!(b.line("f").who, Who::You);
    // Each agent is notified of changes that it did not make itself.
    let seen = HashMap::from([(path, SeenFile { hash: [0; 32], text: Some("one\n".into()) })]);
    let told = b.watcher.changes_outside(&agent, &seen);
    assert_eq!(told.files.len(), 1);
    assert_eq!((told.files[0].lines, &told.files[0].who), (Some((1, 1)), &Who::You));
    assert_eq!(b.watcher.changes_outside(&agent, &seen), OutsideChanges::default());
}

#[test]
fn pause_and_mute_silence_the_feed_but_not_the_agents() {
    let mut b = Bench::new(|_| {});
    assert!(b.watcher.mute("logs"));
    b.write("logs/x", "1");
    b.write("y", "1");
    assert_eq!(b.line("y").kind, ChangeKind::Added);
    assert!(b.watcher.diff("y").is_some_and(|d| d.contains("+1")), "all of a file that came is new");
    assert_eq!(b.rest(), []);
    assert!(!b.watcher.mute("logs"));
    b.watcher.pause(true);
    b.write("y", "2");
    assert_eq!(b.rest(), []);
    b.watcher.pause(false);
    let seen = HashMap::from([(b.root().join("y"), SeenFile { hash: [0; 32], text: None })]);
    assert_eq!(b.watcher.changes_outside(&AgentId::main(), &seen).files.len(), 1);
}

#[test]
fn git_is_told_and_its_changes_are_its_own() {
    let mut b = Bench::new(|root| {
        init(root);
        sh(
            root,
            "echo 1 > f; echo 1 > g; git add .; git commit -qm one; git checkout -qb side; echo 2 > f; git commit -qam two; git checkout -q trunk",
        );
    });
    let state = b.wait("the state", |r| matches!(r, Report::Git(_)));
    assert_eq!(
        state,
        Report::Git(GitState { branch: "trunk".into(), changed: 0, under_way: GitOperation::None })
    );
    sh(&b.root(), "git checkout -q side");
    let line = b.line("f");
    assert_eq!((line.kind, line.who), (ChangeKind::Modified, Who::Git));
    let line = b.line("branch trunk → side");
    assert_eq!((line.kind, line.who), (ChangeKind::Git, Who::Git));
    b.write("g", "mine");
    assert_eq!(b.line("g").who, Who::You);
    b.wait("one changed file", |r| matches!(r, Report::Git(g) if g.branch == "side" && g.changed == 1));
    sh(&b.root(), "git commit -qam 'third of all'");
    b.wait("the commit", |r| {
        matches!(r, Report::Changes(l) if l.iter().any(|l| l.kind == ChangeKind::Git && l.path.ends_with("third of all")))
    });
    assert!(b.watcher.diff("f").is_none());
    b.write("f", "3\n");
    assert_eq!(b.line("f").who, Who::You);
    let diff = b.watcher.diff("f").unwrap();
    assert!(diff.contains("-2\n+3\n"), "{diff}");
}

#[test]
fn differences_without_git_are_against_what_was_seen_first() {
    let mut b = Bench::new(|root| std::fs::write(root.join("f"), "1\n").unwrap());
    assert!(b.watcher.diff("f").unwrap().ends_with("@@ -0,0 +1 @@\n+1\n"), "all of it is new");
    b.watcher.known(&b.root().join("f"), &"1\n".into());
    b.write("f", "2\n");
    assert_eq!(b.line("f").lines, Some((1, 1)));
    let diff = b.watcher.diff("f").unwrap();
    assert!(diff.contains("-1\n+2\n"), "{diff}");
    assert_eq!(b.watcher.diff("nothing"), None);
}

#[test]
fn dropping_does_not_wait_for_a_sink_that_never_returns() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    // Held until the test is over: the sender waits for it.
    let (hold, held) = std::sync::mpsc::sync_channel::<()>(0);
    let (called, calls) = channel();
    let held = Mutex::new(held);
    let sink: Sink = Arc::new(move |_| {
        _ = called.send(());
        _ = lock(&held).recv();
    });
    let watcher = Watcher::start(&root, config(), sink);
    calls.recv_timeout(DEADLINE).unwrap();
    let begun = Instant::now();
    drop(watcher);
    assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    drop(hold);
}

#[test]
fn starting_returns_at_once_and_dropping_ends_the_thread() {
    let b = Bench::new(|root| {
        for n in 0..300 {
            std::fs::create_dir_all(root.join(format!("{n}/x/y"))).unwrap();
        }
    });
    let begun = Instant::now();
    let sink: Sink = Arc::new(|_| {});
    let watcher = Watcher::start(&b.root(), config(), sink.clone());
    assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    drop(watcher);
    // It is not waited for without end.
    let end = Instant::now() + DEADLINE;
    while Arc::strong_count(&sink) > 1 {
        assert!(Instant::now() < end, "the thread goes on");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
