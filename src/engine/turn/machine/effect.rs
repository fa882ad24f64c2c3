//! The inputs of a turn, and the effects that it asks for. These two enums are the whole interface of a turn.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Notice, StopReason, Taint, ToolCall};
use tiller_provider::{Chunk, ProviderError};

use super::reply::ReplyUsage;
use super::state::CallResult;

/// An input of the turn. `n` is the number of a stream: inputs of an older one are ignored.
#[derive(Clone, Debug)]
pub enum Input {
    /// Its entries are on disk, or it continues where it was interrupted.
    Start,
    /// Answer to [`Effect::Prepare`].
    Prepared(Prepared),
    Chunk {
        n: u32,
        chunk: Chunk,
    },
    /// The stream ended; `Ok` without a stop chunk before it means that it was cut off.
    StreamEnded {
        n: u32,
        result: Result<(), ProviderError>,
    },
    /// The wait before a retry is over.
    WaitOver {
        n: u32,
    },
    /// The user skips the wait.
    SkipWait,
    /// The agent is paused: a request without any reply so far is given up until [`Input::Resume`].
    Pause,
    Resume,
    ToolDone {
        call_id: String,
        result: CallResult,
    },
    /// The user stops this one call.
    StopTool {
        call_id: String,
    },
    /// Whether steering messages wait to be delivered.
    Steer(bool),
    /// The messages that were to be delivered are in the conversation.
    Steered,
    Compacted(Result<(), Notice>),
    /// The answer to [`Effect::AskRepeats`].
    Repeats {
        go_on: bool,
    },
    /// The answer to [`Effect::CheckAnswer`]. `tell`: a message for the model, which goes on.
    Checked {
        tell: Option<String>,
    },
    Interrupt {
        hard: bool,
    },
}

/// Whether the next request may be sent.
#[derive(Clone, Debug)]
pub enum Prepared {
    Go,
    /// The path must be compacted first.
    Compact,
    /// A limit was reached, or the store cannot be written.
    Stop {
        status: TurnStatus,
        notice: Notice,
    },
}

/// A piece of the reply, for the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    CallStarted(String),
}

/// An action that the driver carries out.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Check budgets and the size of the context, then answer with [`Input::Prepared`].
    Prepare {
        may_compact: bool,
    },
    /// Send the path as request number `n`.
    Request {
        n: u32,
    },
    /// Close the stream of the present request.
    CancelStream,
    Delta(Delta),
    /// Add the reply to the conversation.
    AppendReply {
        blocks: Vec<Block>,
        stop: StopReason,
        used: ReplyUsage,
    },
    /// Record the cost of a request whose reply does not become part of the conversation.
    Spent {
        used: ReplyUsage,
    },
    /// Check and run the call; answer with [`Input::ToolDone`].
    RunTool {
        call: ToolCall,
    },
    CancelTool {
        call_id: String,
        hard: bool,
    },
    /// Add the result to the conversation. Given in call order.
    AppendResult {
        call_id: String,
        name: String,
        result: CallResult,
    },
    /// Wait, then [`Input::WaitOver`]. `discard`: the streamed text will be sent again.
    Backoff {
        n: u32,
        attempt: u32,
        of: u32,
        error: ProviderError,
        discard: bool,
    },
    /// The wait is over, whatever ended it.
    EndBackoff,
    /// Compact the path, then [`Input::Compacted`]. `round` counts from 1; each keeps less.
    Compact {
        overflow: bool,
        round: u32,
    },
    CancelCompact,
    /// Add the waiting steering messages to the conversation, then [`Input::Steered`].
    DeliverSteer,
    /// The calls that the turn began with have ended: add the message that they belong to, then [`Input::Steered`].
    DeliverMessage,
    /// Add a message of the engine's to the conversation, then [`Input::Steered`].
    Tell {
        text: String,
        /// The least trusted text of others in it; `None`: there is none.
        taint: Option<Taint>,
    },
    /// Ask the user whether these repeated calls may continue; then [`Input::Repeats`].
    AskRepeats {
        calls: String,
        rounds: u32,
    },
    /// Have hooks look at the answer with which the turn would end; then [`Input::Checked`].
    CheckAnswer {
        text: String,
        /// Hooks sent an earlier answer of the turn back.
        again: bool,
    },
    /// The last effect of every turn.
    Finish {
        status: TurnStatus,
        text: String,
        notice: Option<Notice>,
    },
}
