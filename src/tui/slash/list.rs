//! The list of `/` commands. To add one: a file and a line here, in order of names.

use super::SlashCommand;
use super::agents::{btw, queue, spawn, stop, workflow};
use super::alias::Alias;
use super::session::{branch, checkpoint, compact, compare, goal, new, plan, rename, resume, todo, undo};
use super::settings::{budget, effort, model, mute, permissions, theme};

/// All commands, by name.
pub(super) const ALL: &[&dyn SlashCommand] = &[
    &Alias("agents", "Show agents and running tools", "view.agents"),
    &Alias("audit", "What ran, what allowed it, how it ended", "audit.open"),
    &branch::Branch,
    &btw::Btw,
    &budget::Budget,
    &checkpoint::Checkpoint,
    &compact::Compact,
    &compare::Compare,
    &Alias("context", "What takes up the model's context", "context.open"),
    &resume::Continue,
    &Alias("copy", "Copy the last reply as Markdown", "conversation.copy_reply"),
    &Alias("cost", "Cost by model, agent and day", "cost.open"),
    &Alias("detach", "Detach: leave the screen while work continues", "global.detach"),
    &Alias("diff", "Review what the last turn changed", "view.diff"),
    &Alias("editor", "Write the message in your editor", "composer.editor"),
    &effort::SetEffort,
    &Alias("errors", "Show the error log", "errors.open"),
    &Alias("files", "Show changed files and what changed them", "view.watch"),
    &goal::SetGoal,
    &Alias("help", "Show every key and command", "help.open"),
    &Alias("history", "Find an earlier prompt", "history.open"),
    &Alias("keys", "Bind another key to an action", "keys.open"),
    &model::PickModel,
    &mute::Mute,
    &new::New,
    &Alias("ops", "Operations on the conversation, files and titles", "ops.open"),
    &permissions::Permissions,
    &plan::Plan,
    &queue::Queue,
    &Alias("quit", "Quit Tiller", "global.quit"),
    &undo::Undo(true),
    &rename::Rename,
    &Alias("retry", "Retry the failed request now instead of waiting", "global.try_now"),
    &Alias("rewind", "Restore an earlier message: conversation, files or both", "view.sessions"),
    &Alias("sandbox", "What confines commands, and what it does not stop", "sandbox.open"),
    &Alias("search", "Search the text of all sessions", "search.open"),
    &Alias("sessions", "Open another session", "sessions.open"),
    &Alias("settings", "Change screen settings", "settings.open"),
    &Alias("setup", "Set up a model: key, server or demo", "setup.open"),
    &spawn::Spawn,
    &stop::Stop,
    &theme::Theme,
    &todo::Todo,
    &Alias("tour", "Start the guided tour", "tour.open"),
    &Alias("tree", "Browse all sessions as trees", "tree.open"),
    &undo::Undo(false),
    &Alias("view", "Read the conversation in the full viewer", "viewer.open"),
    &workflow::Workflow,
];
