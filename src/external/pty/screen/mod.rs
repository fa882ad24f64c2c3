//! The emulated terminal: output is drawn here, and observers read from it.
//!
//! `emulator` draws, `memory_limits` bounds what it keeps, `changes` tells observers which rows are new. `marks` and
//! `other_keys` read sequences that the emulator ignores; `encode` and `keys` turn a person's input into bytes for the
//! modes that the program asked for.

mod changes;
pub(super) mod emulator;
pub(super) mod encode;
mod keys;
pub(super) mod marks;
mod memory_limits;
mod other_keys;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tiller_protocol::{Grid, GridRun, ScreenView};
use tokio::sync::watch;

use self::changes::Changes;
use self::emulator::Emulator;
use self::marks::Marks;
use crate::control::View;
use tiller_protocol::Activity;

/// What the output held besides text to draw. The driver takes it at each look.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The latest title.
    pub title: Option<String>,
    /// The bell rang.
    pub bell: bool,
    /// The latest mark of progress; `Some(None)`: the program took its claim back.
    pub mark: Option<Option<Activity>>,
}

/// The screen, shared by the thread that feeds it, the driver, and observers.
pub(crate) struct Screen {
    emulator: Mutex<Emulator>,
    /// The last published state; locked after the emulator.
    changes: Mutex<Changes>,
    signals: Mutex<Signals>,
    /// Counts what was drawn; closed when the terminal is.
    drawn: watch::Receiver<u64>,
    /// An event [`crate::AgentEvent::Screen`] waits in the channel, or no observer has read the screen since.
    notified: AtomicBool,
    /// How often the driver looked at it.
    #[cfg(test)]
    pub(super) scans: std::sync::atomic::AtomicUsize,
}

impl Screen {
    /// An empty screen. `drawn` is counted up by the thread that feeds it.
    pub(super) fn new(cols: u16, rows: u16, drawn: watch::Receiver<u64>) -> Self {
        Self {
            emulator: Mutex::new(Emulator::new(cols, rows)),
            changes: Mutex::default(),
            signals: Mutex::default(),
            drawn,
            notified: AtomicBool::new(false),
            #[cfg(test)]
            scans: Default::default(),
        }
    }

    /// Draws output. Gives what the emulator answers to queries of the program.
    pub(super) fn feed(&self, bytes: &[u8], marks: &mut Marks) -> Vec<u8> {
        let fed = self.lock().feed(bytes);
        let mark = marks.feed(bytes);
        if fed.title.is_some() || fed.bell || mark.is_some() {
            let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
            signals.title = fed.title.or(signals.title.take());
            signals.bell |= fed.bell;
            signals.mark = mark.or(signals.mark);
        }
        fed.answers
    }

    /// Claims the one notice that may wait in the channel. False: one waits already.
    pub(super) fn notify(&self) -> bool {
        !self.notified.swap(true, Ordering::AcqRel)
    }

    /// The notice was not sent, or was read.
    pub(super) fn notice_gone(&self) {
        self.notified.store(false, Ordering::Release);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Emulator> {
        self.emulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on it, as text. For the driver, which looks only when it was drawn.
    pub(super) fn visible(&self) -> String {
        #[cfg(test)]
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.lock().visible()
    }

    pub(super) fn signals(&self) -> Signals {
        std::mem::take(&mut *self.signals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl View for Screen {
    fn grid(&self) -> Grid {
        self.notice_gone();
        self.lock().grid()
    }

    fn scrollback(&self, lines: usize) -> Vec<String> {
        self.lock().lines(lines)
    }

    fn history(&self, lines: usize) -> Vec<Vec<GridRun>> {
        self.lock().history(lines)
    }

    fn since(&self, since: u64) -> Option<ScreenView> {
        let mut emulator = self.lock();
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.take(&mut emulator);
        changes.since(since)
    }

    fn drawn(&self) -> watch::Receiver<u64> {
        self.drawn.clone()
    }
}
