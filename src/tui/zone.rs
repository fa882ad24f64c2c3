//! The person's time zone, without a walk through the whole zone database: that took milliseconds before
//! the first frame.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tiller_protocol::Time;

/// Where systems keep the zone in force.
const HERE: &str = "/etc/localtime";

/// `TZ` names a zone of the database; without it the system's own file is enough.
/// Read once; tests are in UTC.
pub(crate) fn local() -> TimeZone {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| {
        pick(std::env::var_os("TZ").is_some_and(|v| !v.is_empty()), std::fs::read(HERE).ok().as_deref())
    });
    if cfg!(test) { TimeZone::UTC } else { ZONE.clone() }
}

/// A moment in local time: `2026-11-23 02:47:05`.
pub fn written(time: Time) -> String {
    let stamp = Timestamp::from_millisecond(time.millis()).unwrap_or(Timestamp::UNIX_EPOCH);
    stamp.to_zoned(local()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The same without seconds.
pub(crate) fn minutes(time: Time) -> String {
    written(time).get(..16).unwrap_or_default().to_owned()
}

fn pick(named: bool, file: Option<&[u8]>) -> TimeZone {
    let read = file.filter(|_| !named).and_then(|bytes| TimeZone::tzif("local", bytes).ok());
    read.unwrap_or_else(TimeZone::system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_with_seconds_that_can_be_cut_off() {
        assert_eq!(
            &written(crate::testing::START)[..16],
            &crate::testing::START.to_rfc3339()[..16].replace('T', " ")
        );
        assert_eq!(written(crate::testing::START).len(), 19);
    }

    #[test]
    fn the_systems_file_counts_unless_a_zone_is_named() {
        // The smallest file of the format: one type, UTC plus one hour, and nothing else.
        let mut file = b"TZif".to_vec();
        file.extend([0; 16]);
        for count in [0_u32, 0, 0, 0, 1, 4] {
            file.extend(count.to_be_bytes());
        }
        file.extend(3600_i32.to_be_bytes());
        file.extend([0, 0]);
        file.extend(b"XST\0");
        let zone = pick(false, Some(&file));
        assert_eq!(zone.to_offset(jiff::Timestamp::UNIX_EPOCH).seconds(), 3600);
        assert_eq!(pick(true, Some(&file)), TimeZone::system());
        assert_eq!(pick(false, Some(b"no zone")), TimeZone::system());
        assert_eq!(pick(false, None), TimeZone::system());
    }
}
