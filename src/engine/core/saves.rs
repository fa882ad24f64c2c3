//! The queue of writes. Writes are answered in the order in which they were started; what depends on a write happens
//! when its answer arrives.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{CommandId, EventBody};
use tiller_store::{Lease, ModelCall, StoreError, Ticket};
use tokio::sync::watch;

use crate::bus::{ClientId, EventScope};
use crate::crew::EndedWork;

/// What to do once a write is on disk.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) events: Vec<(EventScope, EventBody)>,
    pub(crate) then: Then,
}

/// What follows a write.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Nothing,
    /// The row of a new session was made.
    SessionCreated,
    StartTurn(u64),
    Steered(u64),
    TurnOver {
        turn: u64,
        status: TurnStatus,
    },
    /// The write of the queue with this number is done.
    Accepted(u64),
    Leased(Lease),
    /// The row of an agent with this session was made.
    AgentCreated {
        session: tiller_protocol::SessionId,
        view: Box<tiller_protocol::AgentView>,
    },
    /// Replies to this client when the write failed.
    ReplyOnError {
        client: ClientId,
        cause: CommandId,
    },
    /// Replies to this client when the write is done.
    Reply {
        client: ClientId,
        cause: CommandId,
        reply: Box<tiller_protocol::event::ReplyEvent>,
    },
    /// Like `BranchNamed`, for an undo or redo of a value. When it fails, `closes` is added to the log instead.
    ValueUndone {
        client: ClientId,
        cause: CommandId,
        label: Option<tiller_protocol::BranchName>,
        title: crate::undo::OpTitle,
        closes: Box<tiller_protocol::Op>,
    },
    /// Like `ReplyOnError`; the branch has this name from then on, and the client gets a reply.
    BranchNamed {
        client: ClientId,
        cause: CommandId,
        label: Option<tiller_protocol::BranchName>,
        said: Option<String>,
    },
}

/// One answer.
pub(crate) struct WriteReport {
    pub(crate) result: Result<(), StoreError>,
    pub(crate) after: After,
    /// Model calls that were recorded with it.
    pub(crate) calls: Vec<ModelCall>,
}

/// Writes that wait for their answers.
pub(crate) struct Saves {
    waiting: FuturesOrdered<BoxFuture<'static, WriteReport>>,
    submitted: u64,
    /// The error of creating the row of the open session.
    pub(crate) unmade: Option<StoreError>,
    /// The first permanent error, until memory agrees with the disk again.
    pub(crate) failed: Option<StoreError>,
    /// Ends of agents and workflows that the next entry reports.
    pub(crate) ended: EndedWork,
    /// Number of answered writes. Receivers are held by calls that must not run before the entries that led to them
    /// are on disk; it closes when the engine ends.
    done: watch::Sender<u64>,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self {
            waiting: FuturesOrdered::new(),
            submitted: 0,
            unmade: None,
            failed: None,
            ended: EndedWork::default(),
            done: watch::Sender::new(0),
        }
    }

    pub(crate) fn push<T: Send + 'static>(&mut self, ticket: Ticket<T>, after: After) {
        self.push_paid(ticket, after, Vec::new());
    }

    /// Like [`Self::push`], for a write that also records these model calls.
    pub(crate) fn push_paid<T: Send + 'static>(
        &mut self,
        ticket: Ticket<T>,
        after: After,
        calls: Vec<ModelCall>,
    ) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(async move {
            let result = ticket.await.map(drop);
            WriteReport { result, after, calls }
        }));
    }

    /// Publishes events when every earlier write is done.
    pub(crate) fn push_events(&mut self, events: Vec<(EventScope, EventBody)>) {
        self.push_after(After { events, then: Then::Nothing });
    }

    /// Continues with `after` when every earlier write is done.
    pub(crate) fn push_after(&mut self, after: After) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(std::future::ready(WriteReport {
            result: Ok(()),
            after,
            calls: Vec::new(),
        })));
    }

    /// Like [`Self::push`], for the lease of a new session.
    pub(crate) fn push_lease(&mut self, ticket: Ticket<Lease>) {
        self.submitted += 1;
        self.waiting.push_back(Box::pin(async move {
            let (result, then) = match ticket.await {
                Ok(lease) => (Ok(()), Then::Leased(lease)),
                Err(error) => (Err(error), Then::Nothing),
            };
            WriteReport { result, after: After { events: Vec::new(), then }, calls: Vec::new() }
        }));
    }

    /// The next answer. Never resolves when no write is under way.
    pub(crate) async fn next(&mut self) -> WriteReport {
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

    /// Resolves when every write so far has been answered.
    pub(crate) fn barrier(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut done, all) = (self.done.subscribe(), self.submitted);
        async move {
            // An error means that the engine ended and its tasks are stopped.
            let _ = done.wait_for(|n| *n >= all).await;
        }
    }
}
