//! Export and import of sessions.

use serde_json::Value;
use tiller_testkit::ScriptServer;

use crate::commands::cli::lived_in;
use crate::common::{Place, json_lines, run, says};

#[test]
fn an_export_comes_back_as_it_was() {
    let (_server, place) = lived_in();
    let file = place.work.join("out.jsonl");
    place.ok(&["sessions", "export", "last", "-o", file.to_str().unwrap()]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(place.ok(&["sessions", "export", "last"]).as_bytes(), bytes);
    let entries = place.ok(&["sessions", "show", "last", "--json"]);
    let mut other = Place::new();
    other.set("HOME", &place.user.display().to_string());
    let said = other.ok(&["sessions", "import", file.to_str().unwrap()]);
    assert!(said.contains(&format!("{} entries", entries.lines().count())), "{said}");
    let id = place.lines(&["sessions", "list", "--exec", "--json"])[0]["id"].as_str().unwrap().to_owned();
    // What a file brought is read as text of others, and stored as it stood there.
    let shown = other.ok(&["sessions", "show", &id, "--json"]);
    assert_eq!(shown.replace(",\"taint\":\"web\"", ""), entries);
    assert_ne!(shown, entries);
    let back = other.ok(&["sessions", "export", &id]);
    assert_eq!(back.as_bytes(), bytes, "byte for byte");
    // A repeated import adds no second session.
    let again = other.run(&["import", file.to_str().unwrap()]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("already exists") && again.stdout.contains(&id), "{again:?}");
    let count = |place: &Place| place.lines(&["sessions", "list", "--exec", "--all", "--json"]).len();
    assert_eq!((count(&other), other.ok(&["export", &id]) == back), (1, true));
    // Continued in the meantime: the session here is not changed, and a copy can be imported.
    place.ok(&["exec", "--continue", "-m", "demo/demo", "and more"]);
    place.ok(&["sessions", "export", &id, "-o", file.to_str().unwrap()]);
    let newer = other.run(&["sessions", "import", file.to_str().unwrap()]);
    assert_eq!(newer.code, Some(2), "{newer:?}");
    assert!(newer.stderr.contains("already exists") && newer.stderr.contains("--copy"), "{newer:?}");
    other.ok(&["sessions", "import", "--copy", file.to_str().unwrap()]);
    assert_eq!(count(&other), 2);
    let piped = run(Place::new().tiller(&["sessions", "import", "-"]), &bytes);
    assert_eq!(piped.code, Some(0), "{piped:?}");
    let broken = run(other.tiller(&["sessions", "import", "-"]), b"{\"not\": \"ours\"}\n");
    assert_ne!(broken.code, Some(0));
}

/// The format depends on the file's extension, or on a flag.
#[test]
fn an_export_can_be_read_as_markdown_and_as_a_page() {
    let (_server, place) = lived_in();
    for (name, first, holds) in [
        ("out.md", "# what is here?", "> There is a walnut."),
        ("out.html", "<!doctype html>", "<p>There is a walnut.</p>"),
    ] {
        let file = place.work.join(name);
        let said = &place.lines(&["sessions", "export", "last", "-o", file.to_str().unwrap(), "--json"])[0];
        assert_eq!(said["format"], if name == "out.md" { "markdown" } else { "html" });
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(first) && text.contains(holds), "{text}");
        let format = said["format"].as_str().unwrap();
        assert_eq!(place.ok(&["sessions", "export", "last", "--format", format, "--branch", "main"]), text);
    }
    let none = place.run(&["sessions", "export", "last", "--format", "html", "--branch", "x"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no branch 'x'") && none.stderr.contains("Its branches: main"), "{none:?}");
    let whole = place.run(&["sessions", "export", "last", "--branch", "main"]);
    assert!(whole.code == Some(2) && whole.stderr.contains("--format markdown"), "{whole:?}");
}

/// A transcript of another program is found by a search, and the person continues it: the model receives a history in
/// which each call has its result.
#[test]
fn transcripts_of_other_programs_come_in_and_go_on() {
    let server = ScriptServer::start([says("Then water it.")]);
    let place = Place::anthropic(&server);
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/transcript/import/fixtures");
    place.file("old/.claude/claude.jsonl", &std::fs::read_to_string(format!("{from}/claude.jsonl")).unwrap());
    place.file(
        "old/.codex/2026/codex.jsonl",
        &std::fs::read_to_string(format!("{from}/codex.jsonl")).unwrap(),
    );
    place.file("old/.pi/pi.jsonl", &std::fs::read_to_string(format!("{from}/pi.jsonl")).unwrap());
    place.file("old/other.jsonl", "{\"a\":1}\n");
    place.file("old/notes.txt", "no transcript");
    let out = place.run(&["sessions", "import", "old"]);
    assert_eq!(out.code, Some(2), "one file is of nobody: {out:?}");
    for words in [
        "from Claude Code",
        "from Codex",
        "from Pi",
        "Line 11 could not be read",
        "3 imported, 0 already present, 1 failed",
    ] {
        assert!(out.stdout.contains(words), "{words}: {}", out.stdout);
    }
    let again = place.run(&["sessions", "import", "old", "--json"]);
    let rows = json_lines(&again.stdout);
    assert_eq!((rows.len(), rows.iter().filter(|r| r["entries"] == 0).count()), (4, 3), "{rows:?}");
    // The entry with the word is first; its neighbours follow.
    let hits = place.lines(&["sessions", "search", "tongs", "--all", "--json"]);
    assert!(hits.iter().all(|h| h["title"] == "shell the almonds [image]"), "{hits:?}");
    assert_eq!(hits[0]["preview"], "hammer tongs", "{hits:?}");
    let newest = place.lines(&["sessions", "search", "tongs", "--all", "--newest", "--json"]);
    assert_eq!((newest.len(), &newest[0]["preview"]), (1, &Value::from("hammer tongs")), "{newest:?}");

    let pi = rows.iter().find(|r| r["program"] == "Pi").unwrap()["session"].as_str().unwrap().to_owned();
    let said = place.ok(&["exec", "--session", &pi, "-m", "anthropic/claude-sonnet-4-5", "and now?"]);
    assert!(said.contains("Then water it."), "{said}");
    let asked = server.requests();
    let messages = asked[0].json()["messages"].to_string();
    for words in ["A chestnut needs clay.", "water it", "and now?"] {
        assert!(messages.contains(words), "{words}: {messages}");
    }
    std::fs::create_dir(place.work.join("none")).unwrap();
    let none = place.run(&["sessions", "import", "none"]);
    assert!(none.code == Some(2) && none.stderr.contains("~/.claude/projects"), "{none:?}");
}

/// A transcript of another program that has grown since its import.
#[test]
fn a_transcript_that_grew_is_imported_further() {
    let place = Place::new();
    let whole = include_str!("../../../src/commands/transcript/import/fixtures/pi.jsonl");
    let short: String = whole.lines().take(6).map(|l| format!("{l}\n")).collect();
    place.file("talk.jsonl", &short);
    let first = &place.lines(&["sessions", "import", "talk.jsonl", "--json"])[0];
    place.file("talk.jsonl", whole);
    let more = &place.lines(&["sessions", "import", "talk.jsonl", "--json"])[0];
    assert_eq!((&more["session"], &more["here"]), (&first["session"], &first["entries"]));
    assert!(more["entries"].as_u64().unwrap() > 0, "{more}");
    let again = place.ok(&["sessions", "import", "talk.jsonl"]);
    assert!(again.contains("already exists"), "{again}");
    let id = first["session"].as_str().unwrap();
    assert!(place.ok(&["sessions", "show", id]).contains("water it"));
    // As if it had been imported at once.
    let other = Place::new();
    other.file("talk.jsonl", whole);
    other.ok(&["sessions", "import", "talk.jsonl"]);
    let entries = |p: &Place| {
        let mut all: Vec<String> = p.ok(&["sessions", "export", id]).lines().map(str::to_owned).collect();
        all.retain(|l| l.starts_with("{\"entry\""));
        all.sort();
        all
    };
    assert_eq!(entries(&place), entries(&other));
}

/// The conversations of agents are included, but the file cannot grant permissions.
#[test]
fn the_sessions_of_agents_come_along() {
    let place = Place::new();
    place.file("walnut.txt", "brown\n");
    place.ok(&["exec", "-m", "demo/demo", "--profile", "full", "delegate: read walnut.txt; run echo shell"]);
    let file = place.home.join("all.jsonl");
    let file = file.to_str().unwrap();
    place.ok(&["sessions", "export", "last", "-o", file]);
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("{\"session\":")).count(), 2, "{text}");
    // A working folder that the file invents.
    let forged = text.replacen("\"folder\":\"\"", "\"folder\":\"/\"", 9);
    assert_ne!(forged, text);
    let mut other = Place::new();
    other.set("HOME", &place.user.display().to_string());
    let said = run(other.tiller(&["sessions", "import", "-"]), forged.as_bytes());
    assert!(said.stdout.contains(", including those of 2 agents"), "{said:?}");
    let id = place.lines(&["sessions", "list", "--exec", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let back = other.ok(&["sessions", "export", &id]);
    assert_eq!(back.lines().count(), text.lines().count());
    assert!(!back.contains("\"folder\":\"/\"") && !back.contains("\"profile\":\"full\",\"head\""), "{back}");
    assert_eq!(other.lines(&["sessions", "list", "--exec", "--all", "--json"]).len(), 1);
    let found = other.lines(&["sessions", "search", "echo shell", "--all", "--json"]);
    assert!(found.iter().any(|h| h["agent"] == "main/a2"), "{found:?}");
    let page = other.ok(&["sessions", "export", &id, "--format", "html"]);
    assert_eq!(page.matches("<details class=\"agent\">").count(), 2, "{page}");
    let read = other.ok(&["sessions", "export", &id, "--format", "markdown"]);
    assert!(read.contains("<details><summary>Agent a1: read walnut.txt · done</summary>"), "{read}");
    // A repeated import finds all of it here.
    let again = run(other.tiller(&["sessions", "import", "-"]), text.as_bytes());
    assert!(again.stdout.contains("already exists"), "{again:?}");
}
