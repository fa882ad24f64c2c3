//! The way of messages to the crew: from its own tasks, and from calls of tools.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::core::msg::Msg;
use crate::crew::msg::CrewMsg;

/// The engine of the main agent has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Tiller is shutting down")]
pub struct EngineEnded;

/// Sends messages to the crew through the inbox of the main agent's loop, which holds the other end and closes it when it
/// ends. Cheap to clone.
#[derive(Clone)]
pub struct CrewMailbox(mpsc::Sender<Msg>);

impl CrewMailbox {
    pub(crate) fn new(main: mpsc::Sender<Msg>) -> Self {
        Self(main)
    }

    /// Sends a message; waits while the inbox is full.
    ///
    /// # Errors
    /// When the engine has ended.
    pub async fn send(&self, msg: CrewMsg) -> Result<(), EngineEnded> {
        self.0.send(Msg::Crew(msg)).await.map_err(|_| EngineEnded)
    }

    /// Reserves room for [`CrewMsg::Queued`]; waits while the inbox is full. A task of the crew first reserves, then puts its
    /// message into the crew's own queue, and then sends: no step after the reservation can wait, so no message is left in the
    /// queue without a signal.
    ///
    /// # Errors
    /// When the engine has ended.
    pub async fn reserve(&self) -> Result<CrewSignal<'_>, EngineEnded> {
        self.0.reserve().await.map(CrewSignal).map_err(|_| EngineEnded)
    }

    /// Sends a message without waiting; when the inbox is full, from a task of its own.
    fn post(&self, msg: CrewMsg) {
        if let Err(TrySendError::Full(msg)) = self.0.try_send(Msg::Crew(msg)) {
            let main = self.0.clone();
            // Outside of a runtime the engine has ended.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                drop(runtime.spawn(async move { main.send(msg).await }));
            }
        }
    }
}

/// Reserved room in the loop's inbox for [`CrewMsg::Queued`]. Dropping it gives the room back.
pub struct CrewSignal<'a>(mpsc::Permit<'a, Msg>);

impl CrewSignal<'_> {
    /// Lets the crew read its queue.
    pub fn send(self) {
        self.0.send(Msg::Crew(CrewMsg::Queued));
    }
}

/// Notifies the crew, when dropped, that a call no longer waits for its reply.
pub struct RequestGuard<'a>(pub &'a CrewMailbox);

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.0.post(CrewMsg::RequestEnded);
    }
}
