//! The loop as a child's side of an engine and an external program use it. A driver borrows the loop for one call and has
//! no state; the state is in [`Core`].

use crate::core::Core;

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
    pub(crate) fn child_driver(&mut self) -> ChildDriver<'_> {
        ChildDriver { core: self }
    }

    pub(crate) fn external_driver(&mut self) -> ExternalDriver<'_> {
        ExternalDriver { core: self }
    }
}
