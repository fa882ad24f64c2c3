//! Actions of the tree browser, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions besides those of a list, and besides forking and going back, which the panel of view 5 has as well.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("tree.unfold", "unfold", "Show what is below this row: calls, a branch, a session"),
    ActionSpec::key_only("tree.fold", "fold", "Fold this row, or go to its parent"),
    ActionSpec::key_only("tree.all", "all calls", "Unfold replies and tool calls everywhere, or fold them"),
    ActionSpec::key_only("tree.only", "filter", "Filter: checkpoints, branches with changes, errors, all"),
    ActionSpec::key_only("tree.agent", "agent", "Filter by agent: one, the next, all"),
    ActionSpec::key_only(
        "tree.archived",
        "archived",
        "Show or hide archived branches and sessions, and those of `tiller exec`",
    ),
    ActionSpec::key_only(
        "tree.everywhere",
        "all projects",
        "Show the sessions of all projects, or of this one",
    ),
    ActionSpec::key_only("tree.preview", "preview", "Show or hide what the entry says and changed"),
    ActionSpec::key_only("tree.side_down", "preview down", "Scroll the preview down"),
    ActionSpec::key_only("tree.side_up", "preview up", "Scroll the preview up"),
    ActionSpec::key_only("tree.name", "name", "Name the branch of this row, or rename the session"),
    ActionSpec::key_only("tree.tag", "tag", "Name this entry; an empty name removes the tag"),
    ActionSpec::key_only("tree.archive", "archive", "Archive or unarchive the branch or session").deciding(),
    ActionSpec::key_only(
        "tree.trash",
        "delete",
        "Delete the session (restorable for 30 days), or restore it; a branch is archived",
    )
    .deciding(),
    ActionSpec::key_only(
        "tree.compare",
        "compare",
        "Compare this row with the marked one, else the open branch",
    ),
    ActionSpec::key_only(
        "tree.export",
        "export",
        "Write this session to a file: Markdown, HTML or JSON lines",
    ),
    ActionSpec::key_only("tree.undo", "undo", "Undo the last operation of the open session").deciding(),
];

/// Default keys of the section `tree`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("f", "tree.fork"),
    ("R", "tree.restore"),
    ("right", "tree.unfold"),
    ("left", "tree.fold"),
    ("o", "tree.unfold"),
    ("h", "tree.fold"),
    ("t", "tree.all"),
    ("F", "tree.only"),
    ("@", "tree.agent"),
    ("A", "tree.archived"),
    ("w", "tree.everywhere"),
    ("p", "tree.preview"),
    ("J", "tree.side_down"),
    ("K", "tree.side_up"),
    ("l", "tree.name"),
    ("T", "tree.tag"),
    ("a", "tree.archive"),
    ("x", "tree.trash"),
    ("u", "tree.undo"),
    ("E", "tree.export"),
    ("c", "tree.compare"),
];
