//! What the engine's task hears from its own tasks.

use tiller_protocol::{AgentId, AskBody, AskReply, CommandId, SessionId, TodoItem};
use tiller_provider::{Chunk, ProviderError};
use tiller_store::StoreError;
use tokio::sync::oneshot;

use crate::bus::ClientId;
use crate::context::compaction::Compacted;
use crate::job::CallDone;
use crate::prompts::compose::Composed;
use crate::session::carry::Carried;
use crate::session::load::Loaded;

/// Reports that may wait; a task that has more waits itself.
pub(crate) const REPORTS: usize = 1024;

/// What tasks report.
pub(crate) enum Msg {
    /// `turn` and `n` name the stream; what belongs to an older one is dropped.
    Chunks {
        turn: u64,
        n: u32,
        chunks: Vec<Chunk>,
    },
    /// The stream rests.
    Quiet {
        turn: u64,
    },
    StreamEnded {
        turn: u64,
        n: u32,
        result: Result<(), ProviderError>,
    },
    WaitOver {
        turn: u64,
        n: u32,
    },
    ToolDone {
        turn: u64,
        call_id: String,
        done: Box<CallDone>,
    },
    Compacted(Box<Compacted>),
    /// A branch was summarised.
    Carried(Box<Carried>),
    Composed(Box<Composed>),
    Ask {
        agent: AgentId,
        call: Option<String>,
        body: AskBody,
        reply: oneshot::Sender<Result<AskReply, String>>,
    },
    /// The answer to a question of the engine's own.
    Answered {
        about: About,
        reply: Result<AskReply, String>,
    },
    Todos {
        items: Vec<TodoItem>,
        reply: oneshot::Sender<Result<(), String>>,
    },
    Aside(Box<crate::prompts::aside::Aside>),
    GoalChecked(Box<crate::goal::Checked>),
    Title {
        session: SessionId,
        title: String,
    },
    /// Of a request beside the conversation.
    Side(crate::context::side_call::SideMsg),
    /// `no`: see `busy`.
    Opened {
        no: u64,
        client: ClientId,
        cause: CommandId,
        result: Box<Result<Loaded, StoreError>>,
    },
    /// The person's word about the folder was kept, or not.
    Trusted {
        yes: bool,
        result: Result<crate::questions::trust::Agreed, String>,
    },
    KeyTried(Box<crate::questions::keys::Tried>),
    SettingsRead(Box<crate::core::settings::Read>),
    Forked(Box<crate::session::fork::Forked>),
    /// What was decided of something that a program of another vendor asked for.
    Settled(Box<tiller_protocol::view::AuditRow>),
    /// A line has run on both sides.
    RanBoth(Box<tiller_protocol::view::AuditRow>),
    /// What an undo would take back.
    Undo(Box<crate::undo::undoing::Found>),
    Went(Box<crate::session::branch::Went>),
    ShellDone(Box<crate::prompts::shell_line::ShellDone>),
    Reviewed(Box<crate::undo::review::Reviewed>),
    NotKept(Box<crate::files::NotKept>),
    FilesRestored(Box<crate::files::Restored>),
    /// A tool names a moment of the files, or goes back to one.
    Files(crate::files::by_tool::Asked),
    /// The snapshots have something to say.
    FilesWords,
    Decided {
        tool: String,
        what: String,
        decision: String,
        by: String,
    },
    Watch(crate::watching::Seen),
    Comments(Vec<crate::prompts::comments::Found>),
    /// The time that children had to end is over.
    Quit,
    /// Of or for the crew of agents.
    Crew(crate::crew::CrewMsg),
    /// A question of a child's is answered, or gone.
    AskOver,
    /// The purse may have room again for the turn that waits.
    Purse {
        turn: u64,
    },
    /// An agent has had its time.
    TimeUp {
        turn: u64,
    },
    /// What a child's turn did to the files is written down: now its end is reported.
    Ends {
        /// Turns that it had begun.
        turns: u64,
        status: tiller_protocol::event::TurnStatus,
        text: String,
        why: Option<tiller_protocol::Notice>,
    },
    /// Files that a call changed, relative to the folder.
    Touched(Vec<String>),
    /// A program of another vendor said something in this turn.
    /// Whether files of the folder may steer the external program of this turn.
    ProgramTrust {
        turn: u64,
        found: crate::crew::FilesTrust,
    },
    Outside {
        turn: u64,
        said: Box<tiller_external::Said>,
    },
    /// Nothing came after this piece of the output of a call of a program.
    OutputRests {
        turn: u64,
        call: String,
        piece: u64,
    },
    /// A program in a terminal may tell its title again.
    Titled {
        turn: u64,
    },
    /// From the main agent to a child.
    Pause(bool),
    Stop {
        hard: bool,
    },
    Limits(tiller_protocol::AgentLimits),
    Profile(tiller_protocol::Profile),
    /// A child of the child's has ended.
    Heard {
        id: AgentId,
        text: String,
    },
}

/// What the engine itself asked.
#[derive(Clone, Debug)]
pub(crate) enum About {
    Budget {
        turn: u64,
        which: crate::money::budget::Which,
    },
    Deep {
        turn: u64,
    },
    /// Calls that repeat with equal results.
    Repeats {
        turn: u64,
    },
    /// A model whose price is not known, under a hard budget.
    Unpriced {
        turn: u64,
    },
    Busy {
        session: SessionId,
        /// The branch of it.
        head: String,
    },
    /// Another session (`None`: a fresh one) is to be opened, and what runs in this one would end.
    Leave {
        client: ClientId,
        cause: CommandId,
        id: Option<SessionId>,
    },
}
