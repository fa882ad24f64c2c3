//! `tiller sandbox`, and commands of a session that run without a question.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};

/// The ways to confine that this machine has, by their names on the command line.
fn methods(place: &Place) -> Vec<&'static str> {
    let all = place.run(&["sandbox", "test", "--json"]).stdout;
    let present: Vec<_> = [("landlock", "\"Landlock and seccomp\""), ("bubblewrap", "\"bubblewrap, ")]
        .into_iter()
        .filter_map(|(name, words)| all.contains(words).then_some(name))
        .collect();
    if present.len() < 2 {
        eprintln!("skipped: this machine confines only with {present:?}");
    }
    present
}

fn empty() -> Place {
    Place::anthropic(&ScriptServer::start([]))
}

#[test]
fn a_command_writes_in_its_folder_and_nowhere_else() {
    let place = empty();
    for method in methods(&place) {
        let run = |profile: &str, script: &str| {
            place.run(&["sandbox", "run", "--method", method, "--profile", profile, "--", "sh", "-c", script])
        };
        assert_eq!(run("workspace", "echo x > made && cat made").stdout, "x\n", "{method}");
        assert_eq!(run("workspace", "exit 7").code, Some(7), "{method}");
        assert_eq!(run("workspace", "kill -9 $$").code, Some(137), "{method}");
        assert_eq!(run("read", "cat made; echo y > made").code, Some(2), "{method}");
        assert_eq!(std::fs::read_to_string(place.work.join("made")).unwrap(), "x\n", "{method}");
        let outside = place.work.parent().unwrap().join("outside");
        run("workspace", &format!("echo x > {}", outside.display()));
        assert!(!outside.exists(), "{method}");
        std::fs::remove_file(place.work.join("made")).unwrap();
    }
}

/// Whether the kernel protects it or it is restored afterwards: the hook is not there.
#[test]
fn a_git_hook_does_not_stay() {
    let place = empty();
    for method in methods(&place) {
        let hooks = place.work.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        let write = "echo evil > .git/hooks/pre-commit; echo [core] > .git/config; true";
        let out = place.run(&["sandbox", "run", "--method", method, "--", "sh", "-c", write]);
        assert_eq!(std::fs::read_dir(&hooks).unwrap().count(), 0, "{method}: {out:?}");
        assert!(!place.work.join(".git/config").exists(), "{method}: {out:?}");
        assert!(out.stderr.contains("is protected"), "{method}: {out:?}");
        assert_eq!(out.code, Some(3), "{method}: {out:?}");
    }
}

#[test]
fn nothing_runs_on_after_the_command() {
    let place = empty();
    for method in methods(&place) {
        // A name that no other process on this machine has.
        let name = format!("left-{}-{method}", std::process::id());
        let script = format!(
            "(setsid sh -c 'touch started; while :; do sleep 0.05; done' {name} &); \
                              until [ -e started ]; do sleep 0.01; done"
        );
        let out = place.run(&["sandbox", "run", "--method", method, "--", "sh", "-c", &script]);
        assert_eq!(out.code, Some(0), "{method}: {out:?}");
        assert!(place.work.join("started").exists(), "{method}");
        let lines = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let left = lines.filter(|line| String::from_utf8_lossy(line).contains(&name)).count();
        assert_eq!(left, 0, "{method}: it lives on");
        std::fs::remove_file(place.work.join("started")).unwrap();
    }
}

/// A command of the table of harmless ones reads what a person may read, but no secrets.
#[test]
fn a_command_that_runs_without_a_question_is_confined() {
    let server = ScriptServer::start([
        calls("c1", "terminal", json!({"command": "cat walnut.txt; echo $TMPDIR"})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    if methods(&place).is_empty() {
        return;
    }
    place.file("walnut.txt", "brown\n");
    place.ok(&["exec", "look"]);
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    let shown = place.ok(&["sessions", "show", list[0]["id"].as_str().unwrap()]);
    assert!(shown.contains("brown"), "{shown}");
    // The folder for temporary files of a confined shell.
    assert!(shown.contains("/tiller-sh-"), "{shown}");
}

/// Make runs what the Makefile says even when it only prints: without a question it does so where nothing can be written.
#[test]
fn a_command_that_is_harmless_only_in_the_sandbox_asks_where_there_is_none() {
    for sandbox in ["auto", "off"] {
        let server =
            ScriptServer::start([calls("c1", "terminal", json!({"command": "make -n"})), says("Done.")]);
        let place = Place::anthropic(&server);
        let confined = !methods(&place).is_empty() && sandbox == "auto";
        place.config(&format!("sandbox = \"{sandbox}\"\n"));
        place.file("Makefile", "X := $(shell touch canary)\nall:\n\techo walnut\n");
        let out = place.run(&["exec", "look"]);
        if !std::path::Path::new("/usr/bin/make").exists() {
            println!("skipped: there is no make");
            return;
        }
        let results = server.bodies().last().unwrap()["messages"].to_string();
        assert!(!place.work.join("canary").exists(), "{sandbox}: {results}");
        assert_eq!(results.contains("walnut"), confined, "{sandbox}: {results}");
        assert_eq!(results.contains("needs an approval"), !confined, "{sandbox}: {results}");
        assert_eq!(out.code, Some(if confined { 0 } else { 3 }), "{sandbox}: {out:?}");
    }
    // The Makefile does write where nothing confines it; otherwise the test would show nothing.
    let place = empty();
    place.file("Makefile", "X := $(shell touch canary)\nall:\n\techo walnut\n");
    let _ = std::process::Command::new("make").arg("-n").current_dir(&place.work).output();
    assert!(place.work.join("canary").exists() || !std::path::Path::new("/usr/bin/make").exists());
}
