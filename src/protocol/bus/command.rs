//! What a client asks of the engine. One small enum per concern.

use serde::{Deserialize, Serialize};

use crate::agents::agent::AgentCommand;
use crate::agents::pane::PaneCommand;
use crate::base::ids::{AgentId, AskId, CommandId, EntryId, QueueId, SessionId};
use crate::bus::queue::SendMode;
use crate::bus::view::{ModelRef, Profile};
use crate::knowledge::learning::{LearningCommand, LearningsQuery};
use crate::knowledge::memory::{MemoryCommand, MemoryQuery};
use crate::knowledge::skill::{SkillCommand, SkillQuery};
use crate::session::compare::{Pair, TakePart};
use crate::session::effort::Effort;
use crate::session::message::Message;
use crate::session::restore::RestoreWhat;
use crate::session::search::SearchQuery;
use crate::session::tree::TreeQuery;
use crate::turn::ask::AskReply;
use crate::turn::goal::Goal;
use crate::turn::mcp::McpAct;
use crate::turn::review::Reject;
use crate::turn::todo::TodoStatus;

/// One request of a client. Every event that it causes carries `id` as `cause`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    pub id: CommandId,
    /// The agent that it addresses; `None`: the main agent. The main agent takes commands about agents and answers to
    /// questions, whichever agent is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    pub body: CommandBody,
}

impl Command {
    /// A command for the main agent.
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
    Memory(MemoryCommand),
    Learning(LearningCommand),
    Skill(SkillCommand),
    Query(Query),
}

/// The conversation itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnCommand {
    /// Send a message.
    Submit { message: Message, mode: SendMode },
    /// Stop the running turn. `hard`: kill tools at once. Also cancels a retry wait.
    Interrupt { hard: bool },
    /// Continue a turn that was interrupted, cut off or parked by an error.
    Continue,
    /// Skip the countdown to the next retry.
    SkipWait,
    /// A `!` (share) or `!!` (private) line.
    Shell { line: String, share: bool },
    /// A question on the side, answered by `aside_reply`: uses the conversation so far, without tools, and leaves no
    /// trace in the conversation. Allowed while a turn runs.
    Aside { question: String },
    /// Kill one running tool or background process by call id or process id.
    StopTool { id: String },
}

/// Commands about messages that wait.
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
    /// Move it to position `to` (0 is next).
    Move {
        id: QueueId,
        to: usize,
    },
    Mode {
        id: QueueId,
        mode: SendMode,
    },
}

/// Answers to questions.
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
    /// Move a session to the trash, or bring it back within 30 days. Not the open session.
    Trash {
        id: SessionId,
        trashed: bool,
    },
    /// Continue the conversation from `entry` on (its text comes back as `branched`).
    Fork {
        entry: EntryId,
    },
    /// Summarise the branch that ends at `from`, since it parted from the open one, and add the summary here. `focus`:
    /// what to keep above all. Answered by `done_reply` or `error_reply`.
    CarryOver {
        from: EntryId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    /// Go to the existing branch `head` and continue it. The branch that is left stays.
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
    /// Archive branch `head`, or bring it back. Not the open branch.
    ArchiveBranch {
        /// `None`: the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        head: String,
        archived: bool,
    },
    /// Tag an entry with `name`; `None`: remove the tag.
    Tag {
        /// `None`: the session that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        name: String,
        entry: Option<EntryId>,
    },
    /// Create a named checkpoint of the conversation and the files.
    Checkpoint {
        name: String,
    },
    /// Go back to the state at `entry`: the conversation, the files, or both. The present state is saved first, and
    /// `UndoRestore` brings it back. Files with changes that are not the session's stay, unless `force` or `parts`
    /// names them.
    Restore {
        entry: EntryId,
        what: RestoreWhat,
        /// Files to leave unchanged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keep: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        force: Vec<String>,
        /// For these files, only these hunks of the preview's difference; the rest of the file stays as it is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<TakePart>,
    },
    /// Undo the last restore of files; `redo`: do it again.
    UndoRestore {
        redo: bool,
    },
    /// Undo the last operation of any kind; `redo`: repeat the operation that was undone last.
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
    /// Set the session's budget, in dollars.
    SetBudget {
        usd: f64,
    },
    /// Store the API key of a provider, then prepare and test the provider with it.
    StoreKey {
        provider: String,
        key: KeyText,
    },
    /// Turn a hook off or on, for as long as the session is open.
    SwitchHook {
        id: String,
        on: bool,
    },
    /// Do something to an MCP server. Answered by `mcp_reply`, or by `error_reply`.
    Mcp {
        server: String,
        act: McpAct,
        /// The `shown` of the row that the person looked at, for a yes; `None`: it is not compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    /// Read settings and keys from disk again. Answered by `done_reply` or `error_reply`.
    Reload,
    /// Save and end; the engine answers `stopped` when all is on disk and no child process is left.
    Quit,
}

/// An API key on its way to the key file. It is never printed, and no event repeats it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(pub String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(..)")
    }
}

/// Commands about the model's context.
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

/// The person's edits of the todo list. They are listed at the end of the next message to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TodoCommand {
    Add { content: String },
    Edit { id: String, content: String },
    Status { id: String, status: TodoStatus },
    Move { id: String, to: usize },
}

/// Commands about goals: targets that an agent pursues over several turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GoalCommand {
    /// Set the goal, in place of an earlier one. Answered by `done_reply` or `error_reply`.
    Set { goal: Goal },
    /// Stop the goal; a stopped or reached goal is removed.
    Stop,
    /// Continue a stopped goal.
    Go,
}

/// Diff review of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReviewCommand {
    /// `None`: the last turn that changed files.
    Open { turn: Option<EntryId> },
    /// Apply the reverse of these hunks; a hunk that no longer applies is reported as a conflict.
    Reject { turn: EntryId, hunks: Vec<Reject> },
    /// Undo the last `Reject`.
    UndoReject,
}

/// Commands about two branches side by side; reading them is [`Query::Compare`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CompareCommand {
    /// Merge files, or hunks of them, from the right side into the workspace (three-way). The present state is saved
    /// first, and `UndoOp` brings it back. A file stays as it is where both sides changed the same lines.
    Take { pair: Pair, parts: Vec<TakePart> },
    /// Run a command line of the person's on the files of each side, in temporary folders. Answered by
    /// `compare_run_reply`.
    Run { pair: Pair, line: String },
}

/// Commands about the watcher of files.
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

/// A place on a path, for [`Query::PathPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum PathPlace {
    /// The first entries.
    Start {},
    /// The entry and those before and after it. None when it is not on the path.
    Around { entry: EntryId },
    /// The entry and those after it.
    From { entry: EntryId },
    /// The last entries before this one, to be shown above it.
    Before { entry: EntryId },
    /// The same entries, for a search, which does not show them.
    Search { entry: EntryId },
}

/// Queries change nothing. Each is answered by one `reply` event with the same cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Query {
    /// The whole state, for a client that has just connected or lagged.
    Snapshot,
    /// `count` entries of the path that come before entry `before`.
    Page {
        before: EntryId,
        count: u32,
    },
    /// Entries of the path above `before` that stand at `at`, `count` at most; answered by `path_part_reply`.
    PathPart {
        before: EntryId,
        at: PathPlace,
        count: u32,
    },
    Sessions {
        everywhere: bool,
        #[serde(default)]
        filter: String,
        /// Include archived sessions.
        #[serde(default)]
        archived: bool,
        /// List the trash instead.
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
    /// Full-text search in sessions, answered by `search_reply`.
    Search {
        query: SearchQuery,
    },
    /// The effect on the files of going back to an entry, answered by `restore_preview_reply`.
    RestorePreview {
        entry: EntryId,
    },
    /// Full text of a tool result by call id.
    ToolOutput {
        call_id: String,
    },
    /// Running background processes, as text rows.
    Processes,
    /// Hooks and their last runs, answered by `hooks_reply`.
    Hooks,
    /// Workflows that can be started by name, answered by `workflows_reply`.
    Workflows,
    /// MCP servers, answered by `mcp_reply`.
    Mcp,
    /// Learnings and rules, answered by `learnings_reply`.
    Learnings {
        query: LearningsQuery,
    },
    /// The screen of an agent that is a program in a terminal, answered by `screen_reply`: at once when it differs from
    /// revision `since` (0: always), else as soon as it changes.
    Screen {
        since: u64,
    },
    /// The screen and up to `lines` lines that scrolled off it, answered by `scrollback_reply`.
    Scrollback {
        lines: u32,
    },
    /// A query of the tree browser, answered by `tree_reply`.
    Tree {
        query: TreeQuery,
    },
    /// Skills and output styles, answered by `skills_reply`.
    Skills {
        query: SkillQuery,
    },
    /// Memory files, answered by `memory_reply`.
    Memory(MemoryQuery),
}

/// How costs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBy {
    Agent,
    Model,
    Day,
}

/// Scope of the history search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryScope {
    Session,
    Project,
    All,
}
