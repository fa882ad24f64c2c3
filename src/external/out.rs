//! The driver's side of the event channel.

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::event::{ActivityClaim, AgentEvent, Answer, Ask, Question};
use tiller_protocol::{Activity, ActivitySource};

/// The engine has dropped the receiver, or the run is to end at once.
#[derive(Debug)]
pub(crate) struct Disconnected;

/// Sends events. The engine holds the receiver; when it is dropped, the run ends.
#[derive(Debug)]
pub(crate) struct Out {
    tx: mpsc::Sender<AgentEvent>,
    hard: CancellationToken,
    asked: u64,
    state: Option<ActivityClaim>,
}

impl Out {
    pub(crate) fn new(tx: mpsc::Sender<AgentEvent>, hard: CancellationToken) -> Self {
        Self { tx, hard, asked: 0, state: None }
    }

    /// Waits for room in the channel, so that a fast program is slowed down by its pipe.
    pub(crate) async fn send(&self, said: AgentEvent) -> Result<(), Disconnected> {
        tokio::select! {
            biased;
            () = self.hard.cancelled() => Err(Disconnected),
            sent = self.tx.send(said) => sent.map_err(|_| Disconnected),
        }
    }

    /// Sends without waiting. False: no room.
    pub(crate) fn try_send(&self, said: AgentEvent) -> bool {
        self.tx.try_send(said).is_ok()
    }

    /// Reports an activity, unless it equals the last one.
    pub(crate) async fn state(&mut self, what: Activity, source: ActivitySource) -> Result<(), Disconnected> {
        let guess = ActivityClaim { what, source };
        if self.state.as_ref() == Some(&guess) {
            return Ok(());
        }
        self.state = Some(guess.clone());
        self.send(AgentEvent::State(guess)).await
    }

    /// Sends a question; the answer comes on the returned receiver, which fails when the question is refused.
    pub(crate) async fn ask(
        &mut self,
        call: Option<String>,
        what: Question,
    ) -> Result<oneshot::Receiver<Answer>, Disconnected> {
        let (reply, answer) = oneshot::channel();
        self.asked += 1;
        self.send(AgentEvent::Ask(Ask { id: self.asked, call, what, reply })).await?;
        Ok(answer)
    }

    /// Waits until the engine has dropped the receiver.
    pub(crate) async fn closed(&self) {
        self.tx.closed().await;
    }
}
