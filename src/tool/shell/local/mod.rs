//! Shells on this machine: one long-lived `bash` (or `sh`) that leads its own session, fed through a
//! control pipe. See `../boot.sh` for the other end.
//!
//! Per command no process is started but what the command itself needs: one write, and one named pipe
//! that the shell opens as the command's output. The end is reported on a third pipe together with status,
//! folder and exports, so output cannot fake it, and everything written before it can be read without
//! waiting: a process that still holds the output pipe afterwards runs in the background and never blocks a turn.

pub(super) mod env_update;
pub mod own_folder;
mod report;
mod run;
mod steering;
mod tmp_folder;

pub(crate) use tmp_folder::SeenTmp;
pub use tmp_folder::{SessionTmp, ShownInTmp, TmpFolder};

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tempfile::TempDir;
use tokio::net::unix::pipe::{OpenOptions, Receiver};

use crate::ToolCx;
use crate::shell::backend::{Backend, CommandResult, Line, Rest, Shell, ShellError, Sink, Start};
use crate::shell::confined::watch::CommandWatch;
use crate::shell::local::report::ShellReport;
use crate::shell::output::leftover::{PipeRead, read_now, read_ready};
use crate::shell::processes::bounds::Guard;
use crate::shell::processes::environment;
use crate::shell::processes::launch::{self, Launch, Leader, Sandbox};
use crate::shell::processes::proc_fs;

/// Until the first prompt.
const START: Duration = Duration::from_secs(20);
/// Single lines up to here go through the control pipe (which the shell reads byte by byte), longer ones
/// through a file.
const INLINE: usize = 1024;
/// The longest command that the shell reads line by line into a variable.
const LOADED: usize = 64 * 1024;

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
    /// Number and start of the shell itself, which is not the leader where a sandbox stands around it.
    shell: (i32, u64),
    /// The shell reads its commands here; closing it ends the shell.
    control: std::io::PipeWriter,
    /// Reports. The shell holds the other end; subshells in the background may too.
    reports: Receiver,
    pending: Vec<u8>,
    /// Number of the last line that it was sent, from 1.
    sent: u64,
    /// 0700; holds the named pipes and long commands.
    dir: TempDir,
    marker: String,
    /// Number of the current named pipe, and whether it is there.
    fifo: (u32, bool),
    /// Assignments that the shell has in `__tiller_with`.
    variables: String,
    /// The environment that it began with.
    base: Vec<(String, String)>,
    buffer: Vec<u8>,
    /// What it is refused.
    watch: CommandWatch,
    /// Limits it and all that it starts, from its first command on.
    guard: Option<Guard>,
}

impl LocalShell {
    async fn open(sandbox: &dyn Sandbox, start: Start) -> Result<Self, ShellError> {
        let system = ShellError::system;
        let own = environment::outside(&start.env, &start.workspace);
        let program = environment::find("bash", &own)
            .or_else(|| environment::find("sh", &own))
            .ok_or(ShellError::Missing)?;
        let dir = own_folder::make("sh").map_err(system("a folder for the shell's pipes"))?;
        let exports = if start.exports.is_empty() {
            String::new()
        } else {
            let path = dir.path().join("exports");
            let mut code = start.exports;
            if start.confiner.is_some() {
                // The exports are those of a shell that may write elsewhere.
                code.extend(
                    format!("\nexport TMPDIR={}\n", quote(&dir.path().display().to_string())).bytes(),
                );
            }
            write_private(&path, &code).map_err(system("the shell's environment"))?;
            path.display().to_string()
        };
        let mut args: Vec<String> = Vec::new();
        if program.ends_with("bash") {
            args.extend(["--noprofile".into(), "--norc".into()]);
        }
        args.extend(["-c".into(), include_str!("loop.sh").into(), "sh".into()]);
        args.extend([exports, start.marker.clone(), include_str!("boot.sh").into()]);
        let base = start.env.clone();
        let mut env = start.env;
        // From the first moment: a forked subshell shows the environment that its shell began with.
        env.push(("TILLER_CHILD".into(), start.marker.clone()));
        let launch = Launch { program, args, env, folder: start.folder };
        let watch = CommandWatch::default();
        let launch = match &start.confiner {
            Some(confiner) => confiner.confine_watched(launch, &start.workspace, dir.path(), &watch),
            None => sandbox.wrap(launch),
        };
        let (control_read, control) = std::io::pipe().map_err(system("a pipe for the shell"))?;
        let (reports, report_write) = std::io::pipe().map_err(system("a pipe for the shell"))?;
        let leader =
            launch::start(&launch, control_read.into(), std::process::Stdio::null(), report_write.into())
                .map_err(system("the shell could not be started"))?;
        let reports = Receiver::from_owned_fd(OwnedFd::from(reports)).map_err(system("the shell's pipe"))?;
        let mut shell = Self {
            shell: (leader.pid, leader.start),
            leader,
            control,
            reports,
            pending: Vec::new(),
            sent: 0,
            dir,
            marker: start.marker,
            fifo: (0, false),
            variables: String::new(),
            base,
            buffer: Vec::new(),
            watch,
            guard: None,
        };
        match tokio::time::timeout(START, shell.report()).await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(ShellError::Ended(shell.complaint())),
            Err(_) => return Err(ShellError::Silent(START.as_secs(), shell.complaint())),
        }
        let _ = std::fs::remove_file(shell.dir.path().join("exports"));
        shell.shell = innermost((shell.leader.pid, shell.leader.start));
        Ok(shell)
    }

    /// The next report; `None` when the shell is gone without one.
    async fn report(&mut self) -> Option<ShellReport> {
        loop {
            if let Some(report) = self.take_report() {
                return Some(report);
            }
            tokio::select! {
                biased;
                ready = self.reports.readable() => {
                    ready.ok()?;
                    if !self.read_reports(true) {
                        return self.take_report();
                    }
                }
                _ = self.leader.ended() => {
                    self.read_reports(false);
                    return self.take_report();
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
                PipeRead::Bytes(n) => self.pending.extend_from_slice(&buffer[..n]),
                PipeRead::Nothing => return true,
                PipeRead::End => return false,
            }
        }
    }

    /// The first line that was printed instead of a report, with a colon before it; empty without one.
    fn complaint(&self) -> String {
        const MOST: usize = 300;
        let text = String::from_utf8_lossy(&self.pending);
        let line = text.lines().find(|line| !line.trim().is_empty());
        line.map_or_else(String::new, |line| format!(": {}", line.chars().take(MOST).collect::<String>()))
    }

    /// The report about the line that was sent last.
    fn take_report(&mut self) -> Option<ShellReport> {
        ShellReport::take(&mut self.pending, &self.marker, self.sent)
    }

    fn send(&mut self, kind: u8, line: &str) -> std::io::Result<()> {
        self.sent += 1;
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

    /// Opens the reading end of the output pipe; the pipe of the previous command is used again when
    /// no process holds it any more.
    async fn output(&mut self) -> Result<Receiver, ShellError> {
        let system = ShellError::system;
        if !self.fifo.1 {
            let path = self.fifo_path();
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            make_fifo(&path, mode).map_err(system("a pipe for the output"))?;
            self.fifo.1 = true;
            let quoted = quote(&path.display().to_string());
            if !self.whisper(&format!("__tiller_out={quoted}")).await? {
                return Err(system("the shell did not accept its pipe")(
                    std::io::ErrorKind::BrokenPipe.into(),
                ));
            }
        }
        OpenOptions::new().open_receiver(self.fifo_path()).map_err(system("the output pipe"))
    }

    /// The command as one line for the control pipe, and the kind of that line.
    fn prepare(&self, command: &str) -> Result<(u8, String), ShellError> {
        if command.len() <= INLINE && !command.contains('\n') {
            return Ok((b'U', command.to_owned()));
        }
        let path = self.dir.path().join("command");
        write_private(&path, command.as_bytes()).map_err(ShellError::system("a long command"))?;
        let path = path.display().to_string();
        // The errors of a file that is sourced begin with our path; a very long one is not put together, though.
        if command.len() <= LOADED { Ok((b'M', path)) } else { Ok((b'U', format!(". {}", quote(&path)))) }
    }

    /// Gives the shell the variables of the next command, unless it has them; gives the kind of its line.
    async fn with(&mut self, variables: &[(String, String)], kind: u8) -> Result<u8, ShellError> {
        let system = ShellError::system;
        let text = assignments(variables);
        if text != self.variables {
            let path = self.dir.path().join("with");
            write_private(&path, text.as_bytes()).map_err(system("the variables of a command"))?;
            let path = quote(&path.display().to_string());
            if !self.whisper(&format!("__tiller_load {path}; __tiller_with=${{__tiller_cmd%?}}")).await? {
                return Err(system("the shell did not accept its variables")(
                    std::io::ErrorKind::BrokenPipe.into(),
                ));
            }
            self.variables = text;
        }
        Ok(if kind == b'M' { b'N' } else { b'V' })
    }

    fn family(&self, since: u64, except: &[i32]) -> proc_fs::Family {
        proc_fs::Family {
            roots: if self.shell.0 == self.leader.pid {
                vec![self.shell]
            } else {
                vec![(self.leader.pid, self.leader.start), self.shell]
            },
            marker: self.marker.clone(),
            ended: Vec::new(),
            since,
            except: except.to_vec(),
            pipes: vec![self.dir.path().to_owned()],
        }
    }

    /// Returns what the command of this time has left running; the shell itself does not count.
    fn rest(&self, since: u64, before: &[i32]) -> Option<Rest> {
        Rest::of(self.family(since, before), [self.leader.pid, self.shell.0])
    }
}

/// A shell that waits for its first command has no children: the last process of the line that begins with the leader.
fn innermost(leader: (i32, u64)) -> (i32, u64) {
    let mut at = leader;
    // A sandbox adds two.
    for _ in 0..4 {
        let [child] = proc_fs::children(at.0)[..] else { break };
        let Some(stat) = proc_fs::stat(child) else { break };
        at = (child, stat.start);
    }
    at
}

#[async_trait]
impl Shell for LocalShell {
    async fn run(
        &mut self,
        line: Line<'_>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<CommandResult, ShellError> {
        self.run_line(line, sink, cx).await
    }

    async fn whisper(&mut self, line: &str) -> Result<bool, ShellError> {
        // The shell would take a second line for another command. A folder may have such a name.
        let sourced = if line.contains('\n') {
            let path = self.dir.path().join("line");
            write_private(&path, line.as_bytes()).map_err(ShellError::system("a line for the shell"))?;
            Some(format!(". {}", quote(&path.display().to_string())))
        } else {
            None
        };
        self.send(b'I', sourced.as_deref().unwrap_or(line))
            .map_err(ShellError::system("the shell does not respond"))?;
        Ok(self.report().await.is_some_and(|r| r.status == 0 && !r.last))
    }

    fn root(&self) -> Option<(i32, u64)> {
        Some((self.leader.pid, self.leader.start))
    }

    fn pipes(&self) -> Option<PathBuf> {
        Some(self.dir.path().to_owned())
    }
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

/// Variables as a shell assigns them before a command.
pub(crate) fn assignments(variables: &[(String, String)]) -> String {
    variables.iter().map(|(name, value)| format!("{name}={}", quote(value))).collect::<Vec<_>>().join(" ")
}

/// Quotes one word for a POSIX shell.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
