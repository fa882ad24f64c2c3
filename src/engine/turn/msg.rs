//! What the tasks of a turn report to the engine's loop.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::view::AuditRow;
use tiller_provider::{Chunk, ProviderError};
use tiller_tool::ToolCx;
use tiller_tool::code::{CallForScript, InnerReply};
use tokio::sync::oneshot;

use crate::turn::CallResult;

/// Reports about the turn in flight. `turn` and `n` name the stream; reports of an older one are dropped.
pub(crate) enum TurnMsg {
    Chunks {
        turn: u64,
        n: u32,
        chunks: Vec<Chunk>,
    },
    /// No piece has come for a while.
    Quiet {
        turn: u64,
    },
    /// The first token of a reply is awaited.
    Awaited {
        turn: u64,
        n: u32,
        wait: Awaited,
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
    /// Hooks have looked at the answer.
    Checked {
        turn: u64,
        tell: Option<String>,
    },
    /// A running call makes another one.
    InnerCall {
        turn: u64,
        request: Box<InnerRequest>,
    },
    /// That one is over.
    InnerDone {
        turn: u64,
        done: Box<InnerDone>,
    },
    ToolDone {
        turn: u64,
        call_id: String,
        done: Box<CallDone>,
    },
}

impl TurnMsg {
    /// The turn that it reports about.
    pub(crate) fn turn(&self) -> u64 {
        match self {
            Self::Chunks { turn, .. }
            | Self::Quiet { turn }
            | Self::Awaited { turn, .. }
            | Self::StreamEnded { turn, .. }
            | Self::WaitOver { turn, .. }
            | Self::Checked { turn, .. }
            | Self::InnerCall { turn, .. }
            | Self::InnerDone { turn, .. }
            | Self::ToolDone { turn, .. } => *turn,
        }
    }
}

/// How long the first token is awaited already.
pub(crate) struct Awaited {
    pub(crate) since: std::time::Duration,
    /// When the wait ends, in time since it began, and the setting of that.
    pub(crate) end: Option<(std::time::Duration, String)>,
    /// Percent of the prompt that the server has read.
    pub(crate) progress: Option<u8>,
}

/// How a call ended, with its row for the audit.
pub(crate) struct CallDone {
    pub(crate) result: CallResult,
    /// Its changes of the files, once they are known.
    pub(crate) step: Option<crate::files::PendingStep>,
    pub(crate) audit: AuditRow,
    /// The arguments that it ran with, where the user changed them.
    pub(crate) args: Option<Value>,
    /// Files that it declared to write, unless it failed.
    pub(crate) wrote: Vec<PathBuf>,
    /// For pairs of failures and fixes. `None`: it says nothing.
    pub(crate) note: Option<Box<crate::learning::CallNote>>,
}

/// A call that is ready to run for a running one, and what remains of it.
pub(crate) type InnerRun = BoxFuture<'static, (InnerReply, InnerDone)>;

/// The request for one.
pub(crate) struct InnerRequest {
    /// Of the outer call.
    pub(crate) cx: ToolCx,
    pub(crate) call: CallForScript,
    pub(crate) reply: oneshot::Sender<Result<InnerRun, String>>,
}

/// What remains of one for the engine.
pub(crate) struct InnerDone {
    /// Id of the outer call.
    pub(crate) outer: String,
    pub(crate) row: InnerCall,
    /// How many calls the script may make.
    pub(crate) most: u32,
    pub(crate) step: Option<crate::files::PendingStep>,
    /// `None`: nothing was decided about it yet.
    pub(crate) audit: Option<AuditRow>,
    /// Files that it declared to write, unless it failed.
    pub(crate) wrote: Vec<PathBuf>,
    pub(crate) unanswered: bool,
    /// As in [`CallDone`].
    pub(crate) note: Option<Box<crate::learning::CallNote>>,
}
