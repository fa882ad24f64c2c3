//! The emulated terminal: output is drawn here, and observers read from it.
//!
//! `emulator` draws, `memory_limits` bounds its memory, `changes` tells observers which rows changed. `marks` and
//! `other_keys` read sequences that the emulator ignores; `encode` and `keys` turn a person's input into bytes for the
//! modes that the program requested.

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

/// Signals in the output besides text. The driver takes them at each iteration.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The latest title.
    pub title: Option<String>,
    /// The bell rang.
    pub bell: bool,
    /// The latest mark of progress; `Some(None)`: the claim was withdrawn.
    pub mark: Option<Option<Activity>>,
}

/// The screen, shared by the feeding thread, the driver, and observers.
pub(crate) struct Screen {
    emulator: Mutex<Emulator>,
    /// The last published state; locked after the emulator.
    changes: Mutex<Changes>,
    signals: Mutex<Signals>,
    /// Counts drawings; closed with the terminal. The feeding thread holds the sender.
    drawn: watch::Receiver<u64>,
    /// Whether an event [`crate::AgentEvent::Screen`] waits in the channel, or the screen was not read since.
    notified: AtomicBool,
    /// How often the driver scanned it.
    #[cfg(test)]
    pub(super) scans: std::sync::atomic::AtomicUsize,
}

impl Screen {
    /// An empty screen. The feeding thread increments `drawn`.
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

    /// Draws output. Returns the emulator's answers to queries of the program.
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

    /// Reserves the one notice that may wait in the channel. False: one waits already.
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

    /// Its text, for the driver, which reads it only after a drawing.
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
