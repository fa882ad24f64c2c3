//! The tree browser over a session of 100,000 entries: opening, moving, and filtering while typing.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place, squash};
use crate::bench::rig::{process, sessions};
use crate::bench::{Bench, pause};

/// Time between two keys: longer than the effect of any of them, so that output belongs to the last one.
const GAP: Duration = Duration::from_millis(250);

pub(crate) fn browse(b: &Bench, out: &mut Figures) -> Result<()> {
    let count = b.pick(100_000, 20_000);
    let place = Place::new(&b.binary, &b.model)?;
    sessions::make(&place.database(), &place.work()?, count)?;
    // The index exists, as after an earlier search.
    let indexed = place.run(&["sessions", "search", "parser", "--json"]).output()?;
    if !indexed.status.success() {
        bail!("no index was made: {}", String::from_utf8_lossy(&indexed.stderr));
    }
    let mut opened = Vec::new();
    let mut desk = place.open(&["-c"])?.ready()?;
    for _ in 0..b.pick(7, 3) {
        let from = desk.submit("/tree");
        // The browser with the selected row: the last one, with its text.
        let seen = shown(&desk, &["treeofthisproject,1session", &format!("{}now", sessions::LAST)])?;
        opened.push(seen.duration_since(from).as_secs_f64() * 1e3);
        desk.term.keys("q");
        desk.settle(Duration::from_millis(300));
    }
    out.add(format!("tree of {count} entries: open"), at(&opened, 0.5), Unit::Ms, 150.0);

    desk.submit("/tree");
    desk.settle(Duration::from_millis(500));
    out.note(format!("tree of {count} entries: PSS"), process::pss(desk.pid), Unit::Mib);
    let keys = |n: usize| ["k", "k", "\x1b[5~", "j"][n % 4];
    let (first, _) = press(&mut desk, b.pick(120, 40), keys)?;
    out.add(format!("tree of {count} entries: key p95"), at(&first, 0.95), Unit::Ms, 2.0);
    // Everything unfolded: twice as many rows.
    desk.term.keys("t");
    desk.settle(Duration::from_millis(500));
    let (first, _) = press(&mut desk, b.pick(80, 40), keys)?;
    out.add(format!("tree of {count} entries, all calls: key p95"), at(&first, 0.95), Unit::Ms, 2.0);
    desk.term.keys("t");
    desk.settle(Duration::from_millis(500));
    let (folds, _) = press(&mut desk, b.pick(20, 8), |_| "t")?;
    out.note(format!("tree of {count} entries: unfold or fold all, p50"), at(&folds, 0.5), Unit::Ms);

    desk.term.keys("/");
    desk.settle(Duration::from_millis(300));
    let words = ["p", "a", "r", "s", "e", "r", " ", "9", "9", "\x7f", "\x7f", "\x7f", "\x7f", "\x7f", "\x7f"];
    let (first, last) = press(&mut desk, b.pick(60, 15), |n| words[n % words.len()])?;
    out.add(format!("tree of {count} entries: letter of a filter p95"), at(&first, 0.95), Unit::Ms, 2.0);
    out.add(format!("tree of {count} entries: filtered rows p50"), at(&last, 0.5), Unit::Ms, 30.0);
    out.note(format!("tree of {count} entries: filtered rows p95"), at(&last, 0.95), Unit::Ms);
    Ok(())
}

/// When texts were first on the screen together, to the millisecond.
fn shown(desk: &Desk, texts: &[&str]) -> Result<Instant> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let screen = squash(&desk.term.screen());
        if texts.iter().all(|t| screen.contains(t)) {
            return Ok(Instant::now());
        }
        if Instant::now() > end {
            bail!("{texts:?} were never seen; the screen was:\n{}", desk.term.screen());
        }
        pause(Duration::from_millis(1));
    }
}

/// Milliseconds from each key to the first, and to the last output after it.
fn press(desk: &mut Desk, count: usize, key: impl Fn(usize) -> &'static str) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut sent = Vec::new();
    for n in 0..count {
        sent.push(Instant::now());
        desk.term.keys(key(n));
        pause(GAP);
    }
    let marks: Vec<Instant> = desk.term.marks().into_iter().map(|(at, _)| at).collect();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (n, from) in sent.iter().enumerate() {
        let end = sent.get(n + 1).copied().unwrap_or(*from + GAP);
        let mine: Vec<&Instant> = marks.iter().filter(|m| *m >= from && **m < end).collect();
        let (Some(a), Some(z)) = (mine.first(), mine.last()) else { continue };
        first.push(a.duration_since(*from).as_secs_f64() * 1e3);
        last.push(z.duration_since(*from).as_secs_f64() * 1e3);
    }
    if first.len() * 2 < count {
        bail!("only {} of {count} keys changed the screen:\n{}", first.len(), desk.term.screen());
    }
    Ok((first, last))
}
