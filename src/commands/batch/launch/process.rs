//! Cases as processes of this machine: Tiller itself, or the person's `ssh` that runs it on another machine.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use super::{CaseEnd, CaseRun, ERRORS, EVENTS, LOOK, PROMPT, ended, finished, line, quote, set_aside};
use crate::commands::args::Batch;

/// The number of the process.
const PID: &str = "pid";
/// The status of a turn that was stopped.
const INTERRUPTED: &str = "interrupted";
/// The exit code of `ssh` when the connection failed.
const NO_CONNECTION: i32 = 255;
/// Set for `ssh`: nothing is asked, and no host key is accepted.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "SendEnv=-*",
    "ConnectTimeout=15",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
];

/// Starts the processes.
pub(in crate::commands::batch) struct Processes {
    program: String,
    /// Where `ssh` runs it; empty: here.
    hosts: Vec<String>,
    options: Vec<String>,
}

impl Processes {
    pub(super) fn local(program: String) -> Self {
        Self { program, hosts: Vec::new(), options: Vec::new() }
    }

    pub(super) fn ssh(batch: &Batch) -> Self {
        let program = batch.program.clone().unwrap_or_else(|| "tiller".into());
        Self { program, hosts: batch.host.clone(), options: batch.option.clone() }
    }

    pub(super) fn is_local(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(super) async fn run(&self, case: &CaseRun, stop: &CancellationToken) -> Result<CaseEnd, String> {
        let failed = |what: &str, e: std::io::Error| format!("{}: {what}: {e}", case.folder.display());
        let path = case.folder.join(PROMPT);
        let prompt = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let prompt = prompt.map_err(|e| failed("the prompt cannot be written", e))?;
        // The lock is inherited by the process, so it ends with the last process that has this input.
        while flock(&prompt, FlockOperation::NonBlockingLockExclusive).is_err() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stop.cancelled() => {
                    end(pid_of(&case.folder));
                    return Ok(CaseEnd::Open);
                }
            }
        }
        // What was interrupted begins anew.
        if let Some(result) = finished(&case.folder).filter(|result| result.status != INTERRUPTED) {
            return Ok(CaseEnd::Result(Box::new(result)));
        }
        let prompt = write(prompt, &case.prompt).map_err(|e| failed("the prompt cannot be written", e))?;
        set_aside(&case.folder).map_err(|e| failed("the events of an earlier attempt cannot be kept", e))?;
        let out = File::create(case.folder.join(EVENTS)).map_err(|e| failed("no output", e))?;
        let errors = File::create(case.folder.join(ERRORS)).map_err(|e| failed("no output", e))?;
        let mut command = self.command(case);
        // Ctrl-C is for the batch, which ends its cases in order. They go on when the batch is killed.
        command.process_group(0).kill_on_drop(false);
        command.stdin(Stdio::from(prompt)).stdout(Stdio::from(out)).stderr(Stdio::from(errors));
        // The number of an earlier process may be that of another program by now.
        let _ = std::fs::remove_file(case.folder.join(PID));
        let mut child = command
            .spawn()
            .map_err(|e| format!("{} could not be started: {e}", command.as_std().get_program().display()))?;
        // It holds what was handed over until it is dropped.
        drop(command);
        let pid = child.id();
        if let Some(pid) = pid {
            // Without the number, a later run waits for the process and cannot end it.
            let _ = std::fs::write(case.folder.join(PID), pid.to_string());
        }
        let status = tokio::select! {
            status = child.wait() => status,
            () = stop.cancelled() => {
                end(pid);
                child.wait().await
            }
        };
        let status = status.map_err(|e| failed("the process is lost", e))?;
        let exit = status.code();
        if let Some(result) = finished(&case.folder) {
            let interrupted = result.status == INTERRUPTED && stop.is_cancelled();
            return Ok(match interrupted {
                true => CaseEnd::Open,
                false => CaseEnd::Result(Box::new(result.with_exit(exit))),
            });
        }
        if stop.is_cancelled() {
            return Ok(CaseEnd::Open);
        }
        if !self.is_local() && exit == Some(NO_CONNECTION) {
            return Ok(CaseEnd::Result(Box::new(ended(&case.folder, None, "the connection broke"))));
        }
        Ok(CaseEnd::Result(Box::new(ended(&case.folder, exit, &status.to_string()))))
    }

    fn command(&self, case: &CaseRun) -> tokio::process::Command {
        let host = self.hosts.get(case.number % self.hosts.len().max(1));
        let Some(host) = host else {
            let mut command = tokio::process::Command::new(&self.program);
            command.args(&case.args).current_dir(&case.work);
            return command;
        };
        let mut command = tokio::process::Command::new("ssh");
        for option in OPTIONS.iter().map(|o| (*o).to_owned()).chain(self.options.iter().cloned()) {
            command.args(["-o".to_owned(), option]);
        }
        let folder = case.work.display().to_string();
        // The home folder is only known there.
        let go = match folder.strip_prefix("~/") {
            Some(below) => format!("~/{}", quote(below)),
            None => quote(&folder),
        };
        let run = format!("cd {go} && exec {}", line(&self.program, &case.args));
        command.args(["-T", "--"]).arg(host).arg(format!("exec sh -c {}", quote(&run))).current_dir("/");
        command
    }
}

/// Writes the prompt, to be read from its beginning.
fn write(mut file: File, prompt: &str) -> std::io::Result<File> {
    file.set_len(0)?;
    file.write_all(prompt.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn pid_of(folder: &Path) -> Option<u32> {
    std::fs::read_to_string(folder.join(PID)).ok()?.trim().parse().ok()
}

/// Asks the process to save and end.
fn end(pid: Option<u32>) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    // It may have ended.
    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
}
