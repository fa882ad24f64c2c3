//! S16: a session of 50,000 messages is opened, scrolled and browsed as fast as a small one.

use tiller::protocol::{ModelRef, Profile};
use tiller::store::{NewSession, Options, Store};
use tiller_testkit::{Script, Term, Wire};

use std::time::{Duration, Instant};

use crate::common::Place;
use crate::scenario::Model;
use crate::screen::{idle, say};

/// Messages in it.
const MESSAGES: usize = 50_000;
#[path = "../../../src/xtask/bench/rig/long_session.rs"]
mod long_session;

/// Questions and answers in turn, written straight into the store.
fn make(place: &Place) {
    let store = Store::open(&place.home.join("data/tiller.db"), Options::default()).unwrap();
    let model = ModelRef("anthropic/claude-sonnet-4-5".into());
    let new = NewSession {
        id: long_session::new_id(),
        project: place.work.display().to_string(),
        title: "a long one".into(),
        model: model.clone(),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: tiller::store::MadeBy::Person,
    };
    let body = |n: usize| match n % 2 {
        1 => long_session::question(format!("question {n} of many words")),
        _ => long_session::answer(format!("answer {n} of many words"), &model),
    };
    long_session::write(&store, new, (1..=MESSAGES).map(body)).unwrap();
}

/// Peak memory of the program in MiB; `None` without `/proc`.
///
/// # Panics
/// On Linux, when it cannot be read: a limit that is not measured is not enforced.
fn peak(term: &Term) -> Option<u64> {
    if !cfg!(target_os = "linux") {
        eprintln!("skipped: how much memory was used (no /proc)");
        return None;
    }
    let host = term.host().expect("the program runs");
    let status = std::fs::read_to_string(format!("/proc/{host}/status")).expect("its status");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("the line VmHWM");
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kB") / 1024)
}

/// Time limit of a jump to the other end of the session, on a busy machine and without optimisation.
const JUMP: Duration = Duration::from_secs(300);

/// Time limit of a reply of many megabytes.
const REPLY: Duration = Duration::from_secs(900);

/// Ctrl-Home and the search in the conversation reach the oldest message (U10); from another session the search over
/// all sessions does.
fn reaches_the_first(term: &mut Term) {
    let mut timed = |what: &str, keys: &[&str], text: &str| {
        let begun = Instant::now();
        for k in keys {
            term.keys(k);
        }
        term.wait_within(JUMP, what, |s| s.contains(text));
        assert!(begun.elapsed() < JUMP, "{what}: {:?}", begun.elapsed());
    };
    timed("Ctrl-Home", &["\x1b[1;5H"], "question 1 of many words");
    timed("Ctrl-End", &["\x1b[1;5F"], "answer 50000 of many words");
    timed("search", &["\x18/", "question 3 of many", "\r"], "question 3 of many words");
    timed("search", &[], "1/1");
    // An Escape directly before another key would be Alt.
    term.keys("\x1b");
    term.wait_gone("1/1");
    term.keys("\x1b");
    idle(term);
    term.keys("\x1b[1;5F");
    term.wait_text("answer 50000 of many words");
    say(term, "/new");
    term.wait_gone("answer 50000 of many words");
    let begun = Instant::now();
    term.keys("\x18F");
    term.wait_text("Find in");
    term.keys("question 7 of many");
    term.wait_within(JUMP, "the hit", |s| s.contains("question 7 of many words") && s.contains("1 of "));
    term.keys("\r");
    term.wait_within(JUMP, "the session of the hit", |s| {
        s.contains("question 7 of many words") && !s.contains("Find in")
    });
    assert!(begun.elapsed() < JUMP, "search over all sessions: {:?}", begun.elapsed());
    term.keys("\x1b[1;5F");
    term.wait_text("answer 50000 of many words");
    term.keys("\x1b");
    idle(term);
}

#[test]
fn s16_fifty_thousand_messages_are_opened_scrolled_and_browsed() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    make(&place);
    let mut term = place.term(&["-c"], 100, 30);
    term.wait_text("answer 50000 of many words");
    idle(&term);
    // Further up than what was loaded at first.
    for _ in 0..40 {
        term.keys("\x1b[5~");
    }
    term.wait("older messages", |s| s.contains("question 49") && !s.contains("answer 50000"));
    term.keys("\x1b[1;5F");
    term.wait_text("answer 50000 of many words");
    reaches_the_first(&mut term);
    say(&mut term, "/tree");
    term.wait_text("question 49999 of many words now");
    term.keys("g");
    term.wait_text("question 1 of many words");
    term.keys("tG");
    term.wait("everything unfolded", |s| s.contains("answer 50000") && s.contains("all calls"));
    term.keys("t/");
    term.keys("12345");
    term.wait("what was found", |s| s.contains("question 12345 of many words") && s.contains("1 found"));
    term.keys("\r\x1b");
    let peak = peak(&term);
    assert!(peak.is_none_or(|mib| mib < 300), "{peak:?} MiB");
    // An Escape directly before another key would be Alt.
    term.wait_gone("1 found");
    term.keys("q");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

/// A reply of this many megabytes of text: it is stopped, the person is notified and continues, and neither memory nor
/// database contain all of it.
fn reply_without_an_end(megabytes: usize) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    // The compaction would ask what to keep first, and take the reply that is waited for.
    place.config("[memory]\nsave = false\n");
    let line = format!("{}\n\n", "Many words go by in a line of this reply. ".repeat(3));
    model.push(Script::new().text(&line.repeat((megabytes << 20) / line.len())).pieces_of(4000));
    let mut term = place.term(&[], 118, 30);
    term.wait_text("Type what you want done");
    let begun = Instant::now();
    say(&mut term, "talk");
    let stopped = "longer than 16 MB and was stopped";
    term.wait_within(REPLY, stopped, |s| s.contains(stopped));
    let took = begun.elapsed();
    // The part up to the limit is shown, and typed text too.
    term.wait_text("Many words go by");
    idle(&term);
    let peak = peak(&term);
    let data = std::fs::read_dir(place.home.join("data")).unwrap().flatten();
    let stored: u64 = data.filter_map(|f| f.metadata().ok()).map(|m| m.len() >> 20).sum();
    eprintln!("{megabytes} MB: {took:?}, {peak:?} MiB of memory at most, {stored} MB stored");
    assert!(peak.is_none_or(|mib| mib < 500), "{peak:?} MiB");
    assert!((15..64).contains(&stored), "{stored} MB");
    model.push(Script::new().text("The second reply."));
    say(&mut term, "go on");
    term.wait_text("The second reply.");
    idle(&term);
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn p7_a_reply_without_an_end_is_stopped_and_the_person_goes_on() {
    reply_without_an_end(24);
}

#[test]
#[ignore = "the row's size; the server of the test takes a gigabyte"]
fn p7_whole_a_reply_of_200_megabytes() {
    reply_without_an_end(200);
}
