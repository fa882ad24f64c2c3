//! The environment of one test: a home, a workspace, variables; ways to start the program in it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Term, Wire};

/// The program.
pub(crate) const TILLER: &str = env!("CARGO_BIN_EXE_tiller");

/// A key that must not appear anywhere.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef-e2e";

/// Time limit of a run. Generous, since the machine may be slow and busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// One test's files and environment.
pub(crate) struct Place {
    /// Deleted at the end.
    pub(crate) _tmp: tempfile::TempDir,
    /// `TILLER_HOME`.
    pub(crate) home: PathBuf,
    /// The person's home folder.
    pub(crate) user: PathBuf,
    /// The working folder.
    pub(crate) work: PathBuf,
    pub(crate) env: Vec<(String, String)>,
}

impl Place {
    /// Without a model server.
    pub(crate) fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        let at = |name: &str| {
            let dir = root.join(name);
            std::fs::create_dir(&dir).unwrap();
            dir
        };
        let (home, user, work) = (at("tiller"), at("user"), at("work"));
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        let mut place = Self { _tmp: tmp, home, user, work, env: Vec::new() };
        place.set("PATH", &path);
        place.set("HOME", &place.user.display().to_string());
        place.set("TILLER_HOME", &place.home.display().to_string());
        place.set("LANG", "C.UTF-8");
        place.set("TERM", "xterm-256color");
        place.set("GIT_CONFIG_NOSYSTEM", "1");
        // The list of tools is the same whether there is Python or not.
        place.set("TILLER_TEST_PYTHON", "/usr/bin/python3");
        // The whole suite runs with another bubblewrap, or without, where the environment says so.
        if let Ok(bubblewrap) = std::env::var("TILLER_TEST_BUBBLEWRAP") {
            place.set("TILLER_TEST_BUBBLEWRAP", &bubblewrap);
        }
        place
    }

    /// Anthropic at `server`.
    pub(crate) fn anthropic(server: &ScriptServer) -> Self {
        let mut place = Self::new();
        place.wire(Wire::Anthropic, server);
        place
    }

    /// Points the program at a server that speaks `wire`.
    pub(crate) fn wire(&mut self, wire: Wire, server: &ScriptServer) {
        match wire {
            Wire::Anthropic => {
                self.set("ANTHROPIC_BASE_URL", &server.url());
                self.set("ANTHROPIC_API_KEY", KEY);
                self.set("TILLER_MODEL", "anthropic/claude-sonnet-4-5");
            }
            Wire::OpenaiChat => {
                self.set("OPENAI_BASE_URL", &server.url());
                self.set("OPENAI_API_KEY", KEY);
                self.set("TILLER_MODEL", "openai/gpt-4.1");
            }
            Wire::OpenaiResponses => {
                self.set("OPENAI_BASE_URL", &server.url());
                self.set("OPENAI_API_KEY", KEY);
                self.set("TILLER_MODEL", "openai-responses/gpt-4.1");
            }
            Wire::Gemini => {
                self.set("GOOGLE_GEMINI_BASE_URL", &server.url());
                self.set("GEMINI_API_KEY", KEY);
                self.set("TILLER_MODEL", "gemini/gemini-2.5-pro");
            }
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.into(), value.into()));
    }

    /// Writes `config.toml`, in one step: a program that watches it never reads an empty file.
    pub(crate) fn config(&self, text: &str) {
        let dir = self.home.join("config");
        std::fs::create_dir_all(&dir).unwrap();
        let new = self.home.join("config.toml.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, dir.join("config.toml")).unwrap();
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Reads a file of the workspace.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.join(name)).unwrap()
    }

    /// Any program, in the workspace, with this environment only.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut cmd = Command::new(program);
        cmd.env_clear().envs(self.env.iter().cloned()).args(args).current_dir(&self.work);
        cmd
    }

    /// `tiller ARGS`.
    pub(crate) fn tiller(&self, args: &[&str]) -> Command {
        self.program(TILLER, args)
    }

    /// Runs `tiller ARGS` with nothing on standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Out {
        run(self.tiller(args), b"")
    }

    /// As [`Self::run`]; it must exit with code 0.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
        out.stdout
    }

    /// The JSON lines of `tiller ARGS`.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<Value> {
        json_lines(&self.ok(args))
    }

    /// The number of rows of a table of the database; `None` before there is one.
    pub(crate) fn rows(&self, table: &str) -> Option<u32> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let db = rusqlite::Connection::open_with_flags(self.home.join("data/tiller.db"), flags).ok()?;
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).ok()
    }

    /// The workbench in a terminal.
    pub(crate) fn term(&self, args: &[&str], cols: u16, rows: u16) -> Term {
        Term::spawn(Path::new(TILLER), args, &self.env, &self.work, cols, rows)
    }

    /// Git, silently.
    pub(crate) fn git(&self, args: &[&str]) {
        let mut all = vec!["-c", "user.name=t", "-c", "user.email=t@localhost"];
        all.extend(args);
        let out = run(self.program("git", &all), b"");
        assert_eq!(out.code, Some(0), "git {args:?}: {out:?}");
    }
}

impl Drop for Place {
    /// Processes that are left end with the test.
    fn drop(&mut self) {
        for (pid, line) in at_work(self) {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid.filter(|_| line.starts_with(TILLER)) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Out {
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Each line of it.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs to the end, with a limit.
pub(crate) fn run(mut cmd: Command, stdin: &[u8]) -> Out {
    let mut child = cmd.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that reads nothing closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    finish(child)
}

/// Reads the output of a started program, and waits for its end.
pub(crate) fn finish(child: Child) -> Out {
    finish_within(child, TIMEOUT)
}

/// As [`finish`], for a run that may take this long.
pub(crate) fn finish_within(mut child: Child, limit: Duration) -> Out {
    let out = child.stdout.take().map(drain);
    let err = child.stderr.take().map(drain);
    let ended = poll(limit, || child.try_wait().unwrap());
    if ended.is_none() {
        let _ = child.kill();
    }
    let text = |t: Option<std::thread::JoinHandle<String>>| t.map_or(String::new(), |t| t.join().unwrap());
    let (stdout, stderr) = (text(out), text(err));
    let status = ended.unwrap_or_else(|| panic!("no end in {limit:?}: {stdout}\n{stderr}"));
    Out { code: status.code(), stdout, stderr }
}

/// Calls `ask` repeatedly until there is a result, or the time is over.
pub(crate) fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(t) = ask() {
            return Some(t);
        }
        if Instant::now() >= end {
            return None;
        }
        // Polls, since nothing wakes this thread.
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Lets real time pass, for delays within the program that cannot be observed.
pub(crate) fn let_pass(time: Duration) {
    let _: Option<()> = poll(time, || None);
}

/// Lets the time pass in which a new dialog ignores keys (`ui.approval_deaf`).
pub(crate) fn let_deafness_pass() {
    let_pass(Duration::from_millis(500));
}

/// Lets the time pass in which text and Enter behind a paste belong to it. A busy program may not notice the pause: then a key
/// that is no text ends the paste, as End does.
pub(crate) fn let_paste_pass(term: &mut Term) {
    let_pass(Duration::from_millis(600));
    term.keys("\x1b[F");
}

/// Lets the time pass in which a key after Escape would be an Alt key.
pub(crate) fn let_escape_pass() {
    let_pass(Duration::from_millis(300));
}

/// Waits for a condition outside of the test.
pub(crate) fn wait(what: &str, mut until: impl FnMut() -> bool) {
    assert!(poll(TIMEOUT, || until().then_some(())).is_some(), "waited for {what}");
}

/// A reply that is text.
pub(crate) fn says(text: &str) -> Reply {
    Reply::script(Wire::Anthropic, &Script::new().text(text))
}

/// A reply that calls one tool.
pub(crate) fn calls(id: &str, name: &str, args: Value) -> Reply {
    Reply::script(Wire::Anthropic, &Script::new().text("I look.").call(id, name, args))
}

/// A reply that runs a command.
pub(crate) fn shell(id: &str, command: &str) -> Reply {
    calls(id, "terminal", json!({"command": command}))
}

/// The types of events in order, without streamed ones.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|e| e["type"].as_str()).filter(|t| !t.ends_with("_delta")).collect()
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Pseudo-random numbers, the same each time.
pub(crate) struct Seed(pub(crate) u64);

impl Iterator for Seed {
    type Item = u64;

    /// Knuth's constants; the low bits are the weak ones.
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(self.0 >> 33)
    }
}

/// As [`at_work`], without the program itself.
pub(crate) fn others(place: &Place) -> Vec<(u32, String)> {
    at_work(place).into_iter().filter(|(_, line)| !line.starts_with(TILLER)).collect()
}

/// Waits until no process is left in this place. One that was killed is still listed until the system has removed it.
pub(crate) fn wait_nothing_at_work(place: &Place) {
    let none = poll(TIMEOUT, || at_work(place).is_empty().then_some(()));
    assert!(none.is_some(), "processes are left: {:?}", at_work(place));
}

/// True where `strace` is there and can read what the program says to the kernel. The program hides its memory from all
/// processes but those of root.
pub(crate) fn strace() -> bool {
    let works = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    let works = works.is_ok_and(|out| out.status.success());
    if !works {
        eprintln!("skipped: strace is not installed, or may not trace here");
    } else if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: the program hides its memory from strace of an ordinary user");
        return false;
    }
    works
}

/// Processes whose working folder is this place: id and command line. The program hides its own folder from tests of an
/// ordinary user.
pub(crate) fn at_work(place: &Place) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for dir in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = dir.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let here = std::fs::read_link(dir.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&place.work));
        if here {
            let line = std::fs::read(dir.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

/// True if one JSON file of the workbench's state holds all of `texts`.
pub(crate) fn state_holds(place: &Place, texts: &[&str]) -> bool {
    let mut folders = vec![place.home.clone()];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if file.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(file.path());
            } else if file.path().extension().is_some_and(|e| e == "json") {
                let kept = std::fs::read_to_string(file.path()).unwrap_or_default();
                if texts.iter().all(|text| kept.contains(text)) {
                    return true;
                }
            }
        }
    }
    false
}
