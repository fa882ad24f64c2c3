//! Detaching while work continues, and attaching again: by key, from another shell, after a broken connection.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tiller_testkit::{Script, Term, Wire};

use crate::common::{Place, TILLER, TIMEOUT, at_work, let_pass, poll, signal, wait};
use crate::scenario::Model;
use crate::screen::{drafted, idle, say, shell_runs, type_in};

/// A model whose turn runs a command that waits for the file `go`, and then writes a text.
fn model() -> (Model, Place) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    (model, place)
}

/// A workbench with a running turn, and text in the composer.
fn busy(model: &Model, place: &Place) -> Term {
    let waits = "touch begun; while [ ! -e go ]; do sleep 0.05; done";
    model.push(Script::new().call("c1", "terminal", json!({"command": waits})));
    model.push(Script::new().text("All is done now."));
    let mut term = place.term(&["--profile", "full"], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "wait for go");
    wait("the command", || place.work.join("begun").exists());
    term.wait("a running command", shell_runs);
    type_in(&mut term, "half a draft");
    term
}

/// The output of `tiller ps`.
fn ps(place: &Place) -> Vec<Value> {
    place.lines(&["ps", "--json"])
}

/// The output of `tiller ps` for one workbench without a terminal. It may hear late that its terminal's side has ended.
fn ps_alone(place: &Place) -> Vec<Value> {
    let rows =
        poll(TIMEOUT, || Some(ps(place)).filter(|rows| rows.iter().all(|row| row["screen"].is_null())));
    let rows = rows.unwrap_or_else(|| ps(place));
    assert!(rows.len() == 1 && rows[0]["screen"].is_null(), "{rows:?}");
    rows
}

/// Detaches by key; the terminal is restored, and a message is printed for the shell.
fn leave(term: &mut Term) {
    term.keys("\x18D");
    assert_eq!(term.wait_exit(), 0, "{}", term.screen());
    told(term, "still running");
}

/// It has ended: its last message is printed, and the terminal is restored. The output may not have been read yet.
fn told(term: &Term, words: &str) {
    wait(words, || term.screen().contains(words) && term.kept().is_empty());
}

fn go(place: &Place) {
    std::fs::write(place.work.join("go"), "").unwrap();
}

/// Clears the draft and quits.
fn end(mut term: Term, place: &Place) {
    term.keys("\x15");
    term.wait_gone("half a draft");
    idle(&term);
    assert_eq!(crate::screen::quit(&mut term), 0);
    wait("the end of all of it", || at_work(place).is_empty());
}

#[test]
fn left_at_work_and_taken_again_on_another_terminal() {
    let (model, mut place) = model();
    let mut term = busy(&model, &place);
    let rows = ps(&place);
    assert!(rows.len() == 1 && rows[0]["screen"].is_object(), "{rows:?}");
    leave(&mut term);
    let rows = ps_alone(&place);
    assert_eq!(
        (rows.len(), &rows[0]["turn"], &rows[0]["screen"]),
        (1, &json!(true), &Value::Null),
        "{rows:?}"
    );
    let said = place.ok(&["ps"]);
    assert!(said.contains("running: a turn; detached at"), "{said}");
    // Another size and kind of terminal. The typed text and the running work are there.
    place.set("TERM", "screen");
    let term = place.term(&["attach"], 80, 24);
    term.wait("the draft and the work", |s| {
        s.contains("half a draft") && s.contains("wait for go") && shell_runs(s)
    });
    assert_eq!(ps(&place)[0]["pid"], rows[0]["pid"], "the same one");
    go(&place);
    term.wait_text("All is done now.");
    end(term, &place);
    assert_eq!(ps(&place), Vec::<Value>::new());
}

#[test]
fn children_have_the_environment_of_the_newest_screen() {
    let (model, mut place) = model();
    place.set("SSH_AUTH_SOCK", "/tmp/agent.first");
    place.set("XAUTHORITY", "/tmp/x.first");
    place.set("DISPLAY", ":1");
    let mut term = busy(&model, &place);
    leave(&mut term);
    place.set("SSH_AUTH_SOCK", "/tmp/agent.second");
    // A value that looks like a key is left out, even in a listed variable.
    place.set("WAYLAND_DISPLAY", crate::common::KEY);
    // A variable that does not describe a terminal.
    place.set("HOME_OF_NOBODY", "x");
    place.set("DISPLAY", "");
    let mut term = place.term(&["attach"], 100, 30);
    term.wait_text("half a draft");
    go(&place);
    term.wait_text("All is done now.");
    term.keys("\x15");
    // Sent while the turn still runs, the next message would belong to it.
    idle(&term);
    // The earlier shell continues, and keeps its variables.
    let show =
        "echo $SSH_AUTH_SOCK,$XAUTHORITY,${DISPLAY-none},${WAYLAND_DISPLAY-none},${HOME_OF_NOBODY-none}";
    for (file, aside) in [("shell.txt", false), ("job.txt", true)] {
        let call = json!({"command": format!("{show} > {file}"), "background": aside});
        model.push(Script::new().call("c2", "terminal", call));
        model.push(Script::new().text(&format!("It is in {file}.")));
        say(&mut term, &format!("show it by {file}"));
        term.wait_text(&format!("It is in {file}."));
        idle(&term);
        wait(file, || place.work.join(file).exists() && !place.read(file).is_empty());
        assert_eq!(place.read(file).trim(), "/tmp/agent.second,/tmp/x.first,none,none,none", "{file}");
    }
    end(term, &place);
}

#[test]
fn the_work_goes_on_ends_by_itself_and_is_told_at_the_next_start() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    leave(&mut term);
    go(&place);
    // When the work ends the process ends.
    wait("the end", || at_work(&place).is_empty());
    assert_eq!(model.left(), 0, "the turn went on to its end");
    // The draft belongs to this folder, and is in the next window.
    let term = place.term(&[], 118, 25);
    term.wait_text("half a draft");
    term.wait_text("(detached) finished at");
    end(term, &place);
    let mut term = place.term(&["-c"], 100, 30);
    term.wait_text("All is done now.");
    idle(&term);
    // It would have been reported a turn later.
    model.push(Script::new().text("Nothing else."));
    say(&mut term, "what else?");
    term.wait_text("Nothing else.");
    idle(&term);
    assert!(!term.showed(0, |s| s.contains("(detached) finished")), "it is said once only");
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn a_broken_line_leaves_what_works_at_work_and_ends_what_does_not() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    term.hang_up();
    assert_eq!(term.wait_exit(), 129);
    ps_alone(&place);
    // In that folder the program's name is enough.
    let term = place.term(&[], 100, 30);
    term.wait_text("half a draft");
    go(&place);
    term.wait_text("All is done now.");
    // Now no turn runs: in one the hints would say that Enter steers.
    drafted(&term, "half a draft");
    signal(term.pid().unwrap(), Signal::HUP);
    let mut term = term;
    assert_eq!(term.wait_exit(), 129);
    wait("the end", || at_work(&place).is_empty() && term.kept().is_empty());
}

#[test]
fn a_second_screen_is_told_of_the_first_and_may_take_it_over() {
    let (model, place) = model();
    let mut first = busy(&model, &place);
    let mut second = place.term(&["attach"], 100, 30);
    assert_eq!(second.wait_exit(), 2);
    told(&second, "A terminal is already attached");
    told(&second, "--take");
    let second = place.term(&["attach", "--take"], 90, 24);
    second.wait_text("half a draft");
    assert_eq!(first.wait_exit(), 0);
    told(&first, "took over");
    go(&place);
    second.wait_text("All is done now.");
    end(second, &place);
}

#[test]
fn another_terminal_may_look_on() {
    let (model, place) = model();
    let first = busy(&model, &place);
    let mut second = place.term(&["attach", "--watch"], 60, 20);
    // The part of the screen with the cursor.
    let last = |s: &str| s.lines().last().unwrap_or_default().to_owned();
    second.wait("the lower part", |s| {
        s.contains("half a draft")
            && last(s).contains(" 1-60/100 11-29/30 ")
            && last(s).contains("arrows move")
            && !s.contains("wait for go")
    });
    // Its keys only move to the other parts.
    second.keys("x\x1b[5~\x1b[5~");
    second.wait("the upper part", |s| {
        s.contains("wait for go") && !s.contains("half a draft") && last(s).contains("f follow")
    });
    second.keys("\x1b[F");
    // The header changes while the turn runs.
    second.wait("the other end of the first line", |s| {
        let header = first.screen().lines().next().unwrap_or_default().trim_end().to_owned();
        let right: String = header.chars().skip(60).collect();
        s.contains(right.trim()) && last(s).contains("-100")
    });
    go(&place);
    first.wait_text("All is done now.");
    second.keys("\x1b[H");
    second.wait_text("All is done now.");
    second.keys("f");
    second.wait_text("half a draft");
    assert!(!first.showed(0, |s| s.contains("half a draftx")), "a key of the observer was typed");
    // A window that is large enough shows everything.
    second.resize(100, 31);
    second.wait("all of it", |s| {
        s.contains("All is done now.")
            && s.contains("half a draft")
            && last(s).trim_end() == " watching  q quits"
    });
    second.keys("\x1b");
    assert_eq!(second.wait_exit(), 0);
    wait("the terminal as it was", || second.kept().is_empty());
    // Neither the first frame nor the last stays on the shell's screen, however soon it is left.
    let bare = |screen: String| !screen.contains("half a draft") && !screen.contains("watching");
    assert!(bare(second.screen()), "{}", second.screen());
    for _ in 0..4 {
        let mut third = place.term(&["attach", "--watch"], 60, 20);
        third.wait_text("half a draft");
        third.keys("q");
        assert_eq!(third.wait_exit(), 0);
        wait("the terminal as it was", || third.kept().is_empty());
        assert!(bare(third.screen()), "{}", third.screen());
    }
    end(first, &place);
}

#[test]
fn from_another_shell_it_is_left_and_ended() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    let said = place.ok(&["detach"]);
    assert!(said.contains("a turn still running"), "{said}");
    assert_eq!(term.wait_exit(), 0);
    assert_eq!(place.run(&["detach"]).code, Some(2), "nobody sits there");
    let said = place.ok(&["stop"]);
    assert!(said.contains("Ended:") && said.contains("a turn"), "{said}");
    crate::common::wait_nothing_at_work(&place);
    let none = place.run(&["stop"]);
    assert!(
        none.code == Some(2) && none.stderr.contains("No workbench is running in this folder"),
        "{none:?}"
    );
    // The messages are there, and each call has its result.
    let kinds: Vec<String> = place
        .lines(&["sessions", "show", "last", "--json"])
        .iter()
        .map(|e| e["body"]["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds[..4], ["prefix", "user", "assistant", "tool_result"]);
}

#[test]
fn quitting_offers_to_leave_and_a_new_one_knows_of_it() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    term.keys("\x15");
    term.wait_gone("half a draft");
    term.keys("\x04");
    crate::screen::confirm(&mut term, "detach", "[y] quit", "o");
    assert_eq!(term.wait_exit(), 0);
    let mut new = place.term(&["--new"], 118, 25);
    new.wait_text("still running here");
    assert_eq!(crate::screen::quit(&mut new), 0);
    wait("the end of the new one", || ps(&place).len() == 1);
    place.ok(&["stop", "--all"]);
    wait("the end", || at_work(&place).is_empty());
}

#[test]
fn a_question_waits_for_whoever_comes_back() {
    let (model, place) = model();
    model.push(Script::new().call("c1", "write_file", json!({"path": "new.txt", "content": "B\n"})));
    model.push(Script::new().text("So be it."));
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "change it");
    crate::screen::asked(&mut term, "new.txt");
    term.hang_up();
    assert_eq!(term.wait_exit(), 129);
    // Longer than an idle process would stay.
    let_pass(std::time::Duration::from_secs(3));
    let rows = ps(&place);
    assert!(rows.len() == 1 && rows[0]["waiting"] == 1, "{rows:?}");
    assert!(place.ok(&["ps"]).contains("(1 needs you)"));
    let mut term = place.term(&[], 90, 28);
    crate::screen::answer(&mut term, "new.txt", "y");
    term.wait_text("So be it.");
    assert_eq!(place.read("new.txt"), "B\n");
    idle(&term);
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn nothing_is_left_where_nothing_works() {
    let (_model, place) = model();
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    term.keys("\x18D");
    term.wait_text("nothing to detach");
    assert_eq!(crate::screen::quit(&mut term), 0);
    wait("the end of all of it", || at_work(&place).is_empty());
}

#[test]
fn killed_on_either_side_of_the_line() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    // The client is killed: the work continues, and the other process restores the terminal.
    signal(term.pid().unwrap(), Signal::KILL);
    term.wait_exit();
    wait("the terminal as it was", || term.kept().is_empty());
    let rows = ps_alone(&place);
    let mut term = place.term(&["attach"], 100, 30);
    term.wait_text("half a draft");
    // The host is killed: the client restores the terminal and prints the reason.
    let host = u32::try_from(rows[0]["pid"].as_u64().unwrap()).unwrap();
    signal(host, Signal::KILL);
    assert_ne!(term.wait_exit(), 0);
    told(&term, "Tiller ended without a message");
    wait("the end of its children", || at_work(&place).is_empty());
    // The system may still be removing it.
    wait("its socket to be no obstacle", || ps(&place).is_empty());
}

#[test]
fn a_killed_host_is_told_by_its_first_client() {
    let (model, place) = model();
    let mut term = busy(&model, &place);
    signal(term.host().unwrap(), Signal::KILL);
    assert_eq!(term.wait_exit(), 137);
    told(&term, "was killed (signal 9)");
    wait("the end of its children", || at_work(&place).is_empty());
}

#[test]
fn an_editor_runs_in_the_foreground_and_an_end_does_not_wait_for_it() {
    let (model, mut place) = model();
    // It needs a controlling terminal.
    let editor = place.user.join("edit.sh");
    let script = "#!/bin/sh\nif (: </dev/tty) 2>/dev/null; then echo 'EDITOR WITH A TERMINAL'; fi\n\
                  echo added >>\"$1\"\nread x\n";
    tiller_testkit::program(&editor, script);
    place.set("EDITOR", &format!("'{}'", editor.display()));
    let mut term = busy(&model, &place);
    term.keys("\x07");
    term.wait_text("EDITOR WITH A TERMINAL");
    term.keys("\r");
    term.wait_text("added");
    term.keys("\x15");
    term.wait_gone("added");
    say(&mut term, "/editor");
    term.wait_text("EDITOR WITH A TERMINAL");
    // The work is ended from another shell while it is open.
    place.ok(&["stop"]);
    term.wait_exit();
    wait("the end of all of it", || at_work(&place).is_empty() && term.kept().is_empty());
}

#[test]
fn x13_a_planted_folder_is_refused_and_the_workbench_says_so() {
    let (model, place) = model();
    let elsewhere = place.user.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let state = place.home.join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::symlink(&elsewhere, state.join("hosts")).unwrap();
    for args in [&["ps"][..], &["attach"], &["stop"]] {
        let out = place.run(args);
        assert!(out.code == Some(2) && out.stderr.contains("is a link"), "{args:?}: {out:?}");
    }
    // It works nevertheless, but cannot be detached.
    let mut term = busy(&model, &place);
    term.keys("\x18D");
    term.wait_text("cannot be reached");
    go(&place);
    term.wait_text("All is done now.");
    end(term, &place);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was put there");
}

#[test]
fn switched_off_there_is_one_process() {
    let (_model, place) = model();
    place.config("[detach]\nenabled = false\n");
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    assert_eq!(term.host(), term.pid());
    let program = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|l| l.starts_with(TILLER.as_bytes()))
    };
    assert!(!tiller_testkit::descendants(term.pid().unwrap()).iter().any(program));
    assert_eq!(crate::screen::quit(&mut term), 0);
}

/// Prints the cost of waiting: a workbench without a terminal whose command waits.
#[test]
#[ignore = "prints figures"]
fn figures_of_rest() {
    let (model, place) = model();
    model.push(Script::new().call("c1", "terminal", json!({"command": "sleep 1000"})));
    let mut term = place.term(&["--profile", "full"], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "wait");
    term.wait("a running command", shell_runs);
    let host = term.host().unwrap();
    leave(&mut term);
    let_pass(std::time::Duration::from_secs(3));
    let wakes = || -> std::collections::BTreeMap<std::ffi::OsString, u64> {
        let tasks = std::fs::read_dir(format!("/proc/{host}/task")).unwrap().flatten();
        let of = |path: &Path| -> Option<u64> {
            let text = std::fs::read_to_string(path.join("status")).ok()?;
            text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
        };
        tasks.filter_map(|t| Some((t.file_name(), of(&t.path())?))).collect()
    };
    let before = wakes();
    let_pass(std::time::Duration::from_secs(10));
    // Ended threads are not waiting.
    let more: u64 = wakes().iter().map(|(id, n)| n - before.get(id).copied().unwrap_or(0)).sum();
    println!("wake-ups in 10 s without a screen: {more}");
    place.ok(&["stop"]);
}
