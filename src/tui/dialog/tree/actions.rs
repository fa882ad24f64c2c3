//! What the browser can do, for the list of actions.

use crate::action::ActionSpec;

/// What it can do besides a list, and besides forking and going back, which the small tree can as well.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("tree.unfold", "unfold", "Show what is below this row: calls, a branch, a session"),
    ActionSpec::key_only("tree.fold", "fold", "Fold this row, or go to the one that it hangs off"),
    ActionSpec::key_only("tree.all", "all calls", "Unfold replies and tool calls everywhere, or fold them"),
    ActionSpec::key_only("tree.only", "filter", "Only checkpoints, branches with changes, errors; then all"),
    ActionSpec::key_only("tree.agent", "agent", "Only what one agent did; then the next; then all"),
    ActionSpec::key_only("tree.archived", "put away", "Show also what was put away, or hide it"),
    ActionSpec::key_only("tree.everywhere", "all projects", "Sessions of all projects, or of this one"),
    ActionSpec::key_only("tree.preview", "preview", "Show or hide what the entry says and changed"),
    ActionSpec::key_only("tree.side_down", "preview down", "Scroll the preview down"),
    ActionSpec::key_only("tree.side_up", "preview up", "Scroll the preview up"),
    ActionSpec::key_only("tree.name", "name", "Give the branch of this row a name, or the session a title"),
    ActionSpec::key_only("tree.tag", "tag", "Give this entry a name of its own; an empty one takes it off"),
    ActionSpec::key_only("tree.archive", "put away", "Put the branch or the session away, or bring it back"),
    ActionSpec::key_only(
        "tree.trash",
        "throw away",
        "Throw the session away for 30 days, or take it back; a branch is only put away",
    ),
    ActionSpec::key_only(
        "tree.compare",
        "compare",
        "Compare this row with the marked one, else with the open branch",
    ),
    ActionSpec::key_only(
        "tree.export",
        "export",
        "Write this session to a file: Markdown, HTML or JSON lines",
    ),
    ActionSpec::key_only("tree.undo", "undo", "Take the last operation of the open session back"),
];
