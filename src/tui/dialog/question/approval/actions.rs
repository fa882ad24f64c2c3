//! Actions of the approval dialog, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("approval.no", "no", "Deny: the call does not run"),
    ActionSpec::key_only("approval.comment", "say why", "Deny and tell the agent why"),
    ActionSpec::yes("approval.once", "once", "Approve this call only"),
    ActionSpec::yes("approval.outside", "outside", "Approve this call only, and run it outside the sandbox"),
    ActionSpec::yes(
        "approval.session",
        "session",
        "Approve this and calls under the same rule until the session ends",
    ),
    ActionSpec::key_only("approval.edit", "edit", "Edit the command or the draft; it is checked again"),
    ActionSpec::yes("approval.always", "always", "Approve and save the rule; shows the rule first"),
    ActionSpec::key_only("approval.calls", "each call", "Show each of the calls that the answer is for"),
    ActionSpec::key_only("approval.try", "try it", "Try the skill with and without it, before you decide"),
    ActionSpec::key_only("approval.next", "next", "Next button"),
    ActionSpec::key_only("approval.previous", "previous", "Previous button"),
    ActionSpec::key_only("approval.press", "press", "Press the focused button; never approves a risky call"),
    ActionSpec::key_only("approval.send", "done", "Submit the text"),
    ActionSpec::key_only("approval.newline", "new line", "Insert a new line"),
];

/// Default keys of the section `approval`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("n", "approval.no"),
    ("c", "approval.comment"),
    ("y", "approval.once"),
    ("o", "approval.outside"),
    ("s", "approval.session"),
    ("e", "approval.edit"),
    ("A", "approval.always"),
    ("v", "approval.calls"),
    ("t", "approval.try"),
    ("1", "approval.no"),
    ("2", "approval.comment"),
    ("3", "approval.once"),
    ("4", "approval.session"),
    ("5", "approval.edit"),
    ("6", "approval.always"),
    ("7", "approval.outside"),
    ("tab", "approval.next"),
    ("right", "approval.next"),
    ("shift-tab", "approval.previous"),
    ("left", "approval.previous"),
    ("enter", "approval.press"),
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
