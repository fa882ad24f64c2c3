//! A model's reply on its way to the engine's task: piece by piece at first, then gathered, because each piece that
//! is handed over wakes the engine, the client and the terminal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};
use tiller_provider::{Alarm, Chunk, Provider, ProviderError, Request};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::context::clean::QUIET;
use crate::core::msg::Msg;
use crate::turn::msg::TurnMsg;

/// Pieces that are handed over together at most.
const BATCH: usize = 256;

/// Least time between words that are handed over: nothing draws more often than at 60 Hz. The first words, and
/// everything that is no word, go at once. Timers have steps of a millisecond.
const PACE: Duration = Duration::from_millis(15);

/// Pieces between two frames from which on the model is faster than any screen: then there is no rest, so that the
/// connection is emptied as fast as it can be.
const FLOOD: usize = 64;

/// After a rest: see [`gather`].
const TURNS: u32 = 1;

/// Pieces with words that go at once: the first words are to be seen as they come.
const EARLY: u32 = 8;

/// Pieces that wait for each other, and when they go. Reads no clock.
#[derive(Default)]
struct Pace {
    /// Joined, so that what is done for each piece is done for each frame only.
    waiting: VecDeque<Chunk>,
    /// When words went last.
    last: Option<Instant>,
    /// How often words went.
    gone: u32,
    /// Pieces since words went last, and whether there were too many of them the time before.
    heard: usize,
    flood: bool,
    eye: Eye,
}

/// Hands a whole reply over. Ends with it, or when nobody listens any more.
pub(super) async fn stream(
    provider: Arc<dyn Provider>,
    request: Request,
    turn: u64,
    n: u32,
    tx: &mpsc::Sender<Msg>,
) -> Result<(), ProviderError> {
    let mut chunks = provider.stream(request).await?.fuse();
    let send = async |chunks: Vec<Chunk>| {
        chunks.is_empty() || tx.send(Msg::Turn(TurnMsg::Chunks { turn, n, chunks })).await.is_ok()
    };
    // The server has taken the request: from here on it charges for it, whatever comes.
    send(vec![Chunk::Ping]).await;
    let mut pace = Pace::default();
    let mut heard = Instant::now();
    let mut quiet = true;
    let mut alarm = Alarm::at(heard + QUIET);
    loop {
        let rest = pace.rest(heard);
        if let Some(end) = rest {
            // What comes meanwhile waits in the connection: it is read in one go, with one wake-up.
            alarm.within(end, std::future::pending::<()>()).await;
        }
        let next = match pace.due().or((!quiet).then_some(heard + QUIET)) {
            Some(end) => alarm.within(end, chunks.next()).await,
            None => Some(chunks.next().await),
        };
        let Some(next) = next else {
            let listening = if pace.due().is_some() {
                send(pace.take(Instant::now())).await
            } else {
                // A word that is held back is to be seen when nothing more comes for now.
                quiet = true;
                tx.send(Msg::Turn(TurnMsg::Quiet { turn })).await.is_ok()
            };
            if listening { continue } else { return Ok(()) }
        };
        let Some(first) = next else {
            send(pace.take(Instant::now())).await;
            return Ok(());
        };
        let mut batch = vec![first];
        gather(&mut chunks, &mut batch, if rest.is_some() { TURNS } else { 0 }).await;
        quiet = false;
        pace.heard += batch.len();
        for chunk in batch {
            match chunk {
                Ok(chunk) => Chunk::join(&mut pace.waiting, chunk),
                Err(e) => {
                    send(pace.take(Instant::now())).await;
                    return Err(e);
                }
            }
        }
        heard = Instant::now();
        if pace.may_go(heard) && !send(pace.take(heard)).await {
            return Ok(());
        }
    }
}

/// Adds what has come already. The task of the connection hands over one piece at a time; it is let in so many times
/// in vain before there counts as nothing more.
async fn gather<T>(chunks: &mut (impl Stream<Item = T> + Unpin), batch: &mut Vec<T>, turns: u32) {
    let mut vain = 0;
    while batch.len() < BATCH {
        match chunks.next().now_or_never() {
            Some(Some(more)) => {
                batch.push(more);
                vain = 0;
            }
            // The end comes once more.
            Some(None) => return,
            None if vain == turns => return,
            None => {
                vain += 1;
                tokio::task::yield_now().await;
            }
        }
    }
}

fn words(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Text { .. } | Chunk::Thinking { .. })
}

/// Tells whether something is to be seen of what went by: a fence, the rule of a table or a blank line shows nothing.
/// Then the next words are not kept waiting.
#[derive(Default)]
struct Eye {
    /// Backticks with which the line begins, as far as it is known; `None`: it begins with something else.
    fence: Option<u8>,
}

impl Eye {
    fn sees(&mut self, chunk: &Chunk) -> bool {
        let (Chunk::Text { text, .. } | Chunk::Thinking { text, .. }) = chunk else { return false };
        let mut seen = false;
        for c in text.chars() {
            match (c, self.fence) {
                ('\n', _) => self.fence = Some(0),
                ('`', Some(n)) if n < 3 => self.fence = Some(n + 1),
                (_, Some(3)) => {}
                _ if c.is_whitespace() => {}
                _ => {
                    self.fence = None;
                    seen |= c.is_alphanumeric();
                }
            }
        }
        seen
    }
}

impl Pace {
    /// When the words that wait have to go; `None`: none wait.
    fn due(&self) -> Option<Instant> {
        self.last.filter(|_| self.gone >= EARLY && !self.waiting.is_empty()).map(|last| last + PACE)
    }

    /// Until when nothing has to be read: what comes could not go earlier; `None`: now.
    fn rest(&self, now: Instant) -> Option<Instant> {
        let calm = self.gone >= EARLY && self.waiting.is_empty() && !self.flood;
        self.last.filter(|_| calm).map(|last| last + PACE).filter(|end| *end > now)
    }

    /// Whether what waits goes at once.
    fn may_go(&self, now: Instant) -> bool {
        self.gone < EARLY
            || self.waiting.len() >= BATCH
            || !self.waiting.iter().all(words)
            || self.last.is_none_or(|last| now.duration_since(last) >= PACE)
    }

    /// What goes now.
    fn take(&mut self, now: Instant) -> Vec<Chunk> {
        // All of them are looked at, so that the next ones are judged right.
        let mut seen = false;
        for chunk in &self.waiting {
            seen |= self.eye.sees(chunk);
        }
        if seen {
            self.last = Some(now);
            self.flood = std::mem::take(&mut self.heard) >= FLOOD;
            self.gone = self.gone.saturating_add(1);
        }
        std::mem::take(&mut self.waiting).into()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
