//! `tiller exec`: output, JSON lines, exit codes, flags.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use tiller_protocol::Event;
use tiller_testkit::{Hold, Reply, Script, ScriptServer, Wire};

use crate::common::{Out, Place, calls, finish, json_lines, kinds, run, says, shell, signal};

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn standard_output_carries_the_answer_and_nothing_else() {
    let server =
        ScriptServer::start([calls("c1", "list_dir", json!({"path": "."})), says("There is one file.")]);
    let place = Place::anthropic(&server);
    place.file("a.txt", "A\n");
    let out = place.run(&["exec", "what is here?"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "There is one file.\n"), "{}", out.stderr);
    assert!(out.stderr.contains('~'), "progress goes to standard error: {}", out.stderr);
    let last = &server.bodies()[1];
    assert!(last["messages"][2].to_string().contains("a.txt"), "{last}");
}

#[test]
fn json_lines_are_events_with_growing_numbers_and_the_end_is_last() {
    let server = ScriptServer::start([
        calls("c1", "list_dir", json!({"path": "."})),
        Reply::script(Wire::Anthropic, &Script::new().thinking("hm", "sig").text("Done.").usage(100, 7)),
    ]);
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--json", "go"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let lines = json_lines(&out.stdout);
    let events: Vec<Event> = out.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for (line, event) in lines.iter().zip(&events) {
        assert_eq!(&serde_json::to_value(event).unwrap(), line, "nothing is lost on the way");
    }
    assert!(events.windows(2).all(|w| w[0].seq < w[1].seq));
    assert!(events.iter().all(|e| e.session == events[0].session));
    let kinds = kinds(&lines);
    for want in
        ["session_started", "user_message", "tool_started", "tool_finished", "assistant_message", "usage"]
    {
        assert!(kinds.contains(&want), "{want} in {kinds:?}");
    }
    assert_eq!(kinds.iter().filter(|k| **k == "turn_finished").count(), 1);
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["status"], &last["text"]),
        (&json!("turn_finished"), &json!("done"), &json!("Done."))
    );
    assert!(last["usage"]["output"].as_u64().unwrap() >= 12 && last["cost_usd"].is_number(), "{last}");
    let tool = lines.iter().find(|l| l["type"] == "tool_finished").unwrap();
    assert_eq!(
        (&tool["name"], &tool["ok"], &tool["arguments"]["path"]),
        (&json!("list_dir"), &json!(true), &json!("."))
    );
}

#[test]
fn a_model_that_refuses_the_request_is_code_1() {
    for (status, kind, said) in
        [(400, "invalid_request_error", "no such thing"), (401, "authentication_error", "key")]
    {
        let body = json!({"type": "error", "error": {"type": kind, "message": "no such thing"}});
        let server = ScriptServer::start([Reply::status(status).json(&body)]);
        let place = Place::anthropic(&server);
        let out = place.run(&["exec", "hi"]);
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{out:?}");
        assert!(out.stderr.contains(said), "{}", out.stderr);
        assert_eq!(server.count(), 1, "nothing is gained by asking again");
    }
}

#[test]
fn wrong_flags_and_settings_are_code_2() {
    let place = Place::new();
    assert_eq!(place.run(&["exec", "--no-such-flag", "x"]).code, Some(2));
    assert_eq!(place.run(&["exec"]).code, Some(2));
    assert_eq!(place.run(&["exec", "  "]).code, Some(2));
    assert_eq!(place.run(&["exec", "--allow", "(((", "x"]).code, Some(2));
    assert_eq!(place.run(&["exec", "--image", "nothing.png", "x"]).code, Some(2));
    let none = place.run(&["exec", "hi"]);
    assert_eq!(none.code, Some(2), "no model: {none:?}");
    place.config("# mine\n\n[ui]\nthem = \"x\"\n");
    let out = place.run(&["exec", "hi"]);
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("config.toml:4"), "{}", out.stderr);
    assert!(out.stderr.contains("theme"), "the nearest name: {}", out.stderr);
}

/// A refusal within an agent of the run counts for the run, whatever its parent does.
#[test]
fn a_refusal_inside_a_child_is_code_3() {
    let delegate = || calls("d1", "delegate_task", json!({"tasks": [{"goal": "make the file"}]}));
    let all = || [delegate(), shell("c1", "touch made"), says("I could not."), says("All is well.")];
    let server = ScriptServer::start(all());
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--profile", "ask", "make it"]);
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stdout.contains("All is well.") && !place.work.join("made").exists(), "{out:?}");
    // Where it is allowed the run succeeds.
    let server = ScriptServer::start(all());
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--profile", "ask", "--allow", "terminal(touch made)", "make it"]);
    assert_eq!(out.code, Some(0), "{out:?}");
}

/// Also when the refused agent then ends in another way.
#[test]
fn a_refusal_inside_a_child_that_fails_later_is_code_3() {
    let delegate = calls("d1", "delegate_task", json!({"tasks": [{"goal": "make the file"}]}));
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such thing"}});
    let fails = Reply::status(400).json(&body);
    let server = ScriptServer::start([delegate, shell("c1", "touch made"), fails, says("All is well.")]);
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--profile", "ask", "make it"]);
    assert!(out.stdout.contains("All is well.") && server.count() == 4, "{out:?}");
    assert_eq!(out.code, Some(3), "{out:?}");
}

#[test]
fn a_permission_that_nobody_can_give_is_code_3() {
    let server = ScriptServer::start([shell("c1", "touch made"), says("I could not.")]);
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--profile", "ask", "make it"]);
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(!place.work.join("made").exists());
    // The person reads once what would have allowed it; with that it is done.
    let lines = |text: &str, part: &str| text.lines().filter(|l| l.contains(part)).count();
    let said = &out.stderr;
    assert_eq!(lines(said, "1 call needed an approval, and no one could be asked."), 1, "{said}");
    assert_eq!(lines(said, "--allow 'terminal(touch made)' allows them"), 1, "{said}");
    assert_eq!((lines(said, "--allow"), lines(said, "was denied")), (1, 0), "{said}");
    let server = ScriptServer::start([shell("c1", "touch made"), says("Made.")]);
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--profile", "ask", "--allow", "terminal(touch made)", "make it"]);
    assert!(out.code == Some(0) && place.work.join("made").exists(), "{out:?}");
    assert_eq!(lines(&out.stderr, "--allow"), 0, "{out:?}");
}

/// A script that runs an agent learns that its change was not made, also when no one had to be asked.
#[test]
fn a_write_that_the_mode_or_a_rule_refuses_is_code_3() {
    let write = || calls("w1", "write_file", json!({"path": "a.txt", "content": "x"}));
    let remember = || calls("m1", "memory", json!({"action": "append", "text": "use tabs"}));
    let read = || calls("r1", "list_dir", json!({"path": "."}));
    let unread = || calls("r1", "read_file", json!({"path": "secret"}));
    let modes: [&[&str]; 3] =
        [&["--profile", "read-only"], &["--profile", "plan"], &["--profile", "full", "--deny", "*"]];
    for args in modes {
        for (call, changes) in [
            (write as fn() -> tiller_testkit::Reply, true),
            (remember, true),
            (|| shell("c1", "touch a.txt"), true),
            (read, false),
            (|| shell("c1", "ls"), false),
            (unread, false),
        ] {
            if args.contains(&"--deny") && !changes {
                continue;
            }
            let server = ScriptServer::start([call(), says("I could not.")]);
            let place = Place::anthropic(&server);
            let out = place.run(&[&["exec"], args, &["do it"]].concat());
            let wanted = if changes { 3 } else { 0 };
            assert_eq!(out.code, Some(wanted), "{args:?}: {out:?}");
            let why = out.stderr.lines().filter(|l| l.contains("Changes were refused: ")).count();
            assert_eq!(why, usize::from(changes), "{args:?}: {out:?}");
            assert!(!place.work.join("a.txt").exists() && !place.home.join("data/MEMORY.md").exists());
        }
    }
}

#[test]
fn limits_are_code_4() {
    let looping = || ScriptServer::with(|_, n| calls(&format!("c{n}"), "list_dir", json!({"path": "."})));
    let server = looping();
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--max-turns", "1", "go"]);
    assert_eq!((out.code, server.count()), (Some(4), 1), "{out:?}");
    assert!(out.stderr.contains("tiller exec --continue PROMPT"), "{}", out.stderr);
    let listed = place.run(&["sessions", "list", "--exec"]);
    assert!(listed.stdout.contains("  go"), "it has a name, though its turn was not done: {}", listed.stdout);
    let server = looping();
    let mut place = Place::anthropic(&server);
    let out = place.run(&["exec", "--max-cost", "0.000001", "go"]);
    assert_eq!((out.code, server.count()), (Some(4), 0), "its input alone does not fit: {out:?}");
    // Without a price the limit cannot be enforced: nothing is sent, and the message says what to configure. The server has
    // an address elsewhere; its proxy is the server of the test.
    place.set("ANTHROPIC_BASE_URL", "http://models.example");
    place.set("HTTP_PROXY", &server.url());
    let args = ["exec", "--max-cost", "5", "-m", "anthropic/nobody-knows-it", "go"];
    let out = place.run(&args);
    assert_eq!((out.code, server.count()), (Some(4), 0), "{out:?}");
    assert!(out.stderr.contains("price is not known") && out.stderr.contains("$5.00"), "{}", out.stderr);
    // The advised configuration works as printed: without a section of the provider, and with one.
    let printed = |out: &Out| -> String {
        let lines = out.stderr.lines().map(str::trim);
        let from =
            lines.skip_while(|l| !l.starts_with('[')).take_while(|l| l.starts_with('[') || l.contains(" = "));
        from.map(|l| format!("{l}\n")).collect()
    };
    let advice = printed(&out);
    assert!(advice.starts_with("[providers.anthropic]\nkind = "), "{advice}");
    place.config("[providers.anthropic]\nkind = \"anthropic\"\n");
    let beside = printed(&place.run(&args));
    assert!(beside.starts_with("[providers.anthropic.models."), "{beside}");
    place.config(&format!("[providers.anthropic]\nkind = \"anthropic\"\n{beside}"));
    let first =
        ["exec", "--max-turns", "1", "--max-cost", "0.000001", "-m", "anthropic/nobody-knows-it", "go"];
    let out = place.run(&first);
    assert!(out.stderr.contains("its input alone costs about $"), "{}", out.stderr);
    place.config(&advice);
    place.set("ANTHROPIC_BASE_URL", &server.url());
    let out =
        place.run(&["exec", "--max-turns", "1", "--max-cost", "5", "-m", "anthropic/nobody-knows-it", "go"]);
    assert_eq!((out.code, server.count()), (Some(4), 1), "now the limit of turns: {out:?}");
}

/// A budget holds for a server elsewhere whatever its name, and stops no server on this machine: the address decides.
#[test]
fn a_server_is_local_by_its_address() {
    let run = |name: &str, elsewhere: bool| {
        let server = ScriptServer::with(|_, _| says("Done."));
        let mut place = Place::new();
        place.set("HTTP_PROXY", &server.url());
        let base = if elsewhere { "http://models.example".to_owned() } else { server.url() };
        let model = format!("{name}/nobody-knows-it");
        place.config(&format!("[providers.{name}]\nkind = \"anthropic\"\nbase_url = \"{base}\"\n"));
        let out = place.run(&["exec", "--max-cost", "5", "-m", &model, "go"]);
        (out.code, server.count(), out.stderr)
    };
    for name in ["vllm", "ollama", "lmstudio", "llamacpp", "local", "localhost", "mine"] {
        let (code, count, said) = run(name, true);
        assert_eq!((code, count), (Some(4), 0), "{name}: {said}");
        assert!(said.contains("price is not known") && said.contains("nobody-knows-it"), "{name}: {said}");
        let (code, count, said) = run(name, false);
        assert!(code == Some(0) && count > 0, "{name}: {code:?} {count} {said}");
    }
}

/// Standard input other than a terminal is added after the prompt: from a pipe and from a file.
#[test]
fn what_is_piped_in_goes_with_the_prompt() {
    let server = ScriptServer::start([says("one"), says("two"), says("three"), says("four")]);
    let place = Place::anthropic(&server);
    let last = || server.bodies().pop().unwrap()["messages"].to_string();
    let out = run(place.tiller(&["exec", "count the pears"]), b"pear\npear\n");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(last().contains("count the pears") && last().contains("pear\\npear"), "{}", last());
    let file = place.home.join("plums.txt");
    std::fs::write(&file, "plum\nplum\n").unwrap();
    let mut command = place.tiller(&["exec", "--json", "count the plums"]);
    let out = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert!(out.status.success() && last().contains("plum\\nplum"), "{}", last());
    // Empty input: the prompt alone. With - it is the prompt.
    let out = run(place.tiller(&["exec", "only this"]), b"");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(last().contains("only this") && !last().contains("standard input"), "{}", last());
    let out = run(place.tiller(&["exec", "-"]), b"from a pipe");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(last().contains("from a pipe") && !last().contains("standard input"), "{}", last());
}

/// A silent pipe that its owner left open is not waited for.
#[test]
fn a_silent_pipe_holds_nothing_up() {
    let server = ScriptServer::start([says("done")]);
    let place = Place::anthropic(&server);
    let mut command = place.tiller(&["exec", "go"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    let out = finish(child);
    drop(held);
    assert_eq!((out.code, server.count()), (Some(0), 1), "{out:?}");
    assert!(out.stderr.contains("Standard input was silent"), "{}", out.stderr);
}

/// A command of the same pipeline that begins late is waited for.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_that_is_slow_to_begin_is_waited_for() {
    let server = ScriptServer::start([says("done")]);
    let place = Place::anthropic(&server);
    let said = place.home.join("said");
    let (said, tiller) = (said.display(), crate::common::TILLER);
    // It writes only after the message that it is waited for.
    let line = format!(
        "{{ until grep -q waiting '{said}'; do sleep 0.1; done; echo pear; }} | '{tiller}' exec go 2>'{said}'"
    );
    let out = run(place.program("sh", &["-c", &line]), b"");
    assert_eq!((out.code, server.count()), (Some(0), 1), "{out:?}");
    assert!(server.bodies()[0]["messages"].to_string().contains("pear"), "{}", server.bodies()[0]);
}

#[test]
fn a_store_that_cannot_be_written_is_code_5() {
    let server = ScriptServer::start([says("hi")]);
    let place = Place::anthropic(&server);
    std::fs::write(place.home.join("data"), "a file is here").unwrap();
    let out = place.run(&["exec", "hi"]);
    assert_eq!((out.code, server.count()), (Some(5), 0), "{out:?}");
}

/// A command whose output is read while it runs.
fn spawned(place: &Place, args: &[&str]) -> std::process::Child {
    let mut command = place.tiller(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_interrupt_is_code_130_and_what_was_said_is_kept() {
    let text = Script::new().text("half of it").body(Wire::Anthropic);
    let cut = String::from_utf8(text).unwrap().split("event: content_block_stop").next().unwrap().to_owned();
    let server = ScriptServer::start([Reply::sse(cut).hang(), says("and the rest")]);
    let place = Place::anthropic(&server);
    let child = spawned(&place, &["exec", "--json", "go"]);
    // The text is streamed only after the request was stored. Text is shown in pieces: a growing one is delayed until
    // it cannot become a secret.
    let (child, seen) = until_line(child, "\"half");
    signal(child.id(), Signal::INT);
    let out = finish(child);
    assert_eq!(out.code, Some(130), "{seen} {out:?}");
    let entries = place.lines(&["sessions", "show", "last", "--json"]);
    assert!(entries.iter().any(|e| e.to_string().contains("half of it")), "{entries:?}");
    assert_eq!(place.ok(&["exec", "--continue", "go on"]), "and the rest\n");
}

/// Reads standard output line by line until a line contains `text`.
fn until_line(mut child: std::process::Child, text: &str) -> (std::process::Child, String) {
    let mut seen = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    while !seen.contains(text) {
        assert!(reader.read_line(&mut seen).unwrap() > 0, "ended after {seen}");
    }
    // The output must be read further, or the program would write into a closed pipe.
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    (child, seen)
}

#[test]
fn a_dash_reads_the_prompt_from_standard_input() {
    let server = ScriptServer::start([says("ok")]);
    let place = Place::anthropic(&server);
    let out = run(place.tiller(&["exec", "-"]), "first line\nsecond line\n".as_bytes());
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "ok\n"), "{}", out.stderr);
    let body = &server.bodies()[0];
    assert!(body["messages"][0].to_string().contains("first line\\nsecond line"), "{body}");
}

#[test]
fn continue_repeats_the_session_and_a_named_one_too() {
    let server = ScriptServer::start([says("one"), says("two"), says("three")]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", "first"]);
    place.ok(&["exec", "--continue", "second"]);
    let id = place.lines(&["sessions", "list", "--exec", "--json"])[0]["id"].as_str().unwrap().to_owned();
    place.ok(&["exec", "--session", &id[..id.len() - 2], "third"]);
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--json"]).len(), 1);
    let said: Vec<String> =
        server.bodies()[2]["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    for (n, text) in ["first", "one", "second", "two", "third"].into_iter().enumerate() {
        assert!(said[n].contains(text), "{said:?}");
    }
    assert_eq!(said.len(), 5);
    assert_eq!(place.run(&["exec", "--session", "ffffffff", "x"]).code, Some(2));
}

#[test]
fn an_image_goes_along() {
    use base64::Engine as _;
    let server = ScriptServer::start([says("a pixel")]);
    let place = Place::anthropic(&server);
    let bytes = base64::engine::general_purpose::STANDARD.decode(PIXEL).unwrap();
    std::fs::write(place.work.join("p.png"), bytes).unwrap();
    place.ok(&["exec", "--image", "p.png", "what is it?"]);
    let sent = server.bodies()[0]["messages"][0].to_string();
    assert!(sent.contains(PIXEL) && sent.contains("image/png") && sent.contains("what is it?"), "{sent}");
}

#[test]
fn allow_and_deny_decide() {
    let server = ScriptServer::start([
        shell("c1", "touch allowed"),
        says("made"),
        shell("c2", "touch denied"),
        says("not made"),
    ]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", "--profile", "ask", "--allow", "terminal(touch *)", "make it"]);
    assert!(place.work.join("allowed").exists());
    let out = place.run(&["exec", "--profile", "full", "--deny", "terminal(touch *)", "make it"]);
    assert!(!place.work.join("denied").exists());
    assert_eq!(out.stdout, "not made\n", "{out:?}");
    let rows = place.lines(&["audit", "--json"]);
    let decisions: Vec<&str> = rows.iter().map(|r| r["decision"].as_str().unwrap()).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(decisions[0].contains("allow") && decisions[1].contains("deny"), "{decisions:?}");
}

#[test]
fn a_reader_that_has_had_enough_ends_it_quietly() {
    // A reply that goes on for as long as it is read.
    let body = String::from_utf8(Script::new().text("words and words ").pieces_of(20).body(Wire::Anthropic))
        .unwrap();
    let start = body.find("event: content_block_delta").unwrap();
    let end = body.find("event: content_block_stop").unwrap();
    let server = ScriptServer::start([Reply::sse(&body[..start]).repeat(&body[start..end], 20)]);
    let place = Place::anthropic(&server);
    let mut child = spawned(&place, &["exec", "--json", "go"]);
    {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("session_started"), "{line}");
    }
    let out = finish(child);
    assert_eq!((out.code, out.stderr.as_str()), (Some(130), ""), "the turn was not over");
    // After the end there is nothing to interrupt: the answer is complete.
    let server = ScriptServer::start([says("all of it")]);
    let place = Place::anthropic(&server);
    let out = run(place.program("sh", &["-c", &format!("'{}' exec hi | true", crate::common::TILLER)]), b"");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(!out.stderr.to_lowercase().contains("pipe"), "{out:?}");
}

/// A session that another process has open, in the middle of a turn.
fn held() -> (ScriptServer, Place, std::process::Child) {
    let server = ScriptServer::start([says("one"), Reply::silence(), says("answered apart")]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", "first"]);
    let other = place
        .tiller(&["exec", "--continue", "wait for long"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::common::wait("the other process", || server.count() == 2);
    (server, place, other)
}

#[test]
fn a_session_that_is_open_elsewhere_is_told_and_nothing_is_sent() {
    let (server, place, other) = held();
    let out = place.run(&["exec", "--continue", "me too"]);
    assert_eq!((out.code, server.count()), (Some(3), 2), "{out:?}");
    assert!(out.stderr.contains("is open in") && out.stderr.contains("--continue"), "{out:?}");
    // A person at a terminal can continue on a branch.
    let mut term = place.term(&["exec", "--continue", "me too"], 100, 20);
    term.wait_text("Continue on a branch");
    term.keys("y\r");
    term.wait_text("answered apart");
    assert_eq!(term.wait_exit(), 0);
    signal(other.id(), Signal::INT);
    assert_eq!(finish(other).code, Some(130));
}

#[test]
fn a_question_can_be_answered_or_left_with_ctrl_c() {
    let server = ScriptServer::start([
        shell("c1", "touch made"),
        says("made"),
        shell("c2", "touch never"),
        says("not reached"),
    ]);
    let place = Place::anthropic(&server);
    let mut term = place.term(&["exec", "--profile", "ask", "make it"], 100, 20);
    term.wait_text("wants to run");
    term.keys("y\r");
    assert_eq!(term.wait_exit(), 0);
    assert!(place.work.join("made").exists());
    let mut term = place.term(&["exec", "--profile", "ask", "make another"], 100, 20);
    term.wait_text("wants to run");
    let begun = std::time::Instant::now();
    term.keys("\x03");
    assert_eq!(term.wait_exit(), 130);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(!place.work.join("never").exists());
}

#[test]
fn commands_see_listed_variables_only_and_no_key_under_any_name() {
    let echo = "echo [$MY_TOKEN] [$TZ] [$JAVA_HOME] [$ANTHROPIC_API_KEY]";
    let server = ScriptServer::start([shell("c1", echo), says("1"), shell("c2", echo), says("2")]);
    let mut place = Place::anthropic(&server);
    place.set("MY_TOKEN", "a-token-of-mine");
    place.set("TZ", "UTC");
    // A listed name, with a key as its value.
    place.set("JAVA_HOME", crate::common::KEY);
    let said = |n: usize| server.bodies()[n]["messages"].to_string();
    place.ok(&["exec", "--profile", "full", "look"]);
    assert!(said(1).contains("[] [UTC] [] []"), "{}", said(1));
    place.config("[limits]\nenv = [\"MY_TOKEN\"]\n");
    place.ok(&["exec", "--profile", "full", "look again"]);
    assert!(said(3).contains("[a-token-of-mine] [UTC] [] []"), "{}", said(3));
}

/// The first message of an agent.
fn began(body: &Value) -> String {
    body["messages"][0]["content"].to_string()
}

/// A model that starts an agent in the background, which takes its time or never ends.
fn starter(child: impl Fn() -> Reply + Send + 'static) -> ScriptServer {
    ScriptServer::with(move |request, _| {
        let body = request.json();
        let last = body["messages"].as_array().and_then(|m| m.last()).map_or(String::new(), Value::to_string);
        match () {
            () if began(&body).contains("count the walnuts") => child(),
            () if last.contains("There are 7.") => says("There are 7 walnuts."),
            () if last.contains("tool_result") => says("Somebody counts."),
            () => calls("c1", "spawn_agent", json!({"goal": "count the walnuts"})),
        }
    })
}

/// Waits until the program says that it waits for an agent in the background: the turn has ended without it. The reader is
/// kept until the end, or the program would write into a closed pipe.
fn until_it_waits(child: &mut std::process::Child) -> BufReader<std::process::ChildStderr> {
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("1 agent is running in the background") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "it is not waited for: {said}");
    }
    errors
}

#[test]
fn agents_in_the_background_are_waited_for_and_the_answer_has_what_they_brought() {
    let counted = |args: &[&str]| {
        let hold = Hold::default();
        let held = hold.clone();
        let server = starter(move || says("There are 7.").held(&held));
        let place = Place::anthropic(&server);
        let mut child = spawned(&place, args);
        let errors = until_it_waits(&mut child);
        hold.release();
        let out = finish(child);
        drop(errors);
        (out, json_lines(&place.run(&["costs", "--json", "--by", "agent"]).stdout))
    };
    let (out, _) = counted(&["exec", "how many?"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "There are 7 walnuts.\n"));
    let (out, costs) = counted(&["exec", "--json", "how many?"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let lines = json_lines(&out.stdout);
    let ends: Vec<&Value> =
        lines.iter().filter(|l| l["type"] == "turn_finished" && l["agent"] == "main").collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["text"], lines.last()), (&json!("There are 7 walnuts."), Some(ends[0])));
    // The end has the cost of the whole run: of the turn before it, and of the agent.
    assert!(costs.len() == 2 && costs.iter().all(|row| row["cost_usd"].as_f64().unwrap() > 0.0), "{costs:?}");
    let sum = |of: &dyn Fn(&Value) -> f64| costs.iter().map(of).sum::<f64>();
    let usd = sum(&|row| row["cost_usd"].as_f64().unwrap());
    assert!((ends[0]["cost_usd"].as_f64().unwrap() - usd).abs() < 1e-6, "{} of {usd}", ends[0]);
    for kind in ["input", "output"] {
        let tokens = sum(&|row| row["usage"][kind].as_f64().unwrap());
        assert_eq!(ends[0]["usage"][kind].as_f64(), Some(tokens), "{kind}");
    }
}

#[test]
fn whoever_does_not_want_to_wait_does_not() {
    let server = starter(Reply::silence);
    let place = Place::anthropic(&server);
    let out = place.run(&["exec", "--no-wait", "how many?"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Somebody counts.\n"), "{}", out.stderr);
}

#[test]
fn a_stop_ends_the_waiting_and_the_last_line_is_the_end_of_the_turn() {
    let server = starter(Reply::silence);
    let place = Place::anthropic(&server);
    let mut child = place
        .tiller(&["exec", "--json", "how many?"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The turn, its end, and the agent's request.
    let errors = until_it_waits(&mut child);
    crate::common::wait("the agent", || {
        server.count() == 3 && server.bodies().iter().any(|b| began(b).contains("count the walnuts"))
    });
    signal(child.id(), Signal::INT);
    let out = finish(child);
    drop(errors);
    assert_eq!(out.code, Some(130), "{out:?}");
    let last = json_lines(&out.stdout).pop().unwrap();
    assert_eq!((&last["type"], &last["text"]), (&json!("turn_finished"), &json!("Somebody counts.")));
}

#[test]
fn a_kind_of_agent_obeys_its_limits_of_tokens_and_seconds() {
    let looker = |place: &Place, limits: &str| {
        let own = place.home.join("config/agents");
        std::fs::create_dir_all(&own).unwrap();
        let text = format!("---\ndescription: Looks\nlimits: {{ {limits} }}\n---\nLook well.\n");
        std::fs::write(own.join("looker.md"), text).unwrap();
    };
    let reply = Script::new().call("c1", "list_dir", json!({"path": "."})).usage(100, 7);
    let server = ScriptServer::start([Reply::script(Wire::Anthropic, &reply), says("never asked for")]);
    let place = Place::anthropic(&server);
    looker(&place, "tokens: 60");
    let out = place.run(&["agents", "run", "looker", "look"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stderr.contains("The limit of 60 tokens for looker was reached"), "{out:?}");
    let server = ScriptServer::start([Reply::silence()]);
    let place = Place::anthropic(&server);
    looker(&place, "seconds: 1");
    let out = place.run(&["agents", "run", "looker", "look"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stderr.contains("The limit of 1 seconds for looker was reached"), "{out:?}");
}

/// An invalid amount is reported before any request.
#[test]
fn a_budget_that_is_no_amount_is_refused_and_one_of_nothing_asks_nothing() {
    let server = ScriptServer::with(|_, _| says("never"));
    let place = Place::anthropic(&server);
    for wrong in ["nan", "inf", "-1", "much", ""] {
        let out = place.run(&["exec", "--max-cost", wrong, "go"]);
        assert_eq!((out.code, server.count()), (Some(2), 0), "{wrong}: {out:?}");
        assert!(out.stderr.contains("an amount in dollars of at least 0"), "{wrong}: {}", out.stderr);
    }
    let out = place.run(&["exec", "--max-cost", "0", "go"]);
    assert_eq!((out.code, server.count()), (Some(4), 0), "{out:?}");
    assert!(out.stderr.contains("$0.00"), "{}", out.stderr);
    for (wrong, said) in [
        ("[agents]\ncost = nan\n", "agents.cost"),
        ("[agents]\ntree_cost = -0.5\n", "`agents.tree_cost` must be at least 0"),
        ("[agents]\nturns = 0\n", "`agents.turns` must be at least 1"),
        ("[agents]\nseconds = -3\n", "agents.seconds"),
        ("[budget]\nsession_hard = inf\n", "budget.session_hard"),
        ("[budget.tiers]\nmain = \"much\"\n", "`budget.tiers.main` must be a number"),
        ("[limits]\nprogram_memory = 0\n", "`limits.program_memory` must be at least 1"),
    ] {
        let place = Place::anthropic(&server);
        place.config(wrong);
        let out = place.run(&["exec", "go"]);
        assert_eq!((out.code, server.count()), (Some(2), 0), "{wrong}: {out:?}");
        assert!(out.stderr.contains(said) && out.stderr.contains("config.toml:"), "{wrong}: {}", out.stderr);
    }
}

/// Sessions of runs without a screen are not in the person's list, and `--ephemeral` keeps none.
#[test]
fn its_sessions_are_listed_on_demand_only() {
    let server = ScriptServer::start([says("One."), says("Two."), says("Three.")]);
    let place = Place::anthropic(&server);
    let listed = |more: &[&str]| {
        let args: Vec<&str> = ["sessions", "--json", "list"].iter().chain(more).copied().collect();
        json_lines(&place.run(&args).stdout).len()
    };
    assert_eq!(place.run(&["exec", "first"]).code, Some(0));
    assert_eq!((listed(&[]), listed(&["--archived"]), listed(&["--exec"])), (0, 0, 1));
    assert!(place.run(&["sessions", "list", "--exec"]).stdout.contains("  exec"));
    // Such a run continues a session of such a run.
    assert_eq!(place.run(&["exec", "-c", "second"]).code, Some(0));
    assert_eq!(listed(&["--exec"]), 1);
    assert!(server.bodies()[1]["messages"].to_string().contains("first"));
    let out = place.run(&["exec", "--ephemeral", "third"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Three.\n"), "{}", out.stderr);
    assert_eq!(listed(&["--exec"]), 1);
    // Its cost is still recorded.
    let costs = place.run(&["costs", "--json"]).stdout;
    assert!(costs.contains("\"calls\":3"), "{costs}");
    assert_eq!(place.run(&["exec", "--ephemeral", "-c", "x"]).code, Some(2));
}

/// A run whose session is not kept, killed in its turn: it is in no list, and the next start removes it.
#[test]
fn an_ephemeral_session_is_removed_after_kill_9() {
    let server = ScriptServer::start([Reply::silence(), says("After.")]);
    let place = Place::anthropic(&server);
    let mut command = place.tiller(&["exec", "--json", "--ephemeral", "the walnut of words"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let id = loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended");
        let event: Value = serde_json::from_str(&line).unwrap();
        // Everything that was printed is stored.
        if line.contains("user_message") {
            break event["session"].as_str().unwrap().to_owned();
        }
    };
    server.wait_for(1, crate::common::TIMEOUT);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&["sessions", "show", &id]).code, Some(0), "it is still stored");
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--archived", "--json"]).len(), 0);
    let out = place.run(&["exec", "go on"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "After.\n"), "{}", out.stderr);
    assert_eq!(place.run(&["sessions", "show", &id]).code, Some(2), "it is gone");
    let found = place.lines(&["sessions", "search", "walnut", "--json"]);
    assert!(found.is_empty(), "{found:?}");
}

/// `/init` reads what is there, writes AGENTS.md, and amends one that exists without overwriting it.
#[test]
fn init_writes_agents_md_from_what_is_there() {
    let place = Place::new();
    place.file("README.md", "# Shop\n\nSells tea.\n");
    place.file("CLAUDE.md", "Money is counted in cents.\n");
    place.file("Makefile", "test:\n\ttrue\n");
    let init = |place: &Place| {
        let allow = ["--allow", "write_file(AGENTS.md)", "--allow", "edit_file(AGENTS.md)"];
        let mut args = vec!["exec", "-m", "demo/demo", "--profile", "auto-edit"];
        args.extend(allow);
        args.push("/init");
        place.run(&args)
    };
    let out = init(&place);
    assert_eq!(out.code, Some(0), "{out:?}");
    let written = std::fs::read_to_string(place.work.join("AGENTS.md")).unwrap();
    assert_eq!(
        written,
        "# Shop\n\nSells tea.\n\n## Commands\n\n```sh\nmake test\n```\n\nRules of this project are in CLAUDE.md: read it first.\n"
    );
    assert_eq!(
        std::fs::read_to_string(place.work.join("CLAUDE.md")).unwrap(),
        "Money is counted in cents.\n"
    );
    place.file("AGENTS.md", "# Mine\n\nNever sell coffee.\n");
    let out = init(&place);
    assert_eq!(out.code, Some(0), "{out:?}");
    let amended = std::fs::read_to_string(place.work.join("AGENTS.md")).unwrap();
    assert!(amended.starts_with("# Mine\n\nNever sell coffee.\n\n## Commands\n"), "{amended}");
    // Without an answer nothing is written: instructions of agents are asked about also where edits are not.
    std::fs::remove_file(place.work.join("AGENTS.md")).unwrap();
    for mode in ["ask", "auto-edit", "full"] {
        let out = place.run(&["exec", "-m", "demo/demo", "--profile", mode, "/init"]);
        assert_eq!(out.code, Some(3), "{mode}: {out:?}");
        assert!(!place.work.join("AGENTS.md").exists(), "{mode}");
    }
}

/// A memory file that a folder brings is used with the user's word for it, and not before.
#[test]
fn the_memory_file_of_a_folder_is_used_with_trust_alone() {
    let server = ScriptServer::start([says("a"), says("b")]);
    let place = Place::anthropic(&server);
    place.file(".tiller/MEMORY.md", "- The mirror is at mirror.example.\n");
    place.ok(&["exec", "go"]);
    place.ok(&["exec", "--trust", "go"]);
    let told: Vec<bool> =
        server.requests().iter().map(|r| r.text().contains("The mirror is at mirror.example")).collect();
    assert_eq!(told, [false, true]);
}

/// Each kind of bad file in the place of each file that restricts: the call that the good one denies is refused, the file is
/// named, and the start does not wait for a pipe.
#[test]
fn a_file_that_restricts_and_cannot_be_used_is_refused_and_named() {
    let good = "deny:\n  - terminal(touch*)\n";
    for (name, text) in [("config/permissions.yaml", good), ("data/MEMORY.md", "- x\n")] {
        for bad in tiller_fs::testing::BadFile::all() {
            let server = ScriptServer::start([shell("c1", "touch RAN"), says("done")]);
            let place = Place::anthropic(&server);
            let path = place.home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !bad.make(&path, text) {
                continue;
            }
            let out = place.run(&["exec", "--profile", "full", "--allow", "terminal(touch*)", "go"]);
            let case = format!("{name} {}: {out:?}", bad.name);
            assert_eq!((out.code, place.work.join("RAN").exists()), (Some(3), false), "{case}");
            assert!(out.stderr.contains(path.file_name().unwrap().to_str().unwrap()), "{case}");
            let doctor = place.run(&["doctor"]);
            let rules = doctor.stdout.lines().find(|l| l.contains("rules")).unwrap_or_default().to_owned();
            assert!(rules.contains(path.file_name().unwrap().to_str().unwrap()), "{case}: {}", doctor.stdout);
        }
    }
}
