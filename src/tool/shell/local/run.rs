//! One command in the shell: its output, its end, and what ends it before that.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep_until;
use tokio_util::task::AbortOnDropHandle;

use super::LocalShell;
use crate::ToolCx;
use crate::shell::backend::{CommandEnd, CommandResult, Line, ShellError, Sink};
use crate::shell::confined::blocked::Refusals;
use crate::shell::confined::deletion;
use crate::shell::hints;
use crate::shell::output::leftover::{CHUNK, LINGER, Leftover, PipeRead, read_now, read_ready};
use crate::shell::processes::bounds::{self, Bounds, Guard};
use crate::shell::processes::end;
use crate::shell::processes::launch::{Exit, Leader};
use crate::shell::processes::proc_fs;

/// After all is killed, until the leader reports its end.
const TOLD: Duration = Duration::from_secs(1);
/// Time between two checks of the processes that are still alive.
const LOOK: Duration = Duration::from_millis(20);
/// A pipe of this size for commands that write a lot.
const WIDE: usize = 1 << 20;

/// What the watch over a running command is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RunPhase {
    Running,
    /// TERM was sent; KILL follows at this time.
    Asked(Instant),
    /// It is being killed.
    Killed,
}

/// The processes of a command that runs. When the command is dropped before its end, they are ended with their shell: nothing
/// else would stop them.
struct RunningCommand(Option<proc_fs::Family>);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(family) = self.0.take() {
            // Without a thread at least what runs now is ended.
            end::kill_now(&family);
            let _ = std::thread::Builder::new().spawn(move || end::finish_off(&family));
        }
    }
}

impl LocalShell {
    /// From here on the shell and all that it starts may take no more than this.
    fn bound(&mut self, bounds: Bounds) {
        let family = self.family(0, &[]);
        if !self.guard.as_ref().is_some_and(|guard| guard.work(bounds, &self.watch.forks, &family)) {
            self.guard = Some(Guard::of_shell(family, bounds, &self.watch.forks));
        }
        bounds::apply(self.shell.0, bounds);
    }

    /// Returns what was done because the command, or what an earlier one left, took too much. Waits until that is over.
    async fn excess(&self, how: CommandEnd) -> Option<String> {
        let guard = self.guard.as_ref()?;
        guard.rest();
        let excess = guard.take_said()?;
        if how == CommandEnd::ShellEnded {
            let family = self.family(0, &[]);
            let _ = tokio::task::spawn_blocking(move || end::finish_off(&family)).await;
        }
        Some(excess)
    }

    pub(crate) async fn run_line(
        &mut self,
        line: Line<'_>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<CommandResult, ShellError> {
        let since = proc_fs::ticks().saturating_sub(1).max(1);
        let before = proc_fs::children(self.shell.0);
        let pipe = self.output().await?;
        let (kind, text) = self.prepare(line.command)?;
        let kind = if line.variables.is_empty() { kind } else { self.with(line.variables, kind).await? };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(CHUNK, 0);
        let mut open = true;
        let mut telling = true;
        let mut wide = false;
        let mut phase = RunPhase::Running;
        let mut how = CommandEnd::Done;
        let mut report = None;
        let mut waited = false;
        let mut stuck = 0;
        // Processes that were sent TERM; what a shell with a trap of its own starts next gets one too.
        let mut signalled = end::SignalledProcesses::new();
        self.bound(cx.limits.bounds);
        // What ends all processes of the command, once that has begun.
        let mut killing: Option<AbortOnDropHandle<usize>> = None;
        self.watch.begin(deletion::guard(cx), &cx.witness);
        let mut running = RunningCommand(Some(self.family(since, &before)));
        let broken = self.send(kind, &text).is_err();
        loop {
            if broken {
                break;
            }
            let timer = match phase {
                RunPhase::Running => line.until + self.watch.paused(),
                RunPhase::Asked(at) => at.min(Instant::now() + LOOK),
                RunPhase::Killed => Instant::now() + LOOK,
            };
            let timer = sink.progress.due().map_or(timer, |due| due.min(timer));
            tokio::select! {
                biased;
                () = line.hard.cancelled(), if phase != RunPhase::Killed => {
                    how = if how == CommandEnd::Done { CommandEnd::Stopped } else { how };
                    killing = Some(kill(self.family(since, &before), &self.leader));
                    phase = RunPhase::Killed;
                }
                left = ended(&mut killing), if killing.is_some() => {
                    stuck = left;
                    break;
                }
                () = line.cancel.cancelled(), if phase == RunPhase::Running => {
                    how = CommandEnd::Stopped;
                    end::signal_in_order(self.family(since, &before).living(), Signal::TERM, &mut signalled);
                    phase = RunPhase::Asked(Instant::now() + line.grace);
                }
                ready = self.reports.readable(), if telling => {
                    telling = ready.is_ok() && self.read_reports(true);
                    if !telling && phase == RunPhase::Running {
                        self.leader.ended().await;
                    }
                    report = self.take_report().or(report);
                    if phase == RunPhase::Running && report.is_some() {
                        break;
                    }
                }
                ready = pipe.readable(), if open => {
                    let _ = ready;
                    match read_ready(&pipe, &mut buffer) {
                        PipeRead::Bytes(n) => sink.push(&buffer[..n], cx),
                        PipeRead::Nothing => {}
                        PipeRead::End => open = false,
                    }
                    if !wide && sink.capture.total > 128 << 10 {
                        wide = true;
                        widen(&pipe);
                    }
                }
                _ = self.leader.ended(), if phase == RunPhase::Running => {
                    self.read_reports(false);
                    report = self.take_report();
                    how = CommandEnd::ShellEnded;
                    break;
                }
                () = sleep_until(timer.into()) => {
                    sink.progress.send();
                    let now = Instant::now();
                    match phase {
                        RunPhase::Running if now >= line.until + self.watch.paused() => {
                            let family = self.family(since, &before);
                            waited = hints::someone_waits(&family.living());
                            how = CommandEnd::TimedOut;
                            end::signal_in_order(family.living(), Signal::TERM, &mut signalled);
                            phase = RunPhase::Asked(now + line.grace);
                        }
                        RunPhase::Running => {}
                        RunPhase::Killed => {}
                        RunPhase::Asked(at) => {
                            let family = self.family(since, &before);
                            let left = family.living();
                            // One look can lack a process that is being started, so the end is made certain.
                            let gone = left.is_empty() && self.leader.exited().is_some();
                            if now < at && !gone {
                                end::signal_in_order(left, Signal::TERM, &mut signalled);
                            } else {
                                killing = Some(kill(family, &self.leader));
                                phase = RunPhase::Killed;
                            }
                        }
                    }
                }
            }
        }
        if broken {
            self.leader.ended().await;
            how = CommandEnd::ShellEnded;
        }
        if phase == RunPhase::Killed {
            let _ = tokio::time::timeout(TOLD, self.leader.ended()).await;
        }
        if matches!(&report, Some(r) if r.last) && how == CommandEnd::Done {
            self.leader.ended().await;
            how = CommandEnd::ShellEnded;
        }
        if how != CommandEnd::Done && report.is_none() {
            self.read_reports(false);
            report = self.take_report();
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
            (_, Some(exit)) if how != CommandEnd::Done => Some(exit),
            (Some(r), _) => Some(Exit { code: r.status }),
            (None, exit) => exit,
        };
        let state = report.as_ref().map(|r| r.state(&self.base));
        let (folder, exports) = report.map_or((None, None), |r| (Some(r.folder), Some(r.exports)));
        let lives_on = if line.compared { self.rest(since, &before) } else { None };
        self.watch.end();
        let excess = self.excess(how).await;
        running.0 = None;
        let refusals = Refusals { known: self.watch.is_supervised(), blocked: self.watch.blocked.take() };
        Ok(CommandResult {
            how,
            exit,
            folder,
            exports,
            state,
            leftover,
            waited,
            stuck,
            excess,
            note: None,
            lives_on,
            refusals,
        })
    }
}

/// Reads what the command wrote before its end. Gives the pipe back when a process still holds it.
async fn rest(
    pipe: Receiver,
    open: bool,
    buffer: &mut [u8],
    sink: &mut Sink,
    cx: &ToolCx,
    how: CommandEnd,
) -> Option<Leftover> {
    if !open {
        return None;
    }
    let until = Instant::now() + LINGER;
    loop {
        match read_now(&pipe, buffer) {
            PipeRead::Bytes(n) => {
                sink.push(&buffer[..n], cx);
                if Instant::now() >= until {
                    break;
                }
            }
            PipeRead::End => return None,
            PipeRead::Nothing => {
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
                            PipeRead::Bytes(n) => sink.push(&buffer[..n], cx),
                            PipeRead::Nothing => {}
                            PipeRead::End => return None,
                        }
                    }
                    () = sleep_until(until.into()) => {}
                }
            }
        }
    }
    // After a kill no process of the family is left; other holders of a pipe have an older one.
    matches!(how, CommandEnd::Done | CommandEnd::ShellEnded).then_some(Leftover { pipe, name: None })
}

/// Ends the processes of a command for good, beside the reading of their output.
fn kill(family: proc_fs::Family, leader: &Leader) -> AbortOnDropHandle<usize> {
    kill_group(leader, Signal::KILL);
    AbortOnDropHandle::new(tokio::task::spawn_blocking(move || end::finish_off(&family)))
}

/// How many are left of what is being killed.
async fn ended(killing: &mut Option<AbortOnDropHandle<usize>>) -> usize {
    match killing {
        Some(task) => task.await.unwrap_or(0),
        None => 0,
    }
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
