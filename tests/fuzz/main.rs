//! `cargo xtask fuzz TARGET... [--cases N] [--seed S] [--jobs J] [--keep BYTES]`: see `tiller_fuzz`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool without a screen")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tiller_fuzz::drive::{Plan, run};
use tiller_fuzz::supervise::{process, supervise};
use tiller_fuzz::{TARGETS, Target, kept, target};

/// Time for making each failure smaller.
const SMALLER: Duration = Duration::from_secs(15);

const HELP: &str = "usage: cargo xtask fuzz TARGET...|all|--list [options]
  --cases N      cases of each target (100000)
  --seed S       the same seed makes the same inputs (1)
  --jobs J       processes (as many as there are processors)
  --keep BYTES   keep inputs that did something new, up to so many bytes for each target
  --input FILE   run this input only";

struct Options {
    targets: Vec<&'static Target>,
    plan: Plan,
    jobs: u64,
    keep: Option<usize>,
    input: Option<String>,
}

fn options(args: &[String]) -> Result<Options> {
    let jobs = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut options = Options {
        targets: Vec::new(),
        plan: Plan { cases: 100_000, seed: 1, failures: 20, smaller: SMALLER, time: Duration::MAX },
        jobs,
        keep: None,
        input: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value\n{HELP}"));
        match arg.as_str() {
            "--cases" => options.plan.cases = value()?.parse()?,
            "--seed" => options.plan.seed = value()?.parse()?,
            "--jobs" => options.jobs = value()?.parse::<u64>()?.max(1),
            "--keep" => options.keep = Some(value()?.parse()?),
            "--input" => options.input = Some(value()?.clone()),
            "all" => options.targets.extend(TARGETS),
            name => {
                options
                    .targets
                    .push(target(name).with_context(|| format!("there is no target {name}\n{HELP}"))?);
            }
        }
    }
    if options.targets.is_empty() {
        bail!("{HELP}");
    }
    Ok(options)
}

/// Keeps new inputs: some of each length, since short ones alone would be the simple ones.
fn keep(target: &Target, new: impl Iterator<Item = Vec<u8>>, most: usize) -> Result<usize> {
    let mut all: Vec<Vec<u8>> = new.collect();
    all.sort_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    let (mut count, mut bytes, mut stride) = (0, 0, all.len().div_ceil(120).max(1));
    loop {
        let taken: Vec<&Vec<u8>> = all.iter().step_by(stride).collect();
        if taken.iter().map(|i| i.len()).sum::<usize>() > most && stride < all.len() {
            stride += 1;
            continue;
        }
        for input in taken {
            bytes += input.len();
            if bytes <= most {
                kept::write(target, input, false)?;
                count += 1;
            }
        }
        return Ok(count);
    }
}

fn all() -> Result<bool> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--process") => return process(&args[1..]).map(|()| true),
        Some("--list") => {
            TARGETS.iter().for_each(|t| println!("{}", t.name));
            return Ok(true);
        }
        _ => {}
    }
    let options = options(&args)?;
    let mut well = true;
    for target in options.targets {
        if let Some(file) = &options.input {
            let input = std::fs::read(Path::new(file))?;
            match run(target, &input) {
                Ok(outline) => println!("{}: well, outline {outline:016x}", target.name),
                Err(failure) => {
                    println!("{}: {failure}", target.name);
                    well = false;
                }
            }
            continue;
        }
        let report = supervise(target, options.plan, options.jobs)?;
        let rate = report.cases as f64 / report.took.as_secs_f64().max(0.001);
        println!(
            "{:10} {:>10} cases {:>8.1} s {:>8.0} cases/s {:>6} new outlines {:>3} failures",
            target.name,
            report.cases,
            report.took.as_secs_f64(),
            rate,
            report.new.len(),
            report.failures.len()
        );
        report.failures.iter().for_each(|f| println!("  {f}"));
        well &= report.failures.is_empty();
        if let Some(most) = options.keep {
            kept::clear(target)?;
            let count = keep(target, report.new.into_values(), most)?;
            println!("  {count} inputs kept");
        }
    }
    Ok(well)
}

fn main() -> ExitCode {
    match all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}
