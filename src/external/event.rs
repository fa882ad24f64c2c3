//! Events of an external agent, the same for all transports. All texts are untrusted, as the program sent them, until
//! they are drawn as plain cells.

use std::path::PathBuf;

use serde_json::Value;
use tiller_protocol::{Activity, ActivitySource, Cost, TodoItem, ToolVerb, Transport, Usage};
use tokio::sync::oneshot;

/// Why a run failed whose answer the model did not end.
pub(crate) const CUT_OFF: &str = "its answer was cut off at its token limit";

/// One event.
#[derive(Debug)]
pub enum AgentEvent {
    /// The first event: it runs.
    Started { pid: i32, transport: Transport },
    /// It reported its session id (to resume it later), model or version.
    Session { id: Option<String>, model: Option<String> },
    /// It cannot continue its earlier session: a fresh one received the conversation so far
    /// ([`super::Resume::fresh_prompt`]).
    Anew,
    /// A piece of its answer, to be appended unchanged.
    Text(String),
    /// A piece of its thoughts.
    Thinking(String),
    /// The message is complete; the next text begins another one.
    Break,
    /// It uses a tool of its own. A second event with the same `id` replaces the first, with more detail.
    Tool(ToolUse),
    /// New output of a running tool.
    ToolProgress { id: String, text: String },
    /// A tool ended. `id` is that of an earlier [`AgentEvent::Tool`].
    ToolDone { id: String, ok: bool, output: String, diffs: Vec<FileDiff> },
    /// Its complete todo list.
    Plan(Vec<TodoItem>),
    /// A question that waits for an answer. Dropping `reply` refuses it.
    Ask(Ask),
    /// Usage to be added. `cost` is `None` when it is not reported.
    Usage { usage: Usage, cost: Option<Cost> },
    /// Its context: tokens in use, and the window when known.
    Context { used: u64, window: Option<u64> },
    /// Its estimated activity.
    State(ActivityClaim),
    /// Its screen changed; read it with [`super::Control::screen`]. At most one waits in the channel.
    Screen,
    /// It set its terminal's title.
    Title(String),
    /// It sent a bell character.
    Bell,
    /// A message to it (`id` from [`super::Receipt::Queued`]) was delivered.
    Delivered { id: u64 },
    /// A message to it was not delivered. `tried`: it may be half typed on its screen; the sender decides whether to
    /// send it again.
    Missed { id: u64, why: String, tried: bool },
    /// A turn ended and it waits for more ([`super::Job::stay`]). The text of this turn.
    TurnDone { text: String },
    /// A note for the person, for instance about a line that was too long.
    Note(String),
    /// The last event.
    Ended(Ending),
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolUse {
    /// The program's id of the call.
    pub id: String,
    /// Its name for the tool, or its title of the call.
    pub name: String,
    /// What it does, in our terms.
    pub verb: ToolVerb,
    /// A path, command, pattern or address; empty when not known.
    pub target: String,
    /// Files that the call names, in its arguments or by the protocol.
    pub paths: Vec<String>,
    pub args: Value,
    /// The call is incomplete: a later event may have more detail.
    pub pending: bool,
}

/// A change of a file as the program reports it, not checked against the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    /// `None`: a new file, or not reported.
    pub old: Option<String>,
    /// `None`: only the fact of a change was reported.
    pub new: Option<String>,
}

/// A question of the program.
#[derive(Debug)]
pub struct Ask {
    /// Unique within this run.
    pub id: u64,
    /// The tool call that waits for the answer.
    pub call: Option<String>,
    pub what: Question,
    pub reply: oneshot::Sender<Answer>,
}

/// The content of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Whether it may do this.
    Permission {
        tool: Box<ToolUse>,
        /// Everything that it shows about it: command, text of the dialog.
        shown: String,
        diffs: Vec<FileDiff>,
        options: Vec<Choice>,
        /// The action was read from a screen, which may show less than what runs.
        by_screen: bool,
    },
    /// A dialog on its screen, or a question with choices.
    Choose { text: String, options: Vec<Choice>, free_text: bool },
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The program's id of it.
    pub id: String,
    /// The program's text of it.
    pub name: String,
    pub kind: ChoiceKind,
}

/// The meaning of an option. Options are selected by this, never by id or position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Other,
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The first option of this kind; if there is none, the nearest that grants no more.
    Kind(ChoiceKind),
    /// The option with this id.
    Option(String),
    /// Free text, where that is accepted.
    Text(String),
    /// No answer: the turn is cancelled, as with the program's own Esc.
    Cancel,
}

/// The activity of the program, and the source of that information. A lower source never overrides a higher one, except
/// that a visible blocking prompt overrides a stale claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityClaim {
    pub what: Activity,
    pub source: ActivitySource,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub status: Status,
    /// Its final answer, or the part of it before the end.
    pub text: String,
    /// Exit code, or 128 + signal. `None`: Tiller ended it, or it never ran.
    pub exit: Option<i32>,
    /// The reason for people, unless `Done`: what happened, why, what to do.
    pub why: String,
    /// Files with its full output, when kept.
    pub files: Vec<PathBuf>,
}

/// The kind of an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Done,
    /// It reported a failure, or its output could not be parsed.
    Failed,
    Cancelled,
    TimedOut,
    /// The program crashed.
    Crashed,
}
