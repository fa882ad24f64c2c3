//! Messages from the external program that does an agent's work.

use tiller_external::Ask;
use tiller_hooks::Denial;
use tiller_protocol::Notice;

use crate::crew::external::FilesTrust;

/// From the external program that does an agent's work.
pub(crate) enum ExternalMsg {
    /// Whether the configuration files that the program of this turn would read are trusted.
    ProgramTrust { turn: u64, found: FilesTrust },
    /// What the hooks decided about a call that the program asked for.
    Hooked { turn: u64, hooked: Box<HookedAsk> },
    /// A message of the program in this turn.
    Said { turn: u64, said: Box<tiller_external::AgentEvent> },
    /// No output of this call followed piece number `piece` for a moment.
    OutputRests { turn: u64, call: String, piece: u64 },
    /// The interval between two titles of the program's terminal is over.
    Titled { turn: u64 },
}

/// A question of the program, and what the hooks decided about its call.
pub(crate) struct HookedAsk {
    pub(crate) ask: Ask,
    pub(crate) denial: Option<Denial>,
    /// Why the user is asked, whatever the rules say.
    pub(crate) asks: Option<String>,
    pub(crate) notices: Vec<Notice>,
}
