//! Delivers a model's reply to the engine's loop: the first pieces at once, later ones in batches, because each
//! delivery wakes the engine, the client and the terminal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};
use tiller_provider::{Chunk, Patience, Provider, ProviderError, Request, Timer};
use tiller_text::markdown::Visible;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::context::clean::QUIET;
use crate::core::msg::Msg;
use crate::turn::msg::{Awaited, TurnMsg};

/// A wait for the first token that is worth a word, and the pause between two looks at its progress.
const NOTICEABLE: Duration = Duration::from_secs(2);
/// How often a wait without progress is reported, for clients that connect meanwhile.
const REPEATED: Duration = Duration::from_secs(10);

/// The signs of a server during the wait, in time since it began.
#[derive(Clone, Copy, Default)]
struct Signs {
    /// The last byte.
    heard: Option<Duration>,
    /// The last progress.
    moved: Duration,
    /// Tokens of the prompt that it has read.
    read: u64,
    percent: Option<u8>,
}

impl Signs {
    fn take(&mut self, chunk: &Chunk, now: Duration) {
        self.heard = Some(now);
        if let Chunk::Progress { done, of } = chunk {
            if *done > self.read {
                (self.read, self.moved) = (*done, now);
            }
            let percent = self.read.saturating_mul(100) / (*of).max(1);
            self.percent = Some(u8::try_from(percent).unwrap_or(100).min(100));
        }
    }
}

/// Most pieces of one batch.
const BATCH: usize = 256;

/// Least time between two batches of text: no terminal draws more often than at 60 Hz. The first text, and everything
/// other than text, is delivered at once. Timers have a resolution of a millisecond.
const PACE: Duration = Duration::from_millis(15);

/// Pieces between two frames above which the model is faster than any screen: then reading never pauses, so that the
/// connection is emptied as fast as possible.
const FLOOD: usize = 64;

/// Yields after a pause; see [`gather`].
const TURNS: u32 = 1;

/// Pieces of text that are delivered at once, so that the first text appears without delay.
const EARLY: u32 = 8;

/// Pieces of the present batch, and when it is delivered. Reads no clock.
#[derive(Default)]
struct Pacing {
    /// Joined, so that the work per piece is done once per frame.
    waiting: VecDeque<Chunk>,
    /// When text was delivered last.
    last: Option<Instant>,
    /// How often text was delivered.
    gone: u32,
    /// Pieces since the last delivery, and whether there were too many of them the time before.
    heard: usize,
    flood: bool,
    visible: Visible,
}

/// Delivers a whole reply. Ends with it, or when the receiver is gone.
pub(super) async fn stream(
    provider: Arc<dyn Provider>,
    request: Request,
    turn: u64,
    n: u32,
    tx: &mpsc::Sender<Msg>,
) -> Result<(), ProviderError> {
    let began = Instant::now();
    let signs = Arc::new(Mutex::new(Signs::default()));
    let mut waits = provider.patience().map(|patience| {
        let wait = tell_wait(patience, began, Arc::clone(&signs), turn, n, tx.clone());
        AbortOnDropHandle::new(tokio::spawn(wait))
    });
    let mut chunks = provider.stream(request).await?.fuse();
    let send = async |chunks: Vec<Chunk>| {
        chunks.is_empty() || tx.send(Msg::Turn(TurnMsg::Chunks { turn, n, chunks })).await.is_ok()
    };
    // The server has accepted the request: from here on it charges for it.
    send(vec![Chunk::Ping]).await;
    let mut pace = Pacing::default();
    let mut heard = Instant::now();
    let mut quiet = true;
    let mut timer = Timer::at(heard + QUIET);
    loop {
        let rest = pace.rest(heard);
        if let Some(end) = rest {
            // Pieces that arrive meanwhile wait in the connection: they are read at once, with one wake-up.
            timer.within(end, std::future::pending::<()>()).await;
        }
        let next = match pace.due().or((!quiet).then_some(heard + QUIET)) {
            Some(end) => timer.within(end, chunks.next()).await,
            None => Some(chunks.next().await),
        };
        let Some(next) = next else {
            let listening = if pace.due().is_some() {
                send(pace.take(Instant::now())).await
            } else {
                // Withheld text is shown when nothing has arrived for a while.
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
            match &chunk {
                Ok(chunk) if chunk.is_content() => drop(waits.take()),
                Ok(chunk) if waits.is_some() => {
                    signs.lock().unwrap_or_else(PoisonError::into_inner).take(chunk, began.elapsed());
                }
                _ => {}
            }
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

/// Reports that the first token is awaited, until it is dropped.
async fn tell_wait(
    patience: Patience,
    began: Instant,
    signs: Arc<Mutex<Signs>>,
    turn: u64,
    n: u32,
    tx: mpsc::Sender<Msg>,
) {
    let mut told: Option<(Instant, Option<u8>)> = None;
    loop {
        tokio::time::sleep(NOTICEABLE).await;
        let now = *signs.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|(last, known)| known == now.percent && last.elapsed() < REPEATED) {
            continue;
        }
        told = Some((Instant::now(), now.percent));
        let end = patience.end(now.heard, now.moved).map(|(end, setting)| (end, setting.to_owned()));
        let wait = Awaited { since: began.elapsed(), end, progress: now.percent };
        if tx.send(Msg::Turn(TurnMsg::Awaited { turn, n, wait })).await.is_err() {
            return;
        }
    }
}

/// Adds pieces that have arrived already. The connection's task delivers one piece at a time; it is scheduled this
/// many times in vain before nothing more counts as available.
async fn gather<T>(chunks: &mut (impl Stream<Item = T> + Unpin), batch: &mut Vec<T>, turns: u32) {
    let mut vain = 0;
    while batch.len() < BATCH {
        match chunks.next().now_or_never() {
            Some(Some(more)) => {
                batch.push(more);
                vain = 0;
            }
            // The end is seen again by the next read.
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

impl Pacing {
    /// When the waiting text is due; `None`: none waits.
    fn due(&self) -> Option<Instant> {
        self.last.filter(|_| self.gone >= EARLY && !self.waiting.is_empty()).map(|last| last + PACE)
    }

    /// The time until which reading may pause, since nothing could be delivered earlier; `None`: read now.
    fn rest(&self, now: Instant) -> Option<Instant> {
        let calm = self.gone >= EARLY && self.waiting.is_empty() && !self.flood;
        self.last.filter(|_| calm).map(|last| last + PACE).filter(|end| *end > now)
    }

    /// Whether the waiting text is delivered at once.
    fn may_go(&self, now: Instant) -> bool {
        self.gone < EARLY
            || self.waiting.len() >= BATCH
            || !self.waiting.iter().all(words)
            || self.last.is_none_or(|last| now.duration_since(last) >= PACE)
    }

    /// Takes the batch.
    fn take(&mut self, now: Instant) -> Vec<Chunk> {
        // All pieces are checked, so that the state for the next ones is right.
        let mut seen = false;
        for chunk in &self.waiting {
            if let Chunk::Text { text, .. } | Chunk::Thinking { text, .. } = chunk {
                seen |= self.visible.advance(text);
            }
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
