//! The visibility of the panel of program terminals.

use tiller_protocol::AgentId;

/// The state of the screen around the panel of terminals. The engine sends the content only of a terminal that is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// The panel is on the screen.
    pub shown: bool,
    /// Keys go to it.
    pub focus: bool,
    /// A dialog lies on the screen, and may take room for a moment.
    pub covered: bool,
    /// The person's window has lost the focus.
    pub away: bool,
    /// The agent whose terminal is to be shown.
    pub agent: Option<AgentId>,
}
