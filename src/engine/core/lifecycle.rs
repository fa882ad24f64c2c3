//! What ends with the engine, how it is asked to end, and what is left to do.

use std::collections::VecDeque;

use tokio_util::task::AbortOnDropHandle;

use crate::bus::Place;

/// What ends with the engine, and how it is asked to end.
#[derive(Default)]
pub(crate) struct Lifecycle {
    /// Tasks that belong to no turn: titles, queries, lines of the person's.
    pub(crate) tasks: tokio::task::JoinSet<()>,
    /// Tasks of agents that are ending.
    pub(crate) agents: Vec<AbortOnDropHandle<()>>,
    pub(crate) quitting: Option<Place>,
    pub(crate) quit_presses: u32,
    pub(crate) stop: bool,
    /// What is left to do after the present report.
    pub(crate) follow_ups: VecDeque<crate::core::follow_up::FollowUp>,
}
