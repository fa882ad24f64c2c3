//! What can be done to a running external agent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tiller_protocol::{Grid, GridRun, ScreenView, Typed};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::orders::{self, Refused};

/// After output that changed nothing: a flood of it costs no more than this.
const AGAIN: Duration = Duration::from_millis(4);

/// The state of a message, as far as known at once. Later events are [`super::AgentEvent::Delivered`] or
/// [`super::AgentEvent::Missed`] with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It waits for the next step at which the program takes messages.
    Queued { id: u64 },
    /// It has ended, or takes no messages.
    Missed { why: String },
}

/// Orders to the driver of a transport.
#[derive(Debug)]
pub(crate) enum Order {
    Say {
        id: u64,
        text: String,
    },
    /// A message is taken back, if it was not handed over yet.
    Unsay(u64),
    /// A person's keys, as bytes.
    Keys(Vec<u8>),
    /// The same by name, for the modes that the program asked for.
    Typed(Vec<Typed>),
    Resize(u16, u16),
    /// A person has it open (true) and may type.
    Attach(bool),
    /// It may end when it is idle.
    Finish,
}

/// The screen of a terminal transport.
pub(crate) trait View: Send + Sync {
    /// What is on it now.
    fn grid(&self) -> Grid;
    /// Up to `lines` lines that scrolled away, and the screen.
    fn scrollback(&self, lines: usize) -> Vec<String>;
    /// The same as plain cells.
    fn history(&self, lines: usize) -> Vec<Vec<GridRun>>;
    /// What changed since the state `since`; `None`: nothing.
    fn since(&self, since: u64) -> Option<ScreenView>;
    /// Changes with each piece of output; closed when the terminal is.
    fn drawn(&self) -> watch::Receiver<u64>;
}

/// Reads the screen of a terminal transport. It does not keep the program alive.
pub struct ScreenReader(Arc<dyn View>);

impl std::fmt::Debug for ScreenReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScreenReader").finish_non_exhaustive()
    }
}

impl ScreenReader {
    /// What changed since the state `since`, as soon as there is something, but not before `from`: an observer gets no more
    /// notices than it draws frames, and nothing wakes while nothing changes.
    pub async fn next(&self, since: u64, mut from: Instant) -> ScreenView {
        let mut drawn = self.0.drawn();
        loop {
            tokio::time::sleep_until(from).await;
            drawn.mark_unchanged();
            // Asked before the screen is: the last words count.
            let ended = drawn.has_changed().is_err();
            match self.0.since(since) {
                Some(view) => return ScreenView { ended, ..view },
                None if ended => return ScreenView { rev: since, ended, ..ScreenView::default() },
                None => {
                    from = Instant::now() + AGAIN;
                    // An error is that it has closed, which the next round sees.
                    let _ = drawn.changed().await;
                }
            }
        }
    }
}

struct Inner {
    /// To the driver, which holds the other end until the run is over.
    orders: orders::Sender,
    soft: CancellationToken,
    hard: CancellationToken,
    next: AtomicU64,
    view: Mutex<Option<Arc<dyn View>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // No handle is left to control it.
        self.hard.cancel();
    }
}

/// A handle on a running external agent. Dropping all of them ends it.
#[derive(Clone)]
pub struct Control(Arc<Inner>);

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

/// The driver's ends.
#[derive(Debug)]
pub(crate) struct DriverControl {
    pub orders: orders::Receiver,
    /// End in good order: cancel the turn, then TERM.
    pub soft: CancellationToken,
    /// KILL.
    pub hard: CancellationToken,
}

impl Control {
    pub(crate) fn new() -> (Self, DriverControl) {
        let (orders, rx) = orders::channel();
        let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
        let inner = Inner {
            orders,
            soft: soft.clone(),
            hard: hard.clone(),
            next: AtomicU64::new(1),
            view: Mutex::default(),
        };
        (Self(Arc::new(inner)), DriverControl { orders: rx, soft, hard })
    }

    pub(crate) fn show(&self, view: Arc<dyn View>) {
        *self.0.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }

    /// Sends a message. It is delivered between turns (ACP, headless with resume) or typed (PTY).
    pub fn say(&self, text: impl Into<String>) -> Receipt {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        match self.0.orders.send(Order::Say { id, text: text.into() }) {
            Ok(()) => Receipt::Queued { id },
            Err(Refused::Full) => Receipt::Missed { why: "it is busy".into() },
            Err(Refused::Ended) => Receipt::Missed { why: "it has ended".into() },
        }
    }

    /// Takes back a message that waits. The message's own event says whether this came in time.
    pub fn unsay(&self, id: u64) {
        let _ = self.0.orders.send(Order::Unsay(id));
    }

    /// Ends it: its turn is cancelled where it can be, then its whole process group gets TERM, and KILL after the
    /// grace. `hard`: KILL at once.
    pub fn stop(&self, hard: bool) {
        self.0.soft.cancel();
        if hard {
            self.0.hard.cancel();
        }
    }

    /// A person's keys (PTY). False: none of them was taken, because it has ended or too much waits.
    pub fn keys(&self, bytes: impl Into<Vec<u8>>) -> bool {
        self.0.orders.send(Order::Keys(bytes.into())).is_ok()
    }

    /// The same by name (PTY); false as with [`Self::keys`].
    pub fn typed(&self, typed: Vec<Typed>) -> bool {
        self.0.orders.send(Order::Typed(typed)).is_ok()
    }

    /// The person needs it no more: it ends in good order once it is idle (PTY).
    pub fn finish(&self) -> bool {
        self.0.orders.send(Order::Finish).is_ok()
    }

    /// Its terminal has another size now (PTY).
    pub fn resize(&self, cols: u16, rows: u16) -> bool {
        self.0.orders.send(Order::Resize(cols, rows)).is_ok()
    }

    /// A person is in it and may type, or no longer (PTY).
    pub fn attach(&self, on: bool) -> bool {
        self.0.orders.send(Order::Attach(on)).is_ok()
    }

    /// What is on its screen; `None` without a terminal.
    pub fn screen(&self) -> Option<Grid> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.grid())
    }

    /// Waits for changes of its screen; `None` without a terminal.
    pub fn looker(&self) -> Option<ScreenReader> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).clone().map(ScreenReader)
    }

    /// Up to `lines` rows of what scrolled away, and the screen; `None` without a terminal.
    pub fn history(&self, lines: usize) -> Option<Vec<Vec<GridRun>>> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.history(lines))
    }

    /// The same as text.
    pub fn scrollback(&self, lines: usize) -> Option<Vec<String>> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.scrollback(lines))
    }
}
