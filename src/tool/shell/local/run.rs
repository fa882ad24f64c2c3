//! One command in the shell: its output, its end, and what ends it before that.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep_until;

use super::LocalShell;
use crate::ToolCx;
use crate::shell::backend::{CommandEnd, CommandResult, Line, ShellError, Sink};
use crate::shell::confined::blocked::Refusals;
use crate::shell::confined::deletion;
use crate::shell::hints;
use crate::shell::output::leftover::{CHUNK, LINGER, Leftover, PipeRead, read_now, read_ready};
use crate::shell::processes::bounds::{self, Guard};
use crate::shell::processes::end;
use crate::shell::processes::launch::{Exit, Leader};
use crate::shell::processes::proc_fs;

/// After KILL, until we give up on what is left (a process in an uninterruptible wait).
const GIVE_UP: Duration = Duration::from_secs(1);
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
    /// KILL was sent; at this time we give up.
    Killed(Instant),
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
        let guard = Guard::start(self.family(since, &before), cx.limits.bounds, None);
        bounds::apply(self.shell.0, cx.limits.bounds);
        self.watch.begin(deletion::guard(cx));
        let mut running = RunningCommand(Some(self.family(since, &before)));
        let broken = self.send(kind, &text).is_err();
        loop {
            if broken {
                break;
            }
            let timer = match phase {
                RunPhase::Running => line.until + self.watch.paused(),
                RunPhase::Asked(at) | RunPhase::Killed(at) => at.min(Instant::now() + LOOK),
            };
            let timer = sink.progress.due().map_or(timer, |due| due.min(timer));
            tokio::select! {
                biased;
                () = line.hard.cancelled(), if !matches!(phase, RunPhase::Killed(_)) => {
                    how = if how == CommandEnd::Done { CommandEnd::Stopped } else { how };
                    signal_all(&self.family(since, &before), Signal::KILL);
                    phase = RunPhase::Killed(Instant::now() + GIVE_UP);
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
                        RunPhase::Asked(at) | RunPhase::Killed(at) => {
                            let left = self.family(since, &before).living();
                            if left.is_empty() && self.leader.exited().is_some() {
                                break;
                            }
                            if now < at && matches!(phase, RunPhase::Asked(_)) {
                                end::signal_in_order(left.clone(), Signal::TERM, &mut signalled);
                            }
                            if now >= at && matches!(phase, RunPhase::Killed(_)) {
                                stuck = left.len();
                                break;
                            }
                            if now >= at || matches!(phase, RunPhase::Killed(_)) {
                                // Again and again: what is killed may have had time to fork.
                                let until = if let RunPhase::Killed(at) = phase { at } else { now + GIVE_UP };
                                left.iter().for_each(|s| _ = proc_fs::signal(s, Signal::KILL));
                                kill_group(&self.leader, Signal::KILL);
                                phase = RunPhase::Killed(until);
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
        let lives_on = line.compared && self.lives_on(since, &before);
        self.watch.end();
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
            excess: guard.said(),
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

fn signal_all(family: &proc_fs::Family, signal: Signal) {
    end::signal_in_order(family.living(), signal, &mut end::SignalledProcesses::new());
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
