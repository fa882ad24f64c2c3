//! Linear text: through a pipe and at a terminal; also the screen after the end, and the screen without colours.

use std::io::Write;

use serde_json::json;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::{Place, at_work, finish, run, wait, wait_nothing_at_work};
use crate::scenario::Model;
use crate::screen::{answer, idle, say, type_in};

fn place(model: &Model) -> Place {
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    place
}

/// The text has no terminal control characters.
fn assert_plain(text: &str) {
    let odd = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(odd, None, "{text:?}");
}

#[test]
fn a_pipe_is_read_to_its_end_and_everything_is_answered() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    place.file("a.txt", "A\n");
    model.push(
        Script::new()
            .text("I \x1b[2Jlook.\n\n| file | size |\n|---|---|\n| a.txt | 2 |\n\n")
            .call("c1", "read_file", json!({"path": "a.txt"}))
            .call("c2", "terminal", json!({"command": "touch made"})),
    );
    model.push(Script::new().text("It says A.\u{7}"));
    let out = run(place.tiller(&["--plain"]), b"what is in a.txt?\n!echo from-a-line\n/sessions\n");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_plain(&out.stdout);
    let at = |what: &str| out.stdout.find(what).unwrap_or_else(|| panic!("{what}: {}", out.stdout));
    assert!(out.stdout.starts_with("Tiller in plain text mode, enabled by --plain."), "{}", out.stdout);
    assert!(at("You: what is in a.txt?") < at("Assistant: I "));
    assert!(at("touch made") < at("No one can answer the question, so it was denied."));
    at("from-a-line");
    assert!(at("No one can answer") < at("Assistant: It says A."), "the turn goes on to its end");
    assert!(!out.stdout.contains("|---|"), "a table is read out: {}", out.stdout);
    assert!(!place.work.join("made").exists(), "nobody said yes");
    assert!(!place.home.join("state").join("drafts").exists());
}

#[test]
fn the_end_of_an_empty_pipe_is_the_end() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    let out = run(place.tiller(&["--plain"]), b"");
    assert_eq!((out.code, model.server.count()), (Some(0), 0), "{out:?}");
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--json"]).len(), 0, "nothing was said");
    // Without the flag nothing is drawn into a pipe.
    let out = run(place.tiller(&[]), b"hello\n");
    assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{out:?}");
    assert!(out.stderr.contains("tiller exec"), "what to use instead: {}", out.stderr);
}

#[test]
fn plain_at_a_terminal_asks_by_numbers_and_draws_nothing() {
    for dumb in [false, true] {
        let model = Model::new(Wire::Anthropic);
        let mut place = place(&model);
        place.file("a.txt", "A\n");
        if dumb {
            place.set("TERM", "dumb");
        }
        model.push(
            Script::new()
                .text("A file is to be written.")
                .call("c1", "write_file", json!({"path": "b.txt", "content": "B\n"}))
                .call(
                    "c2",
                    "clarify",
                    json!({"question": "Which colour?", "choices": ["red", "blue"], "allow_freetext": false}),
                ),
        );
        model.push(Script::new().text("Both are known."));
        let args: &[&str] = if dumb { &[] } else { &["--plain"] };
        let mut term = place.term(args, 90, 40);
        let screen = term.wait_text("Session started");
        assert!(screen.contains(if dumb { "enabled by TERM" } else { "enabled by --plain" }), "{screen}");
        term.keys("write it\r");
        let mut asked = 0;
        while asked < 2 {
            let screen = term.wait("a question", |s| {
                s.matches("Type a number.").count() > asked || s.contains("Both are known.")
            });
            assert!(!screen.contains("Both are known."), "{screen}");
            // The second choice: yes, once; blue.
            crate::common::let_deafness_pass();
            asked += 1;
            let again = |s: &str| s.matches("type it again").count();
            let mut too_soon = again(&screen);
            loop {
                term.keys("2\r");
                let done =
                    |s: &str| s.matches("Type a number.").count() > asked || s.contains("Both are known.");
                let screen = term.wait("an answer", |s| done(s) || again(s) > too_soon);
                if done(&screen) {
                    break;
                }
                too_soon = again(&screen);
            }
        }
        let screen = term.wait_text("Both are known.");
        assert!(screen.contains("1: red") && screen.contains("2: blue"), "{screen}");
        let said = model.asked()[1]["messages"].to_string();
        assert!(said.contains("blue"), "{said}");
        assert_eq!(place.read("b.txt"), "B\n");
        term.wait_text("Done.");
        term.keys("/quit\r");
        assert_eq!(term.wait_exit(), 0);
        let raw = String::from_utf8_lossy(&term.raw()).into_owned();
        assert!(!raw.contains('\x1b'), "nothing but text: {raw:?}");
        assert_eq!(term.kept(), Vec::<&str>::new());
    }
}

#[test]
fn an_end_of_input_at_a_terminal_quits_at_once() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    model.push(Script::new().call("c1", "terminal", json!({"command": "sleep 1000"})));
    let mut term = place.term(&["--plain", "--profile", "full"], 90, 40);
    term.wait_text("Session started");
    term.keys("wait\r");
    crate::common::wait("the command", || {
        crate::common::at_work(&place).iter().any(|(_, line)| line.starts_with("sleep"))
    });
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    wait_nothing_at_work(&place);
}

/// A key, a server, the demo: without a screen each is chosen by number, and the key is never shown.
#[test]
fn a_model_is_set_up_in_plain_text() {
    let server = ScriptServer::with(|r: &Recorded, _| match r.method.as_str() {
        "GET" if r.header("x-api-key") == Some("sk-ant-the-right-one-0123") => {
            Reply::status(200).json(&json!({"data": []}))
        }
        "GET" => {
            let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
            Reply::status(401).json(&json!({"type": "error", "error": error}))
        }
        _ => crate::common::says("It is brown."),
    });
    let mut place = Place::new();
    place.set("ANTHROPIC_BASE_URL", &server.url());
    let mut term = place.term(&["--plain"], 90, 60);
    term.wait_text("Set up a model. Type a number");
    term.keys("which colour?\r");
    term.wait_text("Saved. Your message is sent as soon as a model is set up.");
    let mut enter = |key: &str, times: usize| {
        term.wait("the list", |s| s.matches("1: type or paste a key").count() == times);
        term.keys("1\r");
        term.wait("the providers", |s| s.matches("Which provider is the key for?").count() == times);
        term.keys("1\r");
        term.wait("the key's turn", |s| s.matches("It is not shown.").count() == times);
        term.keys(key);
        term.keys("\r");
    };
    enter("sk-ant-a-wrong-one-0123", 1);
    enter("sk-ant-the-right-one-0123", 2);
    term.wait_text("Assistant: It is brown.");
    term.wait_text("Done.");
    // Typed text is shown again.
    type_in(&mut term, "/help");
    term.keys("\x03");
    // A second one counts within two seconds; a busy program may read it too late, and ask again.
    let asks = |s: &str| s.matches("Press Ctrl-C again to quit").count();
    let mut asked = asks(&term.wait_text("Press Ctrl-C again to quit"));
    loop {
        term.keys("\x03");
        let more = |term: &tiller_testkit::Term| asks(&term.screen()) > asked;
        wait("the end, or another question", || more(&term) || at_work(&place).is_empty());
        if !more(&term) {
            break;
        }
        asked = asks(&term.screen());
    }
    assert_eq!(term.wait_exit(), 0);
    let raw = String::from_utf8_lossy(&term.raw()).into_owned();
    assert!(!raw.contains("right-one") && !raw.contains("wrong-one"), "a key is never shown: {raw}");
    let config = std::fs::read_to_string(place.home.join("config/config.toml")).unwrap();
    assert!(config.contains("model = \"anthropic/"), "the model is kept: {config}");
    assert_eq!(place.ok(&["exec", "again?"]), "It is brown.\n");
}

/// The screen that the shell gets back, with or without the last exchange.
#[test]
fn the_last_exchange_is_left_behind_if_wanted() {
    for wanted in [false, true] {
        let model = Model::new(Wire::Anthropic);
        let place = place(&model);
        place.config(&format!("[ui]\nleave_last = {wanted}\n"));
        for text in ["The first answer.", "The second answer\x1b]0;owned\x07, **bold**."] {
            model.push(Script::new().text(text));
        }
        let mut term = place.term(&[], 80, 24);
        term.wait_text("Type what you want done");
        for (question, words) in
            [("first question", "The first answer."), ("second question", "The second answer")]
        {
            say(&mut term, question);
            term.wait_text(words);
            idle(&term);
        }
        term.keys("\x04");
        assert_eq!(term.wait_exit(), 0);
        let left = crate::common::poll(crate::common::TIMEOUT, || {
            // The message for the shell comes after the terminal is restored.
            let said = if wanted { "bold" } else { "To continue: tiller " };
            let done = term.kept().is_empty() && term.screen().contains(said);
            done.then(|| term.screen())
        });
        let left = left.unwrap_or_else(|| panic!("{:?}\n{}", term.kept(), term.screen()));
        if wanted {
            assert!(left.contains("second question") && left.contains("The second answer"), "{left}");
            assert!(!left.contains("first question"), "{left}");
            let raw = String::from_utf8_lossy(&term.raw()).into_owned();
            assert!(!raw.contains("\x1b]0;owned"), "the words were a model's");
        } else {
            let way = left.trim();
            assert!(way.starts_with("To continue: tiller ") && way.lines().count() == 1, "{left}");
        }
    }
}

/// Without colours the caret, the focus and the selection are still visible.
#[test]
fn no_color_takes_colours_away_and_nothing_else() {
    let model = Model::new(Wire::Anthropic);
    let mut place = place(&model);
    place.set("NO_COLOR", "1");
    place.set("COLORTERM", "truecolor");
    model.push(Script::new().text("```rust\nfn main() {}\n```\n").call(
        "c1",
        "write_file",
        json!({"path": "b.txt", "content": "B\n"}),
    ));
    model.push(Script::new().text("Written."));
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "go");
    // The helper looks for a button that differs from the others.
    answer(&mut term, "b.txt", "y");
    term.wait_text("Written.");
    idle(&term);
    term.keys("\x10");
    term.wait("the palette", |s| s.lines().last().is_some_and(|l| l.contains("Esc ")));
    term.wait_cells("a marked row", |s| {
        let (rows, columns) = s.size();
        let cells = (0..rows.get()).flat_map(|r| (0..columns.get()).map(move |c| (r, c)));
        cells.filter_map(|(r, c)| s.cell(r, c)).any(|c| c.inverse() || c.bold() || c.underline())
    });
    term.keys("\x1b");
    idle(&term);
    term.wait_cells("a caret", |s| !s.hide_cursor());
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    let raw = String::from_utf8_lossy(&term.raw()).into_owned();
    for attributes in raw.split("\x1b[").skip(1).filter_map(|p| p.split_once('m')).map(|(a, _)| a) {
        if !attributes.bytes().all(|b| b.is_ascii_digit() || b == b';') {
            continue;
        }
        for n in attributes.split(';').filter_map(|n| n.parse::<u16>().ok()) {
            let colour = matches!(n, 30..=38 | 40..=48 | 90..=107);
            assert!(!colour, "a colour: {attributes}");
        }
    }
}

/// The message of a command that was stopped waits: nothing else comes that could end the wait.
#[test]
fn a_pipe_ends_after_the_command_of_a_message_was_stopped() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    let folder = place.home.join("config/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("hold.md"), "!echo on > ran.txt; sleep 600\nSay so.\n").unwrap();
    let mut command = place.tiller(&["--plain", "--profile", "full"]);
    let (read, write) = (std::process::Stdio::piped(), std::process::Stdio::piped());
    let mut child = command.stdin(read).stdout(write).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // As a message: its text calls the command.
    stdin.write_all(b" /hold\n").unwrap();
    wait("the command to run", || place.work.join("ran.txt").exists());
    stdin.write_all(b"/stop\n").unwrap();
    drop(stdin);
    let out = finish(child);
    assert_eq!((out.code, model.server.count()), (Some(0), 0), "{out:?}");
    assert!(out.stdout.contains("Tool, for the waiting message: "), "{}", out.stdout);
    assert!(out.stdout.contains("1 message was not sent. It stays in the queue"), "{}", out.stdout);
}
