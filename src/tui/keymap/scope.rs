//! The sections of a key file and how they nest: a key that a section does not bind is looked up in
//! its parent, and at last in `global`.

/// One section.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub name: &'static str,
    /// Looked at next; `None`: `global`.
    pub parent: Option<&'static str>,
    /// For help and `tiller keys`.
    pub title: &'static str,
    /// Plain characters go to the text that is edited there, so bindings of letters make no sense.
    pub text: bool,
}

const fn scope(name: &'static str, parent: Option<&'static str>, title: &'static str, text: bool) -> Scope {
    Scope { name, parent, title, text }
}

/// Every section, in the order of help.
pub const SCOPES: &[Scope] = &[
    scope("global", None, "Everywhere", false),
    scope("composer", Some("input"), "Composer", true),
    scope("popup", Some("composer"), "Completion", true),
    scope("vim", Some("composer"), "Composer, vim normal mode", true),
    scope("list", None, "Lists and panes", false),
    scope("conversation", Some("list"), "Conversation", false),
    scope("copy", Some("list"), "Copy mode", false),
    scope("viewer", Some("list"), "Viewer", false),
    scope("todo", Some("list"), "Todo", false),
    scope("todo_text", Some("input"), "Todo, words", true),
    scope("text", Some("list"), "Texts", false),
    scope("agents", Some("list"), "Agents", false),
    scope("flow", Some("list"), "Workflow", false),
    scope("watch", Some("list"), "Watch", false),
    scope("sessions", Some("list"), "Session tree", false),
    scope("tree", Some("list"), "Tree of all sessions", false),
    scope("diff", Some("list"), "Diff review", false),
    scope("queue", Some("list"), "Queue", false),
    scope("queue_text", Some("input"), "Queue, words", true),
    scope("input", None, "Text fields", true),
    scope("picker", Some("input"), "Pickers", true),
    scope("picker_text", Some("input"), "Pickers, words", true),
    scope("palette", Some("picker"), "Palette", true),
    scope("resume", Some("picker"), "Session picker", true),
    scope("branches", Some("picker"), "Branches", true),
    scope("report", Some("picker"), "Reports", true),
    scope("compact", None, "Compaction", false),
    scope("history", Some("picker"), "History search", true),
    scope("search", Some("picker"), "Search in sessions", true),
    scope("help", Some("picker"), "Help", true),
    scope("errors", Some("picker"), "Error log", true),
    scope("compare", Some("list"), "Compare", false),
    scope("leave", None, "Branch summary", false),
    scope("restore", Some("list"), "Restore", false),
    scope("branch_go", Some("restore"), "Go to a branch", false),
    scope("words", Some("input"), "Message box", true),
    scope("confirm", None, "Confirm", false),
    scope("approval", None, "Approval", false),
    scope("approval_text", Some("input"), "Approval, texts", true),
    scope("clarify", Some("input"), "Questions", true),
    scope("trust", Some("question"), "Trust", false),
    scope("plan", Some("question"), "Plan", false),
    scope("question", None, "Other questions", false),
    scope("question_text", Some("input"), "Other questions, text", true),
    scope("setup", None, "Setup", false),
    scope("setup_text", Some("input"), "Setup, text", true),
    scope("pane", Some("list"), "Program terminal", false),
    scope("pane_copy", Some("copy"), "Program terminal, copy mode", false),
    scope("terminal", None, "Inside a program terminal", true),
];

/// Finds a section.
pub fn find(name: &str) -> Option<&'static Scope> {
    SCOPES.iter().find(|s| s.name == name)
}

/// `name` and its parents, inner first, `global` last.
pub fn chain(name: &str) -> Vec<&'static str> {
    let mut out = Vec::with_capacity(4);
    let mut next = find(name);
    while let Some(s) = next {
        if out.contains(&s.name) {
            break;
        }
        out.push(s.name);
        next = s.parent.and_then(find);
    }
    if !out.contains(&"global") {
        out.push("global");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_exist_and_end_in_global() {
        for s in SCOPES {
            assert!(s.parent.is_none_or(|p| find(p).is_some()), "{}", s.name);
            assert_eq!(chain(s.name).last(), Some(&"global"));
            assert_eq!(SCOPES.iter().filter(|o| o.name == s.name).count(), 1);
        }
    }
}
