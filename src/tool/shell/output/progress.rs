//! Live output for the screen: joined, at most one piece every 30 ms, never waiting for the reader.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};

use tiller_protocol::lock;

use crate::ToolCx;
use crate::files::masks::OutputMask;

/// Between two pieces.
const EVERY: Duration = Duration::from_millis(30);
/// Of one piece. What came before it in the same 30 ms is not shown live.
const PIECE: usize = 4 << 10;

/// Joins output until it is due.
#[derive(Debug)]
pub(crate) struct Progress {
    /// To the engine, which shows it. Held until the call ends; closed means that the output is no longer shown.
    to: mpsc::Sender<String>,
    waiting: Vec<u8>,
    skipped: bool,
    /// For a command that reads a file of variables.
    mask: Option<OutputMask>,
    /// When the next piece may go.
    due: Instant,
}

impl Progress {
    pub(crate) fn new(to: mpsc::Sender<String>) -> Self {
        // A command that ends within the first 30 ms needs no live output at all.
        Self { to, waiting: Vec::new(), skipped: false, mask: None, due: Instant::now() + EVERY }
    }

    /// Of a command of a call.
    pub(crate) fn of(command: &str, cx: &ToolCx) -> Self {
        Self::masked(OutputMask::of(command, cx), cx)
    }

    fn masked(mask: Option<OutputMask>, cx: &ToolCx) -> Self {
        Self { mask, ..Self::new(cx.progress.clone()) }
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
        let end = self.mask.as_ref().map_or(self.waiting.len(), |_| variables_end(&self.waiting));
        if end == 0 {
            self.due = now + EVERY * 8;
            return;
        }
        let text = crate::text::clean(&self.waiting[..end]);
        let text = match &self.mask {
            Some(mask) => mask.of_text(text),
            None => text,
        };
        let text = if self.skipped { format!("\n[...]\n{text}") } else { text };
        self.due = now + EVERY;
        // Full: the reader is slow. It is not waited for; what waits goes with what comes, or when it is due again.
        if !matches!(self.to.try_send(text), Err(TrySendError::Full(_))) {
            self.waiting.drain(..end);
            self.skipped = false;
        }
    }
}

/// Where what can be shown of such lines ends: the last line waits while it may be a name and its value, but not longer
/// than a piece may be.
fn variables_end(waiting: &[u8]) -> usize {
    let whole = waiting.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    let last = &waiting[whole..];
    let named = |b: &u8| b.is_ascii_alphanumeric() || b" _.-#+".contains(b);
    let may_be = last.contains(&b'=') || last.iter().all(named);
    if may_be && last.len() < PIECE { whole } else { waiting.len() }
}

/// Live output that one thread brings, and whose last piece goes when it is due though nothing more comes.
#[derive(Debug)]
pub(crate) struct Live {
    progress: Mutex<Progress>,
    news: Notify,
}

impl Live {
    fn with(progress: Progress) -> Self {
        Self { progress: Mutex::new(progress), news: Notify::new() }
    }

    /// Of a command of a call.
    pub(crate) fn of(command: &str, cx: &ToolCx) -> Self {
        Self::with(Progress::of(command, cx))
    }

    /// Of a script, with the mask of its output.
    pub(crate) fn masked(mask: Option<OutputMask>, cx: &ToolCx) -> Self {
        Self::with(Progress::masked(mask, cx))
    }

    /// Takes output.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut progress = lock(&self.progress);
        progress.push(bytes);
        progress.send();
        self.news.notify_one();
    }

    /// Sends each piece that waits when it is due. Does not end.
    pub(crate) async fn send_when_due(&self) {
        loop {
            let due = lock(&self.progress).due();
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => self.news.notified().await,
            }
            lock(&self.progress).send();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that is behind loses nothing of the last piece.
    #[tokio::test]
    async fn what_found_no_room_is_sent_later() {
        let (tx, mut rx) = mpsc::channel(1);
        let live = Live::with(Progress::new(tx.clone()));
        tx.try_send("earlier".into()).unwrap();
        live.push(b"Password: ");
        let work = async {
            // It was due and found no room.
            let due = lock(&live.progress).due().unwrap();
            tokio::time::sleep_until(due.into()).await;
            while lock(&live.progress).due() == Some(due) {
                tokio::task::yield_now().await;
            }
            let first = rx.recv().await;
            (first, rx.recv().await)
        };
        let (first, second) = tokio::select! {
            got = work => got,
            () = live.send_when_due() => (None, None),
        };
        assert_eq!((first.as_deref(), second.as_deref()), (Some("earlier"), Some("Password: ")));
    }
}
