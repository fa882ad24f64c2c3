//! The wait for the first token is seen, with its seconds and the setting that limits it.

use tiller_testkit::{Hold, Reply, ScriptServer};

use crate::common::{Place, says};
use crate::screen::say;

/// The seconds that the screen shows.
fn seconds(screen: &str) -> Option<u64> {
    let (_, rest) = screen.split_once("Waiting for the first token, ")?;
    rest.split_once(" s")?.0.parse().ok()
}

fn seconds_are_seen(cols: u16, rows: u16) {
    let hold = Hold::default();
    let server = ScriptServer::start([says("There are 7.").held(&hold)]);
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "count");
    let screen = term.wait("the seconds", |s| seconds(s).is_some_and(|n| n >= 2));
    let before = seconds(&screen);
    let screen = term.wait("more seconds", |s| seconds(s) > before);
    assert!(screen.contains("Esc stop"), "{screen}");
    assert!(!screen.contains("It ends after"), "a server on this machine has no limit: {screen}");
    // Later there is the request for the title, too.
    assert_eq!(server.count(), 1, "what is being computed is not sent again");
    hold.release();
    term.wait_text("There are 7.");
    term.wait_gone("Waiting for the first token");
    // A request for the title has no tools.
    let asked = server.bodies().iter().filter(|body| body["tools"].is_array()).count();
    assert_eq!(asked, 1);
}

#[test]
fn p17_the_seconds_of_a_wait_are_seen_at_118x25() {
    seconds_are_seen(118, 25);
}

#[test]
fn p17_the_seconds_of_a_wait_are_seen_at_80x24() {
    seconds_are_seen(80, 24);
}

#[test]
fn p17_a_wait_names_its_limit_and_ends_with_one_request() {
    let server = ScriptServer::start([Reply::silence()]);
    let place = Place::anthropic(&server);
    place.config(
        "[providers.anthropic]\nkind = 'anthropic'\n[providers.anthropic.timeouts]\nfirst_byte = 8\n",
    );
    let mut term = place.term(&[], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "count");
    term.wait_text("It ends after 8 s: providers.anthropic.timeouts.first_byte");
    term.wait("what happened", |s| s.contains("not sent again") || s.contains("so the request was not"));
    assert_eq!(server.count(), 1);
}
