//! Search over realistic text, by keywords alone and with a table of vectors, within one process that is optimised.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::bench::rig::figures::{Figures, Unit};

/// Milliseconds.
const BUDGET: f64 = 50.0;
const FIRST: f64 = 1_000.0;

/// A table of another model can be measured: its folder stands in `TILLER_BENCH_TABLE`.
pub(crate) fn speed(b: &Bench, out: &mut Figures) -> Result<()> {
    let sizes: &[usize] = if b.quick { &[100_000] } else { &[100_000, 1_000_000] };
    for count in sizes {
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--release", "--locked", "--package=tiller-search"]);
        command.args(["--example=search_speed", "--"]).arg(count.to_string());
        command.args(std::env::var_os("TILLER_BENCH_TABLE"));
        let done = command.stderr(Stdio::inherit()).output()?;
        if !done.status.success() {
            bail!("search_speed ended with {}", done.status);
        }
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            let (what, value) = line.split_once('\t').context("a line without a figure")?;
            let (name, value) = (format!("search in {count}: {what}"), value.parse()?);
            match what {
                "first answer after an import" | "answer while it indexes, longest" => {
                    out.add(name, value, Unit::Ms, FIRST);
                }
                // The goal is for 100,000 entries.
                "keywords p95" | "with a table p95" if *count == sizes[0] => {
                    out.add(name, value, Unit::Ms, BUDGET)
                }
                _ => out.note(name, value, Unit::Ms),
            }
        }
    }
    Ok(())
}
