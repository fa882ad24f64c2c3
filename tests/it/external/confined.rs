//! `agents.sandbox` with the real programs: each works as ever, and what its commands do stays in the workspace.

use std::path::Path;

use serde_json::json;
use tiller_external::Transport;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire, lasting};

use super::{KEYS, answer, present};
use crate::common::{Place, poll};
use crate::screen::{quit, say};

const SECRET: &str = "of-the-home-folder-0123456789";
/// Secret files of the home folder, each with the program whose own it is.
const SECRETS: &[(&str, &str)] = &[
    (".ssh/id_ed25519", ""),
    (".config/gh/hosts.yml", ""),
    (".claude/.credentials.json", "claude"),
    (".codex/auth.json", "codex"),
    (".gemini/oauth_creds.json", "gemini"),
    (".local/share/opencode/auth.json", "opencode"),
];

/// The reply to "please runcmd now", with another command than [`super::COMMAND`]; any other reply as ever.
fn reply(asked: &Recorded, work: &Path, command: &str) -> Reply {
    let body = asked.json();
    let (wire, turns) = match (&body["messages"], &body["input"], &body["contents"]) {
        (turns, ..) if turns.is_array() && asked.path.contains("/messages") => (Wire::Anthropic, turns),
        (_, turns, _) if turns.is_array() => (Wire::OpenaiResponses, turns),
        (.., turns) if turns.is_array() && asked.path.contains("stream") => (Wire::Gemini, turns),
        _ => return answer(asked, work),
    };
    let turns = turns.as_array().cloned().unwrap_or_default();
    let last = turns.last().map(ToString::to_string).unwrap_or_default();
    let text: String = turns.iter().rev().take(3).map(ToString::to_string).collect();
    let tools = body["tools"].to_string();
    let found = ["Bash", "bash", "run_shell_command", "exec_command", "shell_command"]
        .into_iter()
        .find(|name| tools.contains(&format!("\"name\":\"{name}\"")));
    let done = ["tool_result", "function_call_output", "functionResponse"].iter().any(|w| last.contains(w));
    match found {
        Some(tool) if !done && text.contains("runcmd") && body["stream"] != false => {
            let args = match tool {
                "exec_command" => json!({"cmd": command}),
                _ => json!({"command": command, "description": "x"}),
            };
            Reply::script(wire, &Script::new().text("I do it.").call("call_1", tool, args))
        }
        _ => answer(asked, work),
    }
}

/// The results of tools in a request.
fn results(body: &serde_json::Value) -> Vec<String> {
    let turns = ["messages", "input", "contents"].iter().find_map(|key| body[key].as_array().cloned());
    let all = turns.unwrap_or_default().into_iter().map(|turn| turn.to_string());
    all.filter(|t| ["tool_result", "function_call", "functionResponse"].iter().any(|w| t.contains(w)))
        .collect()
}

/// Settings of the programs in the home folder, the secrets of everything but `name` beside them, and a repository.
fn place_for(server: &ScriptServer, clis: &str, root: &Path, name: &str) -> Place {
    let mut place = Place::anthropic(server);
    (place.user, place.work) = (root.join("user"), root.join("work"));
    for folder in [&place.user, &place.work, &root.join("outside")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{clis}:{path}"));
    place.set("HOME", &place.user.display().to_string());
    place.set("GOOGLE_GEMINI_BASE_URL", &server.url());
    for (key, value) in KEYS {
        place.set(key, value);
    }
    // The model is a server on this machine.
    place.config("[agents]\nsandbox = true\nsandbox_network = [\"*\"]\n");
    super::settings(&place.user, &server.url());
    // In its own terminal a program is confined without namespaces, and its commands get no terminal there. Gemini asks for
    // one where it finds the module for that.
    let gemini = place.user.join(".gemini/settings.json");
    let mut own: serde_json::Value = serde_json::from_slice(&std::fs::read(&gemini).unwrap()).unwrap();
    own["tools"] = json!({"shell": {"enableInteractiveShell": false}});
    std::fs::write(&gemini, own.to_string()).unwrap();
    for (file, _) in SECRETS.iter().filter(|(_, own)| *own != name) {
        let path = place.user.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, SECRET).unwrap();
    }
    std::fs::write(place.user.join(".bashrc"), "# mine\n").unwrap();
    // Without one, aider writes a name into the repository's settings.
    std::fs::write(place.user.join(".gitconfig"), "[user]\n\tname = a\n\temail = a@example.com\n").unwrap();
    let git = place.program("git", &["init", "-q"]).status().unwrap();
    assert!(git.success());
    place
}

/// The name of a program, the transport, and whether its model can run commands.
const ALL: &[(&str, Transport, bool)] = &[
    ("claude", Transport::Headless, true),
    ("codex", Transport::Headless, true),
    ("gemini", Transport::Headless, true),
    ("opencode", Transport::Headless, true),
    ("aider", Transport::Headless, false),
    ("claude", Transport::Acp, true),
    ("codex", Transport::Acp, true),
    ("gemini", Transport::Acp, true),
    ("opencode", Transport::Acp, true),
    ("claude", Transport::Pty, true),
    ("codex", Transport::Pty, true),
    ("gemini", Transport::Pty, true),
    ("opencode", Transport::Pty, true),
];

/// Folders for temporary files are private in the sandbox: the home folder of the test lies elsewhere.
fn each_confined(wanted: Transport) {
    let found = tiller_sandbox::Confinement::find();
    if !found.available() {
        return eprintln!("skipped: {}", found.words());
    }
    for (name, transport, runs) in ALL.iter().filter(|(_, transport, _)| *transport == wanted) {
        let Some((_, clis)) = present(&[name], *transport).pop() else { continue };
        let begun = std::time::Instant::now();
        let tmp = lasting(env!("CARGO_TARGET_TMPDIR"));
        let root = tmp.path().canonicalize().unwrap();
        let (work, top) = (root.join("work"), root.display().to_string());
        // It stands in a file, since the rules would refuse such a line over ACP.
        let secrets: String = SECRETS.iter().map(|(file, _)| format!("{top}/user/{file} ")).collect();
        let command = format!(
            "cat {secrets} > got.txt; echo x > {top}/outside/new; echo x >> {top}/user/.bashrc; \
             echo x > {top}/user/new; echo x > .git/hooks/post-commit; touch ran.txt; true"
        );
        let server = ScriptServer::with(move |asked, _| reply(asked, &work, "sh check.sh"));
        let place = place_for(&server, &clis, &root, name);
        place.file("check.sh", &command);
        let mut term = place.term(&["--profile", "full"], 118, 30);
        term.wait_text("Type what you want done");
        let task = if *runs { "please runcmd now" } else { "please mkfile now" };
        say(&mut term, &format!("/spawn @{name}:{} {task}", transport.name()));
        let mark = if *runs { "ran.txt" } else { "made.txt" };
        // What it writes last is not always the last on its own screen.
        let ended = |s: &str| s.contains("PONG") || s.contains("Agent a1 is done");
        let told = poll(super::TIMEOUT, || ended(&term.screen()).then_some(()));
        let results = || server.bodies().iter().flat_map(results).collect::<Vec<_>>();
        assert!(told.is_some(), "{name} did not end: {:#?}\n{}", results(), term.screen());
        let done = poll(super::TIMEOUT, || place.work.join(mark).exists().then_some(()));
        assert!(done.is_some(), "{name} did nothing: {:#?}\n{}", results(), term.screen());
        assert_eq!(quit(&mut term), 0);
        if *runs {
            assert_eq!(place.read("got.txt"), "", "{name} read a secret path");
        }
        assert_eq!(std::fs::read_dir(root.join("outside")).unwrap().count(), 0, "{name} wrote outside");
        assert_eq!(std::fs::read_to_string(place.user.join(".bashrc")).unwrap(), "# mine\n", "{name}");
        assert!(!place.user.join("new").exists(), "{name} wrote in the home folder");
        assert!(!place.work.join(".git/hooks/post-commit").exists(), "{name} wrote a hook");
        assert!(!server.bodies().iter().any(|b| b.to_string().contains(SECRET)), "{name}");
        if *name == "claude" {
            let read = |file: &str| std::fs::read_to_string(place.user.join(file)).unwrap();
            assert!(!read(".claude.json").contains("machineID"), "it writes the copy");
            let copy = read(".claude/.claude.json");
            assert!(copy.contains("hasCompletedOnboarding") && copy.contains("machineID"), "{copy}");
        }
        eprintln!("{name} over {}, confined: {:.1} s", transport.name(), begun.elapsed().as_secs_f64());
    }
}

#[test]
fn a_confined_program_works_and_its_commands_stay_in_the_workspace() {
    each_confined(Transport::Headless);
}

#[test]
fn a_confined_program_works_over_acp() {
    each_confined(Transport::Acp);
}

#[test]
fn a_confined_program_works_in_a_terminal() {
    each_confined(Transport::Pty);
}

/// A program of the test: it asks the proxy for its own domain and another one, tries the test's server without the proxy,
/// and reads and writes below the home folder.
const PROGRAM: &str = r#"#!/bin/bash
[ "$1" != --version ] || { echo 1.0; exit; }
ask() {
  exec 3<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" || return
  printf 'GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n' "$1" "$1" >&3
  read -r _ code _ <&3
  echo "$1 $code"
}
{
  ask walnut.example
  ask more.example
  ask other.example
  (exec 4<>/dev/tcp/127.0.0.1/PORT) 2>/dev/null && echo reached
  echo mine >"$HOME/.walnut/deep/state" && echo "$WALNUT_TMP" >"$HOME/.walnut/tmp"
  cat "$WALNUT_TMP/start"
  cat "$HOME/.codex/auth.json" 2>/dev/null
  (echo x >"$HOME/.codex/new") 2>/dev/null || echo refused
} >out.txt
echo "PONG of walnut"
"#;

const ADAPTER: &str = r#"
name = "walnut"
title = "Walnut"
[program]
command = "walnut"
install = "nothing"
reads = []
[sandbox]
folders = ["~/.walnut/deep", "~/.walnut"]
domains = ["walnut.example"]
set = { WALNUT_TMP = "{scratch}" }
scratch = { start = "begin" }
[headless]
format = "text"
prompt = "argument"
careful = []
last = ["{prompt}"]
"#;

/// The domains, folders and variables of an adapter in the user's own folder hold too.
#[test]
fn a_confined_program_reaches_its_own_domains_and_files_only() {
    let found = tiller_sandbox::Confinement::find();
    if !found.available() || found.bubblewrap.is_none() && !found.notification {
        return eprintln!("skipped: {}", found.words());
    }
    let tmp = lasting(env!("CARGO_TARGET_TMPDIR"));
    let root = tmp.path().canonicalize().unwrap();
    let server = ScriptServer::start([]);
    let bin = root.join("bin");
    let place = place_for(&server, &bin.display().to_string(), &root, "walnut");
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    tiller_testkit::program(&bin.join("walnut"), &PROGRAM.replace("PORT", &port));
    place.config("[agents]\nsandbox = true\nsandbox_network = [\"more.example\"]\n");
    std::fs::create_dir_all(place.home.join("config/adapters")).unwrap();
    std::fs::write(place.home.join("config/adapters/walnut.toml"), ADAPTER).unwrap();
    let mut term = place.term(&["--profile", "full"], 118, 30);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn @walnut:headless go");
    let told = poll(super::TIMEOUT, || term.screen().contains("PONG of walnut").then_some(()));
    assert!(told.is_some(), "{}", term.screen());
    assert_eq!(quit(&mut term), 0);
    let said = place.read("out.txt");
    let domains = "walnut.example 502\nmore.example 502\nother.example 403\n";
    assert_eq!(said, format!("{domains}beginrefused\n"));
    let own = std::fs::read_to_string(place.user.join(".walnut/deep/state")).unwrap();
    assert_eq!(own, "mine\n");
    let scratch = std::fs::read_to_string(place.user.join(".walnut/tmp")).unwrap();
    assert!(scratch.contains("tiller-scratch-"), "{scratch}");
    assert!(!place.user.join(".codex/new").exists());
}
