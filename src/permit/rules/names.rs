//! The tools that a rule may name, and which of them come to the same path.

use crate::rules::How;

/// Every tool of ours. A test of the program compares it with the registry.
pub const TOOLS: &[&str] = &[
    "agent_result",
    "blackboard",
    "cancel_agent",
    "checkpoint",
    "clarify",
    "delegate_async",
    "delegate_task",
    "edit_file",
    "get_process_info",
    "list_agents",
    "list_dir",
    "orchestrate",
    "patch",
    "process",
    "read_file",
    "restore",
    "search",
    "send_to_agent",
    "session_search",
    "spawn_agent",
    "terminal",
    "todo_read",
    "todo_write",
    "wait_agents",
    "web_fetch",
    "write_file",
    "write_plan",
];

/// In front of the name of a tool that belongs to a program of another vendor.
pub(crate) const FOREIGN: &str = "program:";

/// Tools that show what a path holds.
const READERS: &[&str] = &["read_file", "search", "list_dir"];
/// Tools that change a path.
const WRITERS: &[&str] = &["write_file", "edit_file", "patch"];
/// Tools that change a path by what it holds, and show that.
const BOTH: &[&str] = &["edit_file", "patch", "read_file", "search", "list_dir"];

/// Names that other programs give to what ours do.
const ALIASES: &[(&str, &str)] = &[
    ("read", "read_file"),
    ("view", "read_file"),
    ("cat", "read_file"),
    ("open", "read_file"),
    ("notebookread", "read_file"),
    ("write", "write_file"),
    ("create", "write_file"),
    ("edit", "edit_file"),
    ("multiedit", "edit_file"),
    ("notebookedit", "edit_file"),
    ("str_replace", "edit_file"),
    ("apply_patch", "patch"),
    ("grep", "search"),
    ("glob", "search"),
    ("find", "search"),
    ("ls", "list_dir"),
    ("list", "list_dir"),
    ("bash", "terminal"),
    ("shell", "terminal"),
    ("sh", "terminal"),
    ("exec", "terminal"),
    ("run", "terminal"),
    ("command", "terminal"),
    ("execute", "terminal"),
    ("fetch", "web_fetch"),
    ("webfetch", "web_fetch"),
    ("curl", "web_fetch"),
    ("http", "web_fetch"),
    ("url", "web_fetch"),
    ("task", "delegate_task"),
    ("agent", "delegate_task"),
    ("todo", "todo_write"),
    ("todowrite", "todo_write"),
    ("todoread", "todo_read"),
    ("askuserquestion", "clarify"),
    ("ask", "clarify"),
    ("killshell", "process"),
    ("bashoutput", "process"),
];

/// True for a tool of ours.
pub(crate) fn is_ours(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// The tools whose strict rules hold for `tool` when it comes to a path: a rule names the path, and which
/// tool it names does not matter.
pub(crate) fn meant(how: How, tool: &str) -> impl Iterator<Item = &'static str> {
    let also = if how == How::Write && BOTH.contains(&tool) { READERS } else { &[] };
    let own = match how {
        How::Read => READERS,
        How::Write => WRITERS,
    };
    own.iter().chain(also).copied()
}

/// Whether a rule may name this tool (`*` and `?` as in rules).
///
/// # Errors
/// In words, with the nearest right name.
pub fn check(tool: &str) -> Result<(), String> {
    if let Some(foreign) = tool.strip_prefix(FOREIGN) {
        return if foreign.is_empty() { Err("'program:' needs the name of a tool".into()) } else { Ok(()) };
    }
    if is_ours(tool) {
        return Ok(());
    }
    if tool.contains(['*', '?', '<']) {
        let pattern = crate::rules::pattern::Pattern::new(tool)?;
        return if TOOLS.iter().any(|t| pattern.matches(t)) {
            Ok(())
        } else {
            Err(format!("'{tool}' matches no tool; tools: {}", TOOLS.join(", ")))
        };
    }
    Err(match nearest(tool) {
        Some(near) => format!("there is no tool '{tool}'; did you mean '{near}'?"),
        None => format!(
            "there is no tool '{tool}'; tools: {} (for a tool of an external program write \
            'program:{tool}')",
            TOOLS.join(", ")
        ),
    })
}

/// The right name for a wrong one.
pub(crate) fn nearest(wrong: &str) -> Option<&'static str> {
    let wrong = wrong.to_lowercase().replace('-', "_");
    let plain = wrong.replace('_', "");
    if let Some((_, right)) = ALIASES.iter().find(|(name, _)| *name == wrong || *name == plain) {
        return Some(right);
    }
    tiller_protocol::nearest::nearest(&wrong, TOOLS.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_an_error_with_the_right_one() {
        for (wrong, right) in [
            ("read", "read_file"),
            ("Read", "read_file"),
            ("readfile", "read_file"),
            ("read-file", "read_file"),
            ("raed_file", "read_file"),
            ("Bash", "terminal"),
            ("shell", "terminal"),
            ("terminl", "terminal"),
            ("WebFetch", "web_fetch"),
            ("MultiEdit", "edit_file"),
            ("Grep", "search"),
            ("serach", "search"),
            ("apply_patch", "patch"),
        ] {
            assert_eq!(
                check(wrong).unwrap_err(),
                format!("there is no tool '{wrong}'; did you mean '{right}'?")
            );
        }
        for right in TOOLS.iter().copied().chain(["*", "web_*", "*_file", "program:create_thread"]) {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for none in ["create_thread", "x*", "program:", "mcp_server"] {
            assert!(check(none).is_err(), "{none}");
        }
        assert!(check("create_thread").unwrap_err().contains("'program:create_thread'"));
    }
}
