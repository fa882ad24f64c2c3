//! Names that a definition may use.

/// Sets of tools by the tools' names. What is new in the tool room goes into one of them, else no definition but
/// one with `all` can grant it.
pub const SETS: &[(&str, &[&str])] = &[
    ("read", &["read_file", "list_dir", "search", "session_search"]),
    ("edit", &["write_file", "edit_file", "patch"]),
    ("run", &["terminal", "process"]),
    ("web", &["web_fetch"]),
    ("plan", &["todo_write", "todo_read", "clarify", "checkpoint", "restore", "write_plan"]),
    (
        "crew",
        &[
            "delegate_task",
            "delegate_async",
            "orchestrate",
            "spawn_agent",
            "list_agents",
            "agent_result",
            "send_to_agent",
            "wait_agents",
            "cancel_agent",
            "get_process_info",
            "blackboard",
        ],
    ),
];

/// Every tool.
pub(super) const ALL: &str = "all";

/// The set that a tool is in.
pub fn set_of(tool: &str) -> Option<&'static str> {
    SETS.iter().find(|(_, tools)| tools.contains(&tool)).map(|(set, _)| *set)
}

/// What is wrong with a name in a list of tools, in a sentence's part: no tool of ours, no set, and not in `more`.
pub fn no_such_tool(name: &str, more: &[&str]) -> Option<String> {
    let sets = || SETS.iter().map(|(set, _)| *set);
    let tools = SETS.iter().flat_map(|(_, tools)| tools.iter().copied());
    let all: Vec<&str> = sets().chain(tools).chain(more.iter().copied()).chain([ALL]).collect();
    if all.contains(&name) {
        return None;
    }
    Some(match tiller_protocol::nearest::nearest(name, all) {
        Some(near) => format!("there is no tool or set `{name}`; did you mean `{near}`?"),
        None => format!("there is no tool or set `{name}`; sets: {}", sets().collect::<Vec<_>>().join(", ")),
    })
}

/// Layers of the system prompt that a definition may leave out.
pub(super) const LAYERS: &[&str] =
    &["project", "skills", "user", "learnings", "memory", "session", "runtime"];

/// Names of other rooms that a definition may use, given by the caller.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Names of tools that are there, besides those of [`SETS`].
    pub tools: &'a [&'a str],
    /// Programs of other vendors that can be driven.
    pub clis: &'a [&'a str],
    /// Is this a rule, `tool(argument)`? The error is a sentence.
    pub rule: &'a dyn Fn(&str) -> Result<(), String>,
}

impl Known<'_> {
    /// The programs that adapters are for.
    pub const CLIS: &'static [&'static str] =
        &["claude", "codex", "gemini", "aider", "goose", "opencode", "droid"];

    /// Every name that may stand in `tools`.
    pub(super) fn tool_words(&self) -> impl Iterator<Item = &str> {
        let sets = SETS.iter().flat_map(|(set, tools)| std::iter::once(*set).chain(tools.iter().copied()));
        sets.chain(self.tools.iter().copied()).chain([ALL])
    }
}
