//! Actions of the dialogs of other questions, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Their actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::yes("question.yes", "yes", "Continue"),
    ActionSpec::key_only("question.no", "no", "Cancel"),
    ActionSpec::yes("question.trust", "trust", "Trust the files of this folder in their current form"),
    ActionSpec::key_only("question.never", "never", "Never trust this folder; do not ask again"),
    ActionSpec::yes("question.raise", "raise the limit", "Enter a new limit"),
    ActionSpec::key_only("question.stop", "stop", "Keep the limit and stop"),
    ActionSpec::key_only("question.branch", "branch", "Open a branch of the session"),
    ActionSpec::key_only("question.read_only", "read only", "Open the session read-only"),
    ActionSpec::yes("question.approve", "approve", "Approve the plan: the agent carries it out"),
    ActionSpec::key_only("question.change", "change", "Write what to change in the plan"),
    ActionSpec::key_only("question.editor", "editor", "Edit the plan in your editor"),
    ActionSpec::key_only("question.drop", "drop", "Discard the plan and leave planning"),
    ActionSpec::key_only("question.next", "next", "Next button"),
    ActionSpec::key_only("question.previous", "previous", "Previous button"),
    ActionSpec::key_only("question.press", "press", "Press the focused button; never approves"),
    ActionSpec::key_only("question.send", "done", "Submit the text"),
];

/// Default keys of the section `question`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("y", "question.yes"),
    ("n", "question.no"),
    ("b", "question.branch"),
    ("r", "question.raise question.read_only"),
    ("s", "question.stop"),
    ("tab", "question.next"),
    ("right", "question.next"),
    ("shift-tab", "question.previous"),
    ("left", "question.previous"),
    ("enter", "question.press"),
    ("down", "list.down"),
    ("up", "list.up"),
    ("j", "list.down"),
    ("k", "list.up"),
    ("pagedown", "list.page_down"),
    ("space", "list.page_down"),
    ("pageup", "list.page_up"),
    ("home", "list.first"),
    ("g", "list.first"),
    ("end", "list.last"),
    ("G", "list.last"),
    ("?", "help.open"),
];
