//! The loop of the engine as four concerns of the crew use it. A driver borrows the loop for one call and has no state; the
//! state is in [`Core`].

use crate::core::Core;

/// Drives the agents of a session. Only the main agent's loop has any.
pub(crate) struct CrewDriver<'a> {
    pub(crate) core: &'a mut Core,
}

/// Drives the workflows of a session.
pub(crate) struct WorkflowDriver<'a> {
    pub(crate) core: &'a mut Core,
}

/// Reports what a child does to the main agent's loop, and keeps the child to its limits. In the main agent's loop most of
/// its methods do nothing.
pub(crate) struct ChildDriver<'a> {
    pub(crate) core: &'a mut Core,
}

/// Drives the external program that does the work of this agent, if one does.
pub(crate) struct ExternalDriver<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    pub(crate) fn crew_driver(&mut self) -> CrewDriver<'_> {
        CrewDriver { core: self }
    }

    pub(crate) fn workflow_driver(&mut self) -> WorkflowDriver<'_> {
        WorkflowDriver { core: self }
    }

    pub(crate) fn child_driver(&mut self) -> ChildDriver<'_> {
        ChildDriver { core: self }
    }

    pub(crate) fn external_driver(&mut self) -> ExternalDriver<'_> {
        ExternalDriver { core: self }
    }
}
