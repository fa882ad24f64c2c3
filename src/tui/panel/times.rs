//! Times of day and lengths of time, as panels and dialogs show them.

use tiller_protocol::Time;

/// `10:41` where the person is. Tests are in UTC.
pub(crate) fn clock(time: Time) -> String {
    let zone = crate::zone::local();
    match jiff::Timestamp::from_millisecond(time.millis()) {
        Ok(t) => {
            let t = t.to_zoned(zone);
            format!("{:02}:{:02}", t.hour(), t.minute())
        }
        Err(_) => "--:--".into(),
    }
}

/// `41s`, `2m`, `1h05`.
pub(crate) fn lasting(ms: i64) -> String {
    let s = (ms / 1000).max(0);
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m", s / 60),
        _ => format!("{}h{:02}", s / 3600, s % 3600 / 60),
    }
}
