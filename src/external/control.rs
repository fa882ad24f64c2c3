//! Controls a running external agent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tiller_protocol::{Grid, GridRun, ScreenView, TerminalInput};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::commands::{self, CommandRefusal};

/// Minimum interval after output that changed nothing, so that a flood of it costs little.
const AGAIN: Duration = Duration::from_millis(4);

/// The state of a message as far as it is known immediately. Later events are [`super::AgentEvent::Delivered`] or
/// [`super::AgentEvent::Missed`] with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It waits until the program next accepts messages.
    Queued { id: u64 },
    /// The program has ended, or accepts no messages.
    Missed { why: String },
}

/// Commands to the driver of a transport.
#[derive(Debug)]
pub(crate) enum Command {
    Say {
        id: u64,
        text: String,
    },
    /// Withdraw a message, if it was not delivered yet.
    Unsay(u64),
    /// Input of a person, as bytes.
    Keys(Vec<u8>),
    /// Input of a person by name, to be encoded for the modes that the program requested.
    Typed(Vec<TerminalInput>),
    Resize(u16, u16),
    /// A person has opened it (true) and may type.
    Attach(bool),
    /// It may end when it is idle.
    Finish,
}

/// The screen of a terminal transport.
pub(crate) trait View: Send + Sync {
    /// The present content.
    fn grid(&self) -> Grid;
    /// Up to `lines` lines that scrolled off, and the screen.
    fn scrollback(&self, lines: usize) -> Vec<String>;
    /// The same as plain cells.
    fn history(&self, lines: usize) -> Vec<Vec<GridRun>>;
    /// The changes since the state `since`; `None`: nothing.
    fn since(&self, since: u64) -> Option<ScreenView>;
    /// Changes with each piece of output; closed with the terminal. The feeding thread holds the sender.
    fn drawn(&self) -> watch::Receiver<u64>;
}

/// Reads the screen of a terminal transport. Does not keep the program alive.
pub struct ScreenReader(Arc<dyn View>);

impl std::fmt::Debug for ScreenReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScreenReader").finish_non_exhaustive()
    }
}

impl ScreenReader {
    /// The changes since the state `since`, as soon as there are any, but not before `from`: an observer gets no more
    /// notices than it draws frames, and nothing wakes up while nothing changes.
    pub async fn next(&self, since: u64, mut from: Instant) -> ScreenView {
        let mut drawn = self.0.drawn();
        loop {
            tokio::time::sleep_until(from).await;
            drawn.mark_unchanged();
            // Checked before the screen is read, so that the last output is included.
            let ended = drawn.has_changed().is_err();
            match self.0.since(since) {
                Some(view) => return ScreenView { ended, ..view },
                None if ended => return ScreenView { rev: since, ended, ..ScreenView::default() },
                None => {
                    from = Instant::now() + AGAIN;
                    // An error means that it was closed, which the next iteration detects.
                    let _ = drawn.changed().await;
                }
            }
        }
    }
}

struct Inner {
    /// To the driver, which holds the receiver until the run is over.
    commands: commands::Sender,
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

/// Handle of a running external agent. Dropping all clones ends the agent.
#[derive(Clone)]
pub struct Control(Arc<Inner>);

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

/// The driver's side.
#[derive(Debug)]
pub(crate) struct DriverControl {
    pub commands: commands::Receiver,
    /// End regularly: cancel the turn, then TERM.
    pub soft: CancellationToken,
    /// KILL.
    pub hard: CancellationToken,
}

impl Control {
    pub(crate) fn new() -> (Self, DriverControl) {
        let (commands, rx) = commands::channel();
        let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
        let inner = Inner {
            commands,
            soft: soft.clone(),
            hard: hard.clone(),
            next: AtomicU64::new(1),
            view: Mutex::default(),
        };
        (Self(Arc::new(inner)), DriverControl { commands: rx, soft, hard })
    }

    pub(crate) fn show(&self, view: Arc<dyn View>) {
        *self.0.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }

    /// Sends a message. It is delivered between turns (ACP, headless with resume) or typed (PTY).
    pub fn say(&self, text: impl Into<String>) -> Receipt {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        match self.0.commands.send(Command::Say { id, text: text.into() }) {
            Ok(()) => Receipt::Queued { id },
            Err(CommandRefusal::Full) => Receipt::Missed { why: "it is busy".into() },
            Err(CommandRefusal::Ended) => Receipt::Missed { why: "it has ended".into() },
        }
    }

    /// Withdraws a waiting message. The message's own event reports whether it was withdrawn in time.
    pub fn unsay(&self, id: u64) {
        let _ = self.0.commands.send(Command::Unsay(id));
    }

    /// Ends it: cancels its turn if possible, then sends TERM to its process group, and KILL after the grace period.
    /// `hard`: KILL at once.
    pub fn stop(&self, hard: bool) {
        self.0.soft.cancel();
        if hard {
            self.0.hard.cancel();
        }
    }

    /// Types a person's input (PTY). False: none of it was accepted, because the run has ended or too much waits.
    pub fn keys(&self, bytes: impl Into<Vec<u8>>) -> bool {
        self.0.commands.send(Command::Keys(bytes.into())).is_ok()
    }

    /// Types a person's input by name (PTY); false as with [`Self::keys`].
    pub fn typed(&self, typed: Vec<TerminalInput>) -> bool {
        self.0.commands.send(Command::Typed(typed)).is_ok()
    }

    /// The person has finished with it: it ends regularly once it is idle (PTY).
    pub fn finish(&self) -> bool {
        self.0.commands.send(Command::Finish).is_ok()
    }

    /// Changes the size of its terminal (PTY).
    pub fn resize(&self, cols: u16, rows: u16) -> bool {
        self.0.commands.send(Command::Resize(cols, rows)).is_ok()
    }

    /// A person has entered it and may type, or has left (PTY).
    pub fn attach(&self, on: bool) -> bool {
        self.0.commands.send(Command::Attach(on)).is_ok()
    }

    /// Its screen; `None` without a terminal.
    pub fn screen(&self) -> Option<Grid> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.grid())
    }

    /// A reader of its screen; `None` without a terminal.
    pub fn looker(&self) -> Option<ScreenReader> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).clone().map(ScreenReader)
    }

    /// Up to `lines` rows that scrolled off, and the screen; `None` without a terminal.
    pub fn history(&self, lines: usize) -> Option<Vec<Vec<GridRun>>> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.history(lines))
    }

    /// The same as text.
    pub fn scrollback(&self, lines: usize) -> Option<Vec<String>> {
        self.0.view.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|v| v.scrollback(lines))
    }
}
