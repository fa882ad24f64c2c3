//! Hooks in the program itself: settings, trust, the sandbox, the screen, the commands.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{KEY, Place, at_work, calls, json_lines, poll, run, says, shell, signal, wait};
use crate::screen::{quit, say};

fn write(id: &str, path: &str) -> tiller_testkit::Reply {
    calls(id, "write_file", json!({"path": path, "content": "x"}))
}

/// The output of the result of a call.
fn output(stdout: &str, call: &str) -> String {
    let lines = json_lines(stdout);
    let done = lines.iter().find(|l| l["type"] == "tool_finished" && l["call_id"] == call);
    done.unwrap_or_else(|| panic!("no {call} in {stdout}"))["output"].as_str().unwrap().to_owned()
}

/// X19 without a screen: each way to deny, by settings.
#[test]
fn x19_a_hook_of_the_settings_denies_without_a_screen() {
    for (way, more) in [
        ("echo no >&2; exit 2", ""),
        (r#"echo '{\"decision\":\"deny\",\"reason\":\"no\"}'"#, ""),
        ("sleep 86397", "blocking = true\ntimeout = 1"),
    ] {
        let server = ScriptServer::start([write("w1", "a.txt"), says("It was denied.")]);
        let place = Place::anthropic(&server);
        place.config(&format!(
            "[[hooks.before-tool-call]]\nmatch = \"write_file\"\ncommand = \"{way}\"\n{more}\n"
        ));
        let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
        assert_eq!(out.code, Some(0), "{out:?}");
        let text = output(&out.stdout, "w1");
        assert!(text.starts_with("Denied by the hook `"), "{way}: {text}");
        assert!(!place.work.join("a.txt").exists(), "{way}");
        let audit = place.ok(&["audit"]);
        assert!(audit.contains("hook "), "{audit}");
    }
}

/// X19 on the screen: the user sees the denial with its reason, and the hook with its last run.
fn on_the_screen(columns: u16, rows: u16) {
    let server = ScriptServer::start([write("w1", "a.txt"), says("It was denied.")]);
    let place = Place::anthropic(&server);
    place.config(
        "[[hooks.before-tool-call]]\nname = \"friday\"\nmatch = \"write_file\"\ncommand = \"echo 'not today' >&2; exit 2\"\n",
    );
    let mut term = place.term(&["--profile", "full"], columns, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "go");
    term.wait("the reply and the reason", |s| s.contains("It was denied.") && s.contains("not today"));
    assert!(!place.work.join("a.txt").exists());
    say(&mut term, "/hooks");
    // The conversation behind the list names the hook, too.
    term.wait("the hook and its last run", |s| {
        s.contains("Type to filter")
            && s.contains("before-tool-call")
            && s.lines().any(|l| l.contains("friday") && l.contains("denied"))
    });
    term.keys("\x1b");
    term.wait_gone("Type to filter");
    crate::common::let_escape_pass();
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn x19_a_hook_denies_on_the_screen_at_118x25() {
    on_the_screen(118, 25);
}

#[test]
fn x19_a_hook_denies_on_the_screen_at_80x24() {
    on_the_screen(80, 24);
}

const GUARD: &str = "[[before-tool-call]]\nmatch = \"write_file\"\nblocking = true\ncommand = \"sh .tiller/hooks/guard.sh\"\n";

/// A project's hooks run only in the form that the user trusted.
#[test]
fn x19_hooks_of_a_project_need_trust_in_exactly_this_form() {
    let place = |replies: Vec<tiller_testkit::Reply>| {
        let server = ScriptServer::start(replies);
        (Place::anthropic(&server), server)
    };
    let (place, _server) = place(vec![
        write("w1", "a.txt"),
        says("Written."),
        write("w2", "b.txt"),
        says("Denied."),
        write("w3", "c.txt"),
        says("Denied."),
    ]);
    place.file(".tiller/hooks.toml", GUARD);
    place.file(".tiller/hooks/guard.sh", "touch ran; echo 'by the project' >&2; exit 2\n");
    let exec = || place.run(&["exec", "--json", "--profile", "full", "go"]);
    // Not trusted: not run, and told.
    let out = exec();
    assert!(place.work.join("a.txt").exists() && !place.work.join("ran").exists(), "{out:?}");
    assert!(out.stderr.contains("tiller trust"), "{}", out.stderr);
    let trusted = place.ok(&["trust", "--yes"]);
    assert!(trusted.contains(".tiller/hooks.toml") && trusted.contains("guard.sh"), "{trusted}");
    let out = exec();
    assert!(output(&out.stdout, "w2").contains("by the project"), "{out:?}");
    assert!(!place.work.join("b.txt").exists() && place.work.join("ran").exists());
    // One byte more: not run, told, and no call passes.
    std::fs::remove_file(place.work.join("ran")).unwrap();
    place.file(".tiller/hooks/guard.sh", "touch ran; echo 'by the project' >&2; exit 2 \n");
    let out = exec();
    assert!(!place.work.join("c.txt").exists() && !place.work.join("ran").exists(), "{out:?}");
    assert!(output(&out.stdout, "w3").contains("guard.sh has changed since you trusted it"), "{out:?}");
    assert!(out.stderr.contains("changed since you trusted them"), "{}", out.stderr);
}

/// A denial counts with text, a byte order mark or an escape sequence before its JSON; broken JSON asks, and denies if the hook
/// is blocking.
#[test]
fn a_denial_counts_whatever_stands_before_its_json() {
    let deny = r#"echo '{"decision": "deny", "reason": "no"}'"#;
    let broken = r#"echo '{"decision": "deny"'"#;
    let denied = "Denied by the hook `guard`: no.";
    for (noise, end, blocking, said) in [
        ("true", deny, true, denied),
        ("echo 'Shell ready'", deny, true, denied),
        ("echo 'Shell ready'", deny, false, denied),
        ("printf '\\357\\273\\277'", deny, false, denied),
        ("printf '\\033[0m'", deny, false, denied),
        ("head -c 2000000 /dev/zero", "echo no >&2; exit 2", false, denied),
        ("echo 'Shell ready'", broken, true, "it printed broken JSON"),
        ("echo 'Shell ready'", broken, false, "needs an approval"),
    ] {
        let call = calls("t1", "terminal", json!({"command": "touch RAN"}));
        let server = ScriptServer::start([call, says("Done.")]);
        let place = Place::anthropic(&server);
        let hook = format!("name = \"guard\"\nmatch = \"terminal(*)\"\nblocking = {blocking}\n");
        place.config(&format!("[[hooks.before-tool-call]]\n{hook}command = '''\n{noise}; {end}\n'''\n"));
        let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
        let text = output(&out.stdout, "t1");
        assert!(text.contains(said), "{noise}; {end}: {text}: {out:?}");
        assert!(!place.work.join("RAN").exists(), "{noise}; {end}");
    }
}

/// A file that a hook writes is no part of the trust, another hook's file is no concern of it, and no tool writes what it runs.
#[test]
fn a_hook_stays_trusted_while_its_log_and_other_hooks_change() {
    let server = ScriptServer::start([
        write("w1", "a.txt"),
        write("w2", "tools/guard.sh"),
        says("Denied."),
        write("w3", "b.txt"),
        says("Denied."),
    ]);
    let place = Place::anthropic(&server);
    let guard =
        "name = \"guard\"\nmatch = \"write_file(*.txt)\"\ncommand = \"sh tools/guard.sh >>guard.log\"\n";
    let other = "[[notification]]\ncommand = \"sh tools/other.sh\"\n";
    place.file(".tiller/hooks.toml", &format!("[[before-tool-call]]\n{guard}\n{other}"));
    // It denies text files only: what is protected is judged by all hooks.
    place.file("tools/guard.sh", "echo ran; grep -q '[.]txt' || exit 0; echo 'by the project' >&2; exit 2\n");
    place.file("tools/other.sh", "exit 0\n");
    place.file("guard.log", "");
    let trusted = place.ok(&["trust", "--yes"]);
    assert!(trusted.contains("tools/guard.sh") && !trusted.contains("guard.log"), "{trusted}");
    let exec = || place.run(&["exec", "--json", "--profile", "full", "go"]);
    let out = exec();
    assert!(output(&out.stdout, "w1").contains("by the project"), "{out:?}");
    assert!(output(&out.stdout, "w2").contains("is protected: a hook runs it"), "{out:?}");
    let log = place.read("guard.log");
    assert!(log.starts_with("ran\n"), "{log}");
    place.file("tools/other.sh", "exit 1\n");
    let out = exec();
    assert!(output(&out.stdout, "w3").contains("by the project"), "{out:?}");
    assert!(place.read("guard.log").len() > log.len());
    assert!(!place.work.join("a.txt").exists() && !place.work.join("b.txt").exists());
}

/// The file of a hook changes while the session runs: it is not run, and a blocking hook denies.
#[test]
fn x19_a_hook_that_changes_after_trust_is_not_run() {
    let server = ScriptServer::start([write("w1", "a.txt"), says("Denied.")]);
    let place = Place::anthropic(&server);
    // A file beside .tiller that the command names is bound as well.
    place.file(
        ".tiller/hooks.toml",
        "[[before-tool-call]]\nblocking = true\ncommand = \"sh tools/guard.sh\"\n",
    );
    place.file("tools/guard.sh", "exit 0\n");
    let trusted = place.ok(&["trust", "--yes"]);
    assert!(trusted.contains("tools/guard.sh"), "{trusted}");
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    place.file("tools/guard.sh", "touch ran; exit 0\n");
    say(&mut term, "go");
    term.wait("the reply and the reason", |s| {
        s.contains("Denied.") && crate::screen::words(s).contains("tools/guard.sh has changed")
    });
    assert!(!place.work.join("ran").exists() && !place.work.join("a.txt").exists());
    assert_eq!(quit(&mut term), 0);
}

/// A script that is written after it was judged: where mounts are possible the judged one runs, and the call does not pass. (A file
/// that is moved into its place ends the mount.)
#[test]
fn x2_a_script_that_is_written_before_it_runs_runs_as_it_was_judged() {
    let found = tiller_sandbox::Confinement::find();
    if tiller_sandbox::Method::choose(found, tiller_sandbox::Profile::Workspace)
        != Some(tiller_sandbox::Method::Bubblewrap)
    {
        return eprintln!("skipped: no bubblewrap on this machine");
    }
    for (runs, ending) in [
        ("sh tools/guard.sh", "sh"),
        ("./tools/guard.sh", "sh"),
        ("cd tools && sh $PWD/guard.sh", "sh"),
        (". tools/guard.sh", "sh"),
        ("python3 tools/guard.py", "py"),
    ] {
        let server = ScriptServer::start([write("w1", "a.txt"), says("Denied.")]);
        let place = Place::anthropic(&server);
        if ending == "py" && !place.program("python3", &["-c", ""]).status().is_ok_and(|s| s.success()) {
            eprintln!("skipped: python3 is not installed");
            continue;
        }
        // It waits until its script is another one.
        let waits = "touch started; until [ -e go ]; do sleep 0.01; done";
        let command = format!("{waits}; {runs}");
        place.file(
            ".tiller/hooks.toml",
            &format!("[[before-tool-call]]\nblocking = true\ncommand = \"{command}\"\n"),
        );
        let (name, project) = (format!("tools/guard.{ending}"), place.work.display().to_string());
        let text = |mark: &str| match ending {
            "py" => format!("open('{project}/{mark}', 'w')\n"),
            _ => format!("#!/bin/sh\ntouch '{project}/{mark}'\n"),
        };
        place.file(&name, &text("judged"));
        let script = place.work.join(&name);
        let executable =
            || std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755));
        executable().unwrap();
        place.ok(&["trust", "--yes"]);
        let mut exec = place.tiller(&["exec", "--json", "--profile", "full", "go"]);
        let child = exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait("the hook", || place.work.join("started").exists());
        std::fs::write(&script, text("swapped")).unwrap();
        place.file("go", "");
        let out = child.wait_with_output().unwrap();
        let said = output(&String::from_utf8_lossy(&out.stdout), "w1");
        assert!(said.contains("changed while the hook ran"), "{runs}: {said}");
        assert!(place.work.join("judged").exists(), "{runs}: the judged one did not run");
        assert!(!place.work.join("swapped").exists(), "{runs}: the other one ran");
        assert!(!place.work.join("a.txt").exists(), "{runs}");
    }
}

/// Each spelling of the script of a hook: once it is another one it is not run, no call passes, and it is said.
#[test]
fn x2_a_script_that_changed_after_trust_is_not_run_however_it_is_spelled() {
    for (command, changed) in [
        ("cd tools && sh guard.sh", "tools/guard.sh"),
        ("sh $PWD/tools/guard.sh", "tools/guard.sh"),
        ("sh tools/gu*.sh", "tools/guard.sh"),
        ("sh < tools/guard.sh", "tools/guard.sh"),
        (". tools/lib.sh; deny", "tools/lib.sh"),
        ("sh scripts/guard.sh", "tools/guard.sh"),
        ("make -s guard", "Makefile"),
        ("python3 -m guards.check", "guards/check.py"),
    ] {
        let server = ScriptServer::start([write("w1", "a.txt"), says("Denied.")]);
        let place = Place::anthropic(&server);
        place.file(
            ".tiller/hooks.toml",
            &format!("[[before-tool-call]]\nblocking = true\ncommand = \"{command}\"\n"),
        );
        place.file("tools/guard.sh", "exit 2\n");
        place.file("tools/lib.sh", "deny() { exit 2; }\n");
        place.file("guards/check.py", "import sys; sys.exit(2)\n");
        place.file("Makefile", "guard:\n\texit 2\n");
        std::os::unix::fs::symlink("tools", place.work.join("scripts")).unwrap();
        place.ok(&["trust", "--yes"]);
        let (text, path) =
            (std::fs::read_to_string(place.work.join(changed)).unwrap(), place.work.join(changed));
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
        let said = output(&out.stdout, "w1");
        assert!(said.contains("has changed since you trusted it"), "{command}: {said}");
        assert!(said.contains(changed) || said.contains(command), "{command}: {said}");
        assert!(!place.work.join("a.txt").exists(), "{command}");
        let listed = place.run(&["trust"]);
        assert!(listed.stdout.contains("changed: "), "{command}: {listed:?}");
    }
}

/// A hook has no key in its environment. Where this machine confines, it writes in the folder only.
#[test]
fn x19_a_hook_has_no_keys_and_is_confined() {
    let server = ScriptServer::start([write("w1", "a.txt"), says("Done.")]);
    let place = Place::anthropic(&server);
    let outside = place.user.join("outside");
    place.config(&format!(
        "[[hooks.before-tool-call]]\ncommand = \"env >env.txt; touch '{}'; true\"\n",
        outside.display()
    ));
    let out = place.run(&["exec", "--profile", "full", "go"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let env = place.read("env.txt");
    assert!(
        env.contains("TILLER_EVENT=before-tool-call") && !env.contains(KEY) && !env.contains("API_KEY"),
        "{env}"
    );
    let confines = tiller_sandbox::Confinement::find();
    match tiller_sandbox::Method::choose(confines, tiller_sandbox::Profile::Workspace) {
        Some(_) => assert!(!outside.exists(), "it wrote outside the folder"),
        None => eprintln!("skipped: no sandbox on this machine"),
    }
}

/// Killed while a hook runs: the hook ends with Tiller.
#[test]
fn x19_a_hook_ends_when_tiller_is_killed() {
    let server = ScriptServer::start([write("w1", "a.txt")]);
    let place = Place::anthropic(&server);
    place.config("[[hooks.before-tool-call]]\ncommand = \"touch started; sleep 86396 & sleep 86395\"\n");
    let mut command = place.tiller(&["exec", "--profile", "full", "go"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait("the hook", || place.work.join("started").exists());
    signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    wait("the end of the hook", || at_work(&place).iter().all(|(_, line)| !line.contains("sleep 8639")));
    assert!(!place.work.join("a.txt").exists());
}

/// Hooks are listed, run with a made-up input, and imported from Claude Code.
#[test]
fn hooks_are_listed_tested_and_imported() {
    let place = Place::new();
    place.config("[[hooks.before-tool-call]]\nmatch = \"terminal(git push*)\"\ncommand = \"echo 'no push' >&2; exit 2\"\n");
    let list = place.ok(&["hooks", "list"]);
    assert!(list.contains("before-tool-call") && list.contains("terminal(git push*)"), "{list}");
    let rows = place.lines(&["hooks", "list", "--json"]);
    assert_eq!((&rows[0]["event"], &rows[0]["on"]), (&json!("before-tool-call"), &json!(true)));
    let test = |command: &str| {
        let args = json!({ "command": command }).to_string();
        place.run(&["hooks", "test", "before-tool-call", "--args", &args])
    };
    let pushed = test("cd x && git push origin");
    assert!(pushed.code == Some(3) && pushed.stdout.contains("no push"), "{pushed:?}");
    let other = test("git status");
    assert!(other.code == Some(0) && other.stdout.contains("did not run"), "{other:?}");
    // A wrong event names the right ones; a wrong match is reported.
    let wrong = place.run(&["hooks", "test", "before-call"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("before-tool-call"), "{wrong:?}");
    place.config("[[hooks.before-tool-call]]\nmatch = \"terminl\"\ncommand = \"true\"\n");
    let faulty = place.run(&["hooks", "list"]);
    assert!(faulty.code == Some(2) && faulty.stderr.contains("did you mean 'terminal'"), "{faulty:?}");

    place.file(
        ".claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command":
            "python3 -c 'import json,sys; d=json.load(sys.stdin); sys.exit(2 if d[\"tool_name\"]==\"Bash\" and \"rm\" in d[\"tool_input\"][\"command\"] else 0)'"}]}],
            "Elicitation": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#,
    );
    let out = run(place.tiller(&["hooks", "import"]), b"");
    assert!(out.code == Some(2) && out.stdout.contains("Elicitation: Tiller has no such event"), "{out:?}");
    assert!(!place.work.join(".tiller/hooks.toml").exists());
    let out = place.ok(&["hooks", "import", "--yes"]);
    assert!(out.contains("Left out: Elicitation") && out.contains("tiller trust"), "{out}");
    let untrusted = place.run(&["hooks", "list"]);
    assert!(untrusted.stdout.contains("not loaded"), "{untrusted:?}");
    place.ok(&["trust", "--yes"]);
    if place.program("python3", &["-c", ""]).status().is_ok_and(|status| status.success()) {
        assert_eq!(test("rm -r x").code, Some(3));
        assert_eq!(test("ls").code, Some(0));
    } else {
        eprintln!("skipped: python3 is not installed");
    }
}

/// A guard sees the path under its own name, whatever the model calls it, and one of Claude Code each file of a patch, absolute.
#[test]
fn x19_a_guard_of_a_path_sees_each_way_to_name_it() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: .env\n+x\n*** End Patch\n";
    let server = ScriptServer::start([
        calls("w1", "write_file", json!({"file_path": ".env", "contents": "x"})),
        calls("w2", "patch", json!({"input": patch})),
        calls("w3", "write_file", json!({"file_path": "b.txt", "text": "x"})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    let theirs = format!("\"file_path\":\"{}\"", place.work.join(".env").display());
    place.config(&format!(
        "[[hooks.before-tool-call]]\nmatch = \"write_file\"\n\
         command = \"\"\"case $(cat) in *'\"path\":\".env\"'*) echo 'not this' >&2; exit 2;; esac\"\"\"\n\
         [[hooks.before-tool-call]]\nmatch = \"patch\"\nformat = \"claude\"\n\
         command = \"\"\"case $(cat) in *'{theirs}'*) echo 'not that' >&2; exit 2;; esac\"\"\"\n"
    ));
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    assert!(output(&out.stdout, "w1").contains("not this"), "{out:?}");
    assert!(output(&out.stdout, "w2").contains("not that"), "{out:?}");
    assert!(output(&out.stdout, "w3").contains("created b.txt"), "{out:?}");
    assert!(!place.work.join(".env").exists() && !place.work.join("a.txt").exists());
}

/// A place with an MCP server `good`, whose tool `echo` repeats its text. `None`: there is no python3.
fn with_server(server: &ScriptServer, hooks: &str) -> Option<Place> {
    let place = Place::anthropic(server);
    let Some(python) = tiller_tool::shell::find_program("python3", &place.env) else {
        eprintln!("skipped: there is no python3");
        return None;
    };
    place.file("server.py", tiller_testkit::MCP_SERVER);
    let (python, script) = (python.display(), place.work.join("server.py"));
    place.config(&format!(
        "sandbox = \"off\"\n[mcp.good]\ncommand = \"{python}\"\nargs = [\"{}\", \"good\"]\n{hooks}",
        script.display()
    ));
    Some(place)
}

fn echo(id: &str, text: &str) -> tiller_testkit::Reply {
    calls(id, "mcp_call", json!({"server": "good", "tool": "echo", "arguments": {"text": text}}))
}

/// Hooks see calls of MCP servers by their own names, and may deny and change them like others.
#[test]
fn hooks_deny_and_change_calls_of_mcp_servers() {
    const HOOKS: &str = r#"
[[hooks.before-tool-call]]
name = "guard"
match = "mcp:good:echo"
command = '''
case $(cat) in
    *'denied one'*) echo 'not this' >&2; exit 2;;
    *plain*) echo '{"arguments": {"server": "good", "tool": "echo", "arguments": {"text": "by the hook"}}}';;
esac'''

[[hooks.before-tool-call]]
match = "mcp:good:other"
command = "echo never >&2; exit 2"

[[hooks.after-tool-call]]
match = "mcp:good:*"
command = '''
case $(cat) in
    *'by the hook'*) echo '{"add": "added at the end"}';;
    *secondly*) echo '{"result": "replaced"}';;
esac'''
"#;
    let replies = [echo("e1", "denied one"), echo("e2", "plain"), echo("e3", "secondly"), says("Done.")];
    let server = ScriptServer::start(replies);
    let Some(place) = with_server(&server, HOOKS) else { return };
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    let said = |id: &str| output(&out.stdout, id);
    assert_eq!(said("e1"), "Denied by the hook `guard`: not this.", "{out:?}");
    assert!(said("e2").contains("changed the arguments"), "{}", said("e2"));
    assert!(said("e2").contains("by the hook") && !said("e2").contains("plain"), "{}", said("e2"));
    assert!(said("e2").contains("added at the end"), "{}", said("e2"));
    assert!(said("e3").contains("replaced") && !said("e3").contains("secondly"), "{}", said("e3"));
}

/// The calls that a script makes pass the same hooks: of files, and of MCP servers.
#[test]
fn hooks_deny_and_change_the_calls_of_a_script() {
    const CODE: &str = r#"
from tiller_tools import read_file, write_file, mcp
for call in (lambda: write_file("no.txt", "x"), lambda: mcp["good"].echo(text="denied one")):
    try:
        call()
        print("done")
    except Exception as error:
        print("refused:", error)
print(read_file("a.txt"))
print(mcp["good"].echo(text="secondly"))
"#;
    const HOOKS: &str = r#"
[[hooks.before-tool-call]]
name = "files"
match = "write_file(no*)"
command = "echo 'keep out' >&2; exit 2"

[[hooks.before-tool-call]]
name = "servers"
match = "mcp:good:echo"
command = "grep -q 'denied one' || exit 0; echo 'not this' >&2; exit 2"

[[hooks.before-tool-call]]
match = "read_file"
command = '''echo '{"arguments": {"path": "b.txt"}}' '''

[[hooks.after-tool-call]]
match = "mcp:good:echo"
command = '''echo '{"result": "replaced by a hook"}' '''
"#;
    let server = ScriptServer::start([calls("x1", "execute_code", json!({"code": CODE})), says("Done.")]);
    let Some(place) = with_server(&server, HOOKS) else { return };
    place.file("a.txt", "the first file\n");
    place.file("b.txt", "the second file\n");
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    let said = output(&out.stdout, "x1");
    assert!(!place.work.join("no.txt").exists() && !said.contains("done\n"), "{said}");
    for want in ["keep out", "not this", "the second file", "replaced by a hook"] {
        assert!(said.contains(want), "{want}: {said}");
    }
    assert!(!said.contains("the first file"), "{said}");
}

/// A hook denies a call of the browser before there is a browser, and sees the result of another one.
#[test]
fn a_hook_denies_the_browser_before_it_starts() {
    let go = |id: &str, url: &str| calls(id, "browser_navigate", json!({"url": url}));
    let replies = [go("b1", "https://bank.example/"), go("b2", "http://127.0.0.1:9/"), says("Done.")];
    let server = ScriptServer::start(replies);
    let place = Place::anthropic(&server);
    // No browser is at this address: a call that is not denied fails.
    place.config(
        r#"
[browser]
backend = "remote"
url = "ws://127.0.0.1:9/"

[[hooks.before-tool-call]]
name = "no bank"
match = "browser_navigate(*bank*)"
command = "echo money >&2; exit 2"

[[hooks.after-tool-call]]
match = "browser_navigate"
command = '''echo '{"add": "seen by a hook"}' '''
"#,
    );
    let allow = "browser_navigate(domain:127.0.0.1)";
    let out = place.run(&["exec", "--json", "--profile", "full", "--allow", allow, "go"]);
    assert_eq!(output(&out.stdout, "b1"), "Denied by the hook `no bank`: money.", "{out:?}");
    assert!(output(&out.stdout, "b2").contains("seen by a hook"), "{out:?}");
}

/// Without a screen a change runs its hook too: that of the first call, and that of the last one, which has no quiet time
/// before the run is over. `exec` ends once the hook has.
#[test]
fn changed_files_run_their_hooks_without_a_screen() {
    for command in [false, true] {
        let last = if command {
            shell("c1", "mkdir -p src; echo x > src/last.rs")
        } else {
            write("c1", "src/last.rs")
        };
        let server = ScriptServer::start([last, says("Done.")]);
        let place = Place::anthropic(&server);
        place.file("README.md", "x\n");
        place.config(
            "[[hooks.file-changed]]\nmatch = \"src/**\"\ncommand = \"cat >> changed.json; sleep 1; echo over >> over.txt\"\n",
        );
        let out = place.run(&["exec", "--profile", "full", "write it"]);
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(place.read("over.txt"), "over\n", "command: {command}: {}", out.stderr);
        let input = place.read("changed.json");
        assert!(input.contains("src/last.rs") && !input.contains("README"), "command: {command}: {input}");
    }
}

/// A signal ends `exec` without its hooks of changed files: during a turn, and while it waits for them at the end.
#[test]
fn a_signal_ends_exec_without_waiting_for_the_hooks_of_changed_files() {
    for (ended, stop) in
        [(false, Signal::INT), (false, Signal::TERM), (true, Signal::INT), (true, Signal::TERM)]
    {
        let last = if ended { says("Done.") } else { tiller_testkit::Reply::silence() };
        let server = ScriptServer::start([write("c1", "src/a.rs"), last]);
        let place = Place::anthropic(&server);
        place.config("[[hooks.file-changed]]\nmatch = \"src/**\"\ncommand = \"touch begun; sleep 86394\"\n");
        let mut command = place.tiller(&["exec", "--json", "--profile", "full", "go"]);
        let out = std::fs::File::create(place.user.join("out")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn().unwrap();
        // The hook begins after the quiet time of a change, or at the end.
        wait("the hook", || place.work.join("begun").exists());
        wait("the turn", || {
            let out = std::fs::read_to_string(place.user.join("out")).unwrap();
            if ended { out.contains("turn_finished") } else { server.count() == 2 }
        });
        signal(child.id(), stop);
        // Its limit for these hooks is a minute.
        let status = poll(Duration::from_secs(40), || child.try_wait().unwrap());
        let _ = child.kill();
        let status = status.unwrap_or_else(|| panic!("{ended} {stop:?}: it waits for its hook"));
        assert!(ended || status.code() == Some(130), "{ended} {stop:?}: {status}");
        wait("the end of the hook", || at_work(&place).iter().all(|(_, line)| !line.contains("sleep 86394")));
    }
}
