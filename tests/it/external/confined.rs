//! `agents.sandbox` with the real programs: each works as ever, and what its commands do stays in the workspace.

use std::path::Path;

use serde_json::json;
use tiller_external::Transport;
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use super::{KEYS, answer, present};
use crate::common::{Place, poll};
use crate::screen::{quit, say};

const SECRET: &str = "of-the-home-folder-0123456789";

/// The reply to "please runcmd now", with another command than [`super::COMMAND`]; any other reply as ever.
fn reply(asked: &tiller_testkit::Recorded, work: &Path, command: &str) -> Reply {
    let body = asked.json();
    let (wire, turns) = match (&body["messages"], &body["input"]) {
        (turns, _) if turns.is_array() && asked.path.contains("/messages") => (Wire::Anthropic, turns),
        (_, turns) if turns.is_array() => (Wire::OpenaiResponses, turns),
        _ => return answer(asked, work),
    };
    let turns = turns.as_array().cloned().unwrap_or_default();
    let last = turns.last().map(ToString::to_string).unwrap_or_default();
    let text: String = turns.iter().rev().take(3).map(ToString::to_string).collect();
    let tools = body["tools"].to_string();
    let found = ["Bash", "bash", "run_shell_command", "exec_command", "shell_command"]
        .into_iter()
        .find(|name| tools.contains(&format!("\"name\":\"{name}\"")));
    let done = last.contains("tool_result") || last.contains("function_call_output");
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
    let turns = body["messages"].as_array().or(body["input"].as_array()).cloned().unwrap_or_default();
    let all = turns.iter().map(ToString::to_string);
    all.filter(|t| t.contains("tool_result") || t.contains("function_call")).collect()
}

/// Settings of the programs in the home folder, a secret path beside them, and a repository.
fn place_for(server: &ScriptServer, clis: &str, root: &Path) -> Place {
    let mut place = Place::anthropic(server);
    (place.user, place.work) = (root.join("user"), root.join("work"));
    for folder in [&place.user, &place.work, &root.join("outside")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{clis}:{path}"));
    place.set("HOME", &place.user.display().to_string());
    place.set("ANTHROPIC_API_KEY", KEYS[0].1);
    place.set("OPENAI_API_KEY", KEYS[1].1);
    place.config("[agents]\nsandbox = true\n");
    let url = server.url();
    let write = |name: &str, text: String| {
        let path = place.user.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".claude.json", json!({"hasCompletedOnboarding": true}).to_string());
    let provider = format!(
        "name = \"mock\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\""
    );
    write(
        ".codex/config.toml",
        format!("model = \"gpt-5.5\"\nmodel_provider = \"mock\"\n[model_providers.mock]\n{provider}\n"),
    );
    let options = json!({"baseURL": format!("{url}/v1"), "apiKey": "of-the-file"});
    write(
        ".config/opencode/opencode.json",
        json!({"autoupdate": false, "model": "anthropic/claude-sonnet-4-5", "provider": {"anthropic": {"options": options}}})
            .to_string(),
    );
    write(".ssh/id_ed25519", SECRET.into());
    write(".config/gh/hosts.yml", SECRET.into());
    write(".bashrc", "# mine\n".into());
    let git = place.program("git", &["init", "-q"]).status().unwrap();
    assert!(git.success());
    place
}

/// Folders for temporary files are private in the sandbox: the home folder of the test lies elsewhere.
#[test]
#[ignore = "claude starts and answers, but its command did not run: the cause is not found yet"]
fn a_confined_program_works_and_its_commands_stay_in_the_workspace() {
    let found = tiller_sandbox::Confinement::find();
    if !found.available() {
        return eprintln!("skipped: {}", found.words());
    }
    for (name, clis) in present(&["claude", "codex", "opencode"], Transport::Headless) {
        let begun = std::time::Instant::now();
        let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = tmp.path().canonicalize().unwrap();
        let (work, top) = (root.join("work"), root.display().to_string());
        let command = format!(
            "cat {top}/user/.ssh/id_ed25519 {top}/user/.config/gh/hosts.yml > got.txt; \
             echo x > {top}/outside/new; echo x >> {top}/user/.bashrc; echo x > {top}/user/new; touch ran.txt; true"
        );
        let server = ScriptServer::with(move |asked, _| reply(asked, &work, &command));
        let place = place_for(&server, &clis, &root);
        let mut term = place.term(&["--profile", "full"], 118, 30);
        term.wait_text("Type what you want done");
        say(&mut term, &format!("/spawn @{name}:headless please runcmd now"));
        let told = poll(super::PATIENCE, || term.screen().contains("PONG").then_some(()));
        assert!(told.is_some(), "{name} did not end:\n{}", term.screen());
        let results = server.bodies().iter().flat_map(results).collect::<Vec<_>>();
        assert!(
            place.work.join("ran.txt").exists(),
            "{name} ran no command: {results:#?}\n{}",
            term.screen()
        );
        assert_eq!(quit(&mut term), 0);
        assert_eq!(place.read("got.txt"), "", "{name} read a secret path");
        assert_eq!(std::fs::read_dir(root.join("outside")).unwrap().count(), 0, "{name} wrote outside");
        assert_eq!(std::fs::read_to_string(place.user.join(".bashrc")).unwrap(), "# mine\n", "{name}");
        assert!(!place.user.join("new").exists(), "{name} wrote in the home folder");
        assert!(!server.bodies().iter().any(|b| b.to_string().contains(SECRET)), "{name}");
        eprintln!("{name}, confined: {:.1} s", begun.elapsed().as_secs_f64());
    }
}
