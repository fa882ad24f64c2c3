//! Tiller's agents and real programs of other vendors at once, on the real program's screen: one gets a message, one is
//! paused, one is cancelled, one asks, one is killed from outside; then the person quits, and continues later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tiller_external::Transport;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Term, Wire};

use super::{KEYS, answer, present};
use crate::common::{Place, at_work, signal, wait};
use crate::screen::{asked, choose, idle, quit, say};

/// An agent of Tiller's that repeats a call without need of approval, until the person (or the test) ends it.
fn own(body: &Value, done: bool, last: &str) -> Reply {
    if done {
        return Reply::script(Wire::Anthropic, &Script::new().text(last));
    }
    let id = format!("c{}", body["messages"].as_array().map_or(0, Vec::len));
    let round = Script::new().text("Once more.").call(&id, "list_dir", json!({"path": "."}));
    // No faster than a model.
    Reply::status(200)
        .header("content-type", "text/event-stream")
        .pause(300)
        .bytes(round.body(Wire::Anthropic))
}

fn model(asked: &Recorded, work: &Path, go_on: &AtomicBool) -> Reply {
    let body = asked.json();
    let talk = body["messages"].to_string();
    let has = |words: &str| talk.contains(words);
    if has("own one") {
        own(&body, has("turn left"), "I turned left.")
    } else if has("own two") {
        own(&body, go_on.load(Ordering::SeqCst), "Two is done.")
    } else if has("own three") || body["input"].to_string().contains("wait for ever") {
        Reply::silence()
    } else {
        answer(asked, work)
    }
}

/// The agent's row of the panel. The first row is the header, in which a toast may name the agent.
fn row(screen: &str, agent: &str) -> String {
    screen.lines().skip(1).find(|l| l.contains(agent) && !l.contains('┤')).unwrap_or_default().to_owned()
}

/// Selects this agent in the panel.
fn to_agent(term: &mut Term, n: usize) {
    term.keys("\x1b3");
    term.wait_text("K stop all");
    choose(term, &format!("a{n} "));
}

/// Number of requests of Tiller's agent.
fn rounds(server: &ScriptServer, words: &str) -> usize {
    server.bodies().iter().filter(|b| b["messages"].to_string().contains(words)).count()
}

fn place_for(server: &ScriptServer, clis: &str) -> Place {
    let mut place = Place::anthropic(server);
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{clis}:{path}"));
    place.set("ANTHROPIC_API_KEY", KEYS[0].1);
    place.set("OPENAI_API_KEY", KEYS[1].1);
    // Tiller's agents repeat the same call until the test lets them continue.
    place.config("[agents]\nrunning = 8\n[limits]\nrepeats = 0\n");
    super::settings(&place.user, &server.url());
    place
}

fn of_codex(place: &Place) -> Vec<u32> {
    at_work(place).into_iter().filter(|(_, line)| line.contains("codex")).map(|(pid, _)| pid).collect()
}

#[test]
fn three_own_agents_and_two_real_programs_at_once() {
    let there = present(&["claude", "codex"], Transport::Acp);
    let [(_, clis), _] = there.as_slice() else { return };
    let go_on = Arc::new(AtomicBool::new(false));
    let second = Arc::clone(&go_on);
    let work = std::sync::OnceLock::<std::path::PathBuf>::new();
    let work = Arc::new(work);
    let theirs = Arc::clone(&work);
    let server = ScriptServer::with(move |asked, _| {
        let folder = theirs.get().map(std::path::PathBuf::as_path).unwrap_or(Path::new("/nowhere"));
        model(asked, folder, &second)
    });
    let place = place_for(&server, clis);
    work.set(place.work.clone()).unwrap();
    let mut term = place.term(&[], 118, 40);
    term.wait_text("Type what you want done");
    say(&mut term, "hello");
    term.wait_text(super::LAST);
    for task in ["own one", "own two", "own three"] {
        say(&mut term, &format!("/spawn {task}"));
        wait(task, || rounds(&server, task) > 0);
    }
    say(&mut term, "/spawn @codex please wait for ever");
    let waits = || {
        server.requests().iter().any(|r| r.path.contains("/responses") && r.text().contains("wait for ever"))
    };
    let thinks = crate::common::poll(super::TIMEOUT, || waits().then_some(()));
    assert!(thinks.is_some(), "{}", term.screen());
    say(&mut term, "/spawn @claude please runcmd now");

    // One asks.
    let question = crate::common::poll(super::TIMEOUT, || term.screen().contains("▲ a5 ").then_some(()));
    assert!(question.is_some(), "{}", term.screen());
    let shown = asked(&mut term, "ran.txt");
    assert!(shown.contains("please runcmd now"), "whose it is: {shown}");
    term.keys("y");
    wait("its command", || place.work.join("ran.txt").exists());
    let done =
        crate::common::poll(super::TIMEOUT, || row(&term.screen(), "a5 ").contains("done").then_some(()));
    assert!(done.is_some(), "{}", term.screen());

    // One gets a message.
    to_agent(&mut term, 1);
    term.keys("s");
    term.wait_text("Message to a1");
    say(&mut term, "turn left");
    term.wait("the first", |s| row(s, "a1 ").contains("done"));

    // One is paused, and continues.
    to_agent(&mut term, 2);
    term.keys("p");
    term.wait("its rest", |s| row(s, "a2 ").contains("paused"));
    let before = rounds(&server, "own two");
    crate::common::let_pass(std::time::Duration::from_secs(1));
    assert_eq!(rounds(&server, "own two"), before, "who rests asks nothing");
    term.keys("p");
    wait("its next round", || rounds(&server, "own two") > before);

    // One is cancelled.
    to_agent(&mut term, 3);
    term.keys("k");
    term.wait_text("Press the key again to end a3");
    crate::screen::press_again(&mut term, "k", |s| row(s, "a3 ").contains("cancelled"));

    // One is killed from outside.
    let theirs = of_codex(&place);
    assert!(!theirs.is_empty());
    for pid in theirs {
        // Its child processes may have ended with it.
        if of_codex(&place).contains(&pid) {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
    term.wait("the fourth", |s| row(s, "a4 ").contains("failed"));
    wait("nothing of it is left", || of_codex(&place).is_empty());

    // The person quits while one works, and returns.
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
    wait("an empty folder", || at_work(&place).is_empty());
    let before = rounds(&server, "own two");
    go_on.store(true, Ordering::SeqCst);
    let mut term = place.term(&["-c"], 80, 24);
    // Here the panel is shown on request.
    to_agent(&mut term, 2);
    term.wait("its row", |s| row(s, "a2 ").contains("interrupted"));
    assert_eq!(rounds(&server, "own two"), before, "nobody goes on unasked");
    term.keys("u");
    term.wait("its end", |s| row(s, "a2 ").contains("done"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}
