//! The way of everything that must be on disk before it is shown. Writes are handed over in order and
//! answered in order; what depends on one happens when its answer comes.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{CommandId, EventBody, QueueId};
use tiller_store::{Lease, ModelCall, StoreError, Ticket};
use tokio::sync::watch;

use crate::bus::{ClientId, Place};

/// What to do once a write is on disk.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) events: Vec<(Place, EventBody)>,
    pub(crate) then: Then,
}

/// How the engine goes on.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Nothing,
    /// The row of a fresh session.
    Made,
    StartTurn(u64),
    Steered(u64),
    TurnOver {
        turn: u64,
        status: TurnStatus,
    },
    Accepted(Vec<QueueId>),
    Leased(Lease),
    /// The row of an agent, which has this session.
    Row {
        session: tiller_protocol::SessionId,
        view: Box<tiller_protocol::AgentView>,
    },
    /// This client hears it when it cannot be done.
    Told {
        client: ClientId,
        cause: CommandId,
    },
    /// This client hears it when it is done.
    Tell {
        client: ClientId,
        cause: CommandId,
        reply: Box<tiller_protocol::event::ReplyEvent>,
    },
    /// As `Named`, for an undo or a redo of a value. When it cannot be done, `closes` goes into the log in its place.
    Inverted {
        client: ClientId,
        cause: CommandId,
        label: Option<tiller_protocol::BranchName>,
        said: String,
        closes: Box<tiller_protocol::Op>,
    },
    /// As `Told`; a branch has this name from then on, and the client hears that it is done.
    Named {
        client: ClientId,
        cause: CommandId,
        label: Option<tiller_protocol::BranchName>,
        said: Option<String>,
    },
}

/// One answer.
pub(crate) struct Saved {
    pub(crate) result: Result<(), StoreError>,
    pub(crate) after: After,
    /// Calls of models that were booked with it.
    pub(crate) calls: Vec<ModelCall>,
}

/// Writes that wait for their answers.
pub(crate) struct Saves {
    waiting: FuturesOrdered<BoxFuture<'static, Saved>>,
    submitted: u64,
    /// Why the row of the open session could not be made.
    pub(crate) unmade: Option<StoreError>,
    /// What failed for good first, until memory is what the disk has again.
    pub(crate) failed: Option<StoreError>,
    /// How many have been answered. Held here and by calls that must not run before what led to them is
    /// on disk; it closes when the engine ends.
    done: watch::Sender<u64>,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self {
            waiting: FuturesOrdered::new(),
            submitted: 0,
            unmade: None,
            failed: None,
            done: watch::Sender::new(0),
        }
    }

    pub(crate) fn push<T: Send + 'static>(&mut self, ticket: Ticket<T>, after: After) {
        self.push_paid(ticket, after, Vec::new());
    }

    /// As [`Self::push`], of a write that books these calls, too.
    pub(crate) fn push_paid<T: Send + 'static>(
        &mut self,
        ticket: Ticket<T>,
        after: After,
        calls: Vec<ModelCall>,
    ) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(async move {
            let result = ticket.await.map(drop);
            Saved { result, after, calls }
        }));
    }

    /// Shows these when everything handed over before them is on disk and shown.
    pub(crate) fn push_events(&mut self, events: Vec<(Place, EventBody)>) {
        self.push_after(After { events, then: Then::Nothing });
    }

    /// Does this when everything handed over before it is on disk and shown.
    pub(crate) fn push_after(&mut self, after: After) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(std::future::ready(Saved {
            result: Ok(()),
            after,
            calls: Vec::new(),
        })));
    }

    /// As [`Self::push`], for the lease of a fresh session.
    pub(crate) fn push_lease(&mut self, ticket: Ticket<Lease>) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(async move {
            let (result, then) = match ticket.await {
                Ok(lease) => (Ok(()), Then::Leased(lease)),
                Err(error) => (Err(error), Then::Nothing),
            };
            Saved { result, after: After { events: Vec::new(), then }, calls: Vec::new() }
        }));
    }

    /// The next answer; waits for ever when nothing is under way.
    pub(crate) async fn next(&mut self) -> Saved {
        match self.waiting.next().await {
            Some(saved) => {
                self.done.send_modify(|n| *n += 1);
                saved
            }
            None => std::future::pending().await,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Resolves when everything that was handed over up to now has been answered.
    pub(crate) fn barrier(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut done, all) = (self.done.subscribe(), self.submitted);
        async move {
            // An error means that the engine ended: what waits is stopped by then.
            let _ = done.wait_for(|n| *n >= all).await;
        }
    }
}
