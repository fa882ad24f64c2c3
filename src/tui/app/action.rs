//! Every action that there is: [`GROUPS`] collects what panels and dialogs declare, and keys, palette, help and footer
//! are made from that.

use crate::app::global;
use crate::keymap::action::ActionSpec;
use crate::{dialog, panel, view::agent_view, view::arrange, widget};

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
