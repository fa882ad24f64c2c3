//! What happened. Each event is one flat JSON object with a `type`, as `contract.md` promises.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::agent::{AgentView, Receipt};
use crate::agents::grid::GridRun;
use crate::agents::pane::ScreenView;
use crate::agents::workflow::{WorkflowFile, WorkflowView};
use crate::base::clock::Time;
use crate::base::ids::{AgentId, AskId, CommandId, EntryId, OpId, SessionId};
use crate::base::notice::Notice;
use crate::base::usage::{Cost, Usage};
use crate::bus::command::PathPlace;
use crate::bus::queue::Queued;
use crate::bus::view::{
    AuditRow, CompactPreview, ContextReport, CostRow, GitState, Mention, ModelChoice, ModelRef, Profile,
    SessionSummary, ShellLineView, Snapshot,
};
use crate::knowledge::learning::{LearningNews, LearningsReply};
use crate::knowledge::memory::MemoryPage;
use crate::knowledge::skill::SkillReply;
use crate::session::branch::{BranchName, BranchView, TagView};
use crate::session::compare::{Comparison, Pair, SideRun, TakeConflict};
use crate::session::effort::EffortView;
use crate::session::entry::Entry;
use crate::session::message::Message;
use crate::session::op::Op;
use crate::session::restore::{RestorePreview, TurnChanges};
use crate::session::search::{SearchPage, SearchQuery};
use crate::session::tree::TreeReply;
use crate::turn::ask::{Ask, AskReply};
use crate::turn::feed::FileChange;
use crate::turn::goal::GoalView;
use crate::turn::hook::HookRow;
use crate::turn::mcp::{McpPromptView, McpServerView};
use crate::turn::permission::{self, PermissionOutcome};
use crate::turn::process::ProcessRow;
use crate::turn::review::{RejectConflict, Review};
use crate::turn::sandbox::SandboxState;
use crate::turn::todo::TodoItem;
use crate::turn::tool::{Display, InnerCall, ToolOutcome, ToolVerb};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Grows by one from event to event within a process.
    pub seq: u64,
    pub time: Time,
    pub session: SessionId,
    pub agent: AgentId,
    /// The command that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CommandId>,
    #[serde(flatten)]
    pub body: EventBody,
}

/// By concern. The JSON has the inner `type` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventBody {
    Turn(TurnEvent),
    Tool(ToolEvent),
    Ask(AskEvent),
    State(StateEvent),
    Reply(Box<ReplyEvent>),
}

/// How an event may be treated when its reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// May be joined with its neighbour of the same kind.
    Mergeable,
    /// Delivered, unless the reader receives a `Lagged` mark instead.
    Fact,
}

impl EventBody {
    /// The delivery class.
    pub fn delivery(&self) -> Delivery {
        match self {
            Self::Turn(TurnEvent::TextDelta { .. } | TurnEvent::ThinkingDelta { .. })
            | Self::Tool(ToolEvent::ToolProgress { .. }) => Delivery::Mergeable,
            _ => Delivery::Fact,
        }
    }
}

/// The conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEvent {
    /// A session was opened or created.
    SessionStarted {
        title: String,
        project: String,
        model: ModelRef,
        profile: Profile,
        resumed: bool,
    },
    /// A turn began.
    TurnStarted {},
    /// The person's message is on disk and part of the conversation.
    UserMessage {
        entry: EntryId,
        text: String,
        node: Box<Entry>,
    },
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        text: String,
    },
    /// The model began to write a tool call; its arguments are still arriving.
    ToolCallBegun {
        name: String,
    },
    /// The model's reply is on disk.
    AssistantMessage {
        entry: EntryId,
        text: String,
        node: Box<Entry>,
    },
    /// Any other entry (compaction, checkpoint, note, prefix) that was added to the path.
    EntryAdded {
        node: Box<Entry>,
    },
    /// A request was sent, and the first token of its reply has not arrived. Repeated while that lasts.
    Awaiting {
        /// Seconds since it was sent.
        seconds: f64,
        /// Seconds after which the wait ends; absent: it has no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<f64>,
        /// The setting of the limit, by its place in `config.toml`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        setting: String,
        /// Percent of the prompt that the server has read, where it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<u8>,
    },
    /// The last attempt failed; the next starts in `seconds`. With `discard` the client drops what the failed attempt
    /// streamed, since it will be sent again.
    Retrying {
        attempt: u32,
        of: u32,
        seconds: f64,
        why: String,
        discard: bool,
    },
    /// The wait for a retry ended (skipped, cancelled or over), or that for the first token without a reply.
    RetryEnded {},
    Usage {
        usage: Usage,
        cost_usd: Option<f64>,
        context: u64,
        window: Option<u64>,
    },
    Compacted {
        entry: EntryId,
        tokens_before: u64,
        tokens_after: u64,
    },
    /// The last event of each turn.
    TurnFinished {
        status: TurnStatus,
        text: String,
        usage: Usage,
        cost_usd: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Notice>,
    },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Done,
    Interrupted,
    /// The model or provider failed after retries. The turn is parked: `Continue` resumes it.
    Failed,
    /// A permission or an answer was needed, and no user was present to give it.
    Refused,
    /// A budget or limit was reached.
    Limit,
    /// The store could not be written.
    Store,
}

/// Tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolEvent {
    ToolStarted {
        call_id: String,
        name: String,
        arguments: Value,
        verb: ToolVerb,
        target: String,
    },
    /// New output. Mergeable: `text` of two neighbours may be joined.
    ToolProgress {
        call_id: String,
        text: String,
    },
    /// A call that a running call makes has begun, or is over: a later event with the same number replaces it.
    InnerCall {
        /// The outer call.
        call_id: String,
        call: InnerCall,
        /// How many calls it may make.
        most: u32,
    },
    ToolFinished {
        call_id: String,
        name: String,
        arguments: Value,
        ok: bool,
        outcome: ToolOutcome,
        output: String,
        seconds: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<Display>,
        /// The entry, once it is on disk.
        node: Box<Entry>,
    },
    /// A person's `!` or `!!` line was accepted: it runs, or waits for the line before it; then the event is repeated
    /// when it starts. Its output comes as `tool_progress`, its end as `shell_line`.
    ShellStarted {
        line: ShellLineView,
    },
    /// A person's `!` or `!!` line ended, or was removed before it ran.
    ShellLine {
        line: String,
        output: String,
        exit: Option<i32>,
        shared: bool,
        /// As in `shell_started`; empty when that event was not sent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call_id: String,
    },
}

/// Questions and their answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AskEvent {
    PermissionAsked {
        ask: Ask,
    },
    PermissionDecided {
        id: Option<AskId>,
        tool: String,
        what: String,
        /// In JSON `once`, `session`, `always`, `edit` or `deny` for an answer of the person.
        #[serde(with = "permission::event")]
        decision: PermissionOutcome,
        by: String,
        /// The rule that would allow such calls (several are joined by ` && `), where no one can be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allow: Option<String>,
        /// A change that the mode or a rule refused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        change: bool,
    },
    QuestionAsked {
        ask: Ask,
    },
    QuestionAnswered {
        id: AskId,
        reply: AskReply,
    },
}

/// State that clients mirror.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StateEvent {
    TodoChanged {
        todos: Vec<TodoItem>,
        by_person: bool,
    },
    AgentChanged {
        view: AgentView,
    },
    WorkflowChanged {
        view: WorkflowView,
    },
    /// Delivery of a message to an agent: the event's `agent` is the receiver, `cause` the command that sent it.
    Receipt {
        receipt: Receipt,
    },
    QueueChanged {
        queue: Vec<Queued>,
    },
    WorkspaceChanged {
        changes: Vec<FileChange>,
    },
    GitChanged {
        git: GitState,
    },
    /// A turn that changed files has ended: after `turn_finished`, when its last state is kept.
    TurnChanged {
        changes: Box<TurnChanges>,
    },
    /// The sandbox's self-test ended.
    SandboxTested {
        sandbox: Box<SandboxState>,
    },
    ModelChanged {
        model: ModelRef,
        window: Option<u64>,
    },
    ProfileChanged {
        profile: Profile,
    },
    /// The effort was changed, or the model has other levels.
    EffortChanged {
        effort: EffortView,
    },
    TitleChanged {
        title: String,
    },
    /// A goal was set, advanced, stopped or removed.
    GoalChanged {
        goal: Option<GoalView>,
    },
    /// The head moved to another branch: take a new snapshot.
    HeadMoved {
        head: Option<EntryId>,
        draft: Option<Message>,
        /// The branch of the new head.
        #[serde(default, skip_serializing_if = "BranchName::is_empty")]
        branch: BranchName,
    },
    /// The person went to another branch, and branch `name` has replies up to `from` that are not on it: `CarryOver`
    /// would add a summary of them. `entries`: their number.
    BranchLeft {
        from: EntryId,
        name: BranchName,
        entries: u64,
    },
    /// A branch was named, or its name removed.
    BranchNamed {
        branch: BranchName,
    },
    /// A branch was archived or brought back.
    BranchArchived {
        head: String,
        archived: bool,
    },
    /// A name was given to an entry, or taken off.
    TagChanged {
        name: String,
        entry: Option<EntryId>,
    },
    CheckpointCreated {
        entry: EntryId,
        name: String,
    },
    Restored {
        entry: EntryId,
    },
    /// Learnings were proposed, used or changed.
    LearningNews {
        news: Box<LearningNews>,
    },
    /// Entries of memory changed, by whatever program: a list of them is read again.
    MemoryChanged {},
    Notice {
        notice: Notice,
    },
    /// The store stopped or began to save again.
    Saving {
        ok: bool,
        why: String,
    },
    /// This reader lagged: it must ask for a snapshot.
    Lagged {
        missed: u64,
    },
    /// Answer to `Quit`.
    Stopped {},
}

/// Answers to queries. Sent only to the client that asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyEvent {
    SnapshotReply {
        snapshot: Box<Snapshot>,
    },
    PageReply {
        entries: Vec<Entry>,
        earlier: u64,
        /// What turns that begin in these entries changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        turns: Vec<TurnChanges>,
    },
    PathPartReply {
        before: EntryId,
        at: PathPlace,
        entries: Vec<Entry>,
        /// Entries of the path before these.
        earlier: u64,
        /// Entries of the path between these and `before`.
        later: u64,
        /// The first of the later ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<EntryId>,
        /// As in `page_reply`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        turns: Vec<TurnChanges>,
    },
    SessionsReply {
        sessions: Vec<SessionSummary>,
    },
    ModelsReply {
        models: Vec<ModelChoice>,
    },
    MentionsReply {
        text: String,
        mentions: Vec<Mention>,
    },
    AuditReply {
        rows: Vec<AuditRow>,
    },
    CostsReply {
        rows: Vec<CostRow>,
        total: Option<Cost>,
    },
    /// Newest first, with the operations that an undo and a redo would affect now.
    OpsReply {
        ops: Vec<Op>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undo: Option<OpId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redo: Option<OpId>,
    },
    CompareReply {
        pair: Pair,
        compared: Box<Comparison>,
    },
    /// What was merged from the right side, in a sentence, and what was not.
    TakeReply {
        said: String,
        conflicts: Vec<TakeConflict>,
    },
    CompareRunReply {
        line: String,
        left: SideRun,
        right: SideRun,
        /// Limits of the comparison that the person should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    BranchesReply {
        branches: Vec<BranchView>,
        tags: Vec<TagView>,
    },
    HistoryReply {
        prompts: Vec<String>,
    },
    RestorePreviewReply {
        entry: EntryId,
        preview: RestorePreview,
    },
    SearchReply {
        query: SearchQuery,
        page: SearchPage,
    },
    ToolOutputReply {
        call_id: String,
        text: String,
        /// Its images.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<crate::Part>,
    },
    ProcessesReply {
        rows: Vec<ProcessRow>,
    },
    HooksReply {
        rows: Vec<HookRow>,
    },
    WorkflowsReply {
        files: Vec<WorkflowFile>,
    },
    McpReply {
        servers: Vec<McpServerView>,
        /// The prompts that are known of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prompts: Vec<McpPromptView>,
    },
    LearningsReply {
        reply: LearningsReply,
    },
    ContextReply {
        report: ContextReport,
    },
    CompactPreviewReply {
        preview: CompactPreview,
    },
    ReviewReply {
        review: Review,
    },
    /// How many changes were taken back, and those that stayed.
    RejectReply {
        rejected: u32,
        conflicts: Vec<RejectConflict>,
    },
    DiffReply {
        path: String,
        diff: String,
    },
    /// The answer to a question on the side.
    AsideReply {
        question: String,
        answer: String,
        model: ModelRef,
    },
    TreeReply {
        reply: TreeReply,
    },
    SkillsReply {
        reply: SkillReply,
    },
    MemoryReply {
        page: Box<MemoryPage>,
    },
    ScreenReply {
        screen: ScreenView,
    },
    ScrollbackReply {
        rows: Vec<Vec<GridRun>>,
    },
    /// The command succeeded; a sentence for the person.
    DoneReply {
        said: String,
    },
    /// The query could not be answered.
    ErrorReply {
        notice: Notice,
    },
}
