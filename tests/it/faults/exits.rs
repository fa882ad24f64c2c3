//! S15, U5: thirty ends at thirty moments, and failures of the program on every thread. The terminal is restored, no
//! process is left, and messages are saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tiller::app::Setup;
use tiller::commands::args::{Common, Open};
use tiller::config::Flags;
use tiller::protocol::{Clock, SystemClock, Time};
use tiller_testkit::{Reply, Script, Term, Wire};

use crate::common::{Place, Seed, TIMEOUT, at_work, let_pass, poll, signal, wait};
use crate::scenario::Model;
use crate::screen::{idle, say, shell_runs, type_in};

/// Time limit of an end. The promise is 2 s on an idle machine.
const END: Duration = Duration::from_secs(30);

/// Another seed gives other moments.
const SEED: u64 = 0x5155_e2d0;

/// Text that streams for a while, then a command that runs for long.
fn long_turn() -> (Model, Place) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.config("[detach]\non_hangup = \"end\"\n");
    let script = Script::new()
        .text("Many words come first, piece by piece, so that an end can come between two of them. ")
        .call("c1", "terminal", json!({"command": "sleep 1000 & sleep 1000"}));
    model.reply(Reply::script(Wire::Anthropic, &script).paced(15));
    (model, place)
}

/// Nothing is left of the program but the terminal as it was.
fn assert_clean(term: &Term, place: &Place, what: &str) {
    // The last bytes may not have been read yet.
    let _ = poll(TIMEOUT, || term.kept().is_empty().then_some(()));
    assert_eq!(term.kept(), Vec::<&str>::new(), "{what}: the terminal\n{}", term.screen());
    wait("the end of all children", || at_work(place).is_empty());
}

/// The database is intact, and contains the person's message if a turn had begun.
fn assert_saved(model: &Model, place: &Place, what: &str) {
    let rows = place.lines(&["doctor", "--json"]);
    assert!(rows.iter().any(|r| r["id"] == "database" && r["status"] == "ok"), "{what}: {rows:?}");
    if model.server.count() > 0 {
        let shown = place.ok(&["sessions", "show", "last"]);
        assert!(shown.contains("wait for long"), "{what}: {shown}");
    }
}

/// Waits for `first`, for streaming text, or for a running command, in turns, and for a random number of milliseconds
/// more, which it returns.
fn come_to(n: usize, moment: u64, term: &mut Term, first: impl Fn(&mut Term)) -> u64 {
    let most = match n % 3 {
        0 => {
            first(term);
            120
        }
        1 => {
            term.wait_text("Many words");
            300
        }
        _ => {
            term.wait("a running command", shell_runs);
            60
        }
    };
    let_pass(Duration::from_millis(moment % most));
    moment % most
}

fn ends_at(points: usize) {
    const ENDS: [(&str, Option<Signal>, u32); 4] = [
        ("TERM", Some(Signal::TERM), 143),
        ("HUP", Some(Signal::HUP), 129),
        ("INT", Some(Signal::INT), 130),
        ("closed terminal", None, 129),
    ];
    let mut longest = Duration::ZERO;
    for (n, moment) in (0..points).zip(Seed(SEED)) {
        let (name, with, code) = ENDS[n % ENDS.len()];
        let (model, place) = long_turn();
        let mut term = place.term(&["--profile", "full", "wait for long"], 80, 24);
        // The first: before anything is visible.
        let delay = come_to(n, moment, &mut term, |_| ());
        let what = format!("{name}, point {n}, {delay} ms");
        let begun = Instant::now();
        match with {
            Some(s) => signal(term.pid().unwrap(), s),
            None => term.hang_up(),
        }
        let ended = term.wait_exit();
        let took = begun.elapsed();
        assert!(took < END, "{what}: took {took:?}");
        // An end before the program handles signals is the system's.
        let began = String::from_utf8_lossy(&term.raw()).contains("\x1b[?1049h");
        assert!(ended == code || (!began && n % 3 == 0), "{what}: ended with {ended}");
        if with.is_some() {
            assert_clean(&term, &place, &what);
        } else {
            wait("the end of all children", || at_work(&place).is_empty());
        }
        assert_saved(&model, &place, &what);
        longest = longest.max(took);
        if (n + 1) % 50 == 0 {
            eprintln!("{} ends, the longest after {longest:?}", n + 1);
        }
    }
}

#[test]
fn s15_u5_thirty_ends_at_thirty_moments() {
    ends_at(30);
}

#[test]
#[ignore = "the row's size: 200 of each, some minutes"]
fn s15_whole_200_of_each_end() {
    ends_at(800);
}

/// True when a process has a handler for a signal.
fn handles(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let set = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(set, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// Signals of a broken program: none of its code runs any more.
fn broken_at(points: usize) {
    const SIGNALS: [(&str, Signal, u32); 5] = [
        ("SIGSEGV", Signal::SEGV, 139),
        ("SIGABRT", Signal::ABORT, 134),
        ("SIGBUS", Signal::BUS, 135),
        ("SIGILL", Signal::ILL, 132),
        ("SIGFPE", Signal::FPE, 136),
    ];
    for (n, moment) in (0..points).zip(Seed(SEED ^ 5)) {
        let (name, with, code) = SIGNALS[n % SIGNALS.len()];
        let (model, place) = long_turn();
        let mut term = place.term(&["--profile", "full", "wait for long"], 100, 24);
        // The first: when the screen is set up.
        let delay = come_to(n, moment, &mut term, |term| {
            wait("the screen", || String::from_utf8_lossy(&term.raw()).contains("\x1b[?1049h"));
        });
        let what = format!("{name}, point {n}, {delay} ms");
        let host = term.host().unwrap();
        assert_ne!(Some(host), term.pid(), "{what}: two processes");
        // The first signal of this kind ends nothing: Rust's handler checks for a stack overflow, removes itself and runs
        // the instruction again, which a real fault does not survive.
        if [Signal::SEGV, Signal::BUS].contains(&with) && handles(host, with) {
            signal(host, with);
            wait("the end of the handler", || !handles(host, with));
        }
        signal(host, with);
        assert_eq!(term.wait_exit(), code, "{what}: {}", term.screen());
        assert_clean(&term, &place, &what);
        let told = poll(TIMEOUT, || {
            let screen = term.screen().replace('\n', "");
            let told = format!("Tiller was ended by an internal error ({name}");
            (screen.contains(&told) && screen.contains("the report is in")).then_some(())
        });
        assert!(told.is_some(), "{what}: {}", term.screen());
        let reports = texts(&place);
        assert!(reports.len() == 1 && reports[0].contains(&format!("signal: {name}")), "{what}: {reports:?}");
        assert_saved(&model, &place, &what);
    }
}

#[test]
fn u5_a_fatal_signal_gives_the_terminal_back_and_is_reported() {
    broken_at(10);
}

#[test]
#[ignore = "a minute"]
fn u5_whole_thirty_fatal_signals_at_thirty_moments() {
    broken_at(30);
}

#[test]
fn u5_stopped_and_let_go_on_in_every_state() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.file("a.txt", "A\n");
    // In a shell with job control, as at a prompt. It reports that it has its terminal back.
    let script = format!(
        "set -m; stty -g >../before; '{}'; for i in 1 2 3; do stty -g >../stopped$i; echo STOPPED $i; read x; \
         fg >/dev/null; done; echo CODE $?; stty -g >../after",
        crate::common::TILLER
    );
    let mut term =
        Term::spawn(std::path::Path::new("/bin/bash"), &["-c", &script], &place.env, &place.work, 80, 24);
    term.wait_text("Type what you want done");
    let shell = term.pid().unwrap();
    let pid = *tiller_testkit::descendants(shell).first().unwrap();
    let stop = |term: &mut Term, n: u32, back: &str| {
        signal(pid, Signal::TSTP);
        term.wait_text(&format!("STOPPED {n}"));
        assert!(term.kept().iter().all(|k| *k == "raw mode"), "stop {n}: {:?}", term.kept());
        // Signals to the process alone: the waiting shell gets none.
        term.keys("\r");
        term.wait_text(back)
    };
    // With a draft; while text streams; while a question is open.
    type_in(&mut term, "a draft");
    stop(&mut term, 1, "a draft");
    term.keys("\x15");
    term.wait_gone("a draft");
    let script = Script::new().text(&"Word after word goes by here. ".repeat(12)).pieces_of(6);
    model.reply(Reply::script(Wire::Anthropic, &script).paced(25));
    say(&mut term, "talk");
    term.wait_text("Word after word");
    stop(&mut term, 2, "Word after word");
    idle(&term);
    let args = json!({"path": "new.txt", "content": "B\n"});
    model.push(Script::new().call("c1", "write_file", args));
    model.push(Script::new().text("So be it."));
    say(&mut term, "change it");
    crate::screen::asked(&mut term, "new.txt");
    stop(&mut term, 3, " wants to ");
    crate::screen::answer(&mut term, "new.txt", "n");
    term.wait_text("So be it.");
    idle(&term);
    term.keys("\x04");
    term.wait_text("CODE 0");
    term.wait_exit();
    assert_eq!(place.read("a.txt"), "A\n", "a stop is no yes");
    let set = |name: &str| std::fs::read_to_string(place.work.join("..").join(name)).unwrap();
    for name in ["stopped1", "stopped2", "stopped3", "after"] {
        assert_eq!(set("before"), set(name), "{name}");
    }
}

/// A clock that panics at one reading, on the interface's thread or on any other.
struct Bomb {
    inner: SystemClock,
    ui: std::thread::ThreadId,
    on_ui: bool,
    left: AtomicI64,
}

impl Bomb {
    fn tick(&self) {
        let ui = std::thread::current().id() == self.ui;
        if ui == self.on_ui && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            panic!("the clock of this test fails here");
        }
    }
}

impl Clock for Bomb {
    fn now(&self) -> Time {
        self.tick();
        self.inner.now()
    }

    fn mono(&self) -> Duration {
        self.tick();
        self.inner.mono()
    }
}

/// Names the failing reading and thread for a started program: `ui:12`.
const BOMB: &str = "TILLER_TEST_BOMB";

/// Not a test by itself: the workbench with a failing clock, started by the next test in a terminal.
#[test]
fn the_workbench_with_a_bomb() {
    let Ok(which) = std::env::var(BOMB) else { return };
    let (thread, left) = which.split_once(':').unwrap();
    let common = Common::default();
    let mut setup = Setup::read(&common, Flags::default()).unwrap();
    setup.clock = Arc::new(Bomb {
        inner: SystemClock::default(),
        ui: std::thread::current().id(),
        on_ui: thread == "ui",
        left: AtomicI64::new(left.parse().unwrap()),
    });
    let open = Open { prompt: Some("wait for long".into()), common, ..Open::default() };
    tiller::commands::workbench(setup, open);
}

#[test]
fn u5_an_error_of_its_own_gives_the_terminal_back_and_is_reported() {
    let me = std::env::current_exe().unwrap();
    let args = ["--exact", "faults::exits::the_workbench_with_a_bomb", "--nocapture", "--test-threads=1"];
    // The first readings, and later ones; a turn has several hundred.
    for which in ["ui:1", "ui:2", "ui:3", "ui:5", "ui:9", "ui:17", "ui:40", "ui:90"] {
        let (model, mut place) = long_turn();
        place.set(BOMB, which);
        place.config("profile = \"full\"\n");
        let mut term = Term::spawn(&me, &args, &place.env, &place.work, 80, 24);
        assert_eq!(term.wait_exit(), 101, "{which}: {}", term.screen());
        assert_clean(&term, &place, which);
        // (Before the screen is set up the interface's thread is not known as such.)
        let entered = String::from_utf8_lossy(&term.raw()).contains("\x1b[?1049h");
        let told = poll(if entered { TIMEOUT } else { Duration::ZERO }, || {
            term.screen().contains("an internal error").then_some(())
        });
        assert!(!entered || told.is_some(), "{which}:\n{}", term.screen());
        reported(&place, which);
        place.env.retain(|(n, _)| n != BOMB);
        assert_saved(&model, &place, which);
    }
    for which in ["other:1", "other:2", "other:4", "other:8", "other:16", "other:24", "other:32"] {
        let (model, mut place) = long_turn();
        place.set(BOMB, which);
        place.config("profile = \"full\"\n");
        let mut term = Term::spawn(&me, &args, &place.env, &place.work, 80, 24);
        wait("the report", || reports(&place) > 0);
        // The screen stays, shows the error, and can be left; or the program ends before there is one.
        let screen = poll(TIMEOUT, || {
            let shown = !term.kept().is_empty();
            (shown || at_work(&place).is_empty()).then_some(shown)
        });
        if screen == Some(true) {
            term.keys("\x15\x04\x03\x03");
            if poll(Duration::from_secs(4), || at_work(&place).is_empty().then_some(())).is_none() {
                signal(term.pid().unwrap(), Signal::TERM);
            }
        }
        term.wait_exit();
        assert_clean(&term, &place, which);
        reported(&place, which);
        place.env.retain(|(n, _)| n != BOMB);
        assert_saved(&model, &place, which);
    }
}

fn reports(place: &Place) -> usize {
    let state = std::fs::read_dir(place.home.join("state")).into_iter().flatten().flatten();
    state.filter(|f| f.file_name().to_string_lossy().starts_with("crash-")).count()
}

fn texts(place: &Place) -> Vec<String> {
    let state = std::fs::read_dir(place.home.join("state")).unwrap().flatten();
    state
        .filter(|f| f.file_name().to_string_lossy().starts_with("crash-"))
        .map(|f| std::fs::read_to_string(f.path()).unwrap())
        .collect()
}

fn reported(place: &Place, which: &str) {
    let texts = texts(place);
    assert!(texts.iter().any(|t| t.contains("the clock of this test fails here")), "{which}: {texts:?}");
}
