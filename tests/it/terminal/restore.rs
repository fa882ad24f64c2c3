//! The terminal is always restored, no process survives, and a slow terminal blocks nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tiller_testkit::{Reply, Script, Term, Wire};

use crate::common::{Place, TILLER, TIMEOUT, at_work, let_pass, poll, signal, wait, wait_nothing_at_work};
use crate::scenario::Model;
use crate::screen::{idle, say, shell_runs, type_in};

/// Time limit of an end. The promise is 2 s on an idle machine.
const END: Duration = Duration::from_secs(30);

fn sleepers(place: &Place) -> usize {
    at_work(place).iter().filter(|(_, line)| line.starts_with("sleep")).count()
}

/// Sequences that an end must write, whatever was switched on.
fn assert_given_back(raw: &[u8]) {
    let raw = String::from_utf8_lossy(raw);
    let last = raw.rfind("\x1b[?1049h").expect("the other screen was entered");
    let tail = &raw[last..];
    for (on, off) in [
        ("\x1b[?1049h", "\x1b[?1049l"),
        ("\x1b[?25l", "\x1b[?25h"),
        ("\x1b[?2004h", "\x1b[?2004l"),
        ("\x1b[?1004h", "\x1b[?1004l"),
        ("\x1b[?1000h", "\x1b[?1000l"),
        ("\x1b[?1006h", "\x1b[?1006l"),
        ("\x1b[?2031h", "\x1b[?2031l"),
        ("\x1b[>5u", "\x1b[<1u"),
    ] {
        let (on, at) = (tail.rfind(on), tail.rfind(off));
        assert!(at.is_some() && at > on, "{off:?} is missing at the end");
    }
    assert!(tail.ends_with("\x1b[?1049l"), "nothing is drawn afterwards: {:?}", &tail[tail.len() - 40..]);
}

/// A place with a model: without one a setup dialog takes the keys.
fn with_model() -> (Model, Place) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    (model, place)
}

/// A workbench with a long-running command.
fn busy(model: &Model, place: &mut Place) -> Term {
    place.wire(Wire::Anthropic, &model.server);
    model.push(Script::new().call("c1", "terminal", json!({"command": "sleep 1000 & sleep 1000"})));
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "wait for long");
    term.wait("a running command", shell_runs);
    wait("both sleepers", || sleepers(place) == 2);
    term
}

fn ends(with: Signal, code: u32) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.config("[detach]\non_hangup = \"end\"\n");
    let mut term = busy(&model, &mut place);
    let begun = Instant::now();
    signal(term.pid().unwrap(), with);
    assert_eq!(term.wait_exit(), code);
    assert!(begun.elapsed() < END, "took {:?}", begun.elapsed());
    wait_nothing_at_work(&place);
    wait("the last bytes", || term.raw().ends_with(b"\x1b[?1049l"));
    assert_given_back(&term.raw());
    // The person's message is stored, and each call has its result.
    let kinds: Vec<String> = place
        .lines(&["sessions", "show", "last", "--json"])
        .iter()
        .map(|e| e["body"]["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds[..4], ["prefix", "user", "assistant", "tool_result"]);
}

#[test]
fn s15_term_ends_all_of_it_with_143() {
    ends(Signal::TERM, 143);
}

#[test]
fn s15_hup_ends_all_of_it_with_129() {
    ends(Signal::HUP, 129);
}

#[test]
fn u5_the_shell_gets_its_terminal_back() {
    for end in ["\x04", "signal"] {
        let (_model, place) = with_model();
        let script = format!("stty -a >../before; '{TILLER}'; echo $? >../code; stty -a >../after");
        let mut term = Term::spawn(Path::new("/bin/sh"), &["-c", &script], &place.env, &place.work, 80, 24);
        term.wait_text("Type what you want done");
        if end == "signal" {
            let pid = *tiller_testkit::descendants(term.pid().unwrap()).first().unwrap();
            signal(pid, Signal::TERM);
        } else {
            term.keys(end);
        }
        term.wait_exit();
        let read = |name: &str| std::fs::read_to_string(place.work.join("..").join(name)).unwrap();
        assert_eq!(read("before"), read("after"), "{end}");
        assert_eq!(read("code").trim(), if end == "signal" { "143" } else { "0" });
        // They may not have been read yet.
        wait("the last bytes", || term.raw().ends_with(b"\x1b[?1049l"));
        assert_given_back(&term.raw());
    }
}

#[test]
fn u5_stopped_and_brought_back_it_draws_everything_anew() {
    let (_model, place) = with_model();
    let script = format!("set -m; '{TILLER}'; echo STOPPED; read x; fg >/dev/null; echo CODE $?");
    let mut term = Term::spawn(Path::new("/bin/bash"), &["-c", &script], &place.env, &place.work, 80, 24);
    term.wait_text("Type what you want done");
    type_in(&mut term, "my draft");
    term.keys("\x1a");
    let screen = term.wait_text("STOPPED");
    assert!(!screen.contains("my draft"), "the shell has its own screen:\n{screen}");
    term.keys("\r");
    term.wait("all of its screen", |s| {
        s.contains("my draft") && s.contains("Type what you want done") && !s.contains("STOPPED")
    });
    term.keys("\x15");
    term.wait_gone("my draft");
    term.keys("\x04");
    term.wait_text("CODE 0");
}

/// Processor time of a process, in clock ticks; `None` while one of its threads works or waits for a processor.
fn at_rest(pid: u32) -> Option<u64> {
    let mut ticks = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread that has ended meanwhile does not work.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
        let (_, rest) = stat.rsplit_once(')')?;
        // The state is the third field of the line; the times are the 14th and 15th.
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if fields[0] != "S" {
            return None;
        }
        ticks += fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    }
    Some(ticks)
}

#[test]
fn u2_after_a_storm_of_sizes_the_last_frame_is_right() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    model.push(
        Script::new()
            .text("| a | b |\n|---|---|\n| one | two |\n\nAnd a long line of words. ".repeat(12).as_str()),
    );
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "show me");
    term.wait_text("long line of words");
    idle(&term);
    // A pseudo-random order, the same each time.
    let mut n: u32 = 7;
    for _ in 0..300 {
        n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (w, h) = ((n >> 8) % 250, (n >> 20) % 90);
        term.resize(u16::try_from(w + 1).unwrap(), u16::try_from(h + 1).unwrap());
    }
    term.resize(80, 24);
    let whole = |s: &str| {
        s.contains("long line of words")
            && s.lines().count() == 24
            && s.lines().last().is_some_and(|l| l.trim_start().starts_with("Shift-Tab mode"))
    };
    // The last frame is the one after which no more output comes. A busy program pauses between two frames as well, so
    // a frame of an earlier size is not taken for it: the program has nothing left to do.
    let pids = [term.pid().unwrap(), term.host().unwrap()];
    let after = poll(TIMEOUT, || {
        let state = || (term.written(), pids.map(at_rest));
        let before = state();
        let_pass(Duration::from_millis(700));
        let rests = before.1.iter().all(Option::is_some) && before == state();
        rests.then(|| term.screen()).filter(|s| whole(s))
    });
    let after = after.unwrap_or_else(|| panic!("no last frame:\n{}", term.screen()));
    // A redraw from scratch looks the same.
    let seen = term.raw().len();
    term.keys("\x0c");
    // On a terminal that shows nothing yet, its bytes alone draw the same screen.
    let fresh = || term.drawn_since(seen);
    let same = poll(TIMEOUT, || (fresh() == after && term.screen() == after).then_some(()));
    assert!(same.is_some(), "{after}\nis not\n{}", fresh());
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn u6_a_terminal_that_has_stalled_stops_no_turn() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let text = format!("{}THE VERY END", "Many words go by here, line after line of them.\n\n".repeat(300));
    let script = Script::new().text(&text).pieces_of(60);
    model.reply(Reply::script(Wire::Anthropic, &script).paced(3));
    let mut term = place.term(&[], 118, 40);
    term.wait_text("Type what you want done");
    type_in(&mut term, "talk");
    let stalled = term.stall();
    term.keys("\r");
    wait("the reply on disk", || place.run(&["sessions", "show", "last"]).stdout.contains("THE VERY END"));
    assert!(!term.screen().contains("THE VERY END"), "the terminal was stalled all the while");
    drop(stalled);
    term.wait_text("THE VERY END");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}
