//! Where everything that can wake the loop arrives: messages of other threads, and the terminal's bytes. The loop waits
//! for both at once and reads keys itself, for a thread between terminal and loop costs as much as the key.

use std::cell::RefCell;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, TryRecvError, TrySendError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tiller_protocol::Event;

use crate::app::msg::Msg;

/// Returns the next waiting event; `None`: no event waits. Never blocks. The loop calls it itself, because a thread
/// that forwarded events would cost a wake-up for each. The sender must call the waker for each event
/// ([`Post::waker`]).
pub type EventSource = Box<dyn FnMut() -> Option<Box<Event>> + Send>;

/// Longest sleep of the loop when it cannot be woken, because no pipe could be made.
const BLIND: Duration = Duration::from_millis(20);

/// Wakes the loop out of its sleep.
struct WakeState {
    /// The loop sleeps, or is about to.
    asleep: AtomicBool,
    wake_pipe: Option<PipeWriter>,
}

/// The end that other threads hold.
#[derive(Clone)]
pub struct Post {
    tx: SyncSender<Msg>,
    waker: Arc<WakeState>,
}

/// The loop's end.
pub(crate) struct Inbox {
    rx: Receiver<Msg>,
    source: RefCell<Option<EventSource>>,
    waker: Arc<WakeState>,
    wake_source: Option<PipeReader>,
}

/// The end of a wait.
pub(crate) struct Wake {
    pub(crate) msg: Option<Msg>,
    /// The terminal has bytes, or an end.
    pub(crate) input: bool,
    /// Every sender was dropped.
    pub(crate) disconnected: bool,
}

/// Makes both ends. `waiting`: messages that may wait.
pub(crate) fn inbox(waiting: usize) -> (Post, Inbox) {
    let (tx, rx) = std::sync::mpsc::sync_channel(waiting);
    let (wake_source, wake_pipe) = std::io::pipe().ok().unzip();
    let waker = Arc::new(WakeState { asleep: AtomicBool::new(false), wake_pipe });
    (Post { tx, waker: Arc::clone(&waker) }, Inbox { rx, source: RefCell::new(None), waker, wake_source })
}

impl WakeState {
    fn wake(&self) {
        // The loop sets the flag before it checks for messages a last time: either it sees the message, or this thread
        // sees the flag.
        fence(Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(mut wake_pipe) = self.wake_pipe.as_ref()
        {
            // The pipe has room: one byte is written per sleep.
            let _ = wake_pipe.write(&[0]);
        }
    }
}

impl Post {
    /// Wakes the loop without being able to send to it.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.waker))
    }

    /// Waits while too many messages wait.
    ///
    /// # Errors
    /// When the loop has ended.
    pub fn send(&self, msg: Msg) -> Result<(), SendError<Msg>> {
        self.tx.send(msg)?;
        self.waker.wake();
        Ok(())
    }

    /// Never waits.
    ///
    /// # Errors
    /// When the loop has ended, or too many messages wait.
    pub fn try_send(&self, msg: Msg) -> Result<(), TrySendError<Msg>> {
        self.tx.try_send(msg)?;
        self.waker.wake();
        Ok(())
    }
}

/// Wakes the loop: its [`EventSource`] has something.
#[derive(Clone)]
pub struct Waker(Arc<WakeState>);

impl Waker {
    /// Wakes the loop if it sleeps.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl Inbox {
    /// A message that waits already, without blocking.
    pub(crate) fn try_recv(&self) -> Result<Msg, TryRecvError> {
        let first = match self.rx.try_recv() {
            Ok(Msg::Source(source)) => {
                *self.source.borrow_mut() = Some(source);
                Err(TryRecvError::Empty)
            }
            first => first,
        };
        first.or_else(|none| {
            let event = self.source.borrow_mut().as_mut().and_then(|next| next());
            event.map(Msg::Engine).ok_or(none)
        })
    }

    /// Waits for a message or for `input`, but no longer than `limit`. A flood of messages never hides the input.
    pub(crate) fn wait(&self, input: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> Wake {
        self.waker.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let first = self.try_recv();
        let disconnected = matches!(first, Err(TryRecvError::Disconnected));
        let blind = self.wake_source.is_none().then_some(BLIND);
        let limit = match first {
            Ok(_) => Some(Duration::ZERO),
            Err(_) => limit.into_iter().chain(blind).min(),
        };
        let (mut signalled, mut ready) = (false, false);
        if !disconnected {
            let wake_source = self.wake_source.as_ref().map(|e| PollFd::new(e, PollFlags::IN));
            let input = input.map(|i| PollFd::from_borrowed_fd(i, PollFlags::IN));
            let (hears, reads) = (wake_source.is_some(), input.is_some());
            let mut fds: Vec<PollFd<'_>> = wake_source.into_iter().chain(input).collect();
            let limit =
                limit.map(|t| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: i64::from(t.subsec_nanos()) });
            // An interrupted wait is treated as a timeout: the loop checks what there is to do.
            if poll(&mut fds, limit.as_ref()).is_ok() {
                let has = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
                signalled = hears && has(fds.first());
                ready = reads && has(fds.last());
            }
        }
        self.waker.asleep.store(false, Ordering::SeqCst);
        if let Some(mut wake_source) = self.wake_source.as_ref().filter(|_| signalled) {
            let _ = wake_source.read(&mut [0; 64]);
        }
        Wake { msg: first.or_else(|_| self.try_recv()).ok(), input: ready, disconnected }
    }

    /// Waits for a message alone, at most for `limit`.
    pub(crate) fn recv(&self, limit: Option<Duration>) -> Result<Msg, RecvTimeoutError> {
        let end = limit.map(|t| Instant::now() + t);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            match self.wait(None, left) {
                Wake { msg: Some(msg), .. } => return Ok(msg),
                Wake { disconnected: true, .. } => return Err(RecvTimeoutError::Disconnected),
                _ if left.is_some_and(|t| t.is_zero()) => return Err(RecvTimeoutError::Timeout),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn some_event() -> Event {
        use tiller_protocol::event::StateEvent;
        use tiller_protocol::{AgentId, EventBody, SeqIds, SessionId, Time};
        let session = SessionId::fresh(&SeqIds::default(), Time(0));
        let body = EventBody::State(StateEvent::Stopped {});
        Event { seq: 1, time: Time(0), session, agent: AgentId::main(), cause: None, body }
    }

    const LONG: Duration = Duration::from_secs(90);

    #[test]
    fn no_message_is_slept_over_however_the_threads_meet() {
        let (post, inbox) = inbox(4);
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let post = post.clone();
                std::thread::spawn(move || (0..2_000).for_each(|_| post.send(Msg::Tick).unwrap()))
            })
            .collect();
        for n in 0..6_000 {
            assert!(inbox.recv(Some(LONG)).is_ok(), "message {n} did not wake");
        }
        senders.into_iter().for_each(|t| t.join().unwrap());
        assert!(matches!(inbox.recv(Some(Duration::ZERO)), Err(RecvTimeoutError::Timeout)));
        drop(post);
        assert!(matches!(inbox.recv(None), Err(RecvTimeoutError::Disconnected)));
    }

    #[test]
    fn what_the_loop_fetches_itself_is_not_slept_over_and_does_not_keep_it_company() {
        let (post, inbox) = inbox(4);
        let (tx, rx) = std::sync::mpsc::channel();
        post.send(Msg::Source(Box::new(move || rx.try_recv().ok()))).unwrap();
        let waker = post.waker();
        let feeder = std::thread::spawn(move || {
            for _ in 0..2_000 {
                tx.send(Box::new(some_event())).unwrap();
                waker.wake();
            }
        });
        let other = post.clone();
        let sender = std::thread::spawn(move || (0..2_000).for_each(|_| other.send(Msg::Tick).unwrap()));
        let mut seen = [0, 0];
        for n in 0..4_000 {
            match inbox.recv(Some(LONG)) {
                Ok(Msg::Engine(_)) => seen[0] += 1,
                Ok(_) => seen[1] += 1,
                Err(_) => panic!("message {n} did not wake"),
            }
        }
        assert_eq!(seen, [2_000, 2_000]);
        feeder.join().unwrap();
        sender.join().unwrap();
        drop(post);
        assert!(matches!(inbox.recv(None), Err(RecvTimeoutError::Disconnected)));
    }

    #[test]
    fn a_flood_of_messages_does_not_hide_the_input() {
        let (post, inbox) = inbox(4);
        let (read, mut write) = std::io::pipe().unwrap();
        post.send(Msg::Tick).unwrap();
        let woken = inbox.wait(Some(read.as_fd()), None);
        assert!(woken.msg.is_some() && !woken.input);
        write.write_all(b"k").unwrap();
        post.send(Msg::Tick).unwrap();
        let woken = inbox.wait(Some(read.as_fd()), None);
        assert!(woken.msg.is_some() && woken.input);
        let woken = inbox.wait(Some(read.as_fd()), Some(LONG));
        assert!(woken.msg.is_none() && woken.input, "bytes alone wake, too");
        drop(write);
        assert!(inbox.wait(Some(read.as_fd()), Some(LONG)).input, "and so does their end");
    }
}
