//! One timer for repeated waits. A new timer wakes the runtime once more, which for a reply would be once for each
//! token; this one may fire early, and is only reset when necessary.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A reusable timer.
#[derive(Debug)]
pub struct Timer(Pin<Box<Sleep>>);

impl Timer {
    /// A timer that fires at `end`.
    pub fn at(end: Instant) -> Self {
        Self(Box::pin(sleep_until(end)))
    }

    /// Waits for `work` until `end`. When both are ready, `work` takes precedence.
    pub async fn within<T>(&mut self, end: Instant, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        if end < self.0.deadline() {
            self.0.as_mut().reset(end);
        }
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.0.as_mut() => {
                    if Instant::now() >= end {
                        return None;
                    }
                    self.0.as_mut().reset(end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_at_the_end_that_was_asked_for_last_whether_earlier_or_later() {
        let start = Instant::now();
        let mut timer = Timer::at(start + Duration::from_secs(3600));
        for millis in [10, 20, 40] {
            let end = start + Duration::from_millis(millis);
            assert_eq!(timer.within(end, ready(millis)).await, Some(millis), "work comes first");
            // Set to an hour at first, and to an end that has passed later: neither counts.
            assert_eq!(timer.within(end, pending::<()>()).await, None);
            assert!(Instant::now() >= end);
        }
        // An end in the past does not wait, and finished work is still returned.
        assert_eq!(timer.within(start, ready(1)).await, Some(1));
        assert_eq!(timer.within(start, pending::<()>()).await, None);
        // A timer that fires early does not end the work.
        let late = Instant::now() + Duration::from_secs(3600);
        let work = async { tokio::time::sleep(Duration::from_millis(5)).await };
        assert_eq!(timer.within(late, work).await, Some(()));
    }
}
