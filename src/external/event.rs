//! Events of an external agent, the same for all transports. All texts are as the program gave them: hostile until they
//! are drawn as plain cells.

use std::path::PathBuf;

use serde_json::Value;
use tiller_protocol::{Activity, ActivitySource, Cost, TodoItem, Transport, Usage};
use tokio::sync::oneshot;

/// One event.
#[derive(Debug)]
pub enum AgentEvent {
    /// The first: it runs.
    Started { pid: i32, transport: Transport },
    /// It reported its session (to resume it later), model or version.
    Session { id: Option<String>, model: Option<String> },
    /// It cannot go on with its earlier session: a fresh one received the conversation so far ([`super::Resume::fresh_prompt`]).
    Anew,
    /// More of its answer. Pieces are to be joined as they are.
    Text(String),
    /// More of its thoughts.
    Thinking(String),
    /// The message is complete; the next text begins a new one.
    Break,
    /// It uses a tool of its own. A second one of the same `id` replaces the first (more is known now).
    Tool(ToolUse),
    /// Output of a running tool: what is new of it.
    ToolProgress { id: String, text: String },
    /// A tool ended. `id` is that of an earlier [`AgentEvent::Tool`].
    ToolDone { id: String, ok: bool, output: String, diffs: Vec<FileDiff> },
    /// Its todo list, all of it.
    Plan(Vec<TodoItem>),
    /// A question that waits for an answer. Dropping `reply` refuses.
    Ask(Ask),
    /// To be added to what it used. `cost` is `None` when it does not say.
    Usage { usage: Usage, cost: Option<Cost> },
    /// Its context: tokens in use, and the window when known.
    Context { used: u64, window: Option<u64> },
    /// What it seems to be doing.
    State(ActivityClaim),
    /// Its screen changed; take it with [`super::Control::screen`]. At most one waits in the channel.
    Screen,
    /// It set the title of its terminal.
    Title(String),
    /// The bell of its terminal rang.
    Bell,
    /// A message to it (`id` from [`super::Receipt::Queued`]) was handed over.
    Delivered { id: u64 },
    /// A message to it was not handed over. `tried`: it may stand half typed on its screen; the sender decides
    /// whether it is said again.
    Missed { id: u64, why: String, tried: bool },
    /// A turn is over and it waits for more ([`super::Job::stay`]). The text of this turn.
    TurnDone { text: String },
    /// A note for the person, for instance about a line that was too long.
    Note(String),
    /// The last event.
    Ended(Ending),
}

/// A tool in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolUse {
    /// As it named the call.
    pub id: String,
    /// Its name for the tool, or the title that it gave the call.
    pub name: String,
    /// Our word for the row: `read`, `edit`, `shell`, `search`, `fetch`, `think`, `tool`.
    pub verb: String,
    /// A path, command, pattern or address; empty when not known.
    pub target: String,
    /// The files that the call names, in its arguments or as the protocol reports them.
    pub paths: Vec<String>,
    pub args: Value,
    /// The call is still being written: a later event may say more.
    pub pending: bool,
}

/// A change of a file as the program reports it. Not checked against the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    /// `None`: a new file, or not reported.
    pub old: Option<String>,
    /// `None`: the program reported only that it changed.
    pub new: Option<String>,
}

/// A question of the program.
#[derive(Debug)]
pub struct Ask {
    /// Fresh within this run.
    pub id: u64,
    /// The tool call that waits.
    pub call: Option<String>,
    pub what: Question,
    pub reply: oneshot::Sender<Answer>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// May it do this?
    Permission {
        tool: Box<ToolUse>,
        /// All that it shows about it: command, text of the dialog.
        shown: String,
        diffs: Vec<FileDiff>,
        options: Vec<Choice>,
        /// What it would do was read off a screen, which may show less than what runs.
        by_screen: bool,
    },
    /// A dialog of its screen, or a question with choices.
    Choose { text: String, options: Vec<Choice>, free_text: bool },
}

/// One way to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The program's id.
    pub id: String,
    /// Its words.
    pub name: String,
    pub kind: ChoiceKind,
}

/// What a choice means. Chosen by this, never by id or place.
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
    /// The first option of this kind; when there is none, the nearest that grants no more.
    Kind(ChoiceKind),
    /// The option of this id.
    Option(String),
    /// Free text, where that is taken.
    Text(String),
    /// No answer: the turn is broken off, as with its own Esc.
    Cancel,
}

/// The activity of the program, and how it is known. A lower source never overwrites a higher one, except a
/// visible blocking prompt over a stale claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityClaim {
    pub what: Activity,
    pub source: ActivitySource,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub status: Status,
    /// Its final answer; what there was of it when it did not come to its end.
    pub text: String,
    /// Exit code, or 128 + signal. `None`: it was ended by us, or never ran.
    pub exit: Option<i32>,
    /// For a person, when not `Done`: what happened, why, what to do.
    pub why: String,
    /// Files that hold what it wrote in full, when kept.
    pub files: Vec<PathBuf>,
}

/// How it ended, in kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Done,
    /// It reported a failure, or its output could not be understood.
    Failed,
    Cancelled,
    TimedOut,
    /// The program crashed.
    Crashed,
}
