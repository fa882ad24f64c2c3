//! Tasks that end with the engine, requests to end it, and follow-ups.

use std::collections::VecDeque;

use tiller_protocol::SandboxState;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::EventScope;

/// Tasks that end with the engine, and requests to end it.
#[derive(Default)]
pub(crate) struct Lifecycle {
    /// Tasks that belong to no turn: titles, queries, commands of the user's own.
    pub(crate) tasks: tokio::task::JoinSet<()>,
    /// Tasks of agents that are ending.
    pub(crate) agents: Vec<AbortOnDropHandle<()>>,
    pub(crate) quitting: Option<EventScope>,
    pub(crate) quit_presses: u32,
    pub(crate) stop: bool,
    /// The end waits for no hooks of changed files.
    pub(crate) hurry: CancellationToken,
    /// What confines commands, once the self-test has ended. Only the main agent's engine has it.
    pub(crate) sandbox: Option<SandboxState>,
    /// What is to be done after the present report.
    pub(crate) follow_ups: VecDeque<crate::core::follow_up::FollowUp>,
}
