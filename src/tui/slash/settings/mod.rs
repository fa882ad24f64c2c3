//! Commands for settings of the session and the screen.

pub(super) mod budget;
pub(crate) mod effort;
pub(super) mod model;
pub(super) mod mute;
pub(super) mod permissions;
pub(super) mod skill;
pub(super) mod theme;
