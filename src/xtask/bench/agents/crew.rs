//! The budgets marked C that are visible on the screen: many agents at once, a message to one, ending all.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::{Desk, Place};
use crate::bench::rig::process;
use crate::bench::screen::keys;
use crate::bench::{Bench, pause};

/// Number of agents.
const CREW: usize = 20;

/// Starts an agent, and waits for its request.
fn spawn(b: &Bench, desk: &mut Desk, task: &str) -> Result<()> {
    let before = b.model.count();
    desk.submit(&format!("/spawn {task} "));
    let end = Instant::now() + Duration::from_secs(60);
    while b.model.count() == before && Instant::now() < end {
        pause(Duration::from_millis(5));
    }
    anyhow::ensure!(
        b.model.count() > before,
        "no agent was started; the screen was:\n{}",
        desk.term.screen()
    );
    Ok(())
}

/// Present CPU use of the program, in percent of one core.
fn load(desk: &Desk) -> f64 {
    let (began, before) = (Instant::now(), process::cpu_ms(desk.pid));
    pause(Duration::from_secs(5));
    process::since(&process::cpu_ms(desk.pid), &before) / began.elapsed().as_secs_f64() / 10.0
}

/// Milliseconds from `from` until the screen shows `text`, or no longer shows it.
fn until(desk: &Desk, from: Instant, text: &str, there: bool) -> Option<f64> {
    let end = Instant::now() + Duration::from_secs(60);
    while desk.term.screen().contains(text) != there && Instant::now() < end {
        pause(Duration::from_millis(2));
    }
    let mut found = None;
    desk.replay(from, |when, screen| {
        if screen.contents().contains(text) == there {
            found = Some(when.duration_since(from).as_secs_f64() * 1e3);
        }
        found.is_none()
    });
    found
}

/// Twenty agents that stream 200 tokens a second each, against one; then a message to one, and ending all.
pub(crate) fn crew(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    place.config(&format!("[agents]\nrunning = {CREW}\ntotal = 1000\n"))?;
    let mut desk = place.open(&[])?.ready()?;
    let count = b.pick(200, 60);
    let stream = format!("bench-stream-{}-5-", if b.quick { 40_000 } else { 100_000 });
    spawn(b, &mut desk, &format!("{stream}{}", b.id()))?;
    pause(Duration::from_secs(2));
    let one = keys::keys(&mut desk, count)?;
    let one_load = load(&desk);
    desk.term.keys("\x15");
    for _ in 1..CREW {
        spawn(b, &mut desk, &format!("{stream}{}", b.id()))?;
    }
    pause(Duration::from_secs(2));
    let all = keys::keys(&mut desk, count)?;
    desk.term.keys("\x15");
    let (p95_one, p95_all) = (at(&one.echo, 0.95), at(&all.echo, 0.95));
    out.note("key echo p95, one agent streaming", p95_one, Unit::Ms);
    out.add(format!("key echo p95, {CREW} agents streaming"), p95_all, Unit::Ms, p95_one * 2.0);
    out.note("CPU (percent of one), one agent streaming", one_load, Unit::Plain);
    out.add(format!("CPU (percent of one), {CREW} agents streaming"), load(&desk), Unit::Plain, 60.0);

    desk.term.keys("\x1b3");
    desk.until("K stop all")?;
    desk.term.keys("j");
    pause(Duration::from_millis(300));
    desk.term.keys("s");
    desk.until("message to a")?;
    desk.term.keys("be brief");
    desk.until("be brief")?;
    pause(Duration::from_millis(300));
    let enter = Instant::now();
    desk.term.keys("\r");
    if let Some(took) = until(&desk, enter, "msg queued", true) {
        out.add("message to an agent: key to 'queued' on screen", took, Unit::Ms, 17.0);
    }
    desk.term.keys("K");
    desk.until("stop everything?")?;
    pause(Duration::from_millis(700));
    let yes = Instant::now();
    desk.term.keys("y");
    if let Some(took) = until(&desk, yes, "working", false) {
        out.add(format!("end of {CREW} agents: key to a screen at rest"), took, Unit::Ms, 100.0);
    }
    Ok(())
}

/// Memory of an agent: after nearly no work, and with a thousand entries.
pub(crate) fn memory(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    place.config("[agents]\nrunning = 20\ntotal = 1000\nturns = 2000\n")?;
    let mut desk = place.open(&[])?.ready()?;
    // Memory that is allocated once with the first agent does not count.
    spawn(b, &mut desk, &format!("bench-echo-{}", b.id()))?;
    pause(Duration::from_secs(2));
    let before = process::pss(desk.pid);
    let count = b.pick(CREW, 10);
    for _ in 0..count {
        spawn(b, &mut desk, &format!("bench-echo-{}", b.id()))?;
    }
    pause(Duration::from_secs(2));
    let idle = process::pss(desk.pid);
    out.add("memory of an agent that is done", (idle - before) / count as f64, Unit::Mib, 0.5);
    let calls = 500;
    let asked = b.model.count();
    spawn(b, &mut desk, &format!("bench-tools-{calls}-{}", b.id()))?;
    let end = Instant::now() + Duration::from_secs(120);
    while b.model.count() < asked + calls && Instant::now() < end {
        pause(Duration::from_millis(50));
    }
    pause(Duration::from_millis(500));
    // Its shell is a separate process, and counted, too.
    out.add("memory of an agent with 1,000 entries", process::pss(desk.pid) - idle, Unit::Mib, 4.0);
    Ok(())
}
