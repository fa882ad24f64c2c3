//! Questions of the engine itself to the user.

use tiller_protocol::{CommandId, SessionId};

use crate::bus::ClientId;

/// What a question of the engine is about.
#[derive(Clone, Debug)]
pub(crate) enum About {
    Budget {
        turn: u64,
        which: crate::money::budget::LimitScope,
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
    /// Saving how a task was done as a skill.
    SkillOffer,
    Busy {
        session: SessionId,
        /// The session's branch.
        head: String,
    },
    /// Another session (`None`: a fresh one) is to be opened, and what runs in this one would end.
    Leave {
        client: ClientId,
        cause: CommandId,
        id: Option<SessionId>,
    },
}
