//! The list of `/` commands. To add one: a file and a line here, in order of names.

use super::alias::Alias;
use super::{
    SlashCommand, btw, budget, checkpoint, compact, model, mute, new, permissions, queue, rename, resume,
    stop, theme, todo, undo,
};

/// All commands, by name.
pub(super) const ALL: &[&dyn SlashCommand] = &[
    &Alias("agents", "Show the agents and what runs", "view.agents"),
    &Alias("audit", "What ran, who allowed it, how it ended", "audit.open"),
    &btw::Btw,
    &budget::Budget,
    &checkpoint::Checkpoint,
    &compact::Compact,
    &Alias("context", "Where the model's context goes", "context.open"),
    &resume::Continue,
    &Alias("cost", "What it cost, by model, agent and day", "cost.open"),
    &Alias("diff", "Review what the last turn changed", "view.diff"),
    &Alias("editor", "Write the message in your editor", "composer.editor"),
    &Alias("errors", "Show the error log", "errors.open"),
    &Alias("files", "Show which files changed, and who changed them", "view.watch"),
    &Alias("help", "Show every key and command", "help.open"),
    &Alias("history", "Find an earlier prompt", "history.open"),
    &Alias("keys", "Give an action another key", "keys.open"),
    &model::PickModel,
    &mute::Mute,
    &new::New,
    &Alias("ops", "What moved the conversation or the files, and when", "ops.open"),
    &permissions::Permissions,
    &queue::Queue,
    &Alias("quit", "Leave Tiller", "global.quit"),
    &undo::Undo(true),
    &rename::Rename,
    &Alias("retry", "Do not wait for the next try of a failed request", "global.try_now"),
    &Alias("rewind", "Go back to an earlier message: words, files or both", "view.sessions"),
    &Alias("search", "Find words in everything that was said", "search.open"),
    &Alias("sessions", "Pick another session", "sessions.open"),
    &Alias("settings", "Change settings of the screen", "settings.open"),
    &Alias("setup", "Set up a model: key, server or demo", "setup.open"),
    &stop::Stop,
    &theme::Theme,
    &todo::Todo,
    &Alias("tour", "Begin the guided tour", "tour.open"),
    &Alias("tree", "Browse all sessions as trees", "tree.open"),
    &undo::Undo(false),
    &Alias("view", "Read the conversation in the full viewer", "viewer.open"),
];
