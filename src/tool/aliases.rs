//! Names of tools in files that are written for Claude Code, and those of Tiller that do the same: for hooks, and for
//! `allowed-tools` of skills and commands.

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

/// The tools of Tiller that do what the other program's tool does; `None`: there is none.
pub fn ours(theirs: &str) -> Option<&'static [&'static str]> {
    ALIASES.iter().find(|(name, _)| *name == theirs).map(|(_, ours)| *ours)
}

/// The other program's name for a tool of Tiller; `None`: it has no such tool.
pub fn theirs(ours: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(_, all)| all.contains(&ours)).map(|(name, _)| *name)
}
