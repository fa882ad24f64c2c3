//! The mailbox of one subscriber, and its reader.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::lock;
use tiller_protocol::{Delivery, Event, EventBody};
use tokio::sync::Notify;

/// Events that may wait for one reader, at most.
const EVENTS: usize = 8192;
/// Bytes of waiting events of one reader, at most.
const BYTES: usize = 16 << 20;
/// Events that may wait for a reader before their bytes are counted. A reader that keeps up never pays for the count.
const FEW: usize = 64;
/// Bytes of a joined delta after which the next one starts a new event.
const JOINED: usize = 64 << 10;

/// Called on the engine's thread when an event has arrived; must not wait.
pub type Waker = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(super) struct Mailbox {
    waiting: Mutex<MailboxQueue>,
    async_reader: Notify,
    blocking_reader: Condvar,
    waker: OnceLock<Waker>,
}

#[derive(Default)]
struct MailboxQueue {
    /// Each with its share of `bytes`.
    events: VecDeque<(Arc<Event>, usize)>,
    bytes: usize,
    closed: bool,
    /// Threads that wait for the next event. Without one no wake-up is sent, which saves a system call for each event.
    asleep: usize,
}

impl Mailbox {
    /// `weight`: the event's size in bytes, computed once for all readers.
    pub(super) fn put(&self, event: &Arc<Event>, weight: &OnceLock<usize>) {
        let mut waiting = lock(&self.waiting);
        if waiting.closed {
            return;
        }
        let mut bytes = delta_len(&event.body);
        let joined = waiting.events.back_mut().is_some_and(|(last, counted)| {
            let joined = join(last, event);
            *counted += if joined { bytes } else { 0 };
            joined
        });
        if !joined {
            if bytes == 0 && waiting.events.len() >= FEW {
                bytes = *weight.get_or_init(|| size(&event.body));
            }
            waiting.events.push_back((Arc::clone(event), bytes));
        }
        waiting.bytes += bytes;
        if waiting.events.len() > EVENTS || waiting.bytes > BYTES {
            overflow(&mut waiting);
        }
        self.wake(waiting);
    }

    pub(super) fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        self.wake(waiting);
    }

    fn wake(&self, waiting: MutexGuard<'_, MailboxQueue>) {
        let asleep = waiting.asleep > 0;
        drop(waiting);
        self.async_reader.notify_one();
        if asleep {
            self.blocking_reader.notify_all();
        }
        if let Some(waker) = self.waker.get() {
            waker();
        }
    }
}

/// Drops all waiting events and leaves one `lagged` in their place.
fn overflow(waiting: &mut MailboxQueue) {
    let mut missed = 0;
    for (e, _) in &waiting.events {
        missed += match &e.body {
            EventBody::State(StateEvent::Lagged { missed }) => *missed,
            _ => 1,
        };
    }
    let Some((last, _)) = waiting.events.pop_back() else { return };
    waiting.events.clear();
    waiting.bytes = 0;
    let mut lagged = Arc::unwrap_or_clone(last);
    lagged.cause = None;
    lagged.body = EventBody::State(StateEvent::Lagged { missed });
    waiting.events.push_back((Arc::new(lagged), 0));
}

fn delta_len(body: &EventBody) -> usize {
    match body {
        EventBody::Turn(TurnEvent::TextDelta { text } | TurnEvent::ThinkingDelta { text })
        | EventBody::Tool(ToolEvent::ToolProgress { text, .. }) => text.len(),
        _ => 0,
    }
}

/// Bytes of an event, as its JSON form has them.
fn size(body: &EventBody) -> usize {
    struct Count(usize);

    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // An event that cannot be serialised counts as empty.
    let _ = serde_json::to_writer(&mut count, body);
    count.0
}

/// Joins `event` to `last` if both are deltas of the same thing. The later number is kept: a snapshot
/// that contains it contains both.
fn join(last: &mut Arc<Event>, event: &Arc<Event>) -> bool {
    let alike = event.body.delivery() == Delivery::Mergeable
        && last.session == event.session
        && last.agent == event.agent
        && last.cause == event.cause
        && delta_len(&last.body) < JOINED;
    if !alike {
        return false;
    }
    let same = match (&last.body, &event.body) {
        (EventBody::Turn(TurnEvent::TextDelta { .. }), EventBody::Turn(TurnEvent::TextDelta { .. }))
        | (
            EventBody::Turn(TurnEvent::ThinkingDelta { .. }),
            EventBody::Turn(TurnEvent::ThinkingDelta { .. }),
        ) => true,
        (
            EventBody::Tool(ToolEvent::ToolProgress { call_id: a, .. }),
            EventBody::Tool(ToolEvent::ToolProgress { call_id: b, .. }),
        ) => a == b,
        _ => false,
    };
    if !same {
        return false;
    }
    let last = Arc::make_mut(last);
    last.seq = event.seq;
    last.time = event.time;
    let more = match &event.body {
        EventBody::Turn(TurnEvent::TextDelta { text } | TurnEvent::ThinkingDelta { text })
        | EventBody::Tool(ToolEvent::ToolProgress { text, .. }) => text,
        _ => return true,
    };
    if let EventBody::Turn(TurnEvent::TextDelta { text } | TurnEvent::ThinkingDelta { text })
    | EventBody::Tool(ToolEvent::ToolProgress { text, .. }) = &mut last.body
    {
        text.push_str(more);
    }
    true
}

/// One reader's events, in order. `None` means that the engine has ended and all was read.
pub struct EventStream {
    pub(super) mailbox: Arc<Mailbox>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStream")
    }
}

impl EventStream {
    /// The next event if there is one. Never waits.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        take(&mut lock(&self.mailbox.waiting))
    }

    /// Whether the engine has ended. Waiting events may still be read.
    pub fn ended(&self) -> bool {
        lock(&self.mailbox.waiting).closed
    }

    /// For a reader that waits on something else and reads with [`Self::try_next`]. Calls `waker` at once; can be set
    /// once only.
    pub fn on_event(&self, waker: Waker) {
        let _ = self.mailbox.waker.set(waker);
        self.mailbox.wake(lock(&self.mailbox.waiting));
    }

    /// The next event. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            {
                let mut waiting = lock(&self.mailbox.waiting);
                if let Some(e) = take(&mut waiting) {
                    return Some(e);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.mailbox.async_reader.notified().await;
        }
    }

    /// The next event, for readers on a thread of their own.
    pub fn recv(&mut self) -> Option<Arc<Event>> {
        let mut waiting = lock(&self.mailbox.waiting);
        loop {
            if let Some(e) = take(&mut waiting) {
                return Some(e);
            }
            if waiting.closed {
                return None;
            }
            waiting.asleep += 1;
            waiting = self.mailbox.blocking_reader.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.asleep -= 1;
        }
    }

    /// As [`Self::recv`], but gives up after `timeout`.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Option<Arc<Event>> {
        let end = Instant::now() + timeout;
        let mut waiting = lock(&self.mailbox.waiting);
        loop {
            if let Some(e) = take(&mut waiting) {
                return Some(e);
            }
            let left = end.saturating_duration_since(Instant::now());
            if waiting.closed || left.is_zero() {
                return None;
            }
            waiting.asleep += 1;
            waiting = self
                .mailbox
                .blocking_reader
                .wait_timeout(waiting, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            waiting.asleep -= 1;
        }
    }
}

fn take(waiting: &mut MailboxQueue) -> Option<Arc<Event>> {
    let (event, bytes) = waiting.events.pop_front()?;
    waiting.bytes = waiting.bytes.saturating_sub(bytes);
    Some(event)
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
