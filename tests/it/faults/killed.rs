//! S1, in its quick form: killed at fifty moments, acknowledged data is there, no process survives, and the session
//! continues.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::{Place, Seed, TIMEOUT, at_work, json_lines, let_pass, poll, signal, state_holds, wait};
use crate::screen::{idle, say, type_in};

/// Trials without a screen, and with one; the long form has 1,000.
const TRIALS: u32 = 42;
const SCREENS: u32 = 8;

/// Another seed gives other moments. A failing trial prints its number.
const SEED: u64 = 0x7111_e201;

/// The latest moment of a kill after the first acknowledgement, in milliseconds. A whole turn takes about this long.
const SPAN: u64 = 500;

/// The reply depends on the request: three rounds of tools, then the end. Slow enough to be killed anywhere.
fn server() -> ScriptServer {
    ScriptServer::with(|request: &Recorded, _| {
        let body = request.json();
        if body["tools"].as_array().is_none_or(Vec::is_empty) {
            return Reply::script(Wire::Anthropic, &Script::new().text("Write"));
        }
        let messages = body["messages"].as_array().unwrap();
        let since =
            messages.iter().rposition(|m| m["role"] == "user" && !m.to_string().contains("tool_result"));
        let rounds = messages.len() - since.unwrap_or(0) - 1;
        let n = messages.len();
        let script = if rounds < 6 {
            // A process is left running each time.
            let command = "sleep 1000 & sleep 0.02; echo done";
            Script::new()
                .text("Let me write something down first.")
                .call(&format!("a{n}"), "write_file", json!({"path": format!("f{n}.txt"), "content": "x\n"}))
                .call(&format!("b{n}"), "terminal", json!({"command": command}))
        } else {
            Script::new().text("All is written.")
        };
        Reply::script(Wire::Anthropic, &script).paced(2)
    })
}

/// Every call has exactly one result, and every result has a call.
fn assert_valid(body: &Value) {
    let (mut open, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for message in body["messages"].as_array().unwrap() {
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => open.push(block["id"].clone()),
                Some("tool_result") => {
                    let id = &block["tool_use_id"];
                    assert!(open.contains(id) && seen.insert(id.to_string()), "{id} in {body}");
                }
                _ => {}
            }
        }
        if message["role"] == "user" {
            assert_eq!(open.len(), seen.len(), "each call is answered in the next message: {body}");
        }
    }
}

/// Waits until no child process is left.
fn gone(place: &Place, trial: u32) {
    let left = poll(TIMEOUT, || at_work(place).is_empty().then_some(()));
    assert!(left.is_some(), "trial {trial}: {:?} run on", at_work(place));
}

/// Checks after each kill: no process is left, the tree is complete. Returns the entries.
fn after_kill(place: &Place, trial: u32) -> Vec<Value> {
    gone(place, trial);
    let stored = place.lines(&["sessions", "show", "last", "--json"]);
    for pair in stored.windows(2) {
        assert_eq!(pair[1]["parent"], pair[0]["id"], "trial {trial}: one path");
    }
    stored
}

/// The database is intact, and every request from `before` on is valid.
fn assert_sound(place: &Place, server: &ScriptServer, before: usize, trial: u32) {
    for body in &server.bodies()[before..] {
        assert_valid(body);
    }
    let rows = place.lines(&["doctor", "--json"]);
    assert!(rows.iter().any(|r| r["id"] == "database" && r["status"] == "ok"), "trial {trial}: {rows:?}");
    gone(place, trial);
}

/// One kill of `exec`. True: it was killed in the middle of the turn.
fn headless(trial: u32, delay: u64) -> bool {
    let server = server();
    let place = Place::anthropic(&server);
    let mut child = place
        .tiller(&["exec", "--json", "--profile", "full", "write three files"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    // From the first acknowledgement on; the moment differs between trials.
    while !seen.contains("\"user_message\"") {
        assert!(out.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    let reader = std::thread::spawn(move || {
        // The rest of the pipe was printed before the kill.
        while out.read_line(&mut seen).is_ok_and(|n| n > 0) {}
        seen
    });
    let_pass(Duration::from_millis(delay));
    child.kill().unwrap();
    child.wait().unwrap();
    let stored = after_kill(&place, trial);
    // No process has the pipe open any more.
    let mut told = reader.join().unwrap();
    told.truncate(told.rfind('\n').map_or(0, |at| at + 1));

    // The end may be stored although the kill came before it was printed.
    let ended = stored.last().is_some_and(|e| e.to_string().contains("All is written."));
    let over = ended || told.contains("\"turn_finished\"");
    for event in json_lines(&told) {
        let Some(node) = event.get("node") else { continue };
        assert!(stored.contains(node), "trial {trial}, {delay} ms: {node} was told, but is not stored");
    }
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    assert_eq!(list.len(), 1);
    if !over {
        let said = list[0]["interrupted"].as_str().unwrap_or_default();
        assert!(!said.is_empty(), "trial {trial}, {delay} ms: {list:?}");
    }
    // The session continues with a valid request.
    let before = server.count();
    let out = place.run(&["exec", "--continue", "--profile", "full", "go on"]);
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (Some(0), "All is written.\n"),
        "trial {trial}, {delay} ms: {out:?}"
    );
    assert_sound(&place, &server, before, trial);
    !over
}
/// The message is in the conversation, where it has its time at the right; the composer has none.
fn is_sent(screen: &str) -> bool {
    let has_time =
        |l: &str| l.contains("▌ write three files") && l.trim_end().ends_with(|c: char| c.is_ascii_digit());
    screen.lines().any(has_time)
}

/// One kill of the workbench. Everything that it had shown as sent or done is there afterwards.
fn on_screen(trial: u32, delay: u64) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "full"], 100, 30);
    term.wait_text("Type what you want done");
    if trial == 0 {
        // With Enter, once the draft is on disk.
        type_in(&mut term, "write three files");
        wait("the draft on disk", || state_holds(&place, &["write three files"]));
        term.keys("\r");
    } else {
        say(&mut term, "write three files");
        term.wait("the sent message", is_sent);
        let_pass(Duration::from_millis(delay));
    }
    signal(term.host().unwrap(), rustix::process::Signal::KILL);
    term.wait_exit();
    let shown = term.screen();
    gone(&place, trial);
    let sent = place.lines(&["sessions", "list", "--exec", "--json"]).len() == 1;
    assert!(sent || !is_sent(&shown), "trial {trial}, {delay} ms:\n{shown}");
    let stored = if sent { after_kill(&place, trial) } else { Vec::new() };
    let stored: String = stored.iter().map(Value::to_string).collect();
    let before = server.count();
    let mut term = place.term(&["-c", "--profile", "full"], 100, 30);
    if sent {
        for n in [1, 3, 5] {
            let row = format!("f{n}.txt");
            let done = shown.lines().any(|l| l.contains("✓ write") && l.contains(&row));
            if done {
                assert!(
                    stored.contains(&row),
                    "trial {trial}, {delay} ms: {row} was shown as done:\n{shown}"
                );
            }
        }
        term.wait_text("write three files");
        // It offers to continue; a message does so, too.
        say(&mut term, "go on");
    } else {
        // Never shown as sent: then it is still in the composer, or it was not typed.
        let screen = term.wait_text("write three files");
        assert!(!is_sent(&screen), "{screen}");
        term.keys("\r");
    }
    term.wait_text("All is written.");
    idle(&term);
    assert_eq!(crate::screen::quit(&mut term), 0);
    assert_sound(&place, &server, before, trial);
}

#[test]
fn s1_killed_at_any_moment_nothing_acknowledged_is_lost() {
    let hit = AtomicU32::new(0);
    let next = AtomicU32::new(0);
    let moments: Vec<u64> = Seed(SEED).take(TRIALS as usize).map(|n| n % SPAN).collect();
    // Most of a trial is waiting.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let trial = next.fetch_add(1, Ordering::SeqCst);
                    let Some(delay) = moments.get(trial as usize) else { return };
                    if headless(trial, *delay) {
                        hit.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let hit = hit.into_inner();
    assert!(hit > TRIALS / 4, "only {hit} of {TRIALS} were hit in the middle");
}

#[test]
fn s1_killed_with_a_screen_nothing_shown_is_lost() {
    for (trial, moment) in (0..SCREENS).zip(Seed(SEED + 1)) {
        on_screen(trial, moment % SPAN);
    }
}

/// Enter, a store that cannot be written at that moment, and a kill: the text is in the composer again.
#[test]
fn s2_killed_before_a_message_is_stored_the_words_come_back() {
    let server = ScriptServer::start([Reply::script(Wire::Anthropic, &Script::new().text("All well."))]);
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    // The screen may exist before the store.
    let open = || {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let db = rusqlite::Connection::open_with_flags(place.home.join("data/tiller.db"), flags).ok()?;
        db.query_row("SELECT count(*) FROM sessions", [], |_| Ok(())).ok().map(|()| db)
    };
    // Another process holds the write lock as long as needed.
    let db = poll(TIMEOUT, open).unwrap();
    db.busy_timeout(TIMEOUT).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    say(&mut term, "words that matter");
    term.wait_gone("words that matter");
    // What was sent is kept until it is stored.
    wait("the sent message on disk", || state_holds(&place, &["\"sent\":[{", "words that matter"]));
    signal(term.host().unwrap(), rustix::process::Signal::KILL);
    term.wait_exit();
    db.execute_batch("ROLLBACK").unwrap();
    let mut term = place.term(&[], 100, 30);
    term.wait("the words and why they are there", |s| {
        s.contains("before this message was confirmed as sent") && s.contains("words that matter")
    });
    term.keys("\r");
    term.wait_text("All well.");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    let stored: String =
        place.lines(&["sessions", "show", "last", "--json"]).iter().map(Value::to_string).collect();
    assert!(stored.contains("words that matter"), "{stored}");
}

/// A `kill -9` leaves the folders of its shell and of temporary files in the temporary folder; the next program that opens a
/// shell removes them.
#[test]
fn the_folder_of_a_killed_shell_is_swept_later() {
    let server = ScriptServer::start([
        crate::common::shell("c1", "sleep 600"),
        crate::common::shell("c2", "echo again"),
        crate::common::says("All well."),
    ]);
    let mut place = Place::anthropic(&server);
    let temp = place.user.join("temp");
    std::fs::create_dir(&temp).unwrap();
    place.set("TMPDIR", &temp.display().to_string());
    let folders = || {
        let all = std::fs::read_dir(&temp).unwrap().flatten();
        let names = all.map(|e| e.file_name().to_string_lossy().into_owned());
        let ours = |n: &String| n.starts_with("tiller-sh-") || n.starts_with("tiller-scratch-");
        names.filter(ours).collect::<Vec<_>>()
    };
    let mut child = place
        .tiller(&["exec", "--profile", "full", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shell = |n: &String| n.starts_with("tiller-sh-");
    assert!(poll(TIMEOUT, || folders().iter().any(shell).then_some(())).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    gone(&place, 0);
    let left = folders();
    assert_eq!(left.iter().filter(|n| shell(n)).count(), 1, "no process was left to remove it");
    place.ok(&["exec", "--profile", "full", "go"]);
    assert_eq!(folders(), Vec::<String>::new(), "{left:?}");
}
