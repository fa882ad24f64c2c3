//! A hundred tool calls in a row, and the form of the requests.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::Place;
use crate::bench::rig::process;

/// The latency and cost of the calls.
pub(crate) fn calls(b: &Bench, out: &mut Figures) -> Result<()> {
    let count = b.pick(100, 20);
    let place = Place::new(&b.binary, &b.model)?;
    let mut desk = place.open(&[])?.ready()?;
    let (id, asked, cpu) = (b.id(), b.model.count(), process::cpu(desk.pid));
    desk.submit(&format!("bench-tools-{count}-{id} "));
    desk.until(&format!("DONE-{id}"))?;
    desk.settle(std::time::Duration::from_millis(300));
    let cpu = process::cpu(desk.pid) - cpu;
    // The whole reply is sent at once: its end and its request are the same moment here.
    let arrived = b.model.since(asked);
    let gaps: Vec<f64> = arrived.windows(2).map(|w| w[1].duration_since(w[0]).as_secs_f64() * 1e3).collect();
    out.add("tool call: reply to next request, p50", at(&gaps, 0.5), Unit::Ms, 2.5);
    out.note("tool call: reply to next request, p95", at(&gaps, 0.95), Unit::Ms);
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    out.add("100 tool calls: CPU", cpu * 100.0 / count as f64, Unit::S, 0.23);
    let requests = b.model.requests(asked);
    let first = requests.first().context("no request came")?;
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    out.add("first request", first.body.len() as f64 / 1024.0, Unit::Kib, 8.0);
    let bodies: Vec<Vec<String>> = requests.iter().map(|r| parts(&r.json())).collect();
    let (mut same, mut all) = (0, 0);
    for pair in bodies.windows(2) {
        all += pair[0].len();
        same += pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count();
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    out.add("prefix stability", 100.0 * same as f64 / all.max(1) as f64, Unit::Percent, 100.0);
    Ok(())
}

/// A command that prints twenty times a second.
pub(crate) fn outputs(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let mut desk = place.open(&[])?.ready()?;
    let (id, count) = (b.id(), b.pick(400, 100));
    desk.submit(&format!("bench-output-{count}-{id} "));
    let from = desk.until("output 20 of")?;
    let before = process::cpu_ms(desk.pid);
    desk.until(&format!("output {} of", count - 10))?;
    let (cpu, wall) =
        (process::since(&process::cpu_ms(desk.pid), &before), from.elapsed().as_secs_f64() * 1e3);
    out.add("20 tool outputs a second: CPU (percent of one)", 100.0 * cpu / wall, Unit::Plain, 3.0);
    desk.until(&format!("DONE-{id}"))?;
    Ok(())
}

/// A request as a list that may only grow at its end: tools, system prompt, blocks of messages. Cache marks move and
/// are left out.
fn parts(body: &Value) -> Vec<String> {
    let mut out = vec![plain(&body["tools"]), plain(&body["system"])];
    for m in body["messages"].as_array().into_iter().flatten() {
        match m["content"].as_array() {
            Some(blocks) => out.extend(blocks.iter().map(|c| format!("{}{}", m["role"], plain(c)))),
            None => out.push(format!("{}{}", m["role"], m["content"])),
        }
    }
    out
}

fn plain(value: &Value) -> String {
    fn strip(v: &mut Value) {
        match v {
            Value::Object(o) => {
                o.remove("cache_control");
                o.values_mut().for_each(strip);
            }
            Value::Array(a) => a.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = value.clone();
    strip(&mut value);
    value.to_string()
}
