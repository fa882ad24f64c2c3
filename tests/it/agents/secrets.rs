//! Faults X8 and X12 for agents: secrets are in none of their files and no child sees them; when nobody can answer,
//! requests of an agent are denied, recorded, and reported.

use std::path::Path;

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Wire, seeded};

use crate::common::{KEY, Place, says, shell};
use crate::faults::secrets::{holds, keys, walk};

/// A program `toy` of another vendor that is this script: without a screen, or over the protocol.
fn toy(place: &Place, script: &str) {
    let program = place.user.join("toy.sh");
    tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
    let folder = place.home.join("config/adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let command = format!("command = \"{}\"\ninstall = \"nothing\"\n", program.display());
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\n{command}[headless]\nformat = \"text\"\nargs = []\n\
         last = [\"{{prompt}}\"]\nprompt = \"argument\"\n[acp]\n{command}\
         [env.careful]\nTOY_ASKS = \"1\"\n"
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
}

fn first(body: &Value) -> String {
    body["messages"][0]["content"].to_string()
}

fn results(body: &Value) -> usize {
    body["messages"].to_string().matches("tool_result").count()
}

fn delegate(tasks: &Value) -> Reply {
    let call = Script::new().text("I give it away.").call("d1", "delegate_task", json!({"tasks": tasks}));
    Reply::script(Wire::Anthropic, &call)
}

#[test]
fn x8_secrets_that_agents_meet_are_in_no_file_and_no_child_sees_a_key() {
    let all = seeded(60, 0x5EED_00A9);
    let lines: String = all.iter().map(|s| format!("{}\n", s.line)).collect();
    let said: Vec<String> = all.iter().map(|s| s.line.clone()).collect();
    let words = said.join("\n\n");
    let server = ScriptServer::with(move |request, _| {
        let body = request.json();
        let task = first(&body);
        match results(&body) {
            0 if task.contains("own job") => {
                let reply = Script::new()
                    .text(&words)
                    .call("c1", "terminal", json!({"command": "env > own.env; cat leak.txt"}))
                    .call("c2", "read_file", json!({"path": "leak.txt"}));
                Reply::script(Wire::Anthropic, &reply)
            }
            _ if task.contains("own job") => says(&format!("I found:\n{words}")),
            0 if task.contains("go") => delegate(&json!([
                {"goal": "own job", "isolated": true}, {"goal": "own job too"}, {"goal": "their job", "cli": "toy:headless"}
            ])),
            _ => says("All is seen."),
        }
    });
    let mut place = Place::anthropic(&server);
    place.set("TILLER_LOG", "trace");
    let keys = keys();
    for (name, value) in &keys {
        place.set(name, value);
    }
    toy(&place, "env > toy.env; cat leak.txt; cat leak.txt >&2");
    place.file("leak.txt", &lines);
    place.git(&["init", "-q"]);
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "first"]);
    let out = place.run(&["exec", "--profile", "full", "--json", "go"]);
    assert_eq!(out.code, Some(0), "{out:?}");

    let mut wrong = Vec::new();
    let mut look = |what: &str, bytes: &[u8]| {
        for s in all.iter().filter(|s| holds(bytes, &s.secret)) {
            let text = String::from_utf8_lossy(bytes);
            let at = text.find(&s.secret).unwrap_or_default();
            let from = text.floor_char_boundary(at.saturating_sub(60));
            wrong.push(format!("{what} holds {}: {:?}", s.line, &text[from..at]));
        }
    };
    look("standard output", out.stdout.as_bytes());
    look("standard error", out.stderr.as_bytes());
    let (mut envs, mut files) = (Vec::new(), 0);
    let mut see = |path: &Path, folder: bool| {
        if folder {
            return;
        }
        let bytes = std::fs::read(path).unwrap();
        if path.extension().is_some_and(|e| e == "env") {
            envs.push((path.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
            return;
        }
        // Snapshots and worktrees are the person's own files, byte for byte.
        let name = path.display().to_string();
        if !name.contains("/snapshots/") && !name.ends_with("/leak.txt") {
            files += 1;
            look(&name, &bytes);
        }
    };
    walk(&place.home, &mut see);
    for name in ["own.env", "toy.env"] {
        see(&place.work.join(name), false);
    }
    assert!(files > 2, "{files} files");
    assert_eq!(envs.len(), 3, "both agents and the program ran: {envs:?}");
    for (path, env) in &envs {
        assert!(env.contains("PATH="), "{env}");
        for (name, value) in keys.iter().map(|(n, v)| (*n, v.as_str())).chain([("ANTHROPIC_API_KEY", KEY)]) {
            assert!(!env.contains(name) && !env.contains(value), "{name} in {}:\n{env}", path.display());
        }
    }
    for args in [
        &["sessions", "export", "last"][..],
        &["sessions", "show", "last", "--json"],
        &["sessions", "search", "found"],
        &["audit", "--json"],
    ] {
        look(&args.join(" "), place.run(args).stdout.as_bytes());
    }
    for request in server.requests() {
        // The child's own text is sent back to it as stored: masked. So are results.
        look("a request", request.text().as_bytes());
    }
    let places: std::collections::BTreeSet<&str> =
        wrong.iter().filter_map(|w| w.split(" holds ").next()).collect();
    assert!(wrong.is_empty(), "{} finds in {places:#?}: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

/// A minimal agent of the protocol that asks once, and prints the chosen option.
const ASKS: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{}}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s1"}}';;
    *'"method":"session/prompt"'*) prompt=$id
      echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch theirs","kind":"execute","rawInput":{"command":"touch theirs"}},"options":[{"optionId":"yes1","name":"Yes","kind":"allow_once"},{"optionId":"no1","name":"No","kind":"reject_once"}]}}';;
    *'"id":900'*) case "$line" in *yes1*) touch theirs; said=allowed;; *) said=refused;; esac
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"it was '$said'"}}}}'
      echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;
  esac
done"#;

#[test]
fn x12_what_agents_ask_without_a_person_is_denied_recorded_and_told() {
    let server = ScriptServer::with(|request, _| {
        let body = request.json();
        let task = first(&body);
        match results(&body) {
            0 if task.contains("own job") => shell("c1", "touch mine"),
            _ if task.contains("own job") => says("I was not allowed to."),
            0 if task.contains("go") => {
                delegate(&json!([{"goal": "own job"}, {"goal": "their job", "cli": "toy:acp"}]))
            }
            _ => says("Nothing was done."),
        }
    });
    let place = Place::anthropic(&server);
    toy(&place, ASKS);
    let out = place.run(&["exec", "--profile", "ask", "go"]);
    assert!(!place.work.join("mine").exists() && !place.work.join("theirs").exists(), "{out:?}");
    assert!(out.stdout.contains("Nothing was done."), "{out:?}");
    let last = server.bodies().into_iter().rfind(|b| first(b).contains("go")).unwrap().to_string();
    assert!(last.contains("it was refused") && last.contains("I was not allowed to."), "{last}");
    let denied: Vec<Value> =
        place.lines(&["audit", "--json"]).into_iter().filter(|l| l.to_string().contains("touch")).collect();
    for (what, agent) in [("touch mine", "main/a1"), ("touch theirs", "main/a2")] {
        let found = denied.iter().any(|l| {
            let line = l.to_string();
            line.contains(what) && line.contains(agent) && line.contains("den")
        });
        assert!(found, "{what} by {agent} is recorded: {denied:#?}");
    }
    // The next start reports it.
    let mut term = place.term(&["-c"], 118, 30);
    term.wait("what was refused", |s| s.contains("While no terminal was attached, 2 calls"));
    assert_eq!(crate::screen::quit(&mut term), 0);
}
