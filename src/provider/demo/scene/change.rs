//! Replaces a text, or edits a file after asking how.

use serde_json::json;

use super::{shorten, unnumbered};
use crate::demo::Step;
use crate::demo::turn::Turn;

/// Maximum number of files that one request changes.
const FILES: usize = 8;

pub(super) fn replace(turn: &Turn<'_>, old: &str, new: &str, file: Option<&str>) -> Step {
    let files: Vec<String> = match (file, turn.last("search")) {
        (Some(file), _) => vec![file.to_owned()],
        (None, None) => {
            let pattern = escape(old);
            return Step::call(format!("Searching for `{old}`."), "search", json!({"pattern": pattern}));
        }
        (None, Some(hits)) => hit_files(&hits.text),
    };
    if files.is_empty() {
        return Step::say(format!("This folder does not contain `{old}`."));
    }
    let read: Vec<&str> = turn.of("read_file").map(|d| d.arg("path")).collect();
    let unread: Vec<&String> = files.iter().filter(|f| !read.contains(&f.as_str())).take(FILES).collect();
    if !unread.is_empty() && turn.times("edit_file") == 0 {
        let mut step = Step { text: "Reading before changing anything.".into(), ..Step::default() };
        for path in unread {
            step = step.and("read_file", json!({"path": path}));
        }
        return step;
    }
    let mut step = Step::default();
    for page in turn.of("read_file").filter(|d| d.ok) {
        let path = page.arg("path");
        let holds = unnumbered(&page.text).any(|l| l.contains(old));
        if holds && !turn.of("edit_file").any(|d| d.arg("path") == path) {
            step = step.and("edit_file", json!({"path": path, "old": old, "new": new, "replace_all": true}));
        }
    }
    if step.calls.is_empty() {
        let changed: Vec<&str> = turn.of("edit_file").filter(|d| d.ok).map(|d| d.arg("path")).collect();
        return Step::say(match changed[..] {
            [] => format!("`{old}` was not found there, so nothing was changed."),
            _ => format!("`{old}` is now `{new}` in {}.", changed.join(", ")),
        });
    }
    step.text = format!("`{old}` becomes `{new}`.");
    step
}

/// The files in the results of a search.
fn hit_files(hits: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in hits.lines().filter(|l| !l.starts_with([' ', '[', '\t'])) {
        let path = line.split(':').next().unwrap_or_default().trim();
        let fine = !path.is_empty() && path.parse::<u64>().is_err() && !path.contains(' ');
        if fine && path.chars().any(char::is_alphanumeric) && !out.iter().any(|p| p == path) {
            out.push(path.to_owned());
        }
    }
    out.truncate(FILES);
    out
}

/// Escapes a text as a pattern.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~/".contains(c) && c != '/' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

pub(super) fn edit(turn: &Turn<'_>, file: &str) -> Step {
    let Some(page) = turn.last("read_file") else {
        return Step::call(format!("Reading {file} first."), "read_file", json!({"path": file}));
    };
    if !page.ok {
        return Step::say(format!("{file} cannot be read: {}", shorten(&page.text, 120)));
    }
    let Some(answer) = turn.last("clarify") else {
        return Step::call(
            "",
            "clarify",
            json!({
                "question": format!("Which line should I add at the end of {file}?"),
                "choices": ["# checked", "None; leave the file as it is"],
                "allow_freetext": true,
            }),
        );
    };
    let Some(line) = said(&answer.text).filter(|l| answer.ok && !l.starts_with("nothing")) else {
        return Step::say(format!("{file} stays as it is."));
    };
    if let Some(done) = turn.last("edit_file") {
        return Step::say(format!("Added the line to {}.", done.arg("path")));
    }
    // An exact replacement requires a text that occurs once.
    let lines: Vec<&str> = unnumbered(&page.text).collect();
    let Some(last) =
        lines.iter().rev().find(|l| !l.trim().is_empty() && lines.iter().filter(|o| *o == *l).count() == 1)
    else {
        return Step::say(format!(
            "Every line of {file} appears more than once, so there is no clear place to add one."
        ));
    };
    Step::call(
        "",
        "edit_file",
        json!({"path": file, "old": format!("{last}\n"), "new": format!("{last}\n{line}\n")}),
    )
}

/// The person's answer.
pub(super) fn said(result: &str) -> Option<String> {
    let text = result.split_once("answered:").map_or(result, |(_, rest)| rest);
    let line = text.lines().map(str::trim).find(|l| !l.is_empty())?;
    Some(line.trim_matches('"').to_owned())
}
