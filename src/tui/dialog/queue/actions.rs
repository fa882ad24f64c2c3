//! Actions of the queue dialog, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions, besides those of a list.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("queue.edit", "edit", "Edit the selected message"),
    ActionSpec::key_only("queue.up", "move up", "Move the selected message up"),
    ActionSpec::key_only("queue.down", "move down", "Move the selected message down"),
    ActionSpec::key_only("queue.steer", "steer", "Deliver it in this turn, after the current tool"),
    ActionSpec::key_only("queue.after", "after the turn", "Send it as a separate turn afterwards"),
    ActionSpec::key_only("queue.now", "stop and send", "Stop the turn and send it now").deciding(),
    ActionSpec::key_only("queue.take", "to composer", "Move it back to the composer").deciding(),
    ActionSpec::key_only("queue.remove", "remove", "Remove it; Up in the composer restores it").deciding(),
    ActionSpec::key_only("queue.send", "done", "Save the text"),
    ActionSpec::key_only("queue.newline", "new line", "Insert a new line"),
];

/// Default keys of the section `queue`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("e", "queue.edit"),
    ("K", "queue.up"),
    ("J", "queue.down"),
    ("s", "queue.steer"),
    ("a", "queue.after"),
    ("!", "queue.now"),
    ("c", "queue.take"),
    ("x", "queue.remove"),
    ("delete", "queue.remove"),
];
