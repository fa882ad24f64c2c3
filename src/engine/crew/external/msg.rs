//! Messages from the external program that does an agent's work.

use tiller_protocol::Profile;
use tiller_protocol::view::AuditRow;
use tokio::sync::oneshot;

use crate::crew::external::FilesTrust;

/// From the external program that does an agent's work.
pub(crate) enum ExternalMsg {
    /// Whether the configuration files that the program of this turn would read are trusted.
    ProgramTrust { turn: u64, found: FilesTrust },
    /// The state of the loop by which a call of the program in this turn is judged; no reply: the turn is over.
    Judged { turn: u64, reply: oneshot::Sender<JudgedBy> },
    /// The decision about a call that the program asked for.
    Settled(Box<AuditRow>),
    /// A message of the program in this turn.
    Said { turn: u64, said: Box<tiller_external::AgentEvent> },
    /// No output of this call followed piece number `piece` for a moment.
    OutputRests { turn: u64, call: String, piece: u64 },
    /// The interval between two titles of the program's terminal is over.
    Titled { turn: u64 },
}

/// The state of the loop by which a call is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JudgedBy {
    pub(crate) profile: Profile,
    /// The state of the files could not be stored, and the settings demand a question then.
    pub(crate) unkept: bool,
}
