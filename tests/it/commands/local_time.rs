//! Times without a screen: local time for people, UTC for programs.

use tiller_testkit::ScriptServer;

use crate::common::{Place, says};

#[test]
fn people_read_their_own_clock_and_programs_read_utc() {
    let server = ScriptServer::with(|_, _| says("There is a walnut."));
    let mut place = Place::anthropic(&server);
    // Three hours ahead, without a time zone database.
    place.set("TZ", "XST-3");
    place.ok(&["exec", "what is here?"]);
    let json = place.lines(&["sessions", "list", "--exec", "--json"]);
    let utc: jiff::Timestamp = json[0]["used"].as_str().unwrap().parse().unwrap();
    let here = utc + jiff::SignedDuration::from_hours(3);
    let minute = here.strftime("%Y-%m-%d %H:%M").to_string();
    for args in [&["sessions", "list", "--exec"][..], &["sessions", "search", "walnut"]] {
        let text = place.ok(args);
        assert!(text.contains(&minute[..13]), "{args:?}: {minute} in {text}");
    }
}
