//! The agents of a session and the loop that hosts them, for one call of the loop.

use tiller_engine::crew::CrewHost;
use tiller_protocol::SessionId;

use crate::roster::Roster;

/// Drives the agents of a session. It borrows all that it needs and has no state.
pub(crate) struct CrewDriver<'a> {
    pub(crate) crew: &'a mut Roster,
    pub(crate) host: CrewHost<'a>,
}

/// Drives the workflows of a session. As [`CrewDriver`], it has no state.
pub(crate) struct WorkflowDriver<'a> {
    pub(crate) crew: &'a mut Roster,
    pub(crate) host: CrewHost<'a>,
}

impl CrewDriver<'_> {
    /// The session that the agents work for. While they end because another one was opened, it is still the one before.
    pub(crate) fn root(&self) -> SessionId {
        self.crew.root.unwrap_or_else(|| self.host.session_id())
    }

    pub(crate) fn workflows(&mut self) -> WorkflowDriver<'_> {
        WorkflowDriver { crew: self.crew, host: self.host.reborrow() }
    }
}

impl WorkflowDriver<'_> {
    /// As [`CrewDriver::root`].
    pub(crate) fn root(&self) -> SessionId {
        self.crew.root.unwrap_or_else(|| self.host.session_id())
    }

    pub(crate) fn agents(&mut self) -> CrewDriver<'_> {
        CrewDriver { crew: self.crew, host: self.host.reborrow() }
    }
}
