//! Read-only tasks and commands: explain, search, run, start, fetch.

use serde_json::json;

use super::change::{escape, said};
use super::fix::passed;
use super::{names, shorten, unnumbered};
use crate::demo::Step;
use crate::demo::turn::Turn;

/// Maximum lines of output that are quoted in an answer.
const LINES: usize = 6;

pub(super) fn explain(turn: &Turn<'_>, file: Option<&str>) -> Step {
    if let Some(file) = file {
        return match turn.last("read_file") {
            None => Step::call(format!("Reading {file}."), "read_file", json!({"path": file})),
            Some(page) if page.ok => Step::say(describe(file, &page.text)),
            Some(page) => Step::say(format!("{file} cannot be read: {}", shorten(&page.text, 120))),
        };
    }
    let Some(listing) = turn.last("list_dir") else {
        return Step::call("Listing the folder.", "list_dir", json!({"path": "."}));
    };
    let here = names(&listing.text);
    let readme = here.iter().find(|n| n.to_lowercase().starts_with("readme")).copied();
    match (readme, turn.last("read_file")) {
        (Some(path), None) => Step::call("", "read_file", json!({"path": path})),
        (Some(path), Some(page)) if page.ok => Step::say(format!(
            "{}\n\nThere are {} entries in the folder. Type `explain FILE` for one of them.",
            describe(path, &page.text),
            here.len().saturating_sub(1)
        )),
        _ => Step::say(format!(
            "The folder has {} entries: {}. There is no readable README. Type `explain FILE` for one of them.",
            here.len().saturating_sub(1),
            here.iter().skip(1).take(10).copied().collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Describes a text by its visible structure.
fn describe(path: &str, page: &str) -> String {
    let lines: Vec<&str> = unnumbered(page).collect();
    let mut out = format!("**{path}** has {} lines on this page.", lines.len());
    let headings: Vec<&str> = lines
        .iter()
        .filter(|l| l.starts_with('#') && l.trim_start_matches('#').starts_with(' '))
        .copied()
        .collect();
    let is_text = [".md", ".txt", ".rst"].iter().any(|e| path.to_lowercase().ends_with(e));
    if is_text {
        if let Some(title) = headings.first() {
            out.push_str(&format!(" Its title is \"{}\".", title.trim_start_matches(['#', ' '])));
        }
        let prose =
            |l: &&&str| !l.trim().is_empty() && !l.starts_with(['#', ' ', '-', '`', '|', '<', '!', '[']);
        if let Some(first) = lines.iter().find(prose) {
            out.push_str(&format!(" It begins: \"{}\"", shorten(first, 160)));
        }
        if headings.len() > 1 {
            let rest: Vec<String> =
                headings[1..].iter().take(8).map(|h| h.trim_start_matches(['#', ' ']).to_owned()).collect();
            out.push_str(&format!("\n\nSections: {}.", rest.join(", ")));
        }
        return out;
    }
    let starts =
        ["fn ", "pub fn ", "def ", "class ", "func ", "function ", "struct ", "pub struct ", "async fn "];
    let functions: Vec<String> = lines
        .iter()
        .map(|l| l.trim_start())
        .filter(|l| {
            starts.iter().any(|s| l.starts_with(s))
                || l.split_once("() {").is_some_and(|(n, _)| !n.contains(' '))
        })
        .take(12)
        .map(|l| format!("`{}`", shorten(l.split(['{', '(']).next().unwrap_or(l).trim(), 60)))
        .collect();
    if !functions.is_empty() {
        out.push_str(&format!(" It defines {}.", functions.join(", ")));
    }
    let comment = lines.iter().find(|l| l.starts_with("# ") || l.starts_with("//"));
    if let Some(comment) = comment {
        let words = shorten(comment.trim_start_matches(['#', '/', '!', ' ']), 160);
        out.push_str(&format!(" Its first comment says: \"{words}\""));
    }
    out
}

pub(super) fn search(turn: &Turn<'_>, what: &str) -> Step {
    match turn.last("search") {
        None => Step::call("", "search", json!({"pattern": escape(what)})),
        Some(hits) => {
            let found = tail(&hits.text, true);
            let nothing = found.is_empty() || hits.text.trim() == "nothing found";
            Step::say(if nothing {
                format!("`{what}` was not found.")
            } else {
                format!("`{what}` was found here:\n\n{found}")
            })
        }
    }
}

pub(super) fn recall(turn: &Turn<'_>, what: &str) -> Step {
    match turn.last("session_search") {
        None => Step::call("", "session_search", json!({"query": what})),
        Some(hits) => Step::say(format!("In earlier sessions:\n\n{}", tail(&hits.text, true))),
    }
}

/// The script of [`count`].
const COUNT: &str = "# Count the lines of all files
from pathlib import Path
from tiller_tools import read_file

total = 0
for path in sorted(Path('.').rglob('*.sh')):
    lines = read_file(str(path)).count('\\n')
    total += lines
    print(f'{lines:>5}  {path}')
print(f'{total:>5}  in all')
";

pub(super) fn count(turn: &Turn<'_>) -> Step {
    match turn.last("execute_code") {
        None => Step::call(
            "One script can look through all files at once.",
            "execute_code",
            json!({"code": COUNT}),
        ),
        Some(done) => {
            let printed =
                done.text.split_once("\noutput:\n").map_or(done.text.as_str(), |(_, printed)| printed);
            Step::say(format!("The model read this, and none of the files:\n\n{}", tail(printed, true)))
        }
    }
}

/// Some lines of output as a code block; empty when there are none.
pub(super) fn tail(output: &str, first: bool) -> String {
    let lines: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = if first { 0 } else { lines.len().saturating_sub(LINES) };
    lines.iter().skip(from).take(LINES).map(|l| format!("    {}\n", shorten(l, 100))).collect()
}

pub(super) fn run(turn: &Turn<'_>, command: &str) -> Step {
    match turn.last("terminal") {
        None => Step::call(format!("Running `{command}`."), "terminal", json!({"command": command})),
        Some(run) => {
            let how = if passed(run) { "succeeded" } else { "failed" };
            Step::say(format!("It {how}. The end of its output:\n\n{}", tail(&run.text, false)))
        }
    }
}

pub(super) fn start(turn: &Turn<'_>, command: &str) -> Step {
    let Some(started) = turn.last("terminal") else {
        if command.is_empty() {
            return Step::say("Which command? Type: `start COMMAND`.");
        }
        return Step::call(
            format!("Starting `{command}` in the background."),
            "terminal",
            json!({"command": command, "background": true}),
        );
    };
    let id = started.text.split_whitespace().find(|w| {
        w.strip_prefix('p').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    });
    let Some(id) = id else {
        return Step::say(format!("It did not start:\n\n{}", tail(&started.text, false)));
    };
    let actions: Vec<&str> = turn.of("process").map(|d| d.arg("action")).collect();
    if actions.is_empty() {
        return Step::call("", "process", json!({"action": "poll", "id": id, "wait": 1}));
    }
    let Some(answer) = turn.last("clarify") else {
        return Step::call(
            format!("`{id}` is running."),
            "clarify",
            json!({"question": format!("Should I end {id}?"), "choices": ["End it", "Leave it running"], "allow_freetext": false}),
        );
    };
    if answer.ok && said(&answer.text).is_some_and(|a| a.starts_with("End")) {
        if !actions.contains(&"kill") {
            return Step::call("", "process", json!({"action": "kill", "id": id}));
        }
        return Step::say(format!("`{id}` has ended."));
    }
    Step::say(format!("`{id}` keeps running. The process tool can end it at any time."))
}

pub(super) fn fetch(turn: &Turn<'_>, url: &str) -> Step {
    match turn.last("web_fetch") {
        None => Step::call(format!("Fetching {url}."), "web_fetch", json!({"url": url})),
        Some(page) if page.ok => Step::say(format!("It begins with:\n\n{}", tail(&page.text, true))),
        Some(page) => Step::say(format!("It could not be fetched: {}", shorten(&page.text, 160))),
    }
}
