//! The commands about sessions, settings and the machine.

use serde_json::Value;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, json_lines, run, says, shell};

/// A place with one session of two turns.
pub(crate) fn lived_in() -> (ScriptServer, Place) {
    let server = ScriptServer::start([
        calls("c1", "list_dir", serde_json::json!({"path": "."})),
        says("There is a walnut."),
        says("It is brown."),
    ]);
    let place = Place::anthropic(&server);
    place.file("walnut.txt", "brown\n");
    place.ok(&["exec", "what is here?"]);
    place.ok(&["exec", "--continue", "which colour?"]);
    (server, place)
}

#[test]
fn sessions_are_listed_shown_found_renamed_and_archived() {
    let (_server, place) = lived_in();
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    assert_eq!(list.len(), 1);
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(list[0]["project"].as_str().unwrap(), place.work.display().to_string());
    assert!(place.ok(&["sessions", "list", "--exec"]).contains(id));
    let shown = place.ok(&["sessions", "show", &id[..id.len() - 3]]);
    assert!(
        shown.contains("what is here?")
            && shown.contains("There is a walnut.")
            && shown.contains("walnut.txt")
    );
    let hits = place.lines(&["sessions", "search", "brown", "--json"]);
    assert!(hits.iter().any(|h| h["preview"].as_str().unwrap().contains("It is brown.")), "{hits:?}");
    assert!(place.ok(&["sessions", "search", "nowhere-to-be-found"]).contains("Nothing found"));
    assert_eq!(place.ok(&["sessions", "search", "nowhere-to-be-found", "--json"]), "");
    place.ok(&["sessions", "rename", id, "The walnut\u{1b}[31m"]);
    let text = place.ok(&["sessions", "list", "--exec"]);
    assert!(
        text.contains("The walnut") && !text.contains('\u{1b}'),
        "no control reaches the terminal: {text:?}"
    );
    place.ok(&["sessions", "archive", id]);
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--json"]).len(), 0);
    let away = place.ok(&["sessions", "list", "--exec", "--archived"]);
    assert!(away.contains(id) && away.contains("archived"), "what is put away can be found: {away}");
    assert!(place.ok(&["sessions", "list", "--exec"]).contains("--archived"));
    place.ok(&["sessions", "archive", "--undo", id]);
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--json"]).len(), 1);
    let unnamed = place.run(&["sessions", "rename", id, " "]);
    assert!(
        unnamed.code == Some(2) && unnamed.stderr.contains("A title needs at least one letter"),
        "{unnamed:?}"
    );
    let other = place.run(&["sessions", "import", "walnut.txt"]);
    assert!(other.code == Some(2) && other.stderr.contains("walnut.txt is not a session"), "{other:?}");
    assert_eq!(place.run(&["sessions", "show", "nonsense"]).code, Some(2));
}

#[test]
fn a_list_as_json_that_is_cut_says_so_beside_it() {
    let server = ScriptServer::start([
        shell("c1", "echo walnut one"),
        shell("c2", "echo walnut two"),
        says("A walnut."),
    ]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", "--profile", "full", "which walnut?"]);
    let text = place.run(&["sessions", "search", "walnut"]);
    assert!(text.stderr.contains("Searched by keywords only.") && text.stdout.contains("entry "), "{text:?}");
    for (list, cut) in [
        (&["sessions", "search", "walnut", "--json", "--limit"][..], "More results: --offset 1"),
        (&["audit", "--json", "--limit"][..], "There are calls older than these 1"),
        (&["audit", "--limit"][..], "There are calls older than these 1"),
    ] {
        let some = place.run(&[list, &["1"]].concat());
        assert!(some.code == Some(0) && some.stderr.contains(cut), "{some:?}");
        assert_eq!(some.stdout.lines().count(), 1, "{some:?}");
        let all = place.run(&[list, &["50"]].concat());
        assert!(all.stdout.lines().count() > 1 && all.stderr.is_empty(), "{all:?}");
    }
}

#[test]
fn audit_and_costs_tell_what_happened() {
    let (_server, place) = lived_in();
    let rows = place.lines(&["audit", "--json"]);
    assert_eq!((rows.len(), &rows[0]["tool"]), (1, &Value::from("list_dir")), "{rows:?}");
    assert!(place.ok(&["audit", "list_dir"]).contains("list_dir"));
    assert_eq!(place.ok(&["audit", "no-such-thing", "--json"]), "");
    for by in ["model", "agent", "day"] {
        let rows = place.lines(&["costs", "--json", "--by", by]);
        assert_eq!((rows.len(), &rows[0]["calls"]), (1, &Value::from(3)), "{rows:?}");
        // The same sum, in millionths and in dollars.
        assert_eq!(
            (&rows[0]["cost"], &rows[0]["cost_usd"]),
            (&Value::from(315), &Value::from(0.000315)),
            "{rows:?}"
        );
        assert!(place.ok(&["costs", "--by", by]).contains("total"));
    }
}

#[test]
fn doctor_says_what_is_wrong_and_leaks_nothing() {
    let (_server, place) = lived_in();
    let rows = place.lines(&["doctor", "--json"]);
    let of = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap();
    for id in ["config", "keys", "providers", "database", "snapshots", "git", "shell"] {
        assert_eq!(of(id)["status"], "ok", "{}", of(id));
    }
    assert!(!place.ok(&["doctor"]).contains(crate::common::KEY));
    place.config("[ui]\ntheme = 3\n");
    let out = place.run(&["doctor", "--json"]);
    assert_eq!(out.code, Some(2));
    let rows = json_lines(&out.stdout);
    let config = rows.iter().find(|r| r["id"] == "config").unwrap();
    assert!(config["status"] == "fail" && config["summary"].as_str().unwrap().contains('2'), "{config}");
}

#[test]
fn settings_keys_and_themes_are_told_with_their_origin() {
    let place = Place::new();
    place.config("model = \"demo/demo\"\n[ui]\nkeymap = \"emacs\"\n");
    assert!(place.ok(&["config"]).contains("model = \"demo/demo\""));
    let origin = place.ok(&["config", "--origin"]);
    let line = origin.lines().find(|l| l.starts_with("ui.keymap")).unwrap();
    assert!(line.contains("emacs") && line.contains("config.toml"), "{line}");
    let schema: Value = serde_json::from_str(&place.ok(&["config", "--schema"])).unwrap();
    assert!(schema["properties"]["providers"].is_object(), "{schema}");
    let keys = place.lines(&["keys", "--json"]);
    assert!(keys.iter().any(|k| k["action"] == "palette.open"));
    assert!(place.ok(&["keys"]).contains("palette.open"));
    let themes: Vec<String> = serde_json::from_str(&place.ok(&["themes", "--json"])).unwrap();
    for name in ["ansi", "gruvbox-dark", "tokyonight"] {
        assert!(themes.iter().any(|t| t.contains(name)), "{name} in {themes:?}");
    }
}

/// All errors of all files are reported at once, with file and line; also those of files that are not in use.
#[test]
fn mistakes_in_files_of_settings_are_told_in_full() {
    let mut place = Place::new();
    place.config("[ui]\ntheme = \"gruvbox\"\nkeymap = \"vi\"\n");
    let config = place.home.join("config");
    let write = |name: &str, text: &str| {
        let path = config.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("themes/mine.toml", "inherits = \"ansi\"\n[roles]\nbogus = 3\n");
    write("themes/fine.toml", "inherits = \"ansi\"\n");
    write("permissions.yaml", "deny:\n  - read_file(.env\n  - 'terminal('\n");
    // An agent program of another vendor.
    let program = place.work.join("codex");
    tiller_testkit::program(&program, "#!/bin/sh\necho codex-cli 1.2.3\n");
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{}:{path}", place.work.display()));

    let themes = place.run(&["themes"]);
    assert_eq!(themes.code, Some(2));
    assert!(themes.stdout.contains("mine\n") && themes.stdout.contains("tokyonight\n"), "{themes:?}");
    for part in ["mine.toml:3", "config.toml:2", "did you mean 'gruvbox-"] {
        assert!(themes.stderr.contains(part), "{part} in {themes:?}");
    }
    let keys = place.run(&["keys"]);
    assert!(
        keys.code == Some(2) && keys.stderr.contains("config.toml:3: there is no keymap 'vi'"),
        "{keys:?}"
    );
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(2));
    for part in ["line 2", "line 3", "mine.toml:3", "config.toml:2", "config.toml:3", "keyboard"] {
        assert!(doctor.stdout.contains(part), "{part} in {}", doctor.stdout);
    }
    assert!(doctor.stdout.contains("codex "), "{}", doctor.stdout);
    place.config("modle = \"x\"\n[limits]\nturns = 0\n");
    let doctor = place.run(&["doctor"]).stdout;
    assert!(doctor.contains("config.toml:1") && doctor.contains("config.toml:3"), "{doctor}");
}

#[test]
fn completions_and_the_man_page_name_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = place.ok(&["completions", shell]);
        for command in ["exec", "sessions", "doctor"] {
            assert!(text.contains(command), "{command} in {shell}");
        }
    }
    let script = place.work.join("c.bash");
    std::fs::write(&script, place.ok(&["completions", "bash"])).unwrap();
    let out = run(place.program("bash", &["-n", script.to_str().unwrap()]), b"");
    assert_eq!(out.code, Some(0), "{out:?}");
    let man = place.ok(&["man"]);
    assert!(man.contains(".TH") && man.contains("exec"), "{man}");
    assert!(place.ok(&["--version"]).starts_with("tiller "));
    assert!(place.ok(&["--help"]).contains("Exit codes"));
}

#[test]
fn trust_is_given_to_one_form_only_and_taken_back() {
    let server = ScriptServer::start([says("a"), says("b"), says("c")]);
    let place = Place::anthropic(&server);
    assert!(place.ok(&["trust"]).contains("contains nothing"));
    place.file(".tiller/permissions.yaml", "deny:\n  - terminal(*)\n");
    let out = place.run(&["trust"]);
    assert_eq!(out.code, Some(3), "nobody is there to say yes: {out:?}");
    assert!(out.stdout.contains(".tiller/permissions.yaml"), "{}", out.stdout);
    assert!(place.run(&["exec", "hi"]).stderr.contains("not loaded"));
    // Also for readers of events only.
    let out = place.run(&["exec", "--json", "-m", "demo/demo", "hi"]);
    assert!(out.stderr.contains("not loaded"), "{out:?}");
    let told = json_lines(&out.stdout).into_iter().find(|l| l["type"] == "notice").unwrap();
    assert!(told["notice"]["message"].as_str().unwrap().contains("not loaded"), "{told}");
    place.ok(&["trust", "--yes"]);
    assert!(place.ok(&["trust"]).contains("Trusted, in exactly this form"));
    assert!(place.ok(&["trust", "--list"]).contains("trusted"));
    assert!(!place.run(&["exec", "hi"]).stderr.contains("not loaded"));
    place.file(".tiller/permissions.yaml", "deny: []\n");
    let list = place.ok(&["trust", "--list"]);
    assert!(list.contains("changed") && !list.contains("trusted"), "{list}");
    let out = place.run(&["trust"]);
    assert!(out.code == Some(3) && out.stdout.contains("changed: .tiller/permissions.yaml"), "{out:?}");
    place.ok(&["trust", "--revoke", "."]);
    assert!(place.ok(&["trust", "--list"]).contains("No trust decisions"));
}

#[test]
fn every_command_about_sessions_speaks_json() {
    let (_server, place) = lived_in();
    let one = |args: &[&str]| {
        let mut rows = place.lines(args);
        assert_eq!(rows.len(), 1, "{args:?}: {rows:?}");
        rows.remove(0)
    };
    let id = one(&["sessions", "list", "--exec", "--json"])["id"].as_str().unwrap().to_owned();
    let renamed = one(&["sessions", "rename", &id, "Nuts", "--json"]);
    assert_eq!((&renamed["session"], &renamed["title"]), (&Value::from(id.as_str()), &Value::from("Nuts")));
    assert_eq!(one(&["sessions", "--json", "archive", &id])["archived"], true);
    assert_eq!(one(&["sessions", "archive", "--undo", &id, "--json"])["archived"], false);
    let file = place.work.join("x.jsonl");
    let out = one(&["sessions", "export", &id, "-o", file.to_str().unwrap(), "--json"]);
    let lines = std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(out["lines"], lines);
    assert_eq!(one(&["sessions", "gc", "--json"])["sessions"], 0);
    let mut other = Place::new();
    other.set("HOME", &place.user.display().to_string());
    let back = other.lines(&["sessions", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(back[0]["session"], id.as_str());
    assert!(back[0]["entries"].as_u64().unwrap() > 3, "{back:?}");
}

#[test]
fn a_mistake_is_told_with_what_to_do() {
    let (_server, place) = lived_in();
    for args in [
        &["sessions", "show", "nonsense"][..],
        &["sessions", "export", "nonsense"],
        &["sessions", "import", "no-such-file"],
        &["themes", "--import", "no-such-file"],
        &["exec", "--session", "ffffffff", "x"],
        &["exec", " "],
        &["exec", "-m", "nobody/x", "hi"],
        &["exec", "--image", "no-such-file", "hi"],
        &["exec", "--allow", "(((", "hi"],
        &["exec", "-C", "no-such-folder", "hi"],
        &["trust", "no-such-folder"],
    ] {
        let out = place.run(args);
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}: {out:?}");
        let lines: Vec<&str> = out.stderr.lines().collect();
        assert!(
            lines[0].starts_with("tiller: ") && lines.len() >= 2,
            "what, and what to do: {args:?}: {out:?}"
        );
        assert!(lines[1].starts_with("  ") && lines[1].trim().len() > 10, "{args:?}: {out:?}");
    }
}

#[test]
fn doctor_tells_which_of_two_keys_is_used() {
    let (_server, place) = lived_in();
    let file = place.home.join("config/credentials.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let check = || {
        let out = place.run(&["doctor", "--json"]);
        let row = json_lines(&out.stdout).into_iter().find(|r| r["id"] == "credentials").unwrap();
        (row["status"].as_str().unwrap().to_owned(), row["summary"].as_str().unwrap().to_owned(), out.code)
    };
    assert_eq!(check().0, "ok");
    write("anthropic = \"sk-another-one-9876543210\"\n");
    let (status, summary, code) = check();
    assert!(status == "warn" && summary.contains("ANTHROPIC_API_KEY"), "{summary}");
    assert!(!summary.contains("another-one"), "{summary}");
    assert_eq!(code, Some(0));
    write("this is no TOML");
    assert_eq!((check().0.as_str(), check().2), ("fail", Some(2)));
}

/// W2 for a person: a restore is killed, and the next command reports its outcome.
#[test]
fn w2_a_restore_that_was_killed_is_finished_and_can_be_undone() {
    let many = "mkdir d; cd d; seq 1500 | split -l 1 -a 4 - n; cd ..";
    let server =
        ScriptServer::start([calls("c1", "terminal", serde_json::json!({"command": many})), says("Done.")]);
    let place = Place::anthropic(&server);
    place.file("mine.txt", "mine\n");
    assert!(place.ok(&["exec", "--profile", "full", "many files"]).contains("Done."));
    let list = place.lines(&["checkpoint", "list", "--json"]);
    let first = list[0]["entry"].as_str().unwrap().to_owned();
    let journals = || {
        let stores = std::fs::read_dir(place.home.join("data/snapshots")).unwrap();
        stores.filter(|s| s.as_ref().is_ok_and(|s| s.path().join("journal").exists())).count()
    };
    let left = || std::fs::read_dir(place.work.join("d")).map_or(0, Iterator::count);
    assert_eq!(left(), 1500);
    let mut child = place.tiller(&["checkpoint", "restore", &first]).spawn().unwrap();
    crate::common::wait("the restore to be on its way", || left() < 1500);
    child.kill().unwrap();
    child.wait().unwrap();
    if journals() == 0 {
        // The restore was faster than the kill: nothing was interrupted.
        return;
    }
    let undone = place.run(&["checkpoint", "undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(undone.stderr.contains("An interrupted restore was completed"), "{undone:?}");
    assert_eq!(left(), 1500, "{undone:?}");
    assert_eq!((place.read("d/naaaa").as_str(), place.read("mine.txt").as_str()), ("1\n", "mine\n"));
}

#[test]
fn checkpoints_are_listed_named_compared_restored_and_undone() {
    let server = ScriptServer::start([
        calls("c1", "write_file", serde_json::json!({"path": "a.txt", "content": "of the agent\n"})),
        says("Written."),
        calls("c2", "terminal", serde_json::json!({"command": "echo more >> a.txt; echo new > b.txt"})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    place.file("mine.txt", "mine\n");
    place.ok(&["exec", "--profile", "full", "write it"]);
    assert!(place.ok(&["checkpoint", "create", "written"]).contains("written"));
    place.ok(&["exec", "--profile", "full", "--continue", "more"]);
    let list = place.lines(&["checkpoint", "list", "--json"]);
    let names: Vec<&str> = list.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["write it", "written", "more"]);
    assert!(place.ok(&["checkpoint", "diff", "written"]).contains("-more"));
    let done = place.lines(&["checkpoint", "restore", "written", "--json"]);
    assert_eq!(done[0]["files"].as_array().unwrap().len(), 2, "{done:?}");
    assert_eq!((place.read("a.txt").as_str(), place.read("mine.txt").as_str()), ("of the agent\n", "mine\n"));
    assert!(!place.work.join("b.txt").exists());
    place.ok(&["checkpoint", "undo"]);
    assert_eq!(
        (place.read("a.txt").as_str(), place.read("b.txt").as_str()),
        ("of the agent\nmore\n", "new\n")
    );
    place.ok(&["checkpoint", "undo", "--redo"]);
    assert_eq!(place.read("a.txt"), "of the agent\n");
    place.ok(&["checkpoint", "undo"]);
    // Later changes of the person are kept, unless forced.
    place.file("a.txt", "by hand\n");
    let first = list[0]["entry"].as_str().unwrap();
    let kept = place.ok(&["checkpoint", "restore", &first[..first.len() - 2]]);
    assert!(kept.contains("a.txt") && kept.contains("--force"), "{kept}");
    assert_eq!(place.read("a.txt"), "by hand\n");
    assert!(!place.work.join("b.txt").exists());
    place.ok(&["checkpoint", "restore", first, "--force", "--path", "a.txt"]);
    assert!(!place.work.join("a.txt").exists());
    place.ok(&["checkpoint", "undo"]);
    assert_eq!(place.read("a.txt"), "by hand\n");
    for wrong in [&["checkpoint", "restore", "nothing"][..], &["checkpoint", "create", " "]] {
        assert_eq!(place.run(wrong).code, Some(2), "{wrong:?}");
    }
}

/// The conversation goes back and forth as files do, alone or together with them.
#[test]
fn a_checkpoint_brings_the_conversation_back_as_well() {
    let server = ScriptServer::start([
        calls("c1", "write_file", serde_json::json!({"path": "a.txt", "content": "one\n"})),
        says("Written."),
        calls("c2", "terminal", serde_json::json!({"command": "echo two > a.txt"})),
        says("Changed."),
        says("Another way."),
    ]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", "--profile", "full", "write it"]);
    place.ok(&["exec", "--profile", "full", "--continue", "change it"]);
    let shown = || place.ok(&["sessions", "show", "last"]);
    let heads = || place.ok(&["sessions", "export", "last"]).matches("\"head\":{\"name\"").count();
    let list = place.lines(&["checkpoint", "list", "--json"]);
    let second = list[1]["entry"].as_str().unwrap();
    // The conversation alone.
    let said = place.lines(&["checkpoint", "restore", second, "--talk", "--json"]);
    assert_eq!(said[0]["draft"], "change it");
    assert!(said[0]["branch"].as_str().unwrap().starts_with("branch-") && said[0].get("files").is_none());
    assert!(shown().contains("Written.") && !shown().contains("Changed."), "{}", shown());
    assert_eq!(place.read("a.txt"), "two\n");
    let undone = place.ok(&["checkpoint", "undo"]);
    assert!(undone.contains("on main again") && shown().contains("Changed."), "{undone}");
    assert_eq!(heads(), 1, "a branch without anything of its own leaves nothing behind");
    // Both, and both again.
    let said = place.ok(&["checkpoint", "restore", second, "--both"]);
    assert!(
        said.contains("a.txt was restored") && said.contains("The message there was: change it"),
        "{said}"
    );
    assert_eq!(place.read("a.txt"), "one\n");
    assert!(!shown().contains("Changed."));
    place.ok(&["checkpoint", "undo"]);
    assert!(place.read("a.txt") == "two\n" && shown().contains("Changed."), "{}", shown());
    place.ok(&["checkpoint", "undo", "--redo"]);
    assert!(place.read("a.txt") == "one\n" && !shown().contains("Changed."), "{}", shown());
    // It continues there, and the old branch is kept.
    place.ok(&["exec", "--profile", "full", "--continue", "differently"]);
    assert!(shown().contains("Another way.") && !shown().contains("Changed."));
    let all = place.ok(&["sessions", "export", "last"]);
    assert!(all.contains("Changed.") && all.contains("Another way."));
    assert!(place.ok(&["doctor"]).contains("ok"));
    for wrong in [&["--talk", "--both"][..], &["--talk", "--path", "a.txt"]] {
        let args = [&["checkpoint", "restore", second][..], wrong].concat();
        assert_eq!(place.run(&args).code, Some(2), "{wrong:?}");
    }
}
