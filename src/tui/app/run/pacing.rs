//! When a frame may be drawn: after a key or the first words of a reply at once, under load at most one per 16 ms.

use std::time::Duration;

/// Least time between frames under load.
const FRAME: Duration = Duration::from_millis(16);

/// A frame that is due within this time is drawn now: the engine sends words about a frame apart, and waiting would
/// cost more than the frame.
const NEARLY: Duration = Duration::from_millis(2);

/// Frames that may follow each other at once after a pause: the first words of a reply, and the result of a command.
const BURST: u32 = 8;

/// Of frames in a row that change nothing, one in this many counts.
const EMPTY: u32 = 4;

/// Time of the last frame, and what lets the next one come earlier.
pub(crate) struct FramePacing {
    /// When the last frame was drawn (monotonic).
    last: Duration,
    /// Frames that may follow at once.
    credit: u32,
    /// Frames in a row that have changed nothing.
    empty: u32,
    /// Input of the person, or the first words of a reply, are not on the screen yet.
    urgent: bool,
    /// The last event of the engine was a piece of a reply.
    streaming: bool,
}

impl FramePacing {
    /// The first frame is due at once.
    pub(crate) fn new() -> Self {
        Self { last: Duration::ZERO, credit: BURST, empty: 0, urgent: true, streaming: false }
    }

    /// The next frame is drawn at once.
    pub(crate) fn hurry(&mut self) {
        self.urgent = true;
    }

    /// Notes an event of the engine; `words`: it is a piece of a reply. The first piece is drawn at once.
    pub(crate) fn event(&mut self, words: bool) {
        self.urgent |= words && !self.streaming;
        self.streaming = words;
    }

    /// Time until the next frame may be drawn; `None`: now.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        if self.urgent || self.credit > 0 {
            return None;
        }
        FRAME.checked_sub(now.saturating_sub(self.last)).filter(|w| *w > NEARLY)
    }

    /// Notes a frame that was drawn; `changed`: it differs from the one before. Frames without a change do not delay
    /// the next one, unless there are many.
    pub(crate) fn drawn(&mut self, now: Duration, changed: bool) {
        self.urgent = false;
        self.empty = if changed { 0 } else { self.empty + 1 };
        if self.empty.is_multiple_of(EMPTY) {
            let passed = now.saturating_sub(self.last).as_millis() / FRAME.as_millis();
            self.credit = (self.credit + u32::try_from(passed).unwrap_or(BURST)).min(BURST).saturating_sub(1);
            self.last = now;
        }
    }
}
