//! A run of an external agent: what it is asked, its limits, and its access to files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use tiller_protocol::{Cost, Transport, Usage};
use tiller_tool::shell::Bounds;

use super::adapter::Adapter;

/// Reads one variable of the person's environment.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// One run of a program.
#[derive(Clone)]
pub struct Job {
    pub adapter: Arc<Adapter>,
    /// `None`: the best that the adapter offers and that is installed (ACP, headless, PTY).
    pub transport: Option<Transport>,
    pub prompt: String,
    pub cwd: PathBuf,
    /// In the program's own spelling.
    pub model: Option<String>,
    pub resume: Resume,
    /// The base, already allow-listed. The adapter adds what its vendor's program needs, taken from `lookup`;
    /// keys of other vendors are taken out.
    pub env: Vec<(String, String)>,
    /// Where the adapter's own variables (its vendor's key) are looked up.
    pub lookup: Lookup,
    /// The program may do everything unasked. Without it, it is put into a mode in which it asks, and is not given
    /// the prompt when that fails. What it asks arrives as [`super::AgentEvent::Ask`] either way, or, where the transport
    /// cannot ask (headless), is refused by the program itself.
    pub auto_approve: bool,
    /// Paths that it may not read (absolute, globs), for an adapter that can pass them on.
    pub denied: Vec<String>,
    /// It may change files of its folder unasked.
    pub edits: bool,
    /// After a turn, wait for more messages instead of ending.
    pub stay: bool,
    /// Columns and rows of its terminal.
    pub size: (u16, u16),
    pub limits: Limits,
    /// Reads and writes files for the program, by the engine's rules (ACP). `None`: not offered to it.
    pub files: Option<Arc<dyn Files>>,
}

/// The program's own session to go on with, and what is recorded of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// The program's id of it; `None`: a new session begins.
    pub session: Option<String>,
    /// Its costs that are recorded already. Some programs report the sum since the session began, over all processes
    /// that had it.
    pub cost: Cost,
    /// Its tokens that are recorded already.
    pub usage: Usage,
    /// What a fresh session receives in place of the prompt when the program cannot continue this one: the conversation
    /// so far, and the prompt. `None`: then the run fails.
    pub fresh_prompt: Option<String>,
}

impl Resume {
    /// The session of this id, of which nothing is recorded.
    pub fn session(id: impl Into<String>) -> Self {
        Self { session: Some(id.into()), ..Self::default() }
    }
}

impl Job {
    /// The arguments that keep it from reading what it may not.
    pub(crate) fn denied_arguments(&self) -> Vec<String> {
        self.adapter.denied.as_ref().map(|d| d.arguments(&self.denied)).unwrap_or_default()
    }

    /// Begins a fresh session, with the conversation so far in its prompt. False: there is no such prompt.
    pub(crate) fn begin_fresh(&mut self) -> bool {
        let Some(prompt) = self.resume.fresh_prompt.take() else { return false };
        (self.prompt, self.resume.session) = (prompt, None);
        true
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("adapter", &self.adapter.name)
            .field("transport", &self.transport)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// What a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From start to end.
    pub wall: Duration,
    /// Without a sign of life (time in which a question waits for the person does not count).
    pub idle: Duration,
    /// Bytes of output in all (headless, ACP). A terminal has no such limit: only its latest screen counts.
    pub output: u64,
    /// Bytes of one line of output; the rest of a longer one is dropped.
    pub line: usize,
    /// From TERM to KILL.
    pub grace: Duration,
    /// In a terminal: after a person's key, nothing is typed for so long.
    pub typing: Duration,
    /// In a terminal: messages that come so close together are typed as one.
    pub coalesce: Duration,
    /// Of the machine: processes and memory.
    pub bounds: Bounds,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60 * 60),
            idle: Duration::from_secs(15 * 60),
            output: 256 << 20,
            line: 16 << 20,
            grace: Duration::from_secs(3),
            typing: Duration::from_secs(3),
            coalesce: Duration::from_millis(500),
            bounds: Bounds { whose: "program", ..Bounds::default() },
        }
    }
}

/// Files of the workspace, as the engine's rules allow them. Paths are absolute, free of `..`, and inside the
/// job's folder by name; links are for the implementation to judge.
#[async_trait]
pub trait Files: Send + Sync {
    /// The whole text.
    ///
    /// # Errors
    /// As [`FileError`] says.
    async fn read(&self, path: &Path) -> Result<String, FileError>;

    /// Replaces or creates the file. The program may have read masks of secrets in its prompt: as in our own
    /// tools, they become the file's values again, and a text with a mask of unknown value is refused.
    ///
    /// # Errors
    /// As [`FileError`] says.
    async fn write(&self, path: &Path, text: &str) -> Result<(), FileError>;
}

/// Why a file was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file")]
    Missing,
    /// By a rule or by the person.
    #[error("not allowed: {0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

/// Why nothing was started. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Not on the search path.
    #[error("{program} is not installed: {hint}")]
    Missing { program: String, hint: String },
    /// The adapter has no such transport, or its extra program is missing.
    #[error("{agent} cannot be run over {}: {why}", transport.name())]
    NoTransport { agent: String, transport: Transport, why: String },
    /// It may not do everything unasked, and nothing makes it ask in this way.
    #[error("{agent} could not be started over {}: {why}", transport.name())]
    NoAsking { agent: String, transport: Transport, why: String },
    /// The folder is not there.
    #[error("the folder {} cannot be used: {why}", folder.display())]
    Folder { folder: PathBuf, why: String },
    /// The system refused.
    #[error("{program} could not be started: {why}")]
    System { program: String, why: String },
}
