//! Actions of the comparison, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("compare.next", "next view", "Next view: files, messages, or command output"),
    ActionSpec::key_only("compare.other", "other side", "Show or scroll the other side"),
    ActionSpec::key_only("compare.take", "take hunk", "Apply this hunk of the right side to the workspace")
        .deciding(),
    ActionSpec::key_only(
        "compare.take_file",
        "take file",
        "Merge this file of the right side into the workspace",
    )
    .deciding(),
    ActionSpec::key_only("compare.undo", "undo", "Undo the last operation, for example a taken hunk")
        .deciding(),
    ActionSpec::key_only("compare.hunk_down", "next hunk", "Next hunk"),
    ActionSpec::key_only("compare.hunk_up", "previous hunk", "Previous hunk"),
    ActionSpec::key_only("compare.run", "run", "Run a command on the files of both sides").deciding(),
    ActionSpec::key_only("compare.swap", "swap", "Swap left and right"),
    ActionSpec::key_only("compare.load", "load", "Compare again"),
];

/// Default keys of the section `compare`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("tab", "compare.next"),
    ("|", "compare.other"),
    ("left", "compare.other"),
    ("right", "compare.other"),
    ("t", "compare.take"),
    ("T", "compare.take_file"),
    ("z", "compare.undo"),
    ("]", "compare.hunk_down"),
    ("[", "compare.hunk_up"),
    ("!", "compare.run"),
    ("x", "compare.swap"),
    ("ctrl-r", "compare.load"),
];
