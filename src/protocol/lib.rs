//! The vocabulary of the bus: what a client asks ([`Command`]) and what happened ([`Event`]).
//!
//! Plain data with a stable JSON form (pinned by snapshot tests); a session can be replayed from a file of these
//! values.
//!
//! May use: nothing of this project. Not here: I/O, async code, and decisions. Who may do what is decided in `permit`,
//! what happens in a turn in `engine`; storing is `store`'s.
//!
//! The modules lie in folders by subject (`base`, `session`, `turn`, `agents`, `knowledge`, `bus`) and are exported without these.
//!
//! | module | holds |
//! | --- | --- |
//! | [`ids`] | identifiers and the source that makes them |
//! | [`clock`] | the clock port: wall time for people, monotonic time for durations |
//! | [`mask`] | masks that replace secrets in text |
//! | [`message`] | what people and models say: blocks, attachments, tool calls |
//! | [`effort`] | how much a model thinks |
//! | [`entry`] | one node of the session tree |
//! | [`additions`] | parts of a result that its tool did not say |
//! | [`op`] | one row of the operation log |
//! | [`compare`] | two branches side by side |
//! | [`branch`] | branches and tags |
//! | [`command`] | client → engine |
//! | [`event`] | engine → client |
//! | [`view`] | whole states from which a client rebuilds its own (snapshot, pages, lists) |
//! | [`tool`], [`access`] | the description of a tool; what one call of it touches |
//! | [`backend`] | what does an agent's work: Tiller itself, or an external program |
//! | [`catalog`] | the fixed facts about the tools, for rooms that may not know the tools |
//! | [`grid`], [`pane`] | the screen of a program in one of Tiller's terminals; the pane that shows it |
//! | [`restore`] | restoring files to an earlier state |
//! | [`search`] | full-text search over all sessions, and its hits |
//! | [`tree`] | a session as a tree to browse |
//! | [`learning`] | learnings, and rules that are shown with calls |
//! | [`hook`] | commands of the settings that run when something happens |
//! | [`permission`] | how the permission for a call was decided |
//! | [`process`] | background processes |
//! | [`mcp`] | MCP servers as a client shows them |
//! | [`skill`] | skills, own commands and output styles |
//! | [`sandbox`] | what confines commands on this machine |
//! | [`todo`], [`ask`], [`agent`], [`feed`], [`queue`], [`review`] | the live concerns, one each |
//! | [`usage`] | tokens and money |
//! | [`names`] | paths as text, and names of temporary files in a workspace |
//! | [`nearest`] | spelling suggestions |
//! | [`protected_names`] | names of files whose content runs later |
//! | [`secret_paths`] | paths that no tool reads without a question |
//! | [`memory`] | memory files, and where an entry comes from |
//! | [`notice`] | the one form of an error that a person sees |

mod agents;
mod base;
mod bus;
mod knowledge;
mod session;
mod turn;

pub use agents::{agent, backend, grid, pane, workflow};
pub use base::{clock, ids, mask, names, nearest, notice, protected_names, secret_paths, usage};
pub use bus::{command, event, queue, view};
pub use knowledge::{learning, memory, skill};
pub use session::{additions, branch, compare, effort, entry, message, op, restore, search, tree};
pub use turn::{
    access, ask, catalog, feed, goal, hook, mcp, permission, process, review, sandbox, todo, tool,
};

pub use agents::agent::{Act, AgentCommand, AgentLimits, AgentState, AgentView, ChildView, Receipt};
pub use agents::backend::{Backend, Transport};
pub use agents::grid::{Grid, GridRun, GridStyle, Hue};
pub use agents::pane::{
    Activity, ActivitySource, Mods, MouseAct, PaneCommand, PaneKey, PaneView, ScreenView, TerminalInput,
};
pub use agents::workflow::{StepState, StepView, WorkflowFile, WorkflowView};
pub use base::clock::{Clock, ManualClock, SystemClock, Time};
pub use base::ids::{
    AgentId, AskId, CommandId, EntryId, IdSource, OpId, QueueId, RandomIds, SeqIds, SessionId,
};
pub use base::lock;
pub use base::notice::{Notice, NoticeKind};
pub use base::usage::{Cost, Usage};
pub use bus::command::{Command, CommandBody};
pub use bus::event::{Delivery, Event, EventBody};
pub use bus::queue::{Queued, QueuedRun, QueuedState, SendMode};
pub use bus::view::{ModelRef, Profile, SessionSummary, Snapshot};
pub use knowledge::learning::{
    FailureKind, Learning, LearningCommand, LearningNews, LearningSource, LearningState, LearningText,
    LearningsQuery, LearningsReply, NEXT_PATTERN, PromotionKind, RulePromotion, RuleReceipts, RuleView,
    VIOLATED,
};
pub use knowledge::memory::{
    MemoryCommand, MemoryEntry, MemoryFile, MemoryPage, MemoryQuery, MemoryRights, MemoryScope, MemoryState,
    MemoryTarget, Provenance, Taint,
};
pub use session::additions::{Addition, Additions};
pub use session::branch::{BranchName, BranchView, TagView};
pub use session::carried::{Carried, CarriedContent};
pub use session::effort::{Effort, EffortView};
pub use session::entry::{Entry, EntryBody, ShellRecord};
pub use session::message::{Attachment, Block, Message, Origin, Part, StopReason, ToolCall};
pub use session::op::Op;
pub use session::restore::{RestoreDone, RestoreFile, RestorePreview, RestoreWhat};
pub use session::search::{
    DocumentHit, DocumentKind, SearchHit, SearchMeaning, SearchOrder, SearchPage, SearchQuery, SearchRole,
};
pub use session::tree::{SessionTree, TreeQuery, TreeReply};
pub use turn::access::{Access, ShellState};
pub use turn::ask::{Ask, AskBody, AskReason, AskReply, Decision, Risk, TrustItem, TrustKind};
pub use turn::catalog::{RuleArgument, ToolCatalog, ToolGrant, ToolInfo, ToolSet};
pub use turn::feed::{ChangeKind, FileChange, Who};
pub use turn::goal::{Goal, GoalCheck, GoalState, GoalView};
pub use turn::hook::{HookEvent, HookOutcome, HookRow, HookRun};
pub use turn::permission::PermissionOutcome;
pub use turn::process::{ProcessRow, ProcessState};
pub use turn::sandbox::{
    CapabilityState, SandboxCapability, SandboxNetwork, SandboxScope, SandboxState, TerminalLimits,
    TerminalPlace,
};
pub use turn::todo::{TodoItem, TodoStatus};
pub use turn::tool::{ToolOutcome, ToolSpec, ToolVerb, Touch, USE_TOOL};

#[cfg(test)]
mod forms_tests;
#[cfg(test)]
mod json_tests;
