//! Where commands run: on this machine (`local`) or elsewhere (`elsewhere`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::ToolCx;
use crate::shell::confined::blocked::Refusals;
use crate::shell::local::quote;
use crate::shell::output::capture::Capture;
use crate::shell::output::leftover::Leftover;
use crate::shell::output::progress::Progress;
use crate::shell::processes::launch::{Confiner, Exit};
use crate::shell::processes::proc_fs::Family;

/// Why a shell could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// No shell on the search path.
    #[error("neither bash nor sh was found")]
    Missing,
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// It started but did not come to its first prompt within these seconds; with what it printed.
    #[error("the shell did not start within {0} s{1}")]
    Silent(u64, String),
    /// It ended before its first prompt; with what it printed.
    #[error("the shell ended before its first command{0}")]
    Ended(String),
    /// The terminal elsewhere cannot be used: which, why, and what to do.
    #[error("{0}")]
    Elsewhere(String),
    /// The pool was shut down.
    #[error("the session is ending; no new command is started")]
    Closed,
}

impl ShellError {
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// What a new shell takes over.
#[derive(Clone, Debug, Default)]
pub struct Start {
    pub folder: PathBuf,
    /// The folder that the agent works in: its shell is no program from there.
    pub workspace: PathBuf,
    /// Shell code that restores the exported variables of the shell before.
    pub exports: Vec<u8>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Value of `TILLER_CHILD`.
    pub marker: String,
    /// Confines the shell.
    pub confiner: Option<Arc<dyn Confiner>>,
}

/// One command for a shell.
#[derive(Debug)]
pub struct Line<'a> {
    pub command: &'a str,
    /// Set over the shell's environment for this command alone.
    pub variables: &'a [(String, String)],
    /// Protected files are compared after it.
    pub compared: bool,
    /// When it has run too long.
    pub until: Instant,
    /// From TERM to KILL.
    pub grace: Duration,
    pub cancel: &'a CancellationToken,
    /// KILL at once.
    pub hard: &'a CancellationToken,
}

/// Takes the output of a command.
#[derive(Debug)]
pub struct Sink {
    pub(crate) capture: Capture,
    pub(crate) progress: Progress,
}

impl Sink {
    /// Fresh, for one call of `command`.
    pub fn new(command: &str, cx: &ToolCx) -> Self {
        Self { capture: Capture::default(), progress: Progress::of(command, cx) }
    }

    /// Takes output.
    pub fn push(&mut self, bytes: &[u8], cx: &ToolCx) {
        self.capture.push(bytes, cx);
        self.progress.push(bytes);
    }

    /// When [`Sink::send`] is to be called; `None` while nothing waits.
    pub fn due(&self) -> Option<Instant> {
        self.progress.due()
    }

    /// Shows what has come, if it is time.
    pub fn send(&mut self) {
        self.progress.send();
    }
}

/// Why a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// It came to its end; the shell waits for the next.
    Done,
    /// It ended the shell (`exit`, `exec`, `set -e`, a signal).
    ShellEnded,
    /// It took too long and was ended together with the shell.
    TimedOut,
    /// It was stopped, together with the shell.
    Stopped,
}

/// Processes that a command has left running.
#[derive(Debug)]
pub struct Rest {
    family: Family,
    /// Those of the shell, which are none of them.
    own: [i32; 2],
}

impl Rest {
    /// `None`: none is found. Reads the list of processes.
    pub(crate) fn of(family: Family, own: [i32; 2]) -> Option<Self> {
        let rest = Self { family, own };
        rest.lives().then_some(rest)
    }

    /// Returns true if one lives. Reads the list of processes.
    pub(crate) fn lives(&self) -> bool {
        self.family.living().iter().any(|stat| !self.own.contains(&stat.pid))
    }
}

/// What is known after a command.
#[derive(Debug)]
pub struct CommandResult {
    pub how: CommandEnd,
    pub exit: Option<Exit>,
    /// The shell's folder afterwards; `None`: not reported.
    pub folder: Option<PathBuf>,
    /// Its exported variables; `None`: not reported.
    pub exports: Option<Vec<u8>>,
    /// Which programs its names stand for now; `None`: not reported.
    pub state: Option<tiller_protocol::ShellState>,
    /// A process that was started and still holds the output.
    pub leftover: Option<Leftover>,
    /// A process was waiting for input from a keyboard when the time was over.
    pub waited: bool,
    /// Processes that could not be ended.
    pub stuck: usize,
    /// What was done because it took too much of the machine.
    pub excess: Option<String>,
    /// What else the model has to know, for instance that a connection broke.
    pub note: Option<String>,
    /// Processes that it started run on, as far as they are found. Looked for only where protected files are compared.
    pub lives_on: Option<Rest>,
    /// What a sandbox refused to it.
    pub refusals: Refusals,
}

/// A shell that keeps its folder, environment and functions between commands.
#[async_trait]
pub trait Shell: Send {
    /// Runs one command to its end. After anything but [`CommandEnd::Done`] the shell is gone.
    async fn run(
        &mut self,
        line: Line<'_>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<CommandResult, ShellError>;

    /// Runs one line of Tiller, for instance `cd`. True when it succeeded.
    async fn whisper(&mut self, line: &str) -> Result<bool, ShellError>;

    /// Goes to a folder of this machine, or to its counterpart elsewhere. True when it succeeded.
    async fn enter(&mut self, folder: &std::path::Path) -> Result<bool, ShellError> {
        self.whisper(&format!("cd -- {}", quote(&folder.display().to_string()))).await
    }

    /// Ends it in order, where dropping it is not enough.
    async fn close(&mut self) {}

    /// Number and start of the process, for the sweep at the end. `None` when it is elsewhere.
    fn root(&self) -> Option<(i32, u64)>;

    /// Folder of its pipes.
    fn pipes(&self) -> Option<PathBuf>;
}

/// A place in which shells can be opened.
#[async_trait]
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// For people: `local`, `docker`, ...
    fn name(&self) -> &'static str;

    /// Opens a shell.
    async fn open(&self, start: Start) -> Result<Box<dyn Shell>, ShellError>;
}
