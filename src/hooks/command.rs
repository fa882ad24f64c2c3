//! One run of a command, of a hook or of a tool of a plugin: in the sandbox, in a group of its own, with bounded input, output and time. Whatever it
//! starts ends with it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tiller_protocol::lock;
use tiller_tool::shell::{Bounds, Host, Launch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Most bytes of a text in the input of a hook.
pub const HOOK_INPUT: usize = 1 << 20;
/// Most bytes of what a hook prints that are read; the rest is dropped.
pub const HOOK_OUTPUT: usize = 1 << 20;
/// Bytes after which a hook that goes on printing is stopped: until then its exit code can tell what it decided.
const ENDLESS: usize = 64 << 20;
/// Most bytes of its standard error that are kept.
const ERRORS: usize = 16 << 10;
/// Processes that a hook may have at once.
const PROCESSES: u64 = 256;
/// From TERM to KILL for a hook that takes too long.
const GRACE: Duration = Duration::from_millis(500);
/// Time limit for reading what is left in its pipes after all of its processes have ended.
const REST: Duration = Duration::from_secs(5);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// With this exit code, or 128 and the number of the signal.
    Exit(i32),
    TimedOut,
    /// It printed more than [`HOOK_OUTPUT`], and ended with exit code 0 or did not end.
    TooMuch,
    /// It could not be started; the reason.
    NotStarted(String),
    /// What it was asked about was stopped.
    Cancelled,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct CommandRun {
    pub end: CommandEnd,
    pub stdout: Vec<u8>,
    /// Its beginning; not cleaned.
    pub stderr: Vec<u8>,
    pub took: Duration,
}

/// Runs `launch` with `input` on its standard input. `copies`: as [`Host::start_with_copies`] takes them.
pub async fn run(
    host: &Host,
    (launch, copies): (Launch, Vec<(PathBuf, PathBuf)>),
    input: Vec<u8>,
    limit: Duration,
    cancel: &CancellationToken,
) -> CommandRun {
    let began = Instant::now();
    let mut ran = match start(host, launch, copies, input).await {
        Err(e) => CommandRun {
            end: CommandEnd::NotStarted(e.to_string()),
            stdout: Vec::new(),
            stderr: Vec::new(),
            took: Duration::ZERO,
        },
        Ok(started) => started.wait(limit, cancel).await,
    };
    ran.took = began.elapsed();
    ran
}

struct Started {
    hosted: tiller_tool::shell::HostedProgram,
    out: Output,
    errors: Output,
    _input: AbortOnDropHandle<()>,
}

async fn start(
    host: &Host,
    launch: Launch,
    copies: Vec<(PathBuf, PathBuf)>,
    input: Vec<u8>,
) -> std::io::Result<Started> {
    let (stdin, to) = std::io::pipe()?;
    let (from, stdout) = std::io::pipe()?;
    let (errors, stderr) = std::io::pipe()?;
    let host = host.clone();
    // Making a sandbox takes some milliseconds.
    let streams = [Stdio::from(stdin), Stdio::from(stdout), Stdio::from(stderr)];
    let start = move || host.start_with_copies(launch, &copies, streams);
    let mut hosted = tokio::task::spawn_blocking(start).await.map_err(std::io::Error::other)??;
    // The number is no setting.
    hosted.bound(Bounds { processes: PROCESSES, whose: "", ..Bounds::default() });
    let mut to = Sender::from_owned_fd(OwnedFd::from(to))?;
    let input = AbortOnDropHandle::new(tokio::spawn(async move {
        // A hook need not read its input.
        let _ = to.write_all(&input).await;
    }));
    let out = Output::read(Receiver::from_owned_fd(OwnedFd::from(from))?, HOOK_OUTPUT);
    let errors = Output::read(Receiver::from_owned_fd(OwnedFd::from(errors))?, ERRORS);
    Ok(Started { hosted, out, errors, _input: input })
}

impl Started {
    async fn wait(mut self, limit: Duration, cancel: &CancellationToken) -> CommandRun {
        let end = tokio::select! {
            exit = self.hosted.ended() => CommandEnd::Exit(exit.code),
            () = self.out.over.notified() => CommandEnd::TooMuch,
            () = cancel.cancelled() => CommandEnd::Cancelled,
            () = tokio::time::sleep(limit) => CommandEnd::TimedOut,
        };
        let excess = self.hosted.excess();
        let grace = if matches!(end, CommandEnd::Exit(_)) { Duration::ZERO } else { GRACE };
        let left = self.hosted.end(grace, &CancellationToken::new()).await;
        if left > 0 {
            tracing::error!(left, "processes of a hook did not end");
        }
        let (stdout, mut stderr) = tokio::join!(self.out.rest(), self.errors.rest());
        if let Some(excess) = excess {
            // First, since the end of long errors is not shown.
            stderr.splice(..0, format!("{excess}\n").into_bytes());
        }
        let over = stdout.len() > HOOK_OUTPUT;
        let end = if over && end == CommandEnd::Exit(0) { CommandEnd::TooMuch } else { end };
        CommandRun { end, stdout, stderr, took: Duration::ZERO }
    }
}

/// What comes from a pipe, up to a limit; what is beyond it is read and dropped, so that the writer does not wait.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    /// More than [`ENDLESS`] has come.
    over: Arc<Notify>,
    task: AbortOnDropHandle<()>,
}

impl Output {
    fn read(mut pipe: Receiver, most: usize) -> Self {
        let (kept, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (into, tell) = (Arc::clone(&kept), Arc::clone(&over));
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut chunk = vec![0; 16 << 10];
            let mut came = 0_usize;
            while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
                came = came.saturating_add(n);
                let mut kept = lock(&into);
                // One byte more shows that there was more.
                let room = (most + 1).saturating_sub(kept.len());
                kept.extend(&chunk[..n.min(room)]);
                if came > ENDLESS {
                    tell.notify_one();
                }
            }
        }));
        Self { kept, over, task }
    }

    async fn rest(self) -> Vec<u8> {
        let Self { kept, task, .. } = self;
        // A process that could not be ended may hold the pipe.
        let _ = tokio::time::timeout(REST, task).await;
        std::mem::take(&mut *lock(&kept))
    }
}

#[cfg(test)]
mod tests {
    use tiller_tool::testing::bombs::{Bomb, Excess};

    use super::*;

    /// Row X23 of the fault matrix, for hooks and tools of plugins: what is too much for a hook ends it, its time the rest.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn x23_no_bomb_of_a_hook_is_left() {
        for bomb in Bomb::all() {
            let launch = Launch {
                program: "/bin/sh".into(),
                args: vec!["-c".into(), bomb.command.clone()],
                env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
                folder: "/".into(),
            };
            let many = bomb.excess == Excess::Processes;
            let limit = Duration::from_secs(if many { 50 } else { 2 });
            let ran =
                run(&Host::default(), (launch, Vec::new()), Vec::new(), limit, &CancellationToken::new())
                    .await;
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            if many {
                assert!(matches!(ran.end, CommandEnd::Exit(_)), "{}: {:?}", bomb.name, ran.end);
                let why = "it was terminated: it had more than 256 processes at once\n";
                assert!(said.starts_with(why), "{}: {said}", bomb.name);
            } else {
                assert_eq!(ran.end, CommandEnd::TimedOut, "{}: {said}", bomb.name);
            }
            bomb.has_ended().await;
        }
    }
}
