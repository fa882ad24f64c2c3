//! Actions of the restore dialog, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions, besides those of a list.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("restore.both", "restore", "Restore the marked files and the conversation")
        .deciding(),
    ActionSpec::key_only("restore.files", "files only", "Restore the marked files only").deciding(),
    ActionSpec::key_only("restore.talk", "messages only", "Restore the conversation only").deciding(),
    ActionSpec::key_only(
        "restore.hunk",
        "mark hunk",
        "Restore this hunk of the file, or leave it as it is now",
    ),
    ActionSpec::key_only("restore.hunk_down", "next hunk", "Next hunk of the file"),
    ActionSpec::key_only("restore.hunk_up", "previous hunk", "Previous hunk"),
    ActionSpec::key_only("restore.diff_down", "scroll down", "Scroll the difference down"),
    ActionSpec::key_only("restore.diff_up", "scroll up", "Scroll the difference up"),
];

/// Default keys of the section `restore`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("enter", "restore.both"),
    ("f", "restore.files"),
    ("t", "restore.talk"),
    ("x", "restore.hunk"),
    ("]", "restore.hunk_down"),
    ("[", "restore.hunk_up"),
    ("J", "restore.diff_down"),
    ("K", "restore.diff_up"),
];
