//! The inputs of a turn, and the effects that it asks for. These two enums are the whole interface of a turn.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Notice, StopReason, ToolCall};
use tiller_provider::{Chunk, ProviderError};

use super::reply::Used;
use super::state::CallResult;

/// What happened outside. `n` numbers the streams of a turn: what belongs to an older one is ignored.
#[derive(Clone, Debug)]
pub enum Input {
    /// The words that begin it are on disk (or it goes on from where it stood).
    Start,
    /// Answer to [`Effect::Prepare`].
    Prepared(Prepared),
    Chunk {
        n: u32,
        chunk: Chunk,
    },
    /// The stream ended; `Ok` without a stop chunk before it means that it was cut.
    StreamEnded {
        n: u32,
        result: Result<(), ProviderError>,
    },
    /// The wait before another try is over.
    WaitOver {
        n: u32,
    },
    /// The person does not want to wait for it.
    SkipWait,
    /// The agent is paused: a request of whose reply nothing has arrived is given up until [`Input::Resume`].
    Rest,
    Resume,
    ToolDone {
        call_id: String,
        result: CallResult,
    },
    /// The person wants this one call ended.
    StopTool {
        call_id: String,
    },
    /// Whether steering messages wait to be delivered.
    Steer(bool),
    /// They are in the conversation.
    Steered,
    Compacted(Result<(), Notice>),
    /// The answer to [`Effect::AskRepeats`].
    Repeats {
        go_on: bool,
    },
    Interrupt {
        hard: bool,
    },
}

/// May the next request go out?
#[derive(Clone, Debug)]
pub enum Prepared {
    Go,
    /// Not before the path has been compacted.
    Compact,
    /// A limit was reached, or the store cannot be written.
    Stop {
        status: TurnStatus,
        notice: Notice,
    },
}

/// A step of the reply, for the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    CallBegun(String),
}

/// What is to be done.
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
    /// Put the reply into the conversation.
    AppendReply {
        blocks: Vec<Block>,
        stop: StopReason,
        used: Used,
    },
    /// Book a request whose reply does not become part of the conversation.
    Spent {
        used: Used,
    },
    /// Judge the call and run it; answer with [`Input::ToolDone`].
    RunTool {
        call: ToolCall,
    },
    CancelTool {
        call_id: String,
        hard: bool,
    },
    /// Put the result into the conversation. Comes in call order.
    AppendResult {
        call_id: String,
        name: String,
        result: CallResult,
    },
    /// Wait, then [`Input::WaitOver`]. `discard`: what was streamed will come again.
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
    /// Put the waiting steering messages into the conversation, then [`Input::Steered`].
    DeliverSteer,
    /// Put these words of ours to the model into the conversation, then [`Input::Steered`].
    Tell {
        text: String,
    },
    /// Ask the person whether these calls go on, whose results were equal so often; then [`Input::Repeats`].
    AskRepeats {
        calls: String,
        rounds: u32,
    },
    /// The last effect of every turn.
    Finish {
        status: TurnStatus,
        text: String,
        notice: Option<Notice>,
    },
}
