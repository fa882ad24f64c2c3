//! A uniform form for the tools of all vendors: Tiller's verb, and the target of a call.

use serde_json::Value;
use tiller_protocol::{TodoItem, TodoStatus, ToolVerb};

use super::event::{FileDiff, ToolUse};

/// Words of a tool's name, and the verb. The first match counts. Whole words: `notification` does not contain `cat`,
/// and `thread` does not contain `read`.
const VERBS: &[(&[&str], ToolVerb)] = &[
    (&["websearch", "webfetch", "web", "fetch", "browser"], ToolVerb::Fetch),
    (&["todo", "todos", "todowrite", "todoread", "plan"], ToolVerb::Plan),
    (&["bash", "shell", "exec", "command", "terminal"], ToolVerb::Shell),
    (&["edit", "multiedit", "write", "replace", "patch", "create_file"], ToolVerb::Edit),
    (&["grep", "glob", "search", "find", "list", "ls"], ToolVerb::Search),
    (&["read", "view", "cat"], ToolVerb::Read),
    (&["task", "agent"], ToolVerb::Agent),
    (&["think"], ToolVerb::Think),
];

/// Names of arguments with the path of a file.
const PATHS: &[&str] =
    &["file_path", "filePath", "absolute_path", "path", "notebook_path", "source", "destination"];

/// Names of arguments with the target of a call, in descending preference.
const TARGETS: &[&str] = &[
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "notebook_path",
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
];

/// Maximum characters of a target.
const LONGEST: usize = 2000;

/// Tiller's verb for a vendor's tool.
pub(crate) fn verb(name: &str) -> ToolVerb {
    let mine = words(name);
    let lower = name.to_lowercase();
    let has = |w: &&str| mine.iter().any(|m| m == w) || lower == *w;
    VERBS.iter().find(|(words, _)| words.iter().any(has)).map_or(ToolVerb::Tool, |(_, verb)| verb.clone())
}

/// The words of a name in lower case: `MultiEdit`, `run_shell_command`, `mcp__a__get-x`.
fn words(name: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (small && c.is_uppercase()) {
            out.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    out
}

/// The files in the arguments.
pub(crate) fn paths(args: &Value) -> Vec<String> {
    let path = |key: &str| args.get(key).and_then(Value::as_str).filter(|p| !p.is_empty());
    PATHS.iter().filter_map(|key| path(key)).map(str::to_owned).collect()
}

/// The target of the call; empty when it is not known.
pub(crate) fn target(args: &Value) -> String {
    let found = TARGETS.iter().find_map(|key| match args.get(*key)? {
        Value::String(s) if !s.is_empty() => Some(s.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    });
    found.unwrap_or_default().chars().take(LONGEST).collect()
}

/// A call.
pub(crate) fn tool(id: &str, name: &str, args: Value) -> ToolUse {
    let (verb, target, paths) = (verb(name), target(&args), paths(&args));
    ToolUse { id: id.into(), name: name.into(), verb, target, paths, args, pending: false }
}

/// The changes in the arguments of an editing tool.
pub(crate) fn diffs(args: &Value) -> Vec<FileDiff> {
    let text = |keys: &[&str]| keys.iter().find_map(|k| args.get(*k)?.as_str()).map(str::to_owned);
    let Some(path) = text(&["file_path", "filePath", "path"]) else { return Vec::new() };
    let old = text(&["old_string", "oldString"]);
    let new = text(&["new_string", "newString", "content"]);
    vec![FileDiff { path, old, new }]
}

/// A todo list in any of the vendors' forms.
pub(crate) fn plan(items: &[Value]) -> Vec<TodoItem> {
    let item = |(n, v): (usize, &Value)| {
        let content = ["content", "text", "title"].iter().find_map(|k| v.get(*k)?.as_str())?.to_owned();
        let done = v.get("completed").and_then(Value::as_bool);
        let status = match (v.get("status").and_then(Value::as_str), done) {
            (Some("completed" | "done"), _) | (None, Some(true)) => TodoStatus::Completed,
            (Some("in_progress"), _) => TodoStatus::InProgress,
            (Some("cancelled"), _) => TodoStatus::Cancelled,
            _ => TodoStatus::Pending,
        };
        Some(TodoItem { id: (n + 1).to_string(), content, status, agent: None })
    };
    items.iter().enumerate().filter_map(item).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_a_word_of_the_name_and_not_a_part_of_one() {
        for (name, want) in [
            ("Read", "read"),
            ("read_many_files", "read"),
            ("MultiEdit", "edit"),
            ("multiedit", "edit"),
            ("TodoWrite", "plan"),
            ("todowrite", "plan"),
            ("run_shell_command", "shell"),
            ("apply_patch", "edit"),
            ("WebFetch", "fetch"),
            ("webfetch", "fetch"),
            ("list_directory", "search"),
            ("mcp__linear__create_notification", "tool"),
            ("mcp__forum__close_thread", "tool"),
            ("relocate", "tool"),
            ("credit", "tool"),
        ] {
            assert_eq!(verb(name).word(), want, "{name}");
        }
    }

    #[test]
    fn only_arguments_that_name_files_are_paths() {
        let args =
            serde_json::json!({"description": "a.txt", "path": "b.txt", "query": "c", "file_path": ""});
        assert_eq!(paths(&args), ["b.txt"]);
    }
}
