//! The long run: hours of mixed work in minutes, in the real program at a terminal, to see that nothing grows.
//!
//! One cycle is a session of work: turns, tools, delegations, a program in a pane, searches, the tree, undo and redo,
//! compaction, other sizes, a new session. Cycles are alike, so what the program uses at the end of each must be alike
//! too: a line is fitted to it, and its slope has a limit. `cargo xtask soak --minutes 30 [--program FILE]`.

mod samples;
mod work;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use samples::{Sample, Samples};
use work::Work;

use super::rig::place::Place;

/// Time between two samples within a cycle.
const BETWEEN: Duration = Duration::from_secs(10);

/// Runs it; the problems are what grows.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
    let minutes: f64 = value("--minutes").map_or(Ok(30.0), |m| m.parse())?;
    let program = match value("--program") {
        Some(path) => PathBuf::from(path).canonicalize().context("no program there")?,
        None => super::binary(root, true)?,
    };
    let length = Duration::from_secs_f64(minutes * 60.0);
    let model = work::model();
    let place = Place::with_server(&program, &model.url())?;
    place.config(work::SETTINGS)?;
    place.adapter("toy", work::TOY)?;
    let mut work = Work::new(place.open(&[])?.ready()?, &model);
    let (began, mut samples) = (Instant::now(), Samples::default());
    let mut cycle = 0;
    while began.elapsed() < length || cycle < samples::FEWEST {
        cycle += 1;
        let mut last = Instant::now();
        for step in work::STEPS {
            work.step(step);
            model.forget();
            if last.elapsed() > BETWEEN {
                last = Instant::now();
                samples.between(Sample::take(&work, &place, cycle, began));
            }
        }
        work.rest();
        samples.cycle(Sample::take(&work, &place, cycle, began));
    }
    println!("{}", samples.table());
    println!(
        "{cycle} cycles, {} units of work, {} of them not seen to their end, in {:.1} minutes",
        work.done,
        work.missed.len(),
        began.elapsed().as_secs_f64() / 60.0
    );
    work.missed.iter().take(10).for_each(|m| println!("  not seen: {m}"));
    let mut problems = samples.problems();
    if work.missed.len() * 50 > work.done {
        problems.push(format!(
            "{} of {} units of work were not seen to their end",
            work.missed.len(),
            work.done
        ));
    }
    Ok(problems)
}
