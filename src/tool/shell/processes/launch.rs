//! Starting a process in a session of its own, without a controlling terminal.
//!
//! `setsid` must happen between fork and exec, which the standard library offers only through unsafe code.
//! A process group is not enough: its members could still open `/dev/tty` and read the person's keys. The
//! `setsid` program is not on every system (macOS), and a pseudo-terminal would bring a terminal. So
//! `process-wrap` does it, a small crate that exists for this.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use process_wrap::std::{CommandWrap, ProcessSession};
use tokio::sync::watch;

use crate::shell::confined::held::HeldFile;
use crate::shell::confined::watch::CommandWatch;
use crate::shell::processes::forks::ForkLimit;
use crate::shell::processes::mark;

/// What is to be run, before a [`Sandbox`] has wrapped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    pub folder: PathBuf,
}

/// May change what is run, for instance put a jail before it. The seam for the kernel sandbox.
pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// The launch to use instead.
    fn wrap(&self, launch: Launch) -> Launch;
}

/// Confines a launch that gets a folder for its temporary files.
pub trait Confiner: Send + Sync + std::fmt::Debug {
    /// The launch to use instead. `workspace`: the folder of the agent. `scratch`: the folder for temporary files.
    fn confine(&self, launch: Launch, workspace: &Path, scratch: &Path) -> Launch;

    /// The same, for one start that follows at once. `watch` gets what the command is refused, where that is known.
    fn confine_watched(
        &self,
        launch: Launch,
        workspace: &Path,
        scratch: &Path,
        watch: &CommandWatch,
    ) -> Launch {
        let _ = watch;
        self.confine(launch, workspace, scratch)
    }

    /// The same, for one start that follows at once. `forks` is asked before it starts a process, where that is possible.
    fn confine_limited(&self, launch: Launch, workspace: &Path, scratch: &Path, forks: &ForkLimit) -> Launch {
        let _ = forks;
        self.confine(launch, workspace, scratch)
    }

    /// The first path of a file hidden from what this confines that stands in the output of a command that failed. The agent
    /// works in `workspace`, the command ran in `folder`.
    fn hidden_in(&self, _output: &str, _workspace: &Path, _folder: &Path) -> Option<String> {
        None
    }

    /// Whether it changes launches on this system. The first call may take some 20 ms.
    fn confines(&self) -> bool {
        true
    }

    /// The same for a program in a terminal of its own, which has to stay its controlling terminal; `None`: this one.
    fn in_terminal(&self) -> Option<Arc<dyn Confiner>> {
        None
    }

    /// The same for another shell or process: protected names that this one writes are judged on their own. `None`: this one.
    fn apart(&self) -> Option<Arc<dyn Confiner>> {
        None
    }

    /// This confiner with these copies in the place of files: pairs of a copy and the path of its file. What is started reads and
    /// runs the copies by these paths. `None`: that is not possible here.
    fn with_copies(&self, _copies: &[(PathBuf, PathBuf)]) -> Option<Arc<dyn Confiner>> {
        None
    }

    /// Records the protected files that the kernel does not keep from being written by what this confines, before a
    /// command starts. `None`: there are none. Reads files.
    ///
    /// # Errors
    /// When they cannot be recorded; the command must not run then.
    fn guard(&self, _workspace: &Path) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        Ok(None)
    }

    /// Connections that were refused since the last call, each in one line: host and reason.
    fn refused(&self) -> Vec<String> {
        Vec::new()
    }

    /// Number of connections to other machines that were made until now.
    fn connections(&self) -> u64 {
        0
    }

    /// The hosts of those after the first `since`, each once; the oldest may be forgotten.
    fn reached(&self, _since: u64) -> Vec<String> {
        Vec::new()
    }
}

/// Protected files as they were before a command.
pub trait FileGuard: Send + Sync + std::fmt::Debug {
    /// Puts back what differs, and says so. Reads and writes files.
    fn restore(&self) -> Compared;

    /// The command goes on while the person works: what no supervisor sees is not taken for the command's.
    fn stays(&self) {}

    /// Returns true if something may differ since the last call, as far as it is known while the command runs.
    fn has_news(&self) -> bool {
        false
    }
}

/// The result of a comparison of protected files, in sentences without a full stop.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// One for each path that was put back.
    pub restored: Vec<String>,
    /// Files that were put back too, and that the person can keep.
    pub held: Vec<HeldFile>,
    /// Further lines: changes that stay, and gaps of the comparison.
    pub told: Vec<String>,
    /// Files that stay as the command left them, and were made anew so that no process has them open.
    pub remade: Vec<PathBuf>,
}

impl Compared {
    /// Adds those of a later comparison. Of a path that is held in both, the later state counts.
    pub(crate) fn extend(&mut self, more: Self) {
        let mut restored = more.restored;
        for file in more.held {
            let room = self.held.len() < MOST;
            match self.held.iter_mut().find(|old| old.path == file.path) {
                // What was there at first: where the two differ, it was changed meanwhile, and nothing is released.
                Some(old) => *old = HeldFile { was: old.was.clone(), ..file },
                None if room => self.held.push(file),
                None => restored.push(file.words),
            }
        }
        add(&mut self.restored, restored);
        add(&mut self.told, more.told);
        self.remade.extend(more.remade);
    }

    /// Returns the same without the files themselves: they stay out, and no one is asked.
    pub(crate) fn told_only(mut self) -> Self {
        let words: Vec<String> = std::mem::take(&mut self.held).into_iter().map(|file| file.words).collect();
        add(&mut self.restored, words);
        self
    }

    /// Returns true if something was put back.
    pub(crate) fn has_restored(&self) -> bool {
        !(self.restored.is_empty() && self.held.is_empty())
    }

    /// Returns all of them.
    pub fn lines(self) -> impl Iterator<Item = String> {
        let mut restored = self.restored;
        restored.extend(self.held.into_iter().map(|file| file.words));
        if let Some(more) = restored.len().checked_sub(LINES).filter(|more| *more > 0) {
            restored.truncate(LINES);
            restored.push(format!("{more} more protected paths were put back"));
        }
        restored.into_iter().chain(self.told)
    }
}

/// Adds lines that are not there yet, as far as they are not too many.
fn add(lines: &mut Vec<String>, more: Vec<String>) {
    for line in more {
        if lines.len() < MOST && !lines.contains(&line) {
            lines.push(line);
        }
    }
}

/// Files that are held, and lines that are kept, of one process.
const MOST: usize = 200;
/// Lines about what was put back after one command.
const LINES: usize = 25;

/// What confines the commands of a workspace; `None`: they run as they are.
#[derive(Clone, Debug, Default)]
pub struct Confiners {
    /// Commands that run without a question because they only read.
    pub read: Option<Arc<dyn Confiner>>,
    /// All other commands.
    pub workspace: Option<Arc<dyn Confiner>>,
    /// Commands that run outside the sandbox by the user's word: what keeps protected names from being written.
    pub outside: Option<Arc<dyn Confiner>>,
}

impl Confiners {
    /// The same for another agent: protected names that its commands write are judged on their own.
    #[must_use]
    pub fn apart(&self) -> Self {
        let apart = |own: &Option<Arc<dyn Confiner>>| own.as_ref().map(apart);
        Self { read: apart(&self.read), workspace: apart(&self.workspace), outside: apart(&self.outside) }
    }
}

/// As [`Confiner::apart`].
pub(crate) fn apart(confiner: &Arc<dyn Confiner>) -> Arc<dyn Confiner> {
    confiner.apart().unwrap_or_else(|| Arc::clone(confiner))
}

/// Runs things as they are.
#[derive(Debug)]
pub struct NoSandbox;

impl Sandbox for NoSandbox {
    fn wrap(&self, launch: Launch) -> Launch {
        launch
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code, or 128 + signal.
    pub code: i32,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self { code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) }
    }
}

/// A running process that leads its own session.
#[derive(Debug)]
pub(crate) struct Leader {
    pub pid: i32,
    pub start: u64,
    /// Set once, when it ended. The sender is held by the thread that waits for it.
    pub exit: watch::Receiver<Option<Exit>>,
}

/// Pauses between the attempts to start a program whose file is open for writing.
const BUSY_PAUSES: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Calls `start` again while the file of the program is open for writing (ETXTBSY), for 255 ms at most. A file that
/// was written a moment ago is still open in a process that another thread has forked and that has not called `exec`
/// yet: the descriptor is closed on `exec`, not before. Blocks.
///
/// # Errors
/// Those of `start`.
pub fn retry_while_busy<T>(mut start: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    let mut pauses = BUSY_PAUSES.into_iter();
    loop {
        match start() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                let Some(pause) = pauses.next() else { return Err(e) };
                std::thread::park_timeout(std::time::Duration::from_millis(pause));
            }
            other => return other,
        }
    }
}

/// Starts `launch`. Blocks for about a millisecond.
pub(crate) fn start(launch: &Launch, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> std::io::Result<Leader> {
    let mut command = CommandWrap::with_new(&launch.program, |c| {
        c.args(&launch.args)
            .env_clear()
            .envs(launch.env.iter().map(|(k, v)| (k, v)))
            .current_dir(&launch.folder)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
    });
    command.wrap(ProcessSession);
    let spawn = || {
        let child = command.spawn_with(|command| retry_while_busy(|| command.spawn()))?;
        // The inner child: the wrapper would wait for the whole group.
        let child = child.into_inner();
        let pid = child.id().cast_signed();
        std::io::Result::Ok((child, pid))
    };
    let (mut child, (pid, start)) = mark::starting(spawn)?;
    let (tx, exit) = watch::channel(None);
    // A thread for each process instead of the runtime's child handling: it works without a runtime (at the
    // end of the program), and costs nothing while it waits. It ends when the process does.
    std::thread::Builder::new().name("tiller-wait".into()).stack_size(128 << 10).spawn(move || {
        let exit = child.wait().map_or(Exit { code: -1 }, Exit::from);
        let _ = tx.send(Some(exit));
    })?;
    Ok(Leader { pid, start, exit })
}

impl Leader {
    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit { code: -1 }),
            Err(_) => Exit { code: -1 },
        }
    }

    pub(crate) fn exited(&self) -> Option<Exit> {
        *self.exit.borrow()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn launch(program: PathBuf) -> Launch {
        Launch { program, args: Vec::new(), env: Vec::new(), folder: "/".into() }
    }

    /// Another thread forks all the time: some of its children hold the script open for writing until they call `exec`.
    #[test]
    fn a_program_that_was_just_written_starts_though_another_thread_forks() {
        let over = AtomicBool::new(false);
        let tmp = tempfile::tempdir().unwrap();
        let failed = std::thread::scope(|scope| {
            let forks = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    start(&launch("/bin/true".into()), Stdio::null(), Stdio::null(), Stdio::null()).unwrap();
                }
            });
            let failed: Vec<String> = (0..200)
                .filter_map(|n| {
                    use std::os::unix::fs::PermissionsExt;
                    let path = tmp.path().join(format!("script{n}"));
                    std::fs::write(&path, "#!/bin/sh\n").unwrap();
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
                    let started = start(&launch(path), Stdio::null(), Stdio::null(), Stdio::null());
                    started.err().map(|e| e.to_string())
                })
                .collect();
            over.store(true, Ordering::Relaxed);
            forks.join().unwrap();
            failed
        });
        assert!(failed.is_empty(), "{} of 200: {failed:?}", failed.len());
    }

    #[test]
    fn a_program_that_stays_open_for_writing_is_reported() {
        use std::os::unix::fs::OpenOptionsExt;
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("script");
        let open = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o755)
            .open(&path)
            .unwrap();
        let error = start(&launch(path), Stdio::null(), Stdio::null(), Stdio::null()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ExecutableFileBusy);
        drop(open);
    }
}
