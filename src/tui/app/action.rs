//! Names of things that can be done. Each panel and dialog declares its own next to the code that does
//! them; [`GROUPS`] collects them, and keys, palette, help and footer are made from that.

use crate::{app::global, dialog, panel, view::agent_view, view::arrange, widget};

/// An action by its id, `group.verb`, for instance `composer.send`. Key files use the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(pub &'static str);

/// Begins a sequence with the leader key.
pub const LEADER: Action = Action("global.leader");

/// What help, palette, footer and key files know of an action.
#[derive(Clone, Copy, Debug)]
pub struct ActionSpec {
    pub action: Action,
    /// Short, for the footer: `send`, `stop`.
    pub label: &'static str,
    /// One sentence, for help and palette.
    pub help: &'static str,
    /// Whether the palette offers it.
    pub palette: bool,
    /// It says yes to something dangerous: key files may not bind it to Enter or Space.
    pub yes: bool,
}

impl ActionSpec {
    /// An action that the palette offers.
    pub const fn new(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: true, yes: false }
    }

    /// One that makes sense only by key (moving a cursor).
    pub const fn key_only(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: false, yes: false }
    }

    /// One that approves.
    pub const fn yes(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: false, yes: true }
    }
}

/// Every group of actions: title for help, and the list. One line each.
pub const GROUPS: &[(&str, &[ActionSpec])] = &[
    ("Everywhere", global::ACTIONS),
    ("Panes", arrange::ACTIONS),
    ("Agent view", agent_view::ACTIONS),
    ("Dialogs", dialog::OPEN_ACTIONS),
    ("Composer", panel::composer::ACTIONS),
    ("Conversation", panel::conversation::ACTIONS),
    ("Copy mode", panel::conversation::copy_mode::ACTIONS),
    ("Todo", panel::todo::ACTIONS),
    ("Agents", panel::agents::ACTIONS),
    ("Program terminal", panel::terminal::ACTIONS),
    ("Watch", panel::watch::ACTIONS),
    ("Session tree", panel::sessions::ACTIONS),
    ("Tree of all sessions", dialog::tree::ACTIONS),
    ("Viewer", dialog::viewer::ACTIONS),
    ("Diff review", dialog::review::ACTIONS),
    ("Lists", widget::list::ACTIONS),
    ("Text fields", widget::input::ACTIONS),
    ("Pickers", dialog::picker::ACTIONS),
    ("Approval", dialog::approval::ACTIONS),
    ("Questions", dialog::clarify::ACTIONS),
    ("Other questions", dialog::ask::ACTIONS),
    ("Setup", dialog::first_run::ACTIONS),
    ("Confirm", dialog::confirm::ACTIONS),
    ("Message box", dialog::words::ACTIONS),
    ("Error log", dialog::errors::ACTIONS),
    ("Session picker", dialog::sessions::ACTIONS),
    ("Branches", dialog::branches::ACTIONS),
    ("History search", dialog::history::ACTIONS),
    ("Restore", dialog::restore::ACTIONS),
    ("Workflow", dialog::flow::ACTIONS),
    ("Branch summary", dialog::leave::ACTIONS),
    ("Search in sessions", dialog::search::ACTIONS),
    ("Queue", dialog::queue::ACTIONS),
    ("Reports", dialog::reports::ACTIONS),
    ("Compaction", dialog::compact::ACTIONS),
    ("Compare", dialog::compare::ACTIONS),
];

/// Every action with its group.
pub fn all() -> impl Iterator<Item = (&'static str, &'static ActionSpec)> {
    GROUPS.iter().flat_map(|(group, list)| list.iter().map(move |s| (*group, s)))
}

/// Finds an action by id.
pub fn find(id: &str) -> Option<&'static ActionSpec> {
    all().map(|(_, s)| s).find(|s| s.action.0 == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_explained() {
        let mut seen = std::collections::HashSet::new();
        for (_, s) in all() {
            assert!(seen.insert(s.action.0), "{} twice", s.action.0);
            assert!(!s.label.is_empty() && s.help.len() > 3, "{}", s.action.0);
            assert!(s.action.0.split_once('.').is_some(), "{}", s.action.0);
        }
    }

    /// A label stands behind its key (`Esc stop`): small letters but for names, no full stop, at most four words. A
    /// help text is one sentence without a full stop, and begins with a capital letter.
    #[test]
    fn labels_and_help_texts_have_one_form() {
        for (_, s) in all() {
            let (id, label, help) = (s.action.0, s.label, s.help);
            assert!(!label.starts_with(char::is_uppercase) || label.starts_with("AUTO"), "{id}: {label:?}");
            assert!(!label.ends_with(['.', ':', '!']) && label.split(' ').count() <= 4, "{id}: {label:?}");
            assert!(!help.starts_with(char::is_lowercase) && !help.ends_with('.'), "{id}: {help:?}");
        }
        for (group, _) in GROUPS {
            assert!(group.starts_with(char::is_uppercase), "{group:?}");
        }
        for scope in crate::keymap::scope::SCOPES {
            assert!(scope.title.starts_with(char::is_uppercase), "{}", scope.title);
        }
    }
}
