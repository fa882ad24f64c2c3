//! A run of an external agent: its task, its limits, and its access to files.

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
    /// The program's own name for it.
    pub model: Option<String>,
    pub resume: Resume,
    /// The allow-listed base. The adapter adds what its vendor's program needs, taken from `lookup`; keys of other
    /// vendors are removed.
    pub env: Vec<(String, String)>,
    /// Reads the adapter's own variables (its vendor's key).
    pub lookup: Lookup,
    /// The program may do everything without asking. Otherwise it is put into a mode in which it asks, and gets no
    /// prompt when that fails. Its questions arrive as [`super::AgentEvent::Ask`] in both cases, or, where the
    /// transport cannot ask (headless), the program itself refuses.
    pub auto_approve: bool,
    /// Paths that it may not read (absolute, globs), for an adapter that can enforce them.
    pub denied: Vec<String>,
    /// It may change files of its folder without asking.
    pub edits: bool,
    /// After a turn, wait for more messages instead of ending.
    pub stay: bool,
    /// Columns and rows of its terminal.
    pub size: (u16, u16),
    pub limits: Limits,
    /// Reads and writes files for the program, by the engine's rules (ACP). `None`: not offered to it.
    pub files: Option<Arc<dyn Files>>,
}

/// The program's session to continue, and what is recorded of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// The program's id of it; `None`: a new session begins.
    pub session: Option<String>,
    /// Its recorded cost. Some programs report the sum since the session began, over all their processes.
    pub cost: Cost,
    /// Its recorded tokens.
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
    /// The arguments that keep it from reading denied paths.
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

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Total time.
    pub wall: Duration,
    /// Time without output (time in which a question waits for the person does not count).
    pub idle: Duration,
    /// Total bytes of output (headless, ACP). Does not apply to a terminal, of which only the latest screen counts.
    pub output: u64,
    /// Bytes of one line of output; the rest of a longer one is dropped.
    pub line: usize,
    /// Time from TERM to KILL.
    pub grace: Duration,
    /// In a terminal: how long nothing is typed after a person's key.
    pub typing: Duration,
    /// In a terminal: messages within this time are typed as one.
    pub coalesce: Duration,
    /// Limits of processes and memory.
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

/// Files of the workspace, as the engine's rules allow them. Paths are absolute, free of `..`, and inside the job's
/// folder by name; the implementation checks symbolic links.
#[async_trait]
pub trait Files: Send + Sync {
    /// The whole text.
    ///
    /// # Errors
    /// As [`FileError`] says.
    async fn read(&self, path: &Path) -> Result<String, FileError>;

    /// Replaces or creates the file. The prompt of the program may contain masks of secrets: as in Tiller's own tools,
    /// they are replaced by the file's values, and a text with an unknown mask is refused.
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

/// Why a run was not started. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Not on the search path.
    #[error("{program} is not installed: {hint}")]
    Missing { program: String, hint: String },
    /// The adapter has no such transport, or its extra program is missing.
    #[error("{agent} cannot be run over {}: {why}", transport.name())]
    NoTransport { agent: String, transport: Transport, why: String },
    /// It must ask, and nothing makes it ask over this transport.
    #[error("{agent} could not be started over {}: {why}", transport.name())]
    NoAsking { agent: String, transport: Transport, why: String },
    /// The folder does not exist.
    #[error("the folder {} cannot be used: {why}", folder.display())]
    Folder { folder: PathBuf, why: String },
    /// The operating system refused.
    #[error("{program} could not be started: {why}")]
    System { program: String, why: String },
}
