//! What a client asks of the engine. One small enum per concern.

use serde::{Deserialize, Serialize};

use crate::agents::agent::AgentCommand;
use crate::agents::pane::PaneCommand;
use crate::base::ids::{AgentId, AskId, CommandId, EntryId, QueueId, SessionId};
use crate::bus::queue::SendMode;
use crate::bus::view::{ModelRef, Profile};
use crate::session::compare::{Pair, TakePart};
use crate::session::effort::Effort;
use crate::session::message::Message;
use crate::session::restore::RestoreWhat;
use crate::session::search::SearchQuery;
use crate::session::tree::TreeQuery;
use crate::turn::ask::AskReply;
use crate::turn::goal::Goal;
use crate::turn::review::Reject;
use crate::turn::todo::TodoStatus;

/// One request. Everything that it causes carries `id` as `cause`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    pub id: CommandId,
    /// Whom it is for; `None`: the main agent. Commands that are about the crew, or about answers to questions, are
    /// taken by the main agent, whichever agent is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    pub body: CommandBody,
}

impl Command {
    /// For the main agent.
    pub fn new(id: CommandId, body: CommandBody) -> Self {
        Self { id, agent: None, body }
    }
}

/// By concern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "concern", content = "do", rename_all = "snake_case")]
pub enum CommandBody {
    Turn(TurnCommand),
    Queue(QueueCommand),
    Ask(AskCommand),
    Session(SessionCommand),
    Context(ContextCommand),
    Todo(TodoCommand),
    Goal(GoalCommand),
    Review(ReviewCommand),
    Compare(CompareCommand),
    Watch(WatchCommand),
    Agent(AgentCommand),
    Pane(PaneCommand),
    Query(Query),
}

/// The conversation itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnCommand {
    /// Say something.
    Submit { message: Message, mode: SendMode },
    /// Stop the running turn. `hard`: kill tools at once. Also cancels a retry wait.
    Interrupt { hard: bool },
    /// Go on with a turn that was interrupted, cut or parked by an error, as it stands.
    Continue,
    /// Do not wait for the retry countdown.
    SkipWait,
    /// A `!` (share) or `!!` (private) line.
    Shell { line: String, share: bool },
    /// A question on the side, answered by `aside_reply`: from what was said so far, without tools, and
    /// without a trace in the conversation. May be asked while a turn runs.
    Aside { question: String },
    /// Kill one running tool or background process by call id or process id.
    StopTool { id: String },
}

/// Waiting messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QueueCommand {
    Edit {
        id: QueueId,
        message: Message,
    },
    Remove {
        id: QueueId,
    },
    /// To position `to` (0 is next).
    Move {
        id: QueueId,
        to: usize,
    },
    Mode {
        id: QueueId,
        mode: SendMode,
    },
}

/// Answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AskCommand {
    Answer { id: AskId, reply: AskReply },
}

/// Sessions and their settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionCommand {
    New,
    Open {
        id: SessionId,
    },
    Rename {
        id: SessionId,
        title: String,
    },
    Archive {
        id: SessionId,
        archived: bool,
    },
    /// Throw a session away, or take it back within 30 days. Not the one that is open.
    Trash {
        id: SessionId,
        trashed: bool,
    },
    /// Continue the conversation from `entry` on (its text comes back as `branched`).
    Fork {
        entry: EntryId,
    },
    /// Say in few words what was done on the branch that ends at `from`, since it parted from the open one, and
    /// add that here. `focus`: what to keep above all. Answered by `done_reply` or `error_reply`.
    CarryOver {
        from: EntryId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    /// Go to branch `head`, which is there, and continue it. The one that is left stays.
    OpenBranch {
        head: String,
    },
    /// Give branch `head` a name.
    LabelBranch {
        /// `None`: the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        head: String,
        label: String,
    },
    /// Put branch `head` away, or bring it back. Not the one that is open.
    ArchiveBranch {
        /// `None`: the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        head: String,
        archived: bool,
    },
    /// Give an entry the name `name`; `None`: take it off.
    Tag {
        /// `None`: the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        name: String,
        entry: Option<EntryId>,
    },
    /// Name this moment: words and files.
    Checkpoint {
        name: String,
    },
    /// Go back to what was at `entry`: the conversation, the files, or both. What is there now is kept first, and
    /// `UndoRestore` brings it back. Files that somebody else changed stay, unless `force` or `parts` names them.
    Restore {
        entry: EntryId,
        what: RestoreWhat,
        /// Files that stay as they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keep: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        force: Vec<String>,
        /// Of these files only these hunks of the preview's difference; the rest of the file stays as it is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<TakePart>,
    },
    /// Take the last restore of files back; `redo`: do it again.
    UndoRestore {
        redo: bool,
    },
    /// Take the last operation back, whatever it was; `redo`: do again what was undone last.
    UndoOp {
        redo: bool,
    },
    /// Write a session to a new file; its name is relative to the workspace, and its ending says how: `.md`,
    /// `.html`, else JSON lines. Answered by `done_reply`.
    Export {
        id: SessionId,
        file: String,
    },
    SetModel {
        model: ModelRef,
    },
    SetProfile {
        profile: Profile,
    },
    /// How much the model thinks, from the next request on.
    SetEffort {
        effort: Effort,
    },
    /// Raise or set the session's budget, in dollars.
    SetBudget {
        usd: f64,
    },
    /// Keep the key of a provider, which is made ready and tried with it.
    StoreKey {
        provider: String,
        key: KeyText,
    },
    /// Settings or keys changed on disk: read them again. Answered by `done_reply` or `error_reply`.
    Reload,
    /// Save and end; the engine answers `stopped` when all is on disk and no child lives.
    Quit,
}

/// A key on its way from the person to the key file. It is never printed, and no event repeats it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(pub String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(..)")
    }
}

/// What the model sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContextCommand {
    Compact {
        #[serde(default)]
        focus: Option<String>,
    },
    CompactPreview,
    Report,
}

/// The person's edits of the todo list; the end of the next message to the model lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TodoCommand {
    Add { content: String },
    Edit { id: String, content: String },
    Status { id: String, status: TodoStatus },
    Move { id: String, to: usize },
}

/// A goal that the agent pursues by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GoalCommand {
    /// From now on, instead of the one before. Answered by `done_reply` or `error_reply`.
    Set { goal: Goal },
    /// Stop it; one that is stopped or reached is forgotten.
    Stop,
    /// Take up one that stopped.
    Go,
}

/// Diff review of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReviewCommand {
    /// `None`: the last turn that changed files.
    Open { turn: Option<EntryId> },
    /// Apply the reverse of these hunks; a hunk that no longer applies is a conflict, never forced.
    Reject { turn: EntryId, hunks: Vec<Reject> },
    /// Bring back what the last `Reject` took away.
    UndoReject,
}

/// Two branches side by side; looking at them is [`Query::Compare`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CompareCommand {
    /// Bring files, or hunks of them, from the right side into the workspace: a three-way merge. What is there is
    /// kept first, and `UndoOp` brings it back. Where both changed the same lines the file stays as it is.
    Take { pair: Pair, parts: Vec<TakePart> },
    /// Run a line of the person's on the files of each side, in folders of their own that go again afterwards.
    /// Answered by `compare_run_reply`.
    Run { pair: Pair, line: String },
}

/// The watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WatchCommand {
    Pause {
        paused: bool,
    },
    Mute {
        path: String,
    },
    /// The difference of `path` against its state when the session began watching.
    Diff {
        path: String,
    },
}

/// Questions that are answered by one `reply` event with the same cause; they change nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Query {
    /// The whole state; for a client that came or lagged.
    Snapshot,
    /// `count` entries of the path before `before`.
    Page {
        before: EntryId,
        count: u32,
    },
    Sessions {
        everywhere: bool,
        #[serde(default)]
        filter: String,
        /// Those that were put away as well.
        #[serde(default)]
        archived: bool,
        /// Those in the trash instead.
        #[serde(default)]
        trashed: bool,
    },
    Models,
    Mentions {
        text: String,
        limit: u32,
    },
    Audit {
        #[serde(default)]
        filter: String,
        limit: u32,
    },
    Costs {
        by: CostBy,
    },
    Ops {
        limit: u32,
    },
    /// Two sides, answered by `compare_reply`.
    Compare {
        pair: Pair,
    },
    /// Branches and tags of the session that is open, answered by `branches_reply`.
    Branches,
    /// Earlier prompts of this session, project or everywhere.
    History {
        scope: HistoryScope,
        #[serde(default)]
        filter: String,
        limit: u32,
    },
    /// Words in sessions, answered by `search_reply`.
    Search {
        query: SearchQuery,
    },
    /// What going back to an entry would do to the files, answered by `restore_preview_reply`.
    RestorePreview {
        entry: EntryId,
    },
    /// Full text of a tool result by call id.
    ToolOutput {
        call_id: String,
    },
    /// Running background processes, as text rows.
    Processes,
    /// Workflows that can be started by name, answered by `workflows_reply`.
    Workflows,
    /// The screen of an agent that is a program in a terminal, answered by `screen_reply`: at once when it is not
    /// what it was at `since` (0: whatever it is), else as soon as it changes.
    Screen {
        since: u64,
    },
    /// Up to `lines` lines that scrolled away on it, and the screen; answered by `scrollback_reply`.
    Scrollback {
        lines: u32,
    },
    /// For the browser of trees, answered by `tree_reply`.
    Tree {
        query: TreeQuery,
    },
}

/// How costs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBy {
    Agent,
    Model,
    Day,
}

/// How far back the history search looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryScope {
    Session,
    Project,
    All,
}
