//! Reports of the tasks that prepare and follow a message of the user.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::{BoxFuture, Shared};
use tiller_protocol::view::{AuditRow, ShellLineView};
use tiller_protocol::{
    CommandId, Message, ModelRef, Notice, Part, QueueId, Taint, Time, TodoItem, ToolOutcome,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::bus::{ClientId, EventScope};
use crate::context::msg::Prefix;
use crate::context::prefix::layers::Layers;
use crate::goal::pursuit::GoalReport;
use crate::money::today::Today;
use crate::prompts::message_commands::held::MessageCommand;
use crate::turn::terms::TurnTerms;

/// Reports about a message being prepared, a shell line of the user's, a goal, or the todo list.
pub(crate) enum PromptMsg {
    /// The files that messages may name were read again.
    FilesRead(Box<MessageJob>),
    PreparedMessage(Box<PreparedMessage>),
    LineDone(Box<ShellDone>),
    /// A command has run on both sides of a comparison.
    RanOnBoth(Box<AuditRow>),
    /// Comments in files that start a turn.
    Comments(Vec<FileComments>),
    GoalChecked(Box<GoalReport>),
    /// The output styles were read again for a style that was not known.
    StylesRead {
        client: ClientId,
        cause: CommandId,
        name: String,
    },
    Todos {
        items: Vec<TodoItem>,
        /// Gets its answer when the list is stored.
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// A line number from 1, and the text.
pub(crate) type Comment = (usize, String);

/// Comments that are in a file now.
pub(crate) struct FileComments {
    pub(crate) path: String,
    pub(crate) comments: Vec<Comment>,
}

/// The comments of each file when it was searched last.
#[derive(Default)]
pub(crate) struct SeenComments(HashMap<String, Vec<String>>);

impl SeenComments {
    /// The new ones of these comments.
    pub(crate) fn news(&mut self, found: &FileComments) -> Vec<Comment> {
        let before = self.0.remove(&found.path).unwrap_or_default();
        if !found.comments.is_empty() {
            self.0.insert(found.path.clone(), found.comments.iter().map(|(_, text)| text.clone()).collect());
        }
        found.comments.iter().filter(|(_, text)| !before.contains(text)).cloned().collect()
    }
}

/// The layers of the system prompt, read in the background when a session starts.
pub(crate) type PrefixTask = Shared<BoxFuture<'static, Arc<Layers>>>;

/// The destination of a message.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// Begins a turn. The client that sent it gets the reason if that fails.
    Prompt { client: Option<(ClientId, CommandId)> },
    /// Joins the turn in flight.
    Steer { turn: u64 },
    /// Continues the conversation without a new message.
    Continue { cause: CommandId },
}

/// Messages that are to be prepared.
pub(crate) struct MessageJob {
    pub(crate) goal: Destination,
    pub(crate) messages: Vec<(Option<QueueId>, Message)>,
    /// As [`PreparedMessage::no`].
    pub(crate) no: u64,
}

/// A message whose attachments were read.
pub(crate) struct PreparedItem {
    pub(crate) id: Option<QueueId>,
    pub(crate) message: Message,
    pub(crate) content: Result<Vec<Part>, Notice>,
    /// The least trusted text of others in the content.
    pub(crate) taint: Option<Taint>,
    /// The numbers of the learnings at the end of the content.
    pub(crate) learnings: Vec<i64>,
    /// What its own command and its skills hold the turn to.
    pub(crate) terms: TurnTerms,
    /// Commands that run before it is sent; their marks stand in the content.
    pub(crate) commands: Vec<MessageCommand>,
}

/// A message that is ready to be sent.
pub(crate) struct PreparedMessage {
    pub(crate) goal: Destination,
    pub(crate) items: Vec<PreparedItem>,
    pub(crate) prefix: Option<Prefix>,
    /// Spending of the day, where that is limited.
    pub(crate) today: Option<Today>,
    /// Number of the [`crate::prompts::doing::RunningJob`] that waits for it; 0 for steering, which belongs to its turn.
    pub(crate) no: u64,
}

/// Shell lines of the user's: the running one and the waiting ones.
#[derive(Default)]
pub(crate) struct ShellLines {
    pub(crate) running: Option<ShellLineView>,
    pub(crate) waiting: VecDeque<WaitingLine>,
}

impl ShellLines {
    /// The lines in the order in which they were typed, for clients.
    pub(crate) fn views(&self) -> Vec<ShellLineView> {
        let waiting = self.waiting.iter().map(|t| t.view.clone());
        self.running.iter().cloned().chain(waiting).collect()
    }
}

/// A line that does not run yet.
pub(crate) struct WaitingLine {
    pub(crate) scope: EventScope,
    pub(crate) line: String,
    pub(crate) view: ShellLineView,
}

/// A running line, and the token that ends it.
pub(crate) struct RunningLine {
    pub(crate) line: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) hard: CancellationToken,
}

/// A line that has run.
pub(crate) struct ShellDone {
    pub(crate) id: String,
    pub(crate) scope: EventScope,
    /// The head that was open when it was typed.
    pub(crate) head: String,
    pub(crate) line: String,
    pub(crate) share: bool,
    pub(crate) output: String,
    pub(crate) exit: Option<i32>,
    pub(crate) time: Time,
    pub(crate) seconds: f64,
    pub(crate) outcome: ToolOutcome,
}

/// What it is called where it is stopped.
pub(crate) const LINE: &str = "aside";

/// An answer, or why there is none.
pub(crate) struct Aside {
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) model: ModelRef,
    pub(crate) question: String,
    pub(crate) result: Result<String, Notice>,
}

/// What a message names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedText {
    Diff,
    /// By the beginning of its id.
    Session(String),
    /// A resource of an MCP server.
    Resource {
        server: String,
        uri: String,
    },
}

/// What the last turn changed, read away from the engine's task.
pub(crate) type DiffText = std::sync::Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What is named, and the source of its text where the store does not hold it.
pub(crate) type Texts = Vec<(NamedText, Option<DiffText>)>;
