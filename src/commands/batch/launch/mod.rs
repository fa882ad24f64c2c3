//! Where the cases of a batch run: one file for each kind of place.
//!
//! The folder of a case tells a later run of the batch how the case stands, after a kill at any moment:
//!
//! | file | holds |
//! | --- | --- |
//! | `prompt` | the prompt, standard input of the case; locked while a process of the case lives |
//! | `events` | its standard output: the events of `tiller exec --json` |
//! | `events.1`, ... | the same of attempts that were interrupted |
//! | `errors` | its standard error |
//! | `pid`, `job` | the process, or the name of the job at the cluster |
//! | `poor` | a byte for each attempt whose share of the money did not suffice |

mod kubernetes;
mod process;
mod slurm;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_protocol::{Cost, Notice, NoticeKind};
use tokio_util::sync::CancellationToken;

use super::results::CaseResult;
use crate::commands::args::{Batch, BatchLauncher};

pub(super) use kubernetes::Kubernetes;
pub(super) use process::Processes;
pub(super) use slurm::Slurm;

/// Pause between two questions about a case that runs elsewhere.
const LOOK: Duration = Duration::from_millis(500);
/// Files in the folder of a case.
const PROMPT: &str = "prompt";
const EVENTS: &str = "events";
const ERRORS: &str = "errors";

/// One case, ready to run.
#[derive(Clone, Debug)]
pub(super) struct CaseRun {
    /// Its place among all cases, from 0.
    pub(super) number: usize,
    /// For what this case leaves. Exists.
    pub(super) folder: PathBuf,
    /// Where it works.
    pub(super) work: PathBuf,
    /// Of Tiller.
    pub(super) args: Vec<String>,
    /// A name that no other case of any batch has: small letters, digits and hyphens, at most 40.
    pub(super) name: String,
    pub(super) prompt: String,
}

/// How a case came to its end.
#[derive(Debug)]
pub(super) enum CaseEnd {
    /// It has a result.
    Result(Box<CaseResult>),
    /// It was stopped, or goes on elsewhere: the next run of the batch continues it.
    Open,
}

/// A kind of place.
pub(super) enum Launcher {
    Processes(Processes),
    Slurm(Slurm),
    Kubernetes(Kubernetes),
}

impl Launcher {
    /// # Errors
    /// When something that the launcher needs was not given.
    pub(super) fn of(batch: &Batch) -> Result<Self, Notice> {
        let missing = |what: &str| {
            Err(Notice::new(
                NoticeKind::Config,
                format!("--launcher {} needs {what}.", batch.launcher.word()),
            ))
        };
        Ok(match batch.launcher {
            BatchLauncher::Local => Self::Processes(Processes::local(own_program(batch)?)),
            BatchLauncher::Ssh if batch.host.is_empty() => return missing("--host HOST"),
            BatchLauncher::Ssh => Self::Processes(Processes::ssh(batch)),
            BatchLauncher::Slurm => {
                Self::Slurm(Slurm { program: own_program(batch)?, options: batch.option.clone() })
            }
            BatchLauncher::Kubernetes => match &batch.image {
                Some(image) => Self::Kubernetes(Kubernetes::new(batch, image)),
                None => return missing("--image IMAGE"),
            },
        })
    }

    /// Whether the folder of a case is one of this machine.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Self::Slurm(_)) || matches!(self, Self::Processes(p) if p.is_local())
    }

    /// Runs the case to its end, or finds it again where an earlier run of the batch has started it.
    ///
    /// # Errors
    /// A sentence: it could not be started at all.
    pub(super) async fn run(&self, case: &CaseRun, stop: &CancellationToken) -> Result<CaseEnd, String> {
        match self {
            Self::Processes(processes) => processes.run(case, stop).await,
            Self::Slurm(slurm) => slurm.run(case, stop).await,
            Self::Kubernetes(kubernetes) => kubernetes.run(case, stop).await,
        }
    }

    /// Clears away what the case has elsewhere, once its result is stored.
    pub(super) async fn settle(&self, case: &CaseRun) {
        if let Self::Kubernetes(kubernetes) = self {
            kubernetes.settle(case).await;
        }
    }
}

/// Tiller on this machine.
fn own_program(batch: &Batch) -> Result<String, Notice> {
    if let Some(program) = &batch.program {
        return Ok(program.clone());
    }
    let own = std::env::current_exe().map_err(|e| {
        Notice::new(NoticeKind::Internal, format!("The path of this program is unknown: {e}."))
            .hint("Name it with --program.")
    })?;
    Ok(own.display().to_string())
}

/// The name of the events of an attempt that was interrupted, from 1.
fn earlier(number: u32) -> String {
    format!("{EVENTS}.{number}")
}

/// Keeps the events of an attempt that was interrupted beside those of the next one, since its cost counts.
fn set_aside(folder: &Path) -> std::io::Result<()> {
    let events = folder.join(EVENTS);
    if events.metadata().is_ok_and(|meta| meta.len() > 0) {
        let free = (1..).find(|number| !folder.join(earlier(*number)).exists());
        std::fs::rename(&events, folder.join(earlier(free.unwrap_or(1))))?;
    }
    Ok(())
}

/// The attempts that had too little money, in a file of as many bytes.
const POOR: &str = "poor";

/// Sets an attempt aside whose share of the money did not suffice: the case counts as not run. After a kill in the middle, its
/// events still tell how it ended until nothing else does, so that this is done again.
pub(super) fn not_run(folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join(POOR), " ".repeat(poor_attempts(folder) + 1))?;
    let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    // Without its exit code, a job counts as lost, and its events are read.
    entries.sort_by_key(|entry| entry.file_name() != slurm::EXIT);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == POOR || name == EVENTS || name.starts_with(&format!("{EVENTS}.")) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    set_aside(folder)
}

/// How often a share of the money did not suffice for the case.
pub(super) fn poor_attempts(folder: &Path) -> usize {
    folder.join(POOR).metadata().map_or(0, |meta| usize::try_from(meta.len()).unwrap_or(usize::MAX))
}

/// The cost of the interrupted attempts at the case.
pub(super) fn cost_before(folder: &Path) -> Cost {
    let costs = (1..).map_while(|number| cost_in(&folder.join(earlier(number))));
    costs.fold(Cost::default(), Cost::plus)
}

/// The cost of all attempts at the case, as far as their events tell.
pub(super) fn cost_so_far(folder: &Path) -> Cost {
    cost_before(folder).plus(cost_in(&folder.join(EVENTS)).unwrap_or_default())
}

fn cost_in(events: &Path) -> Option<Cost> {
    let events = std::fs::read(events).ok()?;
    Some(CaseResult::cost_so_far(&String::from_utf8_lossy(&events)))
}

/// The result that the events in the folder give; `None`: they have no end.
fn finished(folder: &Path) -> Option<CaseResult> {
    let events = std::fs::read(folder.join(EVENTS)).ok()?;
    CaseResult::read(&String::from_utf8_lossy(&events))
}

/// The result of a case that has ended with this exit code, or of which none is known.
fn ended(folder: &Path, exit: Option<i32>, lost: &str) -> CaseResult {
    if let Some(result) = finished(folder) {
        return result.with_exit(exit);
    }
    let errors = std::fs::read(folder.join(ERRORS)).unwrap_or_default();
    let errors = String::from_utf8_lossy(&errors);
    let why = if errors.trim().is_empty() { lost } else { &errors };
    let result = CaseResult::without_turn(if exit.is_some() { "failed" } else { "lost" }, exit, why);
    // Its agents may have worked before it failed.
    result.after(cost_in(&folder.join(EVENTS)).unwrap_or_default())
}

/// Runs one of the person's programs to its end; its output. `input` goes to its standard input.
async fn output(program: &str, args: &[String], input: &[u8]) -> Result<String, String> {
    use tokio::io::AsyncWriteExt;
    let mut command = tokio::process::Command::new(program);
    command.args(args).process_group(0).kill_on_drop(true).stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{program} could not be started: {e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads nothing closes the pipe.
        let _ = stdin.write_all(input).await;
    }
    let out = child.wait_with_output().await.map_err(|e| format!("{program} failed: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    Err(format!("{program} failed: {}", if why.is_empty() { out.status.to_string() } else { why }))
}

/// Quotes one word for a POSIX shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command line for a POSIX shell.
fn line(program: &str, args: &[String]) -> String {
    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
    words.map(quote).collect::<Vec<_>>().join(" ")
}
