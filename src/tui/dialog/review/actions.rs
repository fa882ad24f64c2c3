//! Actions of the diff review, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// What a review can do.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("review.accept", "accept", "Accept this hunk and go to the next one"),
    ActionSpec::key_only("review.reject", "reject", "Revert this hunk or the selected lines").deciding(),
    ActionSpec::key_only("review.accept_file", "accept file", "Accept this file and go to the next one"),
    ActionSpec::key_only("review.reject_file", "reject file", "Revert the whole file").deciding(),
    ActionSpec::key_only("review.hunk_down", "next hunk", "Next hunk"),
    ActionSpec::key_only("review.hunk_up", "previous hunk", "Previous hunk"),
    ActionSpec::key_only("review.file_down", "next file", "Next file"),
    ActionSpec::key_only("review.file_up", "previous file", "Previous file"),
    ActionSpec::key_only("review.lines", "lines", "Select lines from here on"),
    ActionSpec::key_only("review.comment", "comment", "Comment on this line for the agent"),
    ActionSpec::key_only("review.send", "send", "Send all comments as one message").deciding(),
    ActionSpec::key_only(
        "review.discard",
        "discard comments",
        "Discard all unsent comments; their text stays in the prompt history",
    ),
    ActionSpec::key_only("review.edit", "edit", "Open the file here in the editor"),
    ActionSpec::key_only("review.undo", "undo", "Undo the last rejection").deciding(),
    ActionSpec::key_only("review.blanks", "whitespace", "Show or hide whitespace-only changes"),
    ActionSpec::key_only("review.less", "less context", "Fewer lines around changes"),
    ActionSpec::key_only("review.more", "more context", "More lines around changes"),
    ActionSpec::key_only(
        "review.side",
        "side by side",
        "Show old and new side by side, or one below the other",
    ),
    ActionSpec::key_only("review.load", "load", "Reload what the last turn changed"),
];

/// Default keys of the section `diff`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("a", "review.accept"),
    ("r", "review.reject"),
    ("A", "review.accept_file"),
    ("R", "review.reject_file"),
    ("]", "review.hunk_down"),
    ("[", "review.hunk_up"),
    ("l", "review.file_down"),
    ("h", "review.file_up"),
    ("right", "review.file_down"),
    ("left", "review.file_up"),
    ("tab", "review.file_down"),
    ("v", "review.lines"),
    ("c", "review.comment"),
    ("S", "review.send"),
    ("D", "review.discard"),
    ("e", "review.edit"),
    ("z", "review.undo"),
    ("w", "review.blanks"),
    ("{", "review.less"),
    ("}", "review.more"),
    ("|", "review.side"),
    ("ctrl-r", "review.load"),
];
