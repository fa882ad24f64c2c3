//! What the panel of program terminals needs to know of the screen around it.

use tiller_protocol::AgentId;

/// The last state that the terminal's panel received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// It is on the screen.
    pub shown: bool,
    /// Keys come to it.
    pub focus: bool,
    /// A dialog lies on the screen, and may take room for a moment.
    pub covered: bool,
    /// The person's window has lost the focus.
    pub away: bool,
    /// Whose it is.
    pub agent: Option<AgentId>,
}
