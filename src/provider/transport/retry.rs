//! Waiting times before retries. Pure: the turn has the clock and shows the countdown.

use std::time::Duration;

use crate::error::ProviderError;

/// The first wait without jitter.
pub const FIRST: Duration = Duration::from_secs(1);
/// The longest wait that Tiller chooses itself.
pub const LONGEST: Duration = Duration::from_secs(60);

/// The wait after attempt number `attempt` (from 1) failed with `error`; `None`: do not retry. `cap` is the total
/// number of attempts; `random` is a number from 0 (inclusive) to 1 (exclusive).
///
/// Waits double from [`FIRST`] up to [`LONGEST`], each randomly between half and the whole of that, so that clients do
/// not retry at the same moment. The wait that a server requests (`after`) is a minimum, and a small random part is
/// added to it for the same reason.
pub fn wait(error: &ProviderError, attempt: u32, cap: u32, random: f64) -> Option<Duration> {
    if !error.retryable() || attempt >= cap {
        return None;
    }
    let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1).min(30))).min(LONGEST);
    let ours = doubled.mul_f64(0.5 + random / 2.0);
    Some(match error {
        ProviderError::Wait { after: Some(after), .. } => {
            let spread = FIRST.mul_f64(random * 0.25);
            // A server may request 0, but not repeatedly.
            if after.is_zero() && attempt > 1 { ours } else { after.saturating_add(spread) }
        }
        _ => ours,
    })
}

/// The error for a server that requests a longer wait than `longest` allows. `None` where the wait is short enough, or
/// not limited.
pub fn over(error: &ProviderError, longest: Option<Duration>) -> Option<ProviderError> {
    let ProviderError::Wait { message, after: Some(after) } = error else { return None };
    let longest = longest.filter(|longest| after > longest)?;
    let (asked, most) = (in_words(*after), in_words(longest));
    let message = message.trim_end_matches('.');
    Some(ProviderError::Rejected(format!(
        "{message}. The server asks to wait {asked}; limits.longest_wait allows {most}."
    )))
}

/// `90 s`, `5 min`, `2 h 5 min`.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0..2, _) => format!("{seconds} s"),
        (0, minutes, _) => format!("{minutes} min"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A random number for [`wait`], different in each process and call.
pub fn random() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library seeds these from the system, which is random enough for this purpose.
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> ProviderError {
        ProviderError::Network("cut".into())
    }

    fn asked(after: Duration) -> ProviderError {
        ProviderError::Wait { message: "slow".into(), after: Some(after) }
    }

    #[test]
    fn p1_waits_double_with_jitter_up_to_the_cap() {
        for attempt in 1..=40 {
            let whole = FIRST.as_secs_f64() * 2_f64.powi(attempt - 1);
            let whole = whole.min(LONGEST.as_secs_f64());
            for random in [0.0, 0.3, 0.999_999] {
                let wait = wait(&network(), attempt as u32, 100, random).unwrap().as_secs_f64();
                assert!(wait >= whole * 0.499 && wait <= whole * 1.001, "{attempt} {random} {wait}");
            }
        }
        assert_eq!(wait(&network(), 6, 6, 0.5), None);
        assert!(wait(&network(), u32::MAX - 1, u32::MAX, f64::NAN).is_some());
    }

    #[test]
    fn p1_a_servers_wish_is_never_undercut() {
        for seconds in [0, 1, 17, 3600] {
            let after = Duration::from_secs(seconds);
            for random in [0.0, 0.9] {
                let got = wait(&asked(after), 1, 6, random).unwrap();
                assert!(got >= after && got <= after + Duration::from_millis(250));
            }
        }
        assert!(wait(&asked(Duration::ZERO), 3, 6, 0.0).unwrap() >= Duration::from_secs(2));
    }

    #[test]
    fn p2_what_no_waiting_mends_is_not_tried_again() {
        for error in [
            ProviderError::Auth("x".into()),
            ProviderError::TooLong("x".into()),
            ProviderError::TooLarge("x".into()),
            ProviderError::Rejected("x".into()),
        ] {
            assert_eq!(wait(&error, 1, 6, 0.5), None);
        }
    }

    #[test]
    fn a_wait_over_the_limit_is_an_error_that_names_both() {
        let hour = asked(Duration::from_secs(3660));
        assert_eq!(over(&hour, None), None);
        assert_eq!(over(&hour, Some(Duration::from_secs(3660))), None);
        let said = over(&hour, Some(Duration::from_secs(300))).unwrap().to_string();
        assert!(
            said.contains("wait 1 h 1 min") && said.contains("limits.longest_wait allows 5 min"),
            "{said}"
        );
        assert_eq!(over(&network(), Some(Duration::ZERO)), None);
    }

    #[test]
    fn random_numbers_are_in_range_and_differ() {
        let some: Vec<f64> = (0..8).map(|_| random()).collect();
        assert!(some.iter().all(|r| (0.0..1.0).contains(r)));
        assert!(some.windows(2).any(|w| w[0] != w[1]));
    }
}
