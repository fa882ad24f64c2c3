//! Actions of the dialog of an agent's questions, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("clarify.choose", "answer", "Submit the selected answer or the typed text"),
    ActionSpec::key_only("clarify.down", "down", "Next answer"),
    ActionSpec::key_only("clarify.up", "up", "Previous answer"),
    ActionSpec::key_only("clarify.mark", "mark", "Mark or unmark the answer if several are allowed"),
    ActionSpec::key_only("clarify.text", "type an answer", "Type your own answer, or return to the list"),
    ActionSpec::key_only("clarify.decline", "decline", "Decline to answer; the agent is told"),
    ActionSpec::key_only("clarify.newline", "new line", "Insert a new line"),
    ActionSpec::key_only("clarify.page_down", "read on", "Scroll the question down"),
    ActionSpec::key_only("clarify.page_up", "read back", "Scroll the question up"),
];

/// Default keys of the section `clarify`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("enter", "clarify.choose"),
    ("down", "clarify.down"),
    ("up", "clarify.up"),
    ("ctrl-n", "clarify.down"),
    ("ctrl-p", "clarify.up"),
    ("space", "clarify.mark"),
    ("tab", "clarify.text"),
    ("ctrl-j", "clarify.newline"),
    ("alt-enter", "clarify.newline"),
    ("leader x", "clarify.decline"),
    ("pagedown", "clarify.page_down"),
    ("pageup", "clarify.page_up"),
];
