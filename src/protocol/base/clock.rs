//! The clock port. Wall time is for people and may jump; durations come from monotonic time only.

use crate::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A wall-clock moment: milliseconds since 1970-01-01T00:00:00Z. In JSON an RFC 3339 string in UTC
/// with three decimals, for instance `2026-11-21T20:00:00.123Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The RFC 3339 form, UTC, three decimals.
    pub fn to_rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => format!("{t:.3}"),
            Err(_) => "1970-01-01T00:00:00.000Z".into(),
        }
    }

    /// Reads an RFC 3339 string.
    ///
    /// # Errors
    /// When `s` is not a time.
    pub fn parse(s: &str) -> Result<Self, jiff::Error> {
        s.parse::<jiff::Timestamp>().map(|t| Self(t.as_millisecond()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let s = String::deserialize(d)?;
        Self::parse(&s).map_err(serde::de::Error::custom)
    }
}

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Wall time, for display and storage.
    fn now(&self) -> Time;
    /// Time since an arbitrary fixed point; never goes back. For durations and time-outs.
    fn mono(&self) -> Duration;
}

/// The real clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        Time(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    fn mono(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock for tests: moves only by [`ManualClock::advance`] and [`ManualClock::jump`].
#[derive(Debug)]
pub struct ManualClock(Mutex<(i64, Duration)>);

impl ManualClock {
    /// Starts at `start`.
    pub fn new(start: Time) -> Self {
        Self(Mutex::new((start.0, Duration::ZERO)))
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        let mut t = lock(&self.0);
        t.0 += i64::try_from(by.as_millis()).unwrap_or(0);
        t.1 += by;
    }

    /// Sets the wall time only, as a person who changes the clock would.
    pub fn jump(&self, to: Time) {
        lock(&self.0).0 = to.0;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(lock(&self.0).0)
    }

    fn mono(&self) -> Duration {
        lock(&self.0).1
    }
}
