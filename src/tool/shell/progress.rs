//! Live output for the screen: joined, at most one piece every 30 ms, never waiting for the reader.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// Between two pieces.
const EVERY: Duration = Duration::from_millis(30);
/// Of one piece. What came before it in the same 30 ms is not shown live.
const PIECE: usize = 4 << 10;

/// Joins output until it is due.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Held by us until the call ends; closed means that nobody looks.
    to: mpsc::Sender<String>,
    waiting: Vec<u8>,
    skipped: bool,
    /// When the next piece may go.
    due: Instant,
}

impl Progress {
    pub(crate) fn new(to: mpsc::Sender<String>) -> Self {
        // A command that ends within the first 30 ms needs no live output at all.
        Self { to, waiting: Vec::new(), skipped: false, due: Instant::now() + EVERY }
    }

    /// Takes output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(PIECE)..];
        if self.waiting.len() + last.len() > PIECE || last.len() < bytes.len() {
            self.skipped = true;
            let drop = (self.waiting.len() + last.len()).saturating_sub(PIECE);
            self.waiting.drain(..drop.min(self.waiting.len()));
        }
        self.waiting.extend_from_slice(last);
    }

    /// When [`Progress::send`] is to be called; `None` while there is nothing to say.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.due)
    }

    /// Sends what waits if it is time. A character that is split over two pieces shows as a mark.
    pub(crate) fn send(&mut self) {
        let now = Instant::now();
        if self.waiting.is_empty() || now < self.due {
            return;
        }
        let text = crate::text::clean(&self.waiting);
        let text = if self.skipped { format!("\n[...]\n{text}") } else { text };
        // Full: the reader is slow, and the piece is not worth waiting for.
        let _ = self.to.try_send(text);
        self.waiting.clear();
        self.skipped = false;
        self.due = now + EVERY;
    }
}
