//! Typing: latency from a key to the screen, and its cost.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place, squash};
use crate::bench::rig::{process, sessions};
use crate::bench::{Bench, pause};

/// Time between two keys, as of a fast typist (30 to 50 ms).
const GAP: Duration = Duration::from_millis(30);

/// Latencies in milliseconds, and CPU milliseconds for each key.
pub(crate) struct Typed {
    pub(crate) echo: Vec<f64>,
    cpu: f64,
    bytes: f64,
}

/// Types `count` letters and replays the output.
pub(crate) fn keys(desk: &mut Desk, count: usize) -> Result<Typed> {
    // A text that occurs nowhere else, without the same letter twice in a row.
    let text: String =
        "zqzq".chars().chain((0..count).map(|n| char::from(b'a' + (n * 7 % 26) as u8))).collect();
    let cpu = process::cpu_ms(desk.pid);
    let written = desk.term.written();
    let from = Instant::now();
    let mut sent = Vec::new();
    for (n, c) in text.chars().enumerate() {
        sent.push(Instant::now());
        desk.term.keys(&c.to_string());
        pause(GAP + Duration::from_millis((n * 13 % 20) as u64));
    }
    desk.settle(Duration::from_millis(100));
    let cpu = process::since(&process::cpu_ms(desk.pid), &cpu) / sent.len() as f64;
    let bytes = (desk.term.written() - written) as f64 / sent.len() as f64;
    let mut echo = Vec::new();
    desk.replay(from, |when, screen| {
        let screen = squash(&screen.contents());
        while echo.len() < sent.len() && screen.contains(&text[..=echo.len()]) {
            let sent = sent[echo.len()];
            if when < sent {
                break;
            }
            echo.push(when.duration_since(sent).as_secs_f64() * 1e3);
        }
        echo.len() < sent.len()
    });
    if echo.len() < sent.len() {
        bail!(
            "only {} of {} keys were seen; the screen was:\n{}",
            echo.len(),
            sent.len(),
            desk.term.screen()
        );
    }
    // The first letters alone may occur elsewhere on the screen.
    Ok(Typed { echo: echo.split_off(4), cpu, bytes })
}

/// Milliseconds from key to screen.
pub(crate) fn typed(desk: &mut Desk, count: usize) -> Result<Vec<f64>> {
    Ok(keys(desk, count)?.echo)
}

fn rows(out: &mut Figures, where_: &str, typed: &Typed, p95: f64) {
    out.add(format!("key echo p50, {where_}"), at(&typed.echo, 0.5), Unit::Ms, 0.3);
    out.add(format!("key echo p95, {where_}"), at(&typed.echo, 0.95), Unit::Ms, p95);
    out.add(format!("CPU per key, {where_}"), typed.cpu, Unit::Ms, 0.2);
    out.note(format!("terminal bytes per key, {where_}"), typed.bytes, Unit::Plain);
}

/// Keys in sessions of 0, 2,000 and 100,000 entries, and the time to open these.
pub(crate) fn rested(b: &Bench, out: &mut Figures) -> Result<()> {
    let count = b.pick(200, 60);
    let place = Place::new(&b.binary, &b.model)?;
    rows(out, "empty session", &keys(&mut place.open(&[])?.ready()?, count)?, 0.5);
    for entries in [2_000, 100_000] {
        let place = Place::new(&b.binary, &b.model)?;
        sessions::make(&place.database(), &place.work()?, entries)?;
        let mut opened = Vec::new();
        for _ in 0..b.pick(5, 2) {
            let desk = place.open(&["-c"])?;
            desk.until(sessions::LAST)?;
            let seen = desk.first(desk.at, sessions::LAST).unwrap_or(desk.at);
            opened.push(seen.duration_since(desk.at).as_secs_f64() * 1e3);
        }
        let budget = if entries == 2_000 { 37.0 } else { 100.0 };
        out.add(format!("open {entries} entries, last text visible"), at(&opened, 0.5), Unit::Ms, budget);
        let mut desk = place.open(&["-c"])?.ready()?;
        let p95 = if entries == 2_000 { 0.5 } else { 0.9 };
        rows(out, &format!("{entries} entries"), &keys(&mut desk, count)?, p95);
        out.note(format!("PSS with {entries} entries"), process::pss(desk.pid), Unit::Mib);
    }
    Ok(())
}

/// Keys in a composer with large content: an image of 8 MB, a megabyte of text.
pub(crate) fn full(b: &Bench, out: &mut Figures) -> Result<()> {
    let line = "A line of words in a long draft, as a log or a file that was put in whole.\n";
    let text = serde_json::json!({"message": {"text": line.repeat((1 << 20) / line.len())}});
    let picture = serde_json::json!({"message": {"text": "[image 1]", "attachments": [{
        "kind": "image", "label": "[image 1]", "media_type": "image/png", "data": "QUJD".repeat((8 << 20) / 3),
        "width": 4000, "height": 3000,
    }]}});
    for (what, draft) in [("an 8 MB picture", picture), ("1 MB of text", text)] {
        let place = Place::new(&b.binary, &b.model)?;
        let mut desk = place.open(&[])?.ready()?;
        desk.term.keys("words");
        desk.until("words")?;
        desk.settle(Duration::from_millis(1500));
        drop(desk);
        // Its draft is restored at the next start.
        let file = place.draft().context("the draft was not written")?;
        std::fs::write(&file, draft.to_string())?;
        let typed = keys(&mut place.open(&[])?.ready()?, b.pick(200, 60))?;
        out.add(format!("key echo p50, with {what}"), at(&typed.echo, 0.5), Unit::Ms, 0.5);
        out.note(format!("key echo p95, with {what}"), at(&typed.echo, 0.95), Unit::Ms);
        out.note(format!("CPU per key, with {what}"), typed.cpu, Unit::Ms);
    }
    Ok(())
}

/// Keys while a reply streams at 200 tokens a second.
pub(crate) fn streaming(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let mut desk = place.open(&[])?.ready()?;
    desk.submit(&format!("bench-stream-4000-5-{} ", b.id()));
    desk.until("Section")?;
    pause(Duration::from_secs(2));
    let typed = keys(&mut desk, b.pick(200, 60))?;
    out.add("key echo p50, while streaming", at(&typed.echo, 0.5), Unit::Ms, 0.3);
    out.add("key echo p95, while streaming", at(&typed.echo, 0.95), Unit::Ms, 0.5);
    Ok(())
}
