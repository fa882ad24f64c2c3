//! From one end of a long session to the other: the jump, the search in the conversation, and the first search over all
//! sessions while the entries are not indexed yet.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place, squash};
use crate::bench::rig::sessions;
use crate::bench::{Bench, pause};

/// Ctrl-Home, Ctrl-End, the leader.
const HOME: &str = "\x1b[1;5H";
const END: &str = "\x1b[1;5F";
const LEADER: &str = "\x18";

/// Milliseconds from a key to `text` on the screen.
fn took(desk: &mut Desk, key: &str, text: &str) -> Result<f64> {
    let from = Instant::now();
    desk.term.keys(key);
    desk.until_squashed(text)?;
    let seen = desk.first(from, text).with_context(|| format!("{text:?} was not seen"))?;
    Ok(seen.duration_since(from).as_secs_f64() * 1e3)
}

/// A session of 50,000 entries: jump to the start, search for the oldest hit.
pub(crate) fn oldest(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let count = b.pick(50_000, 8_000);
    sessions::make_of(&place.database(), &place.work()?, count, 8)?;
    let (mut jumps, mut searches) = (Vec::new(), Vec::new());
    for _ in 0..b.pick(5, 2) {
        // Each in a program of its own, since loaded entries are not loaded again.
        let mut desk = place.open(&["-c"])?.ready()?;
        jumps.push(took(&mut desk, HOME, "Question1:what")?);
        desk.term.keys(END);
        desk.until(sessions::LAST)?;
        let mut desk = place.open(&["-c"])?.ready()?;
        desk.term.keys(&format!("{LEADER}/"));
        desk.settle(Duration::from_millis(200));
        for c in "Question 3: what".chars() {
            desk.term.keys(&c.to_string());
            pause(Duration::from_millis(4));
        }
        searches.push(took(&mut desk, "\r", "Question3:whatdoes")? / 1e3);
    }
    out.add(format!("{count} entries: jump to the start"), at(&jumps, 0.5), Unit::Ms, 100.0);
    out.add(format!("{count} entries: search to the oldest hit"), at(&searches, 0.5), Unit::S, 0.5);
    Ok(())
}

/// The first search after 100,000 new entries: until it answers, with hits or with the number of entries that are not
/// searched yet.
pub(crate) fn first(b: &Bench, out: &mut Figures) -> Result<()> {
    let mut times = Vec::new();
    let count = b.pick(100_000, 20_000);
    for _ in 0..b.pick(3, 1) {
        let place = Place::new(&b.binary, &b.model)?;
        sessions::make_of(&place.database(), &place.work()?, count, 8)?;
        let mut desk = place.open(&[])?.ready()?;
        desk.term.keys(&format!("{LEADER}F"));
        desk.until("Find in")?;
        desk.settle(Duration::from_millis(200));
        let from = Instant::now();
        // A paste is one query.
        desk.term.keys("\x1b[200~7777\x1b[201~");
        let answer = |text: &str| text.contains("Question7777:") || text.contains("notsearchedyet");
        desk.until_so(|text| answer(&squash(text)))?;
        let mut seen = None;
        desk.replay(from, |when, screen| {
            if answer(&squash(&screen.contents())) {
                seen = Some(when);
            }
            seen.is_none()
        });
        let seen = seen.context("it never answered")?;
        times.push(seen.duration_since(from).as_secs_f64());
    }
    out.add(format!("first search after {count} new entries: first answer"), at(&times, 0.5), Unit::S, 1.0);
    Ok(())
}
