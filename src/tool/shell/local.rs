//! Shells on this machine: one long-lived `bash` (or `sh`) that leads its own session, fed through a
//! control pipe. See `boot.sh` for the other end.
//!
//! Per command no process is started but what the command itself needs: one write, and one named pipe
//! that the shell opens as the command's output. The end is told on a third pipe together with status,
//! folder and exports, so output cannot fake it, and everything written before it can be read without
//! waiting: who still holds the output pipe afterwards is in the background and never blocks a turn.

use std::collections::HashSet;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::time::sleep_until;

use super::backend::{Backend, Ended, How, Line, Shell, ShellError, Sink, Start};
use super::bounds::{self, Guard};
use super::launch::{self, Exit, Launch, Leader, Sandbox};
use super::leftover::{CHUNK, Got, LINGER, Leftover, read_now, read_ready};
use super::{end, hints, procs, quiet, report::Report};
use crate::ToolCx;

/// Until the first prompt.
const START: Duration = Duration::from_secs(20);
/// Single lines up to here go through the control pipe (which the shell reads byte by byte), longer ones
/// through a file.
const INLINE: usize = 1024;
/// After KILL, until we give up on what is left (a process in an uninterruptible wait).
const GIVE_UP: Duration = Duration::from_secs(1);
/// Between two looks at what is still alive.
const LOOK: Duration = Duration::from_millis(20);
/// A pipe of this size for commands that write a lot.
const WIDE: usize = 1 << 20;

/// Shells of this machine.
#[derive(Debug)]
pub struct Local {
    pub sandbox: Arc<dyn Sandbox>,
}

#[async_trait]
impl Backend for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn open(&self, start: Start) -> Result<Box<dyn Shell>, ShellError> {
        Ok(Box::new(LocalShell::open(&*self.sandbox, start).await?))
    }
}

struct LocalShell {
    leader: Leader,
    /// The shell reads its commands here; closing it ends the shell.
    control: std::io::PipeWriter,
    /// Reports. The shell holds the other end; subshells in the background may too.
    reports: Receiver,
    pending: Vec<u8>,
    /// 0700; holds the named pipes and long commands.
    dir: TempDir,
    marker: String,
    /// Number of the current named pipe, and whether it is there.
    fifo: (u32, bool),
    buffer: Vec<u8>,
}

impl LocalShell {
    async fn open(sandbox: &dyn Sandbox, start: Start) -> Result<Self, ShellError> {
        let system = ShellError::system;
        let program = quiet::find("bash", &start.env)
            .or_else(|| quiet::find("sh", &start.env))
            .ok_or(ShellError::Missing)?;
        let dir = tempfile::Builder::new()
            .prefix("tiller-sh-")
            .tempdir()
            .map_err(system("a folder for the shell's pipes"))?;
        let exports = if start.exports.is_empty() {
            String::new()
        } else {
            let path = dir.path().join("exports");
            write_private(&path, &start.exports).map_err(system("the shell's environment"))?;
            path.display().to_string()
        };
        let mut args: Vec<String> = Vec::new();
        if program.ends_with("bash") {
            args.extend(["--noprofile".into(), "--norc".into()]);
        }
        args.extend(["-c".into(), include_str!("boot.sh").into(), "sh".into()]);
        args.extend([exports, start.marker.clone()]);
        let mut env = start.env;
        // From the first moment: a forked subshell shows the environment that its shell began with.
        env.push(("TILLER_CHILD".into(), start.marker.clone()));
        let launch = sandbox.wrap(Launch { program, args, env, folder: start.folder });
        let (control_read, control) = std::io::pipe().map_err(system("a pipe for the shell"))?;
        let (reports, report_write) = std::io::pipe().map_err(system("a pipe for the shell"))?;
        let leader =
            launch::start(&launch, control_read.into(), std::process::Stdio::null(), report_write.into())
                .map_err(system("the shell could not be started"))?;
        let reports = Receiver::from_owned_fd(OwnedFd::from(reports)).map_err(system("the shell's pipe"))?;
        let mut shell = Self {
            leader,
            control,
            reports,
            pending: Vec::new(),
            dir,
            marker: start.marker,
            fifo: (0, false),
            buffer: Vec::new(),
        };
        match tokio::time::timeout(START, shell.report()).await {
            Ok(Some(_)) => {}
            _ => return Err(ShellError::Silent(START.as_secs())),
        }
        let _ = std::fs::remove_file(shell.dir.path().join("exports"));
        Ok(shell)
    }

    /// The next report; `None` when the shell is gone without one.
    async fn report(&mut self) -> Option<Report> {
        loop {
            if let Some(report) = Report::take(&mut self.pending) {
                return Some(report);
            }
            tokio::select! {
                biased;
                ready = self.reports.readable() => {
                    ready.ok()?;
                    if !self.read_reports(true) {
                        return Report::take(&mut self.pending);
                    }
                }
                _ = self.leader.ended() => {
                    self.read_reports(false);
                    return Report::take(&mut self.pending);
                }
            }
        }
    }

    /// Reads what there is of reports. False at the end of the pipe.
    fn read_reports(&mut self, ready: bool) -> bool {
        let mut buffer = [0; 8192];
        loop {
            let got = if ready {
                read_ready(&self.reports, &mut buffer)
            } else {
                read_now(&self.reports, &mut buffer)
            };
            match got {
                Got::Bytes(n) => self.pending.extend_from_slice(&buffer[..n]),
                Got::Nothing => return true,
                Got::End => return false,
            }
        }
    }

    fn send(&mut self, kind: u8, line: &str) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 2);
        bytes.push(kind);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        // Short against the pipe's 64 KiB, and the shell has read everything before: this never blocks.
        self.control.write_all(&bytes)
    }

    fn fifo_path(&self) -> PathBuf {
        self.dir.path().join(format!("o{}", self.fifo.0))
    }

    /// Opens the reading end of the output pipe; the pipe of the command before is used again when
    /// nobody holds it any more.
    async fn output(&mut self) -> Result<Receiver, ShellError> {
        let system = ShellError::system;
        if !self.fifo.1 {
            let path = self.fifo_path();
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            make_fifo(&path, mode).map_err(system("a pipe for the output"))?;
            self.fifo.1 = true;
            let quoted = quote(&path.display().to_string());
            if !self.whisper(&format!("__tiller_out={quoted}")).await? {
                return Err(system("the shell did not take its pipe")(std::io::ErrorKind::BrokenPipe.into()));
            }
        }
        OpenOptions::new().open_receiver(self.fifo_path()).map_err(system("the output pipe"))
    }

    /// The command as one line for the control pipe.
    fn prepare(&self, command: &str) -> Result<String, ShellError> {
        if command.len() <= INLINE && !command.contains('\n') {
            return Ok(command.to_owned());
        }
        let path = self.dir.path().join("command");
        write_private(&path, command.as_bytes()).map_err(ShellError::system("a long command"))?;
        Ok(format!(". {}", quote(&path.display().to_string())))
    }

    fn family(&self, since: u64, except: &[i32]) -> procs::Family {
        procs::Family {
            roots: vec![(self.leader.pid, self.leader.start)],
            marker: self.marker.clone(),
            ended: Vec::new(),
            since,
            except: except.to_vec(),
            pipes: vec![self.dir.path().to_owned()],
        }
    }
}

/// What the watch over a running command is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Running,
    /// TERM was sent; KILL follows at this time.
    Asked(Instant),
    /// KILL was sent; at this time we give up.
    Killed(Instant),
}

#[async_trait]
impl Shell for LocalShell {
    async fn run(&mut self, line: Line<'_>, sink: &mut Sink, cx: &ToolCx) -> Result<Ended, ShellError> {
        let since = procs::ticks().saturating_sub(1).max(1);
        let before = procs::children(self.leader.pid);
        let pipe = self.output().await?;
        let text = self.prepare(line.command)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(CHUNK, 0);
        let mut open = true;
        let mut telling = true;
        let mut wide = false;
        let mut phase = Phase::Running;
        let mut how = How::Done;
        let mut report = None;
        let mut waited = false;
        let mut stuck = 0;
        // Who was sent TERM; what a shell with a trap of its own starts next gets one too.
        let mut told = HashSet::new();
        let guard = Guard::start(self.family(since, &before), cx.limits.bounds, None);
        bounds::apply(self.leader.pid, cx.limits.bounds);
        let broken = self.send(b'U', &text).is_err();
        loop {
            if broken {
                break;
            }
            let timer = match phase {
                Phase::Running => line.until,
                Phase::Asked(at) | Phase::Killed(at) => at.min(Instant::now() + LOOK),
            };
            let timer = sink.progress.due().map_or(timer, |due| due.min(timer));
            tokio::select! {
                biased;
                () = line.hard.cancelled(), if !matches!(phase, Phase::Killed(_)) => {
                    how = if how == How::Done { How::Stopped } else { how };
                    signal_all(&self.family(since, &before), Signal::KILL);
                    phase = Phase::Killed(Instant::now() + GIVE_UP);
                }
                () = line.cancel.cancelled(), if phase == Phase::Running => {
                    how = How::Stopped;
                    end::signal_in_order(self.family(since, &before).living(), Signal::TERM, &mut told);
                    phase = Phase::Asked(Instant::now() + line.grace);
                }
                ready = self.reports.readable(), if telling => {
                    telling = ready.is_ok() && self.read_reports(true);
                    if !telling && phase == Phase::Running {
                        self.leader.ended().await;
                    }
                    report = Report::take(&mut self.pending).or(report);
                    if phase == Phase::Running && report.is_some() {
                        break;
                    }
                }
                ready = pipe.readable(), if open => {
                    let _ = ready;
                    match read_ready(&pipe, &mut buffer) {
                        Got::Bytes(n) => sink.push(&buffer[..n], cx),
                        Got::Nothing => {}
                        Got::End => open = false,
                    }
                    if !wide && sink.capture.total > 128 << 10 {
                        wide = true;
                        widen(&pipe);
                    }
                }
                _ = self.leader.ended(), if phase == Phase::Running => {
                    self.read_reports(false);
                    report = Report::take(&mut self.pending);
                    how = How::ShellEnded;
                    break;
                }
                () = sleep_until(timer.into()) => {
                    sink.progress.send();
                    let now = Instant::now();
                    match phase {
                        Phase::Running if now >= line.until => {
                            let family = self.family(since, &before);
                            waited = hints::someone_waits(&family.living());
                            how = How::TimedOut;
                            end::signal_in_order(family.living(), Signal::TERM, &mut told);
                            phase = Phase::Asked(now + line.grace);
                        }
                        Phase::Running => {}
                        Phase::Asked(at) | Phase::Killed(at) => {
                            let left = self.family(since, &before).living();
                            if left.is_empty() && self.leader.exited().is_some() {
                                break;
                            }
                            if now < at && matches!(phase, Phase::Asked(_)) {
                                end::signal_in_order(left.clone(), Signal::TERM, &mut told);
                            }
                            if now >= at && matches!(phase, Phase::Killed(_)) {
                                stuck = left.len();
                                break;
                            }
                            if now >= at || matches!(phase, Phase::Killed(_)) {
                                // Again and again: what is killed may have had time to fork.
                                let until = if let Phase::Killed(at) = phase { at } else { now + GIVE_UP };
                                left.iter().for_each(|s| _ = procs::signal(s, Signal::KILL));
                                kill_group(&self.leader, Signal::KILL);
                                phase = Phase::Killed(until);
                            }
                        }
                    }
                }
            }
        }
        if broken {
            self.leader.ended().await;
            how = How::ShellEnded;
        }
        if matches!(&report, Some(r) if r.last) && how == How::Done {
            self.leader.ended().await;
            how = How::ShellEnded;
        }
        if how != How::Done && report.is_none() {
            self.read_reports(false);
            report = Report::take(&mut self.pending);
        }
        let mut leftover = rest(pipe, open, &mut buffer, sink, cx, how).await;
        self.buffer = buffer;
        if let Some(left) = &mut leftover {
            left.name = Some(self.fifo_path());
            // Its writers keep the old pipe without a name; the next command gets a new one.
            let _ = std::fs::remove_file(self.fifo_path());
            self.fifo = (self.fifo.0 + 1, false);
        }
        sink.progress.send();
        let exit = match (&report, self.leader.exited()) {
            (_, Some(exit)) if how != How::Done => Some(exit),
            (Some(r), _) => Some(Exit { code: r.status }),
            (None, exit) => exit,
        };
        let (folder, exports) = report.map_or((None, None), |r| (Some(r.folder), Some(r.exports)));
        Ok(Ended { how, exit, folder, exports, leftover, waited, stuck, excess: guard.said() })
    }

    async fn whisper(&mut self, line: &str) -> Result<bool, ShellError> {
        self.send(b'I', line).map_err(ShellError::system("the shell does not listen"))?;
        Ok(self.report().await.is_some_and(|r| r.status == 0 && !r.last))
    }

    fn root(&self) -> Option<(i32, u64)> {
        Some((self.leader.pid, self.leader.start))
    }

    fn pipes(&self) -> Option<PathBuf> {
        Some(self.dir.path().to_owned())
    }
}

/// Reads what the command wrote before its end. Gives the pipe back when somebody still holds it.
async fn rest(
    pipe: Receiver,
    open: bool,
    buffer: &mut [u8],
    sink: &mut Sink,
    cx: &ToolCx,
    how: How,
) -> Option<Leftover> {
    if !open {
        return None;
    }
    let until = Instant::now() + LINGER;
    loop {
        match read_now(&pipe, buffer) {
            Got::Bytes(n) => {
                sink.push(&buffer[..n], cx);
                if Instant::now() >= until {
                    break;
                }
            }
            Got::End => return None,
            Got::Nothing => {
                let now = Instant::now();
                if now >= until {
                    break;
                }
                // The runtime may hold on to a readiness that this loop has used up; reading clears it.
                tokio::select! {
                    ready = pipe.readable() => {
                        if ready.is_err() {
                            return None;
                        }
                        match read_ready(&pipe, buffer) {
                            Got::Bytes(n) => sink.push(&buffer[..n], cx),
                            Got::Nothing => {}
                            Got::End => return None,
                        }
                    }
                    () = sleep_until(until.into()) => {}
                }
            }
        }
    }
    // After a kill nobody of the family is left; a holder is from before and has its own pipe.
    matches!(how, How::Done | How::ShellEnded).then_some(Leftover { pipe, name: None })
}

fn signal_all(family: &procs::Family, signal: Signal) {
    end::signal_in_order(family.living(), signal, &mut HashSet::new());
}

/// For systems without `/proc`: the group is all that can be reached.
fn kill_group(leader: &Leader, signal: Signal) {
    if cfg!(not(target_os = "linux"))
        && leader.exited().is_none()
        && let Some(group) = rustix::process::Pid::from_raw(leader.pid)
    {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

fn widen(pipe: &Receiver) {
    // Fewer switches between writer and reader. Refused when the user's pipe budget is used up.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, WIDE);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, WIDE);
}

#[cfg(target_os = "linux")]
fn make_fifo(path: &std::path::Path, mode: rustix::fs::Mode) -> std::io::Result<()> {
    Ok(rustix::fs::mkfifoat(rustix::fs::CWD, path, mode)?)
}

#[cfg(not(target_os = "linux"))]
fn make_fifo(path: &std::path::Path, _mode: rustix::fs::Mode) -> std::io::Result<()> {
    // The system call is not in rustix for macOS; the program is part of POSIX.
    let made = std::process::Command::new("mkfifo").arg("-m").arg("600").arg(path).status()?;
    if made.success() { Ok(()) } else { Err(std::io::ErrorKind::Other.into()) }
}

fn write_private(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// Quotes one word for a POSIX shell.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
