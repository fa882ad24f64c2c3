//! Creating a branch, going back and returning, in a long session: from the key to the screen.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place, squash};
use crate::bench::rig::sessions;
use crate::bench::{Bench, pause};

/// Longer than notices stay on the screen, so that the next ones are new.
const GONE: Duration = Duration::from_millis(4500);
/// Milliseconds from such a key to a screen, without files.
const BUDGET: f64 = 5.0;

pub(crate) fn moves(b: &Bench, out: &mut Figures) -> Result<()> {
    let count = b.pick(100_000, 20_000);
    let place = Place::new(&b.binary, &b.model)?;
    sessions::make(&place.database(), &place.work()?, count)?;
    let mut desk = place.open(&["-c"])?.ready()?;
    let (mut fork, mut undo, mut redo) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..b.pick(7, 3) {
        fork.push(press(&mut desk, "f", "onbranch-")?);
        undo.push(press(&mut desk, "u", "Undone:fork")?);
        redo.push(press(&mut desk, "U", "Doneagain:fork")?);
        pause(GONE);
        undo.push(press(&mut desk, "u", "Undone:fork")?);
        pause(GONE);
    }
    for (what, all) in [("branch", fork), ("undo of it", undo), ("redo of it", redo)] {
        out.add(format!("{what}, {count} entries: p50"), at(&all, 0.5), Unit::Ms, BUDGET);
    }
    Ok(())
}

/// Milliseconds from a key after the leader to the first screen with `text`.
fn press(desk: &mut Desk, key: &str, text: &str) -> Result<f64> {
    desk.term.keys("\x18");
    desk.settle(Duration::from_millis(100));
    let from = Instant::now();
    desk.term.keys(key);
    let end = from + Duration::from_secs(30);
    while !squash(&desk.term.screen()).contains(text) {
        if Instant::now() > end {
            bail!("{text:?} was never seen; the screen was:\n{}", desk.term.screen());
        }
        pause(Duration::from_millis(2));
    }
    desk.settle(Duration::from_millis(200));
    let seen = desk.first(from, text).context("it was seen")?;
    Ok(seen.duration_since(from).as_secs_f64() * 1e3)
}
