//! One timer for a wait that is made again and again. Each timer that is made anew wakes the runtime once more,
//! which for a reply is once a token; this one may ring early, and is set anew only when it must be.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that is kept.
#[derive(Debug)]
pub struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    /// One that rings at `end`, if it is waited for.
    pub fn at(end: Instant) -> Self {
        Self(Box::pin(sleep_until(end)))
    }

    /// Waits for `work`, but not past `end`. `work` comes first when both are there.
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
        let mut alarm = Alarm::at(start + Duration::from_secs(3600));
        for millis in [10, 20, 40] {
            let end = start + Duration::from_millis(millis);
            assert_eq!(alarm.within(end, ready(millis)).await, Some(millis), "work comes first");
            // Set to an hour at first, and to an end that is over later: neither counts.
            assert_eq!(alarm.within(end, pending::<()>()).await, None);
            assert!(Instant::now() >= end);
        }
        // What is over already does not wait, and work that is done is not lost to it.
        assert_eq!(alarm.within(start, ready(1)).await, Some(1));
        assert_eq!(alarm.within(start, pending::<()>()).await, None);
        // An alarm that rings on the way does not end the work.
        let late = Instant::now() + Duration::from_secs(3600);
        let work = async { tokio::time::sleep(Duration::from_millis(5)).await };
        assert_eq!(alarm.within(late, work).await, Some(()));
    }
}
