//! The agents of a session and the loop that hosts them, for one call of the loop.

use tiller_engine::crew::CrewHost;

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
    pub(crate) fn workflows(&mut self) -> WorkflowDriver<'_> {
        WorkflowDriver { crew: self.crew, host: self.host.reborrow() }
    }
}

impl WorkflowDriver<'_> {
    pub(crate) fn agents(&mut self) -> CrewDriver<'_> {
        CrewDriver { crew: self.crew, host: self.host.reborrow() }
    }
}
