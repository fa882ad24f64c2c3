//! Signals that end a run without a screen.

use std::time::Duration;

use tiller_protocol::{Notice, NoticeKind};

use crate::app::Running;

/// Ctrl-C, TERM and HUP: they stop the turn, not the process.
pub(crate) struct Stop {
    signals: [tokio::signal::unix::Signal; 3],
    /// Number of signals received.
    times: u32,
    /// When waiting for agents ends.
    until: Option<tokio::time::Instant>,
}

/// From now on a signal has an engine end without waiting for hooks of changed files, also while it is ending. For callers that
/// listen for signals themselves. Runs on the engine's threads.
pub(crate) fn heed(engine: &Running) -> Result<(), Notice> {
    let (mut stop, hurry) = (Stop::listen()?, engine.hurry());
    tokio::spawn(async move {
        stop.next().await;
        hurry.cancel();
    });
    Ok(())
}

/// Maximum time from the first stop to the end, including the end of tools.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Stop {
    pub(crate) fn listen() -> Result<Self, Notice> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind| {
            signal(kind)
                .map_err(|e| Notice::new(NoticeKind::Internal, format!("Cannot listen for signals: {e}.")))
        };
        let signals = [of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::hangup())?];
        Ok(Self { signals, times: 0, until: None })
    }

    /// Waits for the next signal, or for the end of the time after the first.
    pub(crate) async fn next(&mut self) {
        let [a, b, c] = &mut self.signals;
        let until = self.until;
        let late = async {
            match until {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let late = tokio::select! {
            _ = a.recv() => false,
            _ = b.recv() => false,
            _ = c.recv() => false,
            () = late => true,
        };
        self.times = if late { u32::MAX } else { self.times.saturating_add(1) };
        self.until.get_or_insert_with(|| tokio::time::Instant::now() + TIMEOUT);
    }

    /// Number of signals received.
    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// Limits the remaining time from now on.
    pub(crate) fn hurry(&mut self) {
        self.until = Some(tokio::time::Instant::now() + TIMEOUT);
    }

    /// Removes that limit.
    pub(crate) fn calm(&mut self) {
        self.until = None;
    }
}
