//! Actions of the workflow dialog, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("flow.forward", "needed by", "Go to a step that needs the selected one"),
    ActionSpec::key_only("flow.back", "needs", "Go to a step that the selected one needs"),
    ActionSpec::key_only("flow.other", "next workflow", "Next workflow of this session"),
    ActionSpec::key_only("flow.answer", "answer", "Answer the selected step's question, else the next one"),
    ActionSpec::key_only("flow.steer", "message", "Write to the agent of the selected step"),
    ActionSpec::key_only("flow.pause", "pause", "Pause or continue the agent of the selected step"),
    ActionSpec::key_only("flow.pause_all", "pause all", "Pause or continue the whole workflow"),
    ActionSpec::key_only("flow.end", "end step", "Cancel the selected step; steps that need it are skipped")
        .deciding(),
    ActionSpec::key_only("flow.stop", "stop all", "Stop the whole workflow; finished steps are kept")
        .deciding(),
    ActionSpec::key_only("flow.retry", "retry", "Retry the selected step and all that need it, with a note"),
    ActionSpec::key_only("flow.resume", "continue", "Continue the workflow with all steps that are not done")
        .deciding(),
    ActionSpec::key_only("flow.raise", "limits", "Change the limits of the selected step's agent"),
    ActionSpec::key_only("flow.result", "result", "Show the selected step's whole result"),
    ActionSpec::key_only("flow.diff", "diff", "Show what the selected step's agent changed"),
    ActionSpec::key_only("flow.start", "start one", "Start a workflow from a file"),
];

/// Default keys of the section `flow`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("right", "flow.forward"),
    ("left", "flow.back"),
    ("tab", "flow.other"),
    ("a", "flow.answer"),
    ("s", "flow.steer"),
    ("m", "flow.steer"),
    ("p", "flow.pause"),
    ("P", "flow.pause_all"),
    ("k", "flow.end"),
    ("K", "flow.stop"),
    ("r", "flow.retry"),
    ("u", "flow.resume"),
    ("l", "flow.raise"),
    ("o", "flow.result"),
    ("d", "flow.diff"),
    ("S", "flow.start"),
];
