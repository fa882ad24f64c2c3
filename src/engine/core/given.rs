//! What the engine is given to reach settings, keys, trust, exports and the watcher.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Config;
use tiller_config::agents::Definitions;
use tiller_permit::Rule;
use tiller_protocol::ask::TrustItem;
use tiller_protocol::view::GitState;
use tiller_protocol::{AgentId, CommandId, FileChange, Notice, SessionId};
use tiller_provider::registry::{Entered, Local};
use tiller_provider::{ProviderError, Providers};
use tiller_store::Store;
use tiller_tool::cx::Seen as Known;

use crate::bus::ClientId;

/// What came of reading them.
pub struct Fresh {
    pub config: Config,
    pub providers: Providers,
}

/// Reads files, so it may block. An error is what the person hears; the last good settings stay.
pub(crate) type ReadSettings = Arc<dyn Fn() -> Result<Fresh, Notice> + Send + Sync>;

/// Keeps the person's yes to a server on this machine, for later sessions. May block; an error is a sentence.
pub(crate) type KeepServer = Arc<dyn Fn(&Local) -> Result<(), String> + Send + Sync>;

/// How settings are read again, and written.
#[derive(Clone)]
pub struct Settings {
    pub read: ReadSettings,
    pub keep: KeepServer,
}

/// A report of the task that read them. `asked`: who hears how it went.
pub(crate) struct Read {
    pub(crate) asked: Option<(ClientId, CommandId)>,
    pub(crate) result: Result<Fresh, Notice>,
}

/// How keys are kept.
#[derive(Clone)]
pub struct Keys {
    /// The key file (0600). Its folder is made where there is none.
    pub file: PathBuf,
    /// Makes the providers anew, from the settings and the key file.
    pub rebuild: Arc<dyn Fn() -> Providers + Send + Sync>,
    /// What would become of a key that is entered for the provider of this name.
    pub entered: Arc<dyn Fn(&str) -> Entered + Send + Sync>,
    /// From now on this text is masked in everything that is written.
    pub learn: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A key that was kept, or not, and what its server said to it.
pub(crate) struct Tried {
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) provider: String,
    pub(crate) file: PathBuf,
    pub(crate) providers: Option<Providers>,
    /// The variable that it is used instead of.
    pub(crate) over: Option<String>,
    pub(crate) result: Result<(), Failed>,
}

pub(crate) enum Failed {
    /// Not kept.
    Wrong(String),
    /// Kept, but it could not be tried.
    Untried(ProviderError),
    /// The server does not take it; what was there before is back.
    Refused(ProviderError),
}

/// What a yes brings in, made from the bytes that were hashed.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    pub rules: Vec<Rule>,
    /// It brings settings: they are read again, and hold at once.
    pub settings: bool,
    /// Kinds of agents that there are from now on; `None`: it brings none.
    pub roles: Option<Definitions>,
    /// Agents, skills and workflows that it brings.
    pub agents: usize,
    pub skills: usize,
    pub workflows: usize,
    /// What could not be read, each with its place.
    pub wrong: Vec<Notice>,
}

/// Keeps the person's word. True: trust exactly what was shown. False: never, and nothing is brought in.
/// May block. An error is a sentence.
pub(crate) type TrustDecide = Arc<dyn Fn(bool) -> Result<Agreed, String> + Send + Sync>;

/// What is asked at the start, where a person is there.
#[derive(Clone)]
pub struct TrustOffer {
    pub folder: String,
    pub items: Vec<TrustItem>,
    /// There was a yes, to other content.
    pub changed: bool,
    /// The person said never: nothing is asked.
    pub never: bool,
    pub decide: TrustDecide,
}

/// Writes a session to a new file; a sentence for the person comes back. Blocking.
pub type Exporter = Arc<dyn Fn(&Store, SessionId, &Path) -> Result<String, Notice> + Send + Sync>;

/// What the watcher saw, after its quiet time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub changes: Vec<FileChange>,
    pub git: Option<GitState>,
    /// It fell back to polling, or lost track.
    pub notice: Option<Notice>,
}

/// Gives what was seen to the engine. Waits at most a second while the engine is behind; false when it has ended.
pub type Sink = Box<dyn Fn(Seen) -> bool + Send + Sync>;

/// A watcher. Dropping it ends it.
pub trait Watcher: Send + Sync {
    /// Begins to watch, and to tell `sink`.
    fn start(&self, sink: Sink);
    /// `agent` is about to write these paths.
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]);
    /// It has written them.
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]);
    /// `agent` runs the command `what` (or has ended it): what changes meanwhile may be its doing.
    fn command(&self, agent: &AgentId, what: &str, running: bool);
    /// Whether anything changed since [`Self::outside`] was asked last for `agent`. Quick.
    fn stirred(&self, agent: &AgentId) -> bool;
    /// Files of `seen` (what the agent knows, by absolute path) that changed since it was asked last, not by
    /// the agent's own edits, and that are not as the agent knows them. Reads those files: blocks.
    fn outside(&self, agent: &AgentId, seen: &HashMap<PathBuf, Known>) -> Outside;
    /// The text of a file as the agent just saw or left it.
    fn known(&self, path: &Path, text: &Arc<str>);
    fn pause(&self, paused: bool);
    fn mute(&self, path: &str);
    /// The difference of a file against its state when watching began.
    ///
    /// # Errors
    /// In words.
    fn diff(&self, path: &str) -> Result<String, String>;
}

/// What an agent is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    pub files: Vec<Changed>,
    /// How many more there are.
    pub more: usize,
}

/// A file that is not any more as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the workspace.
    pub path: String,
    pub deleted: bool,
    /// Lines added and removed against what the agent knows, where that is known.
    pub lines: Option<(u32, u32)>,
    /// The command of the agent's that ran at that time. It may have been that, or anybody else.
    pub during: Option<String>,
}
