//! Start times: to the first key on the screen, to the first answer, and without a screen.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Place, READY, squash};
use crate::bench::rig::process;
use crate::bench::{Bench, pause};

/// From exec to the screen.
pub(crate) fn screen(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    // The very first start creates folders and a database; it counts separately.
    let desk = place.open(&[])?.ready()?;
    drop(desk);
    let (mut frame, mut echo, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..b.pick(15, 3) {
        let mut desk = place.open(&[])?;
        // Before that the terminal itself would echo.
        desk.term.wait_text(READY);
        desk.term.keys("q\u{fc}q");
        desk.until("q\u{fc}q")?;
        desk.settle(Duration::from_millis(100));
        let mut first = None;
        desk.replay(desk.at, |at, screen| {
            if !squash(&screen.contents()).is_empty() {
                first = Some(at);
            }
            first.is_none()
        });
        for (list, found) in [(&mut frame, first), (&mut echo, desk.first(desk.at, "q\u{fc}q"))] {
            let Some(found) = found else { bail!("the screen was never drawn") };
            list.push(found.duration_since(desk.at).as_secs_f64() * 1e3);
        }
        for _ in 0..3 {
            desk.term.keys("\x7f");
        }
        desk.settle(Duration::from_millis(50));
    }
    for _ in 0..b.pick(9, 2) {
        let id = b.id();
        let mut desk = place.open(&[])?;
        // Before that the terminal itself would turn Enter into a line feed.
        desk.term.wait_text(READY);
        desk.term.keys(&format!("bench-echo-{id} "));
        // Enter directly behind fast keys belongs to a paste: the pause of a person before it does not count.
        let typed = Instant::now();
        pause(Duration::from_millis(100));
        let enter = Instant::now();
        desk.term.bytes(b"\r");
        desk.until(&format!("DONE-{id}"))?;
        let Some(seen) = desk.first(enter, &format!("DONE-{id}")) else { bail!("no answer was seen") };
        let took = typed.duration_since(desk.at) + seen.duration_since(enter);
        answer.push(took.as_secs_f64() * 1e3);
    }
    out.note("exec to first frame", at(&frame, 0.5), Unit::Ms);
    out.add("exec to first key echoed", at(&echo, 0.5), Unit::Ms, 13.0);
    // The minimum, a bare C program, took 6 ms for both.
    out.add("prompt typed at once: answered", at(&answer, 0.5), Unit::Ms, 36.0);
    Ok(())
}

/// `tiller exec`, from exec to exit.
pub(crate) fn headless(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let (mut wall, mut peak) = (Vec::new(), 0.0_f64);
    for n in 0..=b.pick(15, 3) {
        let id = b.id();
        let at = Instant::now();
        let done = place.headless(&format!("bench-echo-{id} ")).output()?;
        let took = at.elapsed().as_secs_f64() * 1e3;
        if !String::from_utf8_lossy(&done.stdout).contains(&format!("DONE-{id}")) {
            bail!("tiller exec did not answer: {}", String::from_utf8_lossy(&done.stderr));
        }
        // The first one creates the database.
        if n > 0 {
            wall.push(took);
        }
    }
    // Measuring memory costs time, so these are separate runs.
    for _ in 0..b.pick(5, 2) {
        let mut child = place.headless(&format!("bench-echo-{} ", b.id())).spawn()?;
        while child.try_wait()?.is_none() {
            peak = peak.max(process::peak(child.id()).unwrap_or(0.0));
            pause(Duration::from_micros(300));
        }
    }
    out.add("headless: exec to exit", at(&wall, 0.5), Unit::Ms, 27.0);
    out.add("headless: peak RSS", peak, Unit::Mib, 14.0);
    Ok(())
}
