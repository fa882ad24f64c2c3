//! The bus: commands go in, events come out. Nothing else crosses between the engine and its clients.
//!
//! Each subscriber has a mailbox of its own, bounded in events and in bytes. Consecutive deltas of the same kind are
//! joined while they wait; other events are never dropped one by one. A reader that falls too far behind finds one
//! `lagged` event in place of all that it missed, and asks for a snapshot.

pub(crate) mod agent_view;
pub(crate) mod dispatch;
mod mailbox;
pub(crate) mod notices;
pub(crate) mod queries;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::lock;
use tiller_protocol::{AgentId, Clock, Command, CommandBody, CommandId, Event, EventBody, SessionId};
use tokio::sync::mpsc;

use mailbox::Mailbox;
pub use mailbox::{EventStream, Waker};

/// Commands that may wait for the engine.
const COMMANDS: usize = 256;

/// One client of the bus. Replies to queries go to the subscriptions of the client that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Closed,
    /// More commands wait than the engine takes at once; try again.
    #[error("the engine is busy")]
    Full,
}

/// A command and the client that sent it.
#[derive(Debug)]
pub struct Envelope {
    pub client: ClientId,
    pub command: Command,
}

impl Envelope {
    /// A command of the program itself. Replies to it are dropped.
    pub fn internal(body: CommandBody) -> Self {
        Self { client: ClientId(u64::MAX), command: Command::new(CommandId(0), body) }
    }
}

/// A client's end of the bus. A clone is the same client; [`EngineHandle::client`] makes another.
#[derive(Clone, Debug)]
pub struct EngineHandle {
    /// Held here by clients; the engine's loop holds the other end. It closes when the engine ends.
    tx: mpsc::Sender<Envelope>,
    bus: Arc<Bus>,
    client: ClientId,
}

impl EngineHandle {
    /// Sends a command. Never waits.
    ///
    /// # Errors
    /// When the engine has ended, or cannot take more just now.
    pub fn send(&self, command: Command) -> Result<(), SendError> {
        self.tx.try_send(Envelope { client: self.client, command }).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => SendError::Full,
            mpsc::error::TrySendError::Closed(_) => SendError::Closed,
        })
    }

    /// Subscribes to all events from now on. Dropping the stream ends the subscription.
    pub fn subscribe(&self) -> EventStream {
        self.bus.subscribe(self.client)
    }

    /// A handle for another client: replies to its queries do not reach this one.
    #[must_use]
    pub fn client(&self) -> Self {
        let client = self.bus.new_client();
        Self { tx: self.tx.clone(), bus: Arc::clone(&self.bus), client }
    }

    /// Waits until the engine has ended.
    pub async fn closed(&self) {
        self.tx.closed().await;
    }
}

/// The session and agent that an event belongs to, and the command that caused it.
#[derive(Clone, Debug)]
pub struct EventScope {
    pub session: SessionId,
    pub agent: AgentId,
    /// The command that led to it.
    pub cause: Option<CommandId>,
}

/// The engine's end.
pub(crate) struct Bus {
    clock: Arc<dyn Clock>,
    clients: AtomicU64,
    subscribers: Mutex<Subscribers>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}

#[derive(Default)]
struct Subscribers {
    seq: u64,
    boxes: Vec<(ClientId, Weak<Mailbox>)>,
    closed: bool,
}

impl Bus {
    /// The bus, a first client's handle, and the engine's end of the commands.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> (Arc<Self>, EngineHandle, mpsc::Receiver<Envelope>) {
        let (tx, rx) = mpsc::channel(COMMANDS);
        let bus = Arc::new(Self {
            clock,
            clients: AtomicU64::new(0),
            subscribers: Mutex::new(Subscribers::default()),
        });
        let handle = EngineHandle { tx, client: bus.new_client(), bus: Arc::clone(&bus) };
        (bus, handle, rx)
    }

    fn new_client(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed))
    }

    fn subscribe(&self, client: ClientId) -> EventStream {
        let mailbox = Arc::new(Mailbox::default());
        let mut subscribers = lock(&self.subscribers);
        if subscribers.closed {
            mailbox.close();
        }
        subscribers.boxes.push((client, Arc::downgrade(&mailbox)));
        EventStream { mailbox }
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        lock(&self.subscribers).seq
    }

    /// Sends an event to all subscribers.
    pub(crate) fn publish(&self, scope: &EventScope, body: impl Into<EventBody>) {
        self.deliver(None, scope, body.into());
    }

    /// Sends a reply to the client that asked only.
    pub(crate) fn reply(&self, client: ClientId, scope: &EventScope, reply: ReplyEvent) {
        self.deliver(Some(client), scope, EventBody::Reply(Box::new(reply)));
    }

    fn deliver(&self, only: Option<ClientId>, scope: &EventScope, body: EventBody) {
        let time = self.clock.now();
        // Events are numbered and delivered under one lock, so that every reader sees the same order.
        let mut subscribers = lock(&self.subscribers);
        subscribers.seq += 1;
        let weight = OnceLock::new();
        let event = Arc::new(Event {
            seq: subscribers.seq,
            time,
            session: scope.session,
            agent: scope.agent.clone(),
            cause: scope.cause,
            body,
        });
        subscribers.boxes.retain(|(client, mailbox)| {
            let Some(mailbox) = mailbox.upgrade() else { return false };
            if only.is_none_or(|c| c == *client) {
                mailbox.put(&event, &weight);
            }
            true
        });
    }

    /// Ends every subscription, once what waits in it has been read.
    pub(crate) fn close(&self) {
        let mut subscribers = lock(&self.subscribers);
        subscribers.closed = true;
        for (_, mailbox) in &subscribers.boxes {
            if let Some(m) = mailbox.upgrade() {
                m.close();
            }
        }
    }
}
