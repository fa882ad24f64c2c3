//! Names that models and other programs use for tools and arguments, and those of Tiller.

use serde_json::Value;

/// Tools of Claude Code, and those of Tiller that do the same: for hooks, and for `allowed-tools` of skills and commands.
const ALIASES: &[(&str, &[&str])] = &[
    ("Bash", &["terminal"]),
    ("Read", &["read_file"]),
    ("Write", &["write_file"]),
    ("Edit", &["edit_file", "patch"]),
    ("MultiEdit", &["edit_file", "patch"]),
    ("Grep", &["search"]),
    ("Glob", &["search"]),
    ("LS", &["list_dir"]),
    ("WebFetch", &["web_fetch"]),
    ("WebSearch", &["web_search"]),
    ("Task", &["delegate_task"]),
    ("TodoWrite", &["todo_write"]),
];

/// All of them: the name there, and the tools of Tiller.
pub fn all() -> &'static [(&'static str, &'static [&'static str])] {
    ALIASES
}

/// The tools of Tiller that do what the other program's tool does; `None`: there is none.
pub fn ours(theirs: &str) -> Option<&'static [&'static str]> {
    ALIASES.iter().find(|(name, _)| *name == theirs).map(|(_, ours)| *ours)
}

/// The other program's name for a tool of Tiller; `None`: it has no such tool.
pub fn theirs(ours: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(_, all)| all.contains(&ours)).map(|(name, _)| *name)
}

/// Arguments that tools take under a second name: the tool (empty: each one), that name, and the right one.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("", "file_path", "path"),
    ("edit_file", "old_string", "old"),
    ("edit_file", "old_text", "old"),
    ("edit_file", "new_string", "new"),
    ("edit_file", "new_text", "new"),
    ("read_file", "offset", "start"),
    ("write_file", "contents", "content"),
    ("write_file", "text", "content"),
    ("patch", "input", "patch"),
    ("execute_code", "script", "code"),
    ("memory", "query", "text"),
    ("memory", "content", "text"),
    ("memory", "old_text", "old"),
];

/// The arguments of a call of `tool` under their right names: a guard that reads `path` sees the path also where a model wrote
/// `file_path`.
pub fn canonical(tool: &str, arguments: &Value) -> Value {
    let Value::Object(fields) = arguments else { return arguments.clone() };
    let right = |name: &str| {
        let known = ARGUMENTS.iter().find(|(of, alias, _)| (of.is_empty() || *of == tool) && *alias == name);
        known.map(|(_, _, right)| *right).filter(|right| !fields.contains_key(*right))
    };
    let named = |(name, value): (&String, &Value)| (right(name).unwrap_or(name).to_owned(), value.clone());
    Value::Object(fields.iter().map(named).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_get_their_right_names() {
        for (tool, given, right) in [
            ("write_file", json!({"file_path": "a", "contents": "x"}), json!({"path": "a", "content": "x"})),
            ("write_file", json!({"path": "a", "text": "x"}), json!({"path": "a", "content": "x"})),
            (
                "edit_file",
                json!({"file_path": "a", "old_string": "x", "new_text": "y"}),
                json!({"path": "a", "old": "x", "new": "y"}),
            ),
            ("read_file", json!({"file_path": "a", "offset": 3}), json!({"path": "a", "start": 3})),
            ("patch", json!({"input": "x"}), json!({"patch": "x"})),
            ("execute_code", json!({"script": "x"}), json!({"code": "x"})),
            ("terminal", json!({"command": "x", "text": "y"}), json!({"command": "x", "text": "y"})),
        ] {
            assert_eq!(canonical(tool, &given), right);
        }
        // With both the call is refused: no name is lost on the way.
        let both = json!({"path": "a", "file_path": "b"});
        assert_eq!(canonical("write_file", &both), both);
    }

    /// Each second name in the tools has its line here.
    #[test]
    fn no_second_name_is_left_out() {
        let mut missing = Vec::new();
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("aliases.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let arguments = text.match_indices("struct Args").map(|(at, _)| &text[at..]);
                    for arguments in arguments.map(|text| text.split("\n}").next().unwrap()) {
                        for alias in
                            arguments.split("alias = \"").skip(1).map(|rest| rest.split('"').next().unwrap())
                        {
                            seen += 1;
                            if !ARGUMENTS.iter().any(|(_, name, _)| *name == alias) {
                                missing.push(format!("{}: {alias}", path.display()));
                            }
                        }
                    }
                }
            }
        }
        assert!(missing.is_empty() && seen > 10, "{missing:?} of {seen}");
    }
}
