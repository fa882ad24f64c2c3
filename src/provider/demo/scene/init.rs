//! `/init`: reads what describes the project, and proposes an AGENTS.md.

use serde_json::json;

use super::{names, unnumbered};
use crate::demo::Step;
use crate::demo::turn::{Done, Turn};

/// What it writes.
const FILE: &str = "AGENTS.md";
/// Files that describe a project to agents, and the README.
const SOURCES: &[&str] = &["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules", "README.md"];
/// Commands of a project by a file that it has: how it is built, and how it is tested.
const COMMANDS: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python3 -m pytest"),
    ("Makefile", "make test"),
    ("test.sh", "sh test.sh"),
];
/// The heading of the commands.
const HEADING: &str = "## Commands";

pub(super) fn next(turn: &Turn<'_>) -> Step {
    let Some(listing) = turn.last("list_dir") else {
        return Step::call("Looking at what is there.", "list_dir", json!({"path": ".", "all": true}));
    };
    let here = names(&listing.text);
    let wanted = SOURCES.iter().filter(|s| here.contains(s));
    let read = |path: &str| turn.of("read_file").find(|d| d.arg("path") == path);
    let unread: Vec<&&str> = wanted.filter(|path| read(path).is_none()).collect();
    if !unread.is_empty() {
        let mut step = Step { text: "Reading what describes the project.".into(), ..Step::default() };
        for path in unread {
            step = step.and("read_file", json!({"path": path}));
        }
        return step;
    }
    if let Some(done) = turn.last("write_file").or_else(|| turn.last("edit_file")) {
        return Step::say(match done.ok {
            true => "AGENTS.md is written. Its commands come from the files that this folder has; I ran none of them. \
                     The demo knows no rules of a project: add yours."
                .to_owned(),
            false => "AGENTS.md was not changed.".to_owned(),
        });
    }
    let commands = commands(&here);
    match read(FILE).filter(|page| page.ok) {
        Some(page) => amend(page, &commands),
        None => {
            let text = whole(&here, read("README.md"), &commands);
            let args = json!({"path": FILE, "content": text});
            Step::call("This is the AGENTS.md that I propose.", "write_file", args)
        }
    }
}

/// Adds the commands to a file that lacks them; what a person wrote stays.
fn amend(page: &Done<'_>, commands: &str) -> Step {
    let lines: Vec<&str> = unnumbered(&page.text).collect();
    if commands.is_empty() || lines.iter().any(|l| l.trim() == HEADING) {
        return Step::say(
            "AGENTS.md is there already, and nothing that the demo knows of is missing. It stays as it is.",
        );
    }
    let Some(last) = lines.iter().rev().find(|l| !l.trim().is_empty()) else {
        return Step::say("AGENTS.md is there already, and is empty. The demo leaves it as it is.");
    };
    let new = format!("{last}\n\n{commands}");
    let args = json!({"path": FILE, "old": last, "new": new.trim_end()});
    Step::call("AGENTS.md is there already. I only add the commands that it lacks.", "edit_file", args)
}

fn commands(here: &[&str]) -> String {
    let found: Vec<&str> = COMMANDS.iter().filter(|(file, _)| here.contains(file)).map(|(_, c)| *c).collect();
    match found.is_empty() {
        true => String::new(),
        false => format!("{HEADING}\n\n```sh\n{}\n```\n", found.join("\n")),
    }
}

fn whole(here: &[&str], readme: Option<&Done<'_>>, commands: &str) -> String {
    let page: Vec<&str> = readme.filter(|r| r.ok).map(|r| unnumbered(&r.text).collect()).unwrap_or_default();
    let title = page.iter().find_map(|l| l.strip_prefix("# ")).unwrap_or("This project");
    let about =
        page.iter().find(|l| !l.trim().is_empty() && !l.starts_with(['#', '!', '<', '[', '`', '|', '-']));
    let mut text = format!("# {title}\n\n");
    if let Some(about) = about {
        text.push_str(&format!("{about}\n\n"));
    }
    text.push_str(commands);
    let others: Vec<&&str> = SOURCES.iter().filter(|s| **s != "README.md" && here.contains(s)).collect();
    for other in others {
        text.push_str(&format!("\nRules of this project are in {other}: read it first.\n"));
    }
    text
}
