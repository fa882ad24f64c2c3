//! One look for the tools of all vendors: our verb, and what a call is about.

use serde_json::Value;
use tiller_protocol::{TodoItem, TodoStatus};

use super::said::{FileDiff, ToolUse};

/// Words in a tool's name, and our verb. The first that matches counts.
const VERBS: &[(&[&str], &str)] = &[
    (&["websearch", "webfetch", "web_", "fetch", "browser"], "fetch"),
    (&["todo", "plan"], "plan"),
    (&["bash", "shell", "exec", "command", "terminal"], "shell"),
    (&["edit", "write", "replace", "patch", "create_file"], "edit"),
    (&["grep", "glob", "search", "find", "list", "ls"], "search"),
    (&["read", "view", "cat"], "read"),
    (&["task", "agent"], "agent"),
    (&["think"], "think"),
];

/// Names of arguments that say what a call is about, best first.
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

/// Characters of a target.
const LONGEST: usize = 2000;

/// Our verb for a tool of theirs.
pub(crate) fn verb(name: &str) -> &'static str {
    let name = name.to_lowercase();
    VERBS.iter().find(|(words, _)| words.iter().any(|w| name.contains(w))).map_or("tool", |(_, verb)| verb)
}

/// What the call is about; empty when it cannot be seen.
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
    ToolUse { id: id.into(), name: name.into(), verb: verb(name).into(), target: target(&args), args }
}

/// The changes that the arguments of an editing tool tell of.
pub(crate) fn diffs(args: &Value) -> Vec<FileDiff> {
    let text = |keys: &[&str]| keys.iter().find_map(|k| args.get(*k)?.as_str()).map(str::to_owned);
    let Some(path) = text(&["file_path", "filePath", "path"]) else { return Vec::new() };
    let old = text(&["old_string", "oldString"]);
    let new = text(&["new_string", "newString", "content"]);
    vec![FileDiff { path, old, new }]
}

/// A todo list of any of their spellings.
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
