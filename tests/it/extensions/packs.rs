//! The packs of `skills/`, each as its README says.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;
use tiller_tool::shell::find_program;

use crate::common::{Place, calls, says};

const HOME: &str = include_str!("home_assistant.py");
const TOKEN: &str = "home-token-0123456789abcdef";

/// A home with two lights, behind the interface of Home Assistant.
struct Home {
    process: Child,
    url: String,
}

impl Home {
    /// `None`, with words, where there is no python3.
    fn start(place: &Place) -> Option<Self> {
        let Some(python) = find_program("python3", &place.env) else {
            eprintln!("skipped: there is no python3");
            return None;
        };
        let mut command = place.program(python, &["-c", HOME, TOKEN]);
        let mut process = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Some(Self { process, url: format!("http://127.0.0.1:{}", port.trim()) })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pack(name: &str) -> String {
    format!("{}/skills/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// All folders of `skills/` that are plugins are valid ones, and the table names them.
#[test]
fn every_pack_is_valid_and_listed() {
    let place = Place::new();
    let list = std::fs::read_to_string(pack("README.md")).unwrap();
    let packs: Vec<String> = std::fs::read_dir(pack(""))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("plugin.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!packs.is_empty());
    for name in packs {
        let said = place.ok(&["plugin", "validate", &pack(&name)]);
        assert!(said.contains(&format!("{name} is valid")), "{said}");
        assert!(list.contains(&format!("`{name}`")), "skills/README.md does not list {name}");
    }
}

/// From the installation to a light that is off; each change needs a yes, and the token stays where it was.
#[test]
fn home_assistant_is_read_by_a_rule_and_changed_after_a_yes() {
    let call = |id: &str, tool: &str, arguments: Value| {
        let args = json!({"server": "home-assistant", "tool": tool, "arguments": arguments});
        calls(id, "mcp_call", args)
    };
    let turn = || {
        [
            call("c1", "GetLiveContext", json!({})),
            call("c2", "HassTurnOff", json!({"name": "Kitchen light"})),
            calls("c3", "terminal", json!({"command": "env"})),
            says("Done."),
        ]
    };
    let server = ScriptServer::start(turn().into_iter().chain(turn()).collect::<Vec<_>>());
    let mut place = Place::anthropic(&server);
    let Some(home) = Home::start(&place) else { return };
    place.set("HOME_ASSISTANT_URL", &home.url);
    place.set("HOME_ASSISTANT_TOKEN", TOKEN);

    let shown = place.run(&["plugin", "install", &pack("home-assistant")]);
    assert!(
        shown.code == Some(2) && shown.stdout.contains("1 MCP server, 1 skill, 1 command, 1 prompt section"),
        "{shown:?}"
    );
    assert!(
        shown.stdout.contains("variables of yours: HOME_ASSISTANT_TOKEN, HOME_ASSISTANT_URL"),
        "{shown:?}"
    );
    place.ok(&["plugin", "trust", "home-assistant", "--yes"]);
    let tested = place.ok(&["mcp", "test", "home-assistant"]);
    assert!(tested.contains("3 tools") && tested.contains("HassTurnOff"), "{tested}");
    let state = || place.ok(&["mcp", "call", "home-assistant", "GetLiveContext"]);
    assert_eq!(state().matches("state: 'on'").count(), 2);

    let read = ["--allow", "mcp:home-assistant:GetLiveContext"];
    let out = place.run(&[&["exec", "--json"], &read[..], &["off"]].concat());
    assert_eq!(out.code, Some(3), "a change without a yes: {out:?}");
    let bodies = server.bodies();
    assert!(bodies[0].to_string().contains("change only what the user named"), "the prompt section");
    assert!(bodies[1].to_string().contains("Kitchen light"), "{}", bodies[1]);
    assert_eq!(state().matches("state: 'on'").count(), 2, "nothing was changed");

    let yes = ["--allow", "mcp:home-assistant:*", "--allow", "terminal(env)"];
    let out = place.run(&[&["exec", "--json"], &yes[..], &["off"]].concat());
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(state().matches("state: 'off'").count(), 1);

    let all = server.bodies().iter().map(Value::to_string).collect::<String>();
    assert!(all.contains("PATH=") && !all.contains(TOKEN), "no command sees the token");
    assert_eq!(files_with(&place.home, TOKEN), Vec::<std::path::PathBuf>::new());

    place.set("HOME_ASSISTANT_TOKEN", "another");
    let refused = place.run(&["mcp", "call", "home-assistant", "GetLiveContext"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("home-assistant"), "{refused:?}");
}

/// The files below `folder` that hold this text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if tiller_testkit::holds(&bytes, text) {
                found.push(path);
            }
        }
    }
    found
}
