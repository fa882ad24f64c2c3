//! Streaming replies, and the program at rest before and after them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place, squash};
use crate::bench::rig::process;
use crate::bench::{Bench, pause};

/// Number of tokens whose cost the budgets define.
const TOKENS: f64 = 20_000.0;

struct Streamed {
    /// From Enter to the request, milliseconds.
    request: f64,
    /// From the first byte to the first text, milliseconds.
    first: f64,
    /// From the first byte to the last text, seconds.
    wall: f64,
    /// CPU seconds.
    cpu: f64,
    bytes: f64,
    /// Longest time without an update between the first and the last, milliseconds.
    pause: f64,
    updates: f64,
}

fn stream(b: &Bench, desk: &mut Desk, tokens: usize, ms: u64) -> Result<Streamed> {
    let (id, asked) = (b.id(), b.model.count());
    let (cpu, written) = (process::cpu(desk.pid), desk.term.written());
    let enter = desk.submit(&format!("bench-stream-{tokens}-{ms}-{id} "));
    desk.until(&format!("DONE-{id}"))?;
    desk.settle(Duration::from_millis(500));
    let cpu = process::cpu(desk.pid) - cpu;
    let bytes = (desk.term.written() - written) as f64;
    let Some(request) = b.model.since(asked).first().copied() else { bail!("no request came") };
    let (mut first, mut last, mut seen) = (None, None, Vec::new());
    let done = format!("DONE-{id}");
    desk.replay(request, |at, screen| {
        let text = squash(&screen.contents());
        if first.is_none() && text.contains("Section1:") {
            first = Some(at);
        }
        seen.push(at);
        if text.contains(&done) {
            last = Some(at);
        }
        last.is_none()
    });
    let (Some(first), Some(last)) = (first, last) else { bail!("the reply was never seen") };
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    seen.retain(|at| *at >= first);
    let gaps: Vec<f64> = seen.windows(2).map(|w| ms(w[1] - w[0])).collect();
    let span = last.duration_since(first).as_secs_f64().max(1e-3);
    Ok(Streamed {
        request: ms(request.saturating_duration_since(enter)),
        first: ms(first - request),
        wall: last.duration_since(request).as_secs_f64(),
        cpu,
        bytes,
        pause: gaps.iter().copied().fold(0.0, f64::max),
        // Pieces of one write arrive within a moment of each other.
        updates: gaps.iter().filter(|g| **g > 2.0).count() as f64 / span,
    })
}

/// The cost of an idle program over ten seconds.
fn rest(b: &Bench, desk: &Desk, when: &str, out: &mut Figures) {
    let seconds = b.pick(10, 3);
    let (cpu, wakes, bytes) = (process::cpu_ms(desk.pid), process::wakes(desk.pid), desk.term.written());
    pause(Duration::from_secs(seconds as u64));
    let per = seconds as f64;
    let used = process::since(&process::cpu_ms(desk.pid), &cpu) / per / 10.0;
    out.note(format!("idle CPU (percent of one), {when}"), used, Unit::Plain);
    out.add(
        format!("idle wake-ups a second, {when}"),
        process::since(&process::wakes(desk.pid), &wakes) / per,
        Unit::Plain,
        0.0,
    );
    out.add(format!("idle terminal bytes, {when}"), (desk.term.written() - bytes) as f64, Unit::Plain, 0.0);
}

/// At rest: memory, wake-ups, output.
pub(crate) fn idle(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let desk = place.open(&[])?.ready()?;
    pause(Duration::from_secs(b.pick(5, 2) as u64));
    rest(b, &desk, "new session", out);
    out.add("idle PSS", process::pss(desk.pid), Unit::Mib, 15.0);
    Ok(())
}

/// 20,000 tokens as fast as possible: about 3,000 lines; then at rest with them, then resumed.
pub(crate) fn flood(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let mut desk = place.open(&[])?.ready()?;
    let s = stream(b, &mut desk, 20_000, 0)?;
    out.add("20,000 tokens at full speed: wall", s.wall, Unit::S, 0.2);
    out.add("20,000 tokens at full speed: CPU", s.cpu, Unit::S, 0.15);
    out.add("peak RSS with 3,000 lines", process::peak(desk.pid).unwrap_or(0.0), Unit::Mib, 25.0);
    rest(b, &desk, "3,000 lines", out);
    drop(desk);
    let mut took = Vec::new();
    for _ in 0..b.pick(7, 2) {
        let desk = place.open(&["-c"])?;
        desk.until("DONE-")?;
        let Some(seen) = desk.first(desk.at, "DONE-") else { bail!("the session was not resumed") };
        took.push(seen.duration_since(desk.at).as_secs_f64() * 1e3);
    }
    out.add("resume 3,000 lines, last text visible", at(&took, 0.5), Unit::Ms, 37.0);
    Ok(())
}

/// 200 tokens a second.
pub(crate) fn paced(b: &Bench, out: &mut Figures) -> Result<()> {
    let tokens = b.pick(4_000, 1_000);
    let place = Place::new(&b.binary, &b.model)?;
    let mut desk = place.open(&[])?.ready()?;
    let began = Instant::now();
    let s = stream(b, &mut desk, tokens, 5)?;
    let rate = tokens as f64 / began.elapsed().as_secs_f64();
    out.note("tokens a second that the server managed, at most", rate, Unit::Plain);
    out.add("200 tokens/s: CPU per 20,000 tokens", s.cpu * TOKENS / tokens as f64, Unit::S, 1.7);
    out.note("200 tokens/s: updates a second", s.updates, Unit::Plain);
    out.add("200 tokens/s: longest pause", s.pause, Unit::Ms, 30.0);
    out.add("200 tokens/s: terminal bytes per token", s.bytes / tokens as f64, Unit::Plain, 20.0);
    let (mut request, mut first) = (vec![s.request], vec![s.first]);
    for _ in 0..b.pick(9, 2) {
        // The view follows the end, so the first heading of a reply is new on the screen each time.
        let place = Place::new(&b.binary, &b.model)?;
        let mut desk = place.open(&[])?.ready()?;
        let s = stream(b, &mut desk, 60, 5)?;
        request.push(s.request);
        first.push(s.first);
    }
    out.add("Enter to request", at(&request, 0.5), Unit::Ms, 5.0);
    out.add("first byte to first text", at(&first, 0.5), Unit::Ms, 18.0);
    Ok(())
}
