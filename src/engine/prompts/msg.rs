//! What the tasks that prepare and follow a person's message report to the engine's loop.

use tiller_protocol::TodoItem;
use tiller_protocol::view::AuditRow;
use tokio::sync::oneshot;

use crate::goal::Checked;
use crate::prompts::comments::Found;
use crate::prompts::compose::Composed;
use crate::prompts::shell_line::ShellDone;

/// A report about a message that is prepared, a line of the person's shell, a goal, or the todo list.
pub(crate) enum PromptMsg {
    Composed(Box<Composed>),
    LineDone(Box<ShellDone>),
    /// A line has run on both sides of a comparison.
    RanOnBoth(Box<AuditRow>),
    /// Comments in files that ask for a turn.
    Comments(Vec<Found>),
    GoalChecked(Box<Checked>),
    Todos {
        items: Vec<TodoItem>,
        /// Answered when the list is stored.
        reply: oneshot::Sender<Result<(), String>>,
    },
}
