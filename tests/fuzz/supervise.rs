//! Several processes that run cases of one target, and what ends such a process: a signal, or a case without end.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::drive::{Done, Plan, drive};
use crate::{Target, kept, target};

/// A process that reports nothing for so long is in a case without end. Making a failure smaller takes less.
const STUCK: Duration = Duration::from_secs(45);
/// Time between two reports of a process.
const REPORT: Duration = Duration::from_millis(200);

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub cases: u64,
    pub took: Duration,
    /// A file with the input, and what happens.
    pub failures: Vec<String>,
    /// The shortest input of each outline that is new.
    pub new: HashMap<u64, Vec<u8>>,
}

/// Runs `plan.cases` in `jobs` processes of this program.
///
/// # Errors
/// When no process can be started, or its files cannot be read.
pub fn supervise(target: &Target, plan: Plan, jobs: u64) -> Result<Report> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let results: Vec<Result<(u64, Vec<String>)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..jobs)
            .map(|job| {
                let plan = Plan { cases: plan.cases.div_ceil(jobs), seed: plan.seed + job, ..plan };
                let out = folder.path().join(job.to_string());
                scope.spawn(move || one(target, plan, &out))
            })
            .collect();
        handles.into_iter().map(|h| h.join().unwrap_or_else(|_| bail!("a thread ended"))).collect()
    });
    let mut report = Report { took: started.elapsed(), ..Report::default() };
    for result in results {
        let (cases, failures) = result?;
        report.cases += cases;
        report.failures.extend(failures);
    }
    report.failures.sort();
    report.failures.dedup();
    for job in 0..jobs {
        let Ok(entries) = std::fs::read_dir(folder.path().join(job.to_string())) else { continue };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let Ok(outline) = u64::from_str_radix(name, 16) else { continue };
            let input = std::fs::read(&path)?;
            let kept = report.new.entry(outline).or_insert_with(|| input.clone());
            if input.len() < kept.len() {
                *kept = input;
            }
        }
    }
    Ok(report)
}

/// How a process ended.
enum End {
    Done {
        cases: u64,
    },
    /// Killed by a signal or by us, after it reported this case.
    Died {
        at: u64,
        why: String,
    },
}

/// One process. When it dies, another one finds the input: all of a run follows from its plan.
fn one(target: &Target, plan: Plan, out: &Path) -> Result<(u64, Vec<String>)> {
    let mut failures = Vec::new();
    let (at, why) = match watch(start(target, plan, out, None)?, &mut failures)? {
        End::Done { cases } => return Ok((cases, failures)),
        End::Died { at, why } => (at, why),
    };
    let trace = out.with_extension("input");
    match watch(start(target, plan, out, Some((at, &trace)))?, &mut Vec::new())? {
        End::Done { .. } => failures.push(format!("{why} after case {at}, but not a second time")),
        End::Died { why, .. } => {
            let input = std::fs::read(&trace).context("the input that ended a process")?;
            let path = kept::write(target, &input, true)?;
            failures.push(format!("{}: {why}", path.display()));
        }
    }
    Ok((at, failures))
}

fn start(target: &Target, plan: Plan, out: &Path, trace: Option<(u64, &Path)>) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--process").arg(target.name).arg(out);
    command
        .args([plan.cases, plan.seed, plan.failures as u64, plan.smaller.as_secs()].map(|n| n.to_string()));
    if let Some((from, file)) = trace {
        command.arg(from.to_string()).arg(file);
    }
    Ok(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?)
}

fn watch(mut child: Child, failures: &mut Vec<String>) -> Result<End> {
    let stdout = child.stdout.take().context("a pipe")?;
    // From the reading thread, which ends with the process; bounded by its reports.
    let (send, lines) = mpsc::sync_channel::<String>(64);
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut at = 0;
    let end = loop {
        match lines.recv_timeout(STUCK) {
            Ok(line) => match line.split_once(' ') {
                Some(("at", n)) => at = n.parse().unwrap_or(at),
                Some(("done", n)) => break End::Done { cases: n.parse().unwrap_or(at) },
                Some(("fail", text)) => failures.push(text.to_owned()),
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                break End::Died { at, why: format!("a case takes longer than {STUCK:?}") };
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait()?;
                break End::Died { at, why: format!("the process ended: {status}") };
            }
        }
    };
    drop(lines);
    let _ = child.wait();
    let _ = reader.join();
    Ok(end)
}

/// The process itself, with the arguments that [`supervise`] gives it.
///
/// # Errors
/// When the arguments are wrong, or a file cannot be written.
pub fn process(args: &[String]) -> Result<()> {
    let [name, out, cases, seed, failures, smaller, trace @ ..] = args else {
        bail!("arguments are missing")
    };
    let Some(target) = target(name) else { bail!("there is no target {name}") };
    let smaller = Duration::from_secs(smaller.parse()?);
    let plan = Plan {
        cases: cases.parse()?,
        seed: seed.parse()?,
        failures: failures.parse()?,
        smaller,
        time: Duration::MAX,
    };
    let trace = match trace {
        [from, file] => Some((from.parse::<u64>()?, file)),
        _ => None,
    };
    let mut say = std::io::stdout();
    let mut last = Instant::now();
    let done: Done = drive(target, kept::begin(target)?, plan, |n, input| {
        if last.elapsed() > REPORT {
            last = Instant::now();
            let _ = writeln!(say, "at {n}");
        }
        if let Some((from, file)) = trace
            && n >= from
        {
            let _ = std::fs::write(file, input);
        }
    });
    if trace.is_none() {
        for (input, failure) in &done.failures {
            let path = kept::write(target, input, true)?;
            writeln!(say, "fail {}: {}", path.display(), failure.to_string().replace('\n', " "))?;
        }
        std::fs::create_dir_all(out)?;
        for (outline, input) in &done.new {
            std::fs::write(Path::new(out).join(format!("{outline:016x}")), input)?;
        }
    }
    writeln!(say, "done {}", done.cases)?;
    Ok(())
}
