//! The vocabulary of the bus: what a client asks ([`Command`]) and what happened ([`Event`]).
//!
//! Plain data with a stable JSON form (pinned by snapshot tests). No I/O, no async, no policy.
//! A session can be replayed from a file of these values.
//!
//! | module | holds |
//! | --- | --- |
//! | [`ids`] | identifiers and the source that makes them |
//! | [`clock`] | the clock port: wall time for people, monotonic time for durations |
//! | [`mask`] | how a secret is written down: as a mask |
//! | [`message`] | what people and models say: blocks, attachments, tool calls |
//! | [`effort`] | how much a model thinks |
//! | [`entry`] | one node of the session tree |
//! | [`op`] | one row of the operation log |
//! | [`compare`] | two branches side by side |
//! | [`branch`] | branches and tags |
//! | [`command`] | client → engine |
//! | [`event`] | engine → client |
//! | [`view`] | whole states that a client rebuilds itself from (snapshot, pages, lists) |
//! | [`tool`], [`access`] | what a tool is called, and what one call of it touches |
//! | [`grid`], [`pane`] | the screen of a program in a terminal of ours; the pane that shows it |
//! | [`restore`] | going back to what the files were |
//! | [`search`] | the question to all sessions, and its hits |
//! | [`tree`] | a session as a tree to browse |
//! | [`todo`], [`ask`], [`agent`], [`feed`], [`queue`], [`review`] | the live concerns, one each |
//! | [`usage`] | tokens and money |
//! | [`names`] | names of files that lie in a workspace for a moment |
//! | [`nearest`] | the right name for a wrong one |
//! | [`notice`] | the only shape in which an error reaches a person |

pub mod access;
pub mod agent;
pub mod ask;
pub mod branch;
pub mod clock;
pub mod command;
pub mod compare;
pub mod effort;
pub mod entry;
pub mod event;
pub mod feed;
pub mod goal;
pub mod grid;
pub mod ids;
pub mod mask;
pub mod message;
pub mod names;
pub mod nearest;
pub mod notice;
pub mod op;
pub mod pane;
pub mod queue;
pub mod restore;
pub mod review;
pub mod search;
pub mod todo;
pub mod tool;
pub mod tree;
pub mod usage;
pub mod view;
pub mod workflow;

pub use access::{Access, ShellState};
pub use agent::{AgentCommand, AgentLimits, AgentState, AgentView, ChildView, Receipt};
pub use ask::{Ask, AskBody, AskReply, Decision, Risk};
pub use branch::{BranchName, BranchView, TagView};
pub use clock::{Clock, ManualClock, SystemClock, Time};
pub use command::{Command, CommandBody};
pub use effort::{Effort, EffortView};
pub use entry::{Entry, EntryBody};
pub use event::{Delivery, Event, EventBody};
pub use feed::{ChangeKind, FileChange, Who};
pub use goal::{Goal, GoalCheck, GoalState, GoalView};
pub use grid::{Grid, GridRun, GridStyle, Hue};
pub use ids::{AgentId, AskId, CommandId, EntryId, IdSource, OpId, QueueId, RandomIds, SeqIds, SessionId};
pub use message::{Attachment, Block, Message, Origin, Part, StopReason, ToolCall};
pub use notice::{Notice, NoticeKind};
pub use op::Op;
pub use pane::{Mods, MouseAct, PaneCommand, PaneKey, PaneView, ScreenView, Typed};
pub use queue::{Queued, QueuedState, SendMode};
pub use restore::{RestoreDone, RestoreFile, RestorePreview, RestoreWhat};
pub use search::{SearchHit, SearchPage, SearchQuery, SearchRole};
pub use todo::{TodoItem, TodoStatus};
pub use tool::{ToolOutcome, ToolSpec, Touch};
pub use tree::{SessionTree, TreeQuery, TreeReply};
pub use usage::{Cost, Usage};
pub use view::{ModelRef, Profile, SessionSummary, Snapshot};
pub use workflow::{StepState, StepView, WorkflowFile, WorkflowView};

#[cfg(test)]
mod forms_tests;
#[cfg(test)]
mod json_tests;
