//! Signals that end a run without a screen.

use std::time::Duration;

use tiller_protocol::{Notice, NoticeKind};

/// Ctrl-C, TERM and HUP: the turn is stopped, not the process.
pub(crate) struct Stop {
    signals: [tokio::signal::unix::Signal; 3],
    /// How often it came.
    times: u32,
    /// When nobody is waited for any more.
    until: Option<tokio::time::Instant>,
}

/// How long an end may take after the first stop. Tools get their time to end within it.
const PATIENCE: Duration = Duration::from_secs(10);

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

    /// The next one, or the end of the patience with the first.
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
        self.until.get_or_insert_with(|| tokio::time::Instant::now() + PATIENCE);
    }

    /// How often it came.
    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// From now on the end may take only so long.
    pub(crate) fn hurry(&mut self) {
        self.until = Some(tokio::time::Instant::now() + PATIENCE);
    }

    /// What was hurried came.
    pub(crate) fn calm(&mut self) {
        self.until = None;
    }
}
