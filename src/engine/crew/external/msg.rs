//! Messages from the external program that does an agent's work.

use crate::crew::external::FilesTrust;

/// From the external program that does an agent's work.
pub(crate) enum ExternalMsg {
    /// Whether the configuration files that the program of this turn would read are trusted.
    ProgramTrust { turn: u64, found: FilesTrust },
    /// A message of the program in this turn.
    Said { turn: u64, said: Box<tiller_external::AgentEvent> },
    /// No output of this call followed piece number `piece` for a moment.
    OutputRests { turn: u64, call: String, piece: u64 },
    /// The interval between two titles of the program's terminal is over.
    Titled { turn: u64 },
}
