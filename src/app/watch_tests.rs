use std::time::Instant;

use tiller_engine::Watcher as _;
use tiller_protocol::{FileChange, SystemClock};
use tiller_tool::shell::{FileMark, Left};

use super::*;

struct Bench {
    tmp: tempfile::TempDir,
    watch: Watch,
    seen: Arc<Mutex<Vec<WatchReport>>>,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(prepare: impl FnOnce(&Path)) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        prepare(&root);
        std::fs::write(root.join("ready"), "0").unwrap();
        let settings = tiller_config::schema::Watch { debounce: 30, ..Default::default() };
        let watch = Watch::new(&root, &settings, Vec::new(), Arc::new(SystemClock::default()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        watch.start(Box::new(move |s| {
            lock(&into).push(s);
            true
        }));
        let b = Self { tmp, watch, seen };
        // The first report shows that nothing is missed from here on.
        b.until("the first change", || {
            std::fs::write(b.path("ready"), "1").unwrap();
            b.find("ready").is_some()
        });
        b
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join(name)
    }

    fn find(&self, name: &str) -> Option<FileChange> {
        lock(&self.seen).iter().flat_map(|s| &s.changes).rfind(|c| c.path == name).cloned()
    }

    #[expect(clippy::disallowed_methods, reason = "polls with a deadline")]
    fn until(&self, what: &str, done: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(90);
        while !done() {
            assert!(Instant::now() < end, "{what}; seen {:?}", lock(&self.seen));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn who(&self, name: &str) -> Who {
        self.until(name, || self.find(name).is_some());
        self.find(name).unwrap().who
    }
}

#[test]
fn the_person_the_agent_and_its_commands_are_told_apart() {
    let b = Bench::new();
    let agent = AgentId::main();
    std::fs::write(b.path("mine"), "x").unwrap();
    assert_eq!(b.who("mine"), Who::You);
    let edited = [b.path("edited")];
    b.watch.writing(&agent, &edited);
    std::fs::write(&edited[0], "x").unwrap();
    b.watch.wrote(&agent, &edited);
    assert_eq!(b.who("edited"), Who::Agent { agent: agent.clone() });
    b.watch.command(&agent, "make", None, true);
    std::fs::write(b.path("made"), "x").unwrap();
    b.watch.command(&agent, "make", None, false);
    assert_eq!(b.who("made"), Who::Shell { agent });
}

/// W19: beside a command whose supervisors see what it changes, the person's edits are theirs, one file or many at once.
#[test]
fn w19_the_feed_tells_the_persons_edits_from_those_of_a_command_that_runs() {
    let b = Bench::new();
    let (agent, witness) = (AgentId::main(), Witness::default());
    witness.begin(std::time::SystemTime::now());
    let command = tiller_tool::shell::CommandWatch::default();
    command.attend(&witness);
    command.sees_changes();
    b.watch.command(&agent, "make", Some(&witness), true);
    for name in ["made", "both"] {
        std::fs::write(b.path(name), "x").unwrap();
        let mark = FileMark::of(&b.path(name)).unwrap();
        command.changed(&b.path(name), Left::File(mark), None);
    }
    command.written_by_others(&b.path("both"));
    std::fs::write(b.path("mine"), "x").unwrap();
    for (name, who) in [
        ("made", Who::Shell { agent: agent.clone() }),
        ("both", Who::Shell { agent: agent.clone() }),
        ("mine", Who::You),
    ] {
        assert_eq!(b.who(name), who, "{name}");
    }
    std::fs::create_dir(b.path("many")).unwrap();
    for n in 0..200 {
        std::fs::write(b.path("many").join(n.to_string()), "x").unwrap();
    }
    let many = || {
        let seen = lock(&b.seen);
        let below = seen.iter().flat_map(|s| &s.changes).filter(|c| c.path.starts_with("many"));
        below.map(|c| (c.who.clone(), c.count)).collect::<Vec<_>>()
    };
    b.until("all files", || many().iter().map(|(_, count)| count).sum::<u64>() >= 200);
    assert!(many().iter().all(|(who, _)| *who == Who::You), "{:?}", many());
    b.watch.command(&agent, "make", Some(&witness), false);
}

#[test]
fn the_state_of_git_is_told_and_known_again_when_the_branch_changes() {
    let git = |root: &Path, args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let git = tiller_testkit::plain_git(git.args(args).current_dir(root));
        git.output().is_ok_and(|o| o.status.success())
    };
    let mut made = false;
    let b = Bench::with(|root| {
        made = git(root, &["init", "-q", "-b", "first"])
            && git(root, &["commit", "-q", "--allow-empty", "-m", "x"]);
    });
    if !made {
        println!("skipped: there is no git");
        return;
    }
    let branch = || lock(&b.seen).iter().rev().find_map(|s| s.git.as_ref().map(|g| g.branch.clone()));
    b.until("the branch", || branch().as_deref() == Some("first"));
    assert!(git(&b.path(""), &["checkout", "-q", "-b", "second"]));
    b.until("the other branch", || branch().as_deref() == Some("second"));
}

#[test]
fn what_changed_while_a_command_ran_is_told_with_the_command_also_where_the_feed_is_silent() {
    let b = Bench::new();
    let agent = AgentId::main();
    let known =
        |text: &str| SeenFile { hash: *blake3::hash(text.as_bytes()).as_bytes(), text: Some(text.into()) };
    for name in ["a", "quiet"] {
        std::fs::write(b.path(name), "1\n").unwrap();
        assert_eq!(b.who(name), Who::You);
    }
    let seen: HashMap<PathBuf, SeenFile> = ["a", "quiet"].iter().map(|n| (b.path(n), known("1\n"))).collect();
    assert_eq!(b.watch.stale(&agent, &seen), StaleFiles::default(), "both are as it knows them");
    b.watch.mute("quiet");
    b.watch.command(&agent, "cargo test", None, true);
    // The author is the person or the command.
    std::fs::write(b.path("quiet"), "2\n2\n").unwrap();
    std::fs::write(b.path("a"), "2\n").unwrap();
    let mut told = Vec::new();
    let told = std::cell::RefCell::new(&mut told);
    b.until("both are known to have changed", || {
        if b.watch.has_changes(&agent) {
            told.borrow_mut().extend(b.watch.stale(&agent, &seen).files);
        }
        let told = told.borrow();
        ["a", "quiet"].iter().all(|n| told.iter().any(|f| f.path == *n))
    });
    b.watch.command(&agent, "cargo test", None, false);
    let during: Vec<_> = told.borrow().iter().map(|f| f.during.clone()).collect();
    assert!(during.iter().all(|d| d.as_deref() == Some("cargo test")), "{:?}", told.borrow());
    let mut lines: Vec<_> = told.borrow().iter().map(|f| (f.path.clone(), f.lines)).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines, [("a".to_owned(), Some((1, 1))), ("quiet".to_owned(), Some((2, 1)))]);
    assert!(b.find("quiet").is_none_or(|c| c.kind != tiller_protocol::ChangeKind::Modified), "muted");
}
