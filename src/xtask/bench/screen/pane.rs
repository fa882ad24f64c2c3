//! A program in one of Tiller's terminals: the round trip of a key in its pane, and keys in Tiller while the program
//! floods.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place};
use crate::bench::screen::keys;
use crate::bench::{Bench, pause};

/// Echoes each byte, as a terminal's line discipline does, without a prompt of its own.
const ECHO: &str = "stty raw -echo; printf '> '; exec cat";
const FLOOD: &str =
    "printf '> '; exec yes 'a line that says the same again and again, without an end in sight'";

/// The workbench with the terminal of a program that runs this script.
fn opened(b: &Bench, script: &str) -> Result<Desk> {
    let place = Place::new(&b.binary, &b.model)?;
    place.adapter("toy", script)?;
    let mut desk = place.open(&[])?.ready()?;
    desk.keep(place);
    desk.submit("/spawn @toy:pty hello");
    desk.term.keys("\x1b3");
    desk.until("a1 ")?;
    desk.term.keys("j\r");
    desk.until("x stop")?;
    Ok(desk)
}

pub(crate) fn pane(b: &Bench, out: &mut Figures) -> Result<()> {
    let mut desk = opened(b, ECHO)?;
    desk.term.keys("r");
    desk.until("releases")?;
    desk.settle(Duration::from_millis(1500));
    let mut echo = Vec::new();
    for n in 0..b.pick(200, 60) {
        let c = char::from(b'a' + (n * 7 % 26) as u8);
        let from = Instant::now();
        let written = desk.term.written();
        desk.term.keys(&c.to_string());
        // The next frame shows it, since nothing else changes. A busy wait would occupy one of the
        // cores that the program, its driver and the screen share.
        while desk.term.written() == written && from.elapsed() < Duration::from_secs(2) {
            pause(Duration::from_micros(50));
        }
        echo.push(from.elapsed().as_secs_f64() * 1e3);
        pause(Duration::from_millis(30 + (n as u64 * 13) % 20));
    }
    out.add("key echo p50, in a program's pane", at(&echo, 0.5), Unit::Ms, 2.0);
    out.add("key echo p95, in a program's pane", at(&echo, 0.95), Unit::Ms, 5.0);
    drop(desk);
    let mut desk = opened(b, FLOOD)?;
    desk.until("without an end")?;
    desk.term.keys("\x1b");
    pause(Duration::from_millis(500));
    let typed = keys::typed(&mut desk, b.pick(100, 40))?;
    out.add("key echo p95, beside a program that floods", at(&typed, 0.95), Unit::Ms, 100.0);
    Ok(())
}
