//! What the tasks of a turn report to the engine's loop.

use std::path::PathBuf;

use serde_json::Value;
use tiller_protocol::view::AuditRow;
use tiller_provider::{Chunk, ProviderError};

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
            | Self::StreamEnded { turn, .. }
            | Self::WaitOver { turn, .. }
            | Self::Checked { turn, .. }
            | Self::ToolDone { turn, .. } => *turn,
        }
    }
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
}
