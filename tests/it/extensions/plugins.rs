//! Plugins in the program itself: installation, trust in their whole content, what they bring.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, json_lines, run, says};
use crate::screen::{quit, say};

/// A plugin in the folder `team` of the workspace.
fn plugin(place: &Place) {
    place.ok(&["plugin", "new", "team"]);
    place.file(
        "team/plugin.toml",
        r#"name = "team"
version = "1.2"
description = "Rules of the team"

[[tools]]
name = "lookup"
description = "Looks a word up."
command = "sh lookup.sh"
schema = { type = "object", properties = { word = { type = "string" } }, required = ["word"] }

[[hooks.before-tool-call]]
name = "no deletion"
match = "terminal(rm *)"
command = "test -f \"$TILLER_PLUGIN_DIR/lookup.sh\" && echo 'the team keeps its files' >&2; exit 2"
"#,
    );
    place.file(
        "team/lookup.sh",
        r#"read -r line
echo ran >>"$OLDPWD/ran"
word=$(printf %s "$line" | sed -n 's/.*"word":"\([a-z]*\)".*/\1/p')
printf '{"id":1,"result":"it means %s"}\n' "$word"
"#,
    );
    place.file("team/agents/tester.md", "---\ndescription: tests of the team\n---\nTest.\n");
    place.file("team/skills/deploy/SKILL.md", "---\ndescription: how we deploy\n---\nDeploy.\n");
    place.file("team/prompt.md", "The team writes British English.\n");
    place.file("team/themes/team.toml", "inherits = \"tiller-dark\"\n");
}

fn output(stdout: &str, call: &str) -> String {
    let lines = json_lines(stdout);
    let done = lines.iter().find(|l| l["type"] == "tool_finished" && l["call_id"] == call);
    done.unwrap_or_else(|| panic!("no {call} in {stdout}"))["output"].as_str().unwrap().to_owned()
}

/// A plugin that the user agreed to brings what it says; one byte more, and nothing of it is used.
#[test]
fn a_plugin_is_used_in_exactly_the_form_that_was_agreed_to() {
    let turn = || {
        [
            calls("t1", "team_lookup", json!({"word": "tiller"})),
            calls("t2", "terminal", json!({"command": "rm -f a.txt"})),
            says("Done."),
        ]
    };
    let server = ScriptServer::start(turn().into_iter().chain(turn()).chain(turn()).collect::<Vec<_>>());
    let place = Place::anthropic(&server);
    // The folders of this test are in /tmp, which the sandbox replaces by one of its own.
    place.config("sandbox = \"off\"\n");
    plugin(&place);
    place.file("a.txt", "keep me\n");
    let exec = || place.run(&["exec", "--json", "--profile", "full", "go"]);
    // Stored, and not agreed to: nothing of it is used, and that is told.
    let out = run(place.tiller(&["plugin", "install", "team"]), b"");
    assert!(out.code == Some(2) && out.stdout.contains("runs for the tool lookup"), "{out:?}");
    assert!(out.stdout.contains("1 hook, 1 tool, 1 agent, 1 skill, 1 theme, 1 prompt section"), "{out:?}");
    let out = exec();
    assert!(out.stderr.contains("The plugin team is not used"), "{}", out.stderr);
    assert!(!place.work.join("ran").exists() && !place.work.join("a.txt").exists(), "{out:?}");
    let first = server.bodies().remove(0).to_string();
    assert!(!first.contains("team_lookup") && !first.contains("British English"), "{first}");

    place.ok(&["plugin", "trust", "team", "--yes"]);
    let list = place.ok(&["plugin", "list"]);
    assert!(list.contains("team 1.2") && list.contains("used\n"), "{list}");
    assert!(!place.work.join("ran").exists(), "nothing of it runs at its installation");
    place.file("a.txt", "keep me\n");
    let before = server.count();
    let out = exec();
    assert_eq!(output(&out.stdout, "t1"), "it means tiller", "{out:?}");
    assert!(place.work.join("ran").exists());
    let denied = output(&out.stdout, "t2");
    assert!(denied.contains("no deletion") && denied.contains("the team keeps its files"), "{denied}");
    assert!(place.work.join("a.txt").exists());
    let first = server.bodies()[before].to_string();
    assert!(first.contains("team_lookup") && first.contains("British English"), "{first}");
    let hooks = place.ok(&["hooks", "list"]);
    assert!(hooks.contains("plugin team"), "{hooks}");

    std::fs::remove_file(place.work.join("ran")).unwrap();
    let stored = place.home.join("plugins/team");
    let script = std::fs::read_to_string(stored.join("lookup.sh")).unwrap();
    std::fs::write(stored.join("lookup.sh"), script + "\n").unwrap();
    let out = exec();
    assert!(out.stderr.contains("lookup.sh has changed since you agreed"), "{}", out.stderr);
    assert!(!place.work.join("ran").exists());
    let list = place.ok(&["plugin", "list"]);
    assert!(list.contains("not used: lookup.sh has changed"), "{list}");
    place.ok(&["plugin", "remove", "team"]);
    assert!(!stored.exists() && place.ok(&["plugin", "list"]).contains("No plugins"));
    assert!(!place.ok(&["trust", "--list"]).contains("plugin"));
}

/// A command of a plugin sends its prompt, and its theme can be chosen.
#[test]
fn a_plugin_brings_a_command_and_a_theme_to_the_screen() {
    let server = ScriptServer::start([says("It is deployed.")]);
    let place = Place::anthropic(&server);
    plugin(&place);
    place.file("team/commands/deploy.md", "---\ndescription: deploys it\n---\nDeploy to $ARGUMENTS.\n");
    place.ok(&["plugin", "install", "team", "--yes"]);
    assert!(place.ok(&["themes"]).contains("team"));
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/deploy staging");
    term.wait_text("It is deployed.");
    assert!(server.bodies()[0].to_string().contains("Deploy to staging."));
    assert_eq!(quit(&mut term), 0);
}

/// A server of a plugin starts in the plugin's folder, for as long as its files are those that were agreed to; a keymap
/// of it can be chosen.
#[test]
fn a_plugin_brings_an_mcp_server_and_a_keymap() {
    let call = |id: &str| {
        calls(
            id,
            "mcp_call",
            json!({"server": "notes", "tool": "echo", "arguments": {"text": "by the plugin"}}),
        )
    };
    let server = ScriptServer::start([call("c1"), says("Once."), call("c2"), says("Twice.")]);
    let place = Place::anthropic(&server);
    let Some(python) = tiller_tool::shell::find_program("python3", &place.env) else {
        return println!("skipped: there is no python3");
    };
    // The sandbox replaces /tmp, where the folders of this test are.
    place.config("sandbox = \"off\"\n[ui]\nkeymap = \"team\"\n");
    plugin(&place);
    let manifest = format!(
        "name = \"team\"\n\n[mcp.notes]\ncommand = \"{}\"\nargs = [\"server.py\", \"good\"]\n",
        python.display()
    );
    place.file("team/plugin.toml", &manifest);
    place.file("team/server.py", tiller_testkit::MCP_SERVER);
    place.file("team/keymaps/team.toml", "preset = \"default\"\n[global]\n\"F9\" = \"help.open\"\n");
    let valid = place.ok(&["plugin", "validate", "team"]);
    assert!(valid.contains("1 MCP server") && valid.contains("1 keymap"), "{valid}");
    // Not agreed to: there is neither.
    let out = run(place.tiller(&["plugin", "install", "team"]), b"");
    assert!(
        out.stdout.contains("MCP server notes: starts ") && out.stdout.contains("server.py good"),
        "{out:?}"
    );
    assert!(place.ok(&["mcp", "list"]).contains("No MCP servers"));
    let keys = place.run(&["keys"]);
    assert!(keys.code == Some(2) && keys.stderr.contains("there is no keymap 'team'"), "{keys:?}");
    place.ok(&["plugin", "trust", "team", "--yes"]);
    let list = place.ok(&["plugin", "list"]);
    assert!(list.contains("1 MCP server") && list.contains("1 keymap"), "{list}");
    assert!(place.ok(&["mcp", "list"]).contains("notes"));
    assert!(place.ok(&["mcp", "test", "notes"]).contains("echo"));
    let keys = place.ok(&["keys"]);
    assert!(keys.lines().any(|line| line.to_lowercase().contains("f9") && line.contains("help")), "{keys}");
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    let said = output(&out.stdout, "c1");
    assert!(said.contains("from the MCP server notes") && said.contains("\nby the plugin\n"), "{out:?}");
    // A file changes: neither is there in the next session.
    let stored = place.home.join("plugins/team/keymaps/team.toml");
    let text = std::fs::read_to_string(&stored).unwrap();
    std::fs::write(&stored, text + "\n").unwrap();
    assert!(place.ok(&["mcp", "list"]).contains("No MCP servers"));
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    assert!(!output(&out.stdout, "c2").contains("by the plugin"), "{out:?}");
    assert_eq!(place.run(&["keys"]).code, Some(2));
}

/// A file of a plugin changes while a session runs: its server is not started.
#[test]
fn a_server_of_a_plugin_that_changes_in_a_session_is_not_started() {
    let place_of = |server: &ScriptServer| Place::anthropic(server);
    let change = calls("c0", "terminal", json!({"command": "echo '# more' >> \"$STORED\""}));
    let call =
        calls("c1", "mcp_call", json!({"server": "notes", "tool": "echo", "arguments": {"text": "x"}}));
    let server = ScriptServer::start([change, call, says("Done.")]);
    let mut place = place_of(&server);
    let Some(python) = tiller_tool::shell::find_program("python3", &place.env) else {
        return println!("skipped: there is no python3");
    };
    let stored = place.home.join("plugins/team/server.py");
    place.set("STORED", &stored.display().to_string());
    place.config("sandbox = \"off\"\n[limits]\nenv = [\"STORED\"]\n");
    place.ok(&["plugin", "new", "team"]);
    let manifest = format!(
        "name = \"team\"\n\n[mcp.notes]\ncommand = \"{}\"\nargs = [\"server.py\", \"good\"]\n",
        python.display()
    );
    place.file("team/plugin.toml", &manifest);
    place.file("team/server.py", tiller_testkit::MCP_SERVER);
    place.ok(&["plugin", "install", "team", "--yes"]);
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    let said = output(&out.stdout, "c1");
    assert!(said.contains("server.py of its plugin has changed since you agreed to it"), "{said}: {out:?}");
}

/// From an archive, and from a git repository.
#[test]
fn a_plugin_is_installed_from_an_archive_and_from_git() {
    let place = Place::new();
    plugin(&place);
    let tar = run(place.program("tar", &["-czf", "team.tar.gz", "team"]), b"");
    if tar.code == Some(0) {
        let out = place.ok(&["plugin", "install", "team.tar.gz", "--yes"]);
        assert!(out.contains("is used from the next start on"), "{out}");
        place.ok(&["plugin", "remove", "team"]);
    } else {
        eprintln!("skipped: tar is not installed");
    }
    let repository = place.work.join("team");
    let git = |args: &[&str]| {
        let mut all = vec!["-C", "team", "-c", "user.name=t", "-c", "user.email=t@t"];
        all.extend(args);
        place.git(&all);
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "plugin"]);
    let out = place.ok(&["plugin", "install", &tiller_testkit::file_url(&repository), "--yes"]);
    assert!(out.contains("is used from the next start on"), "{out}");
    assert!(!place.home.join("plugins/team/.git").exists());
    assert_eq!(place.lines(&["plugin", "list", "--json"])[0]["used"], json!(true));
    let wrong = place.run(&["plugin", "install", "ext::sh -c touch% pwned"]);
    assert!(wrong.code == Some(2) && !place.work.join("pwned").exists(), "{wrong:?}");
}

/// Mistakes are named with their line, and a link is refused.
#[test]
fn a_plugin_with_mistakes_is_refused() {
    let place = Place::new();
    plugin(&place);
    let valid = place.ok(&["plugin", "validate", "team"]);
    assert!(valid.contains("team is valid"), "{valid}");
    place.file("team/plugin.toml", "name = \"team\"\n\n[[hook]]\ncommand = \"x\"\n");
    let wrong = place.run(&["plugin", "validate", "team"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("line 3"), "{wrong:?}");
    place.file("team/plugin.toml", "name = \"team\"\n");
    std::os::unix::fs::symlink("/etc/passwd", place.work.join("team/link")).unwrap();
    let link = place.run(&["plugin", "install", "team", "--yes"]);
    assert!(link.code == Some(2) && link.stderr.contains("link"), "{link:?}");
    assert!(place.ok(&["plugin", "list"]).contains("No plugins"));
}
