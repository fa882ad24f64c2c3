//! The context of a call: what a tool can use.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tiller_protocol::mask::Secret;
use tiller_protocol::{
    AgentId, AskBody, AskReply, Clock, Cost, EntryId, MemoryRights, ModelRef, Provenance, RestorePreview,
    SearchPage, SearchQuery, SessionId, TodoItem, Usage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::code::{CodeLimits, ScriptApproval, ScriptPorts};
use crate::crew::{CrewReply, CrewRequest};
use crate::shell::{BlockedLog, Bounds, Confiner, Confiners, Deletion, Elsewhere};

/// What the engine does for tools that ask servers of the settings.
#[async_trait]
pub trait ServerPorts: Send + Sync {
    /// Whether the budgets allow a request to a server of the settings that costs `price`; `None`: its price is not known.
    /// `Err` is a sentence without a full stop.
    async fn may_spend(&self, price: Option<Cost>) -> Result<(), String> {
        let _ = price;
        Ok(())
    }
    /// Counts a request to a server of the settings. Does not wait.
    fn server_cost(&self, cost: ServerCost) {
        let _ = cost;
    }
    /// An image that the person attached to this conversation, in base64. `number`: from 1, in their order. `Err` is a
    /// sentence without a full stop.
    async fn attached_image(&self, number: usize) -> Result<Arc<str>, String> {
        let _ = number;
        Err("there are no attached images here".into())
    }
}

/// What the engine does for tools that write memory.
#[async_trait]
pub trait MemoryPorts: Send + Sync {
    /// Where an entry of memory with this text comes from, and what the agent may do with memory.
    async fn memory_origin(&self, agent: &AgentId, text: &str) -> Result<MemoryOrigin, String> {
        let _ = (agent, text);
        Ok(MemoryOrigin::default())
    }
    /// Asks the person about a change of a memory file. `None`: none can answer.
    async fn confirm_memory(&self, agent: &AgentId, write: AskedWrite) -> Option<bool> {
        let _ = (agent, write);
        None
    }
}

/// What the engine does for tools.
#[async_trait]
pub trait Ports: ServerPorts + MemoryPorts {
    /// Puts a question to the person and waits. `Err`: why there is no answer.
    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String>;
    /// The todo list now, and the number of tool calls since its last change.
    fn todos(&self, agent: &AgentId) -> (Vec<TodoItem>, u32);
    /// Replaces the list (saved with the session, shown at once).
    async fn set_todos(&self, agent: &AgentId, todos: Vec<TodoItem>) -> Result<(), String>;
    /// Looks for words in earlier sessions. `Err` says why it cannot.
    async fn search_sessions(&self, query: SearchQuery) -> Result<SearchPage, String>;
    /// Names this state of the files and this place of the conversation; a sentence comes back.
    async fn checkpoint(&self, name: &str) -> Result<String, String>;
    /// What going back to the last checkpoint of this name would do to the files.
    async fn restore_preview(&self, name: &str) -> Result<(EntryId, RestorePreview), String>;
    /// Brings the files back to what they were at an entry, but for those that others changed. A sentence comes back.
    async fn restore(&self, entry: EntryId) -> Result<String, String>;
    /// Sends a request to the crew of agents and waits for the reply. `Err` is a sentence for the model.
    async fn crew(&self, cx: &ToolCx, request: CrewRequest) -> Result<CrewReply, String>;
    /// Whether a command may lose these files, and more. A no where no person can answer.
    async fn confirm_deletion(&self, agent: &AgentId, deletion: Deletion) -> bool {
        let _ = (agent, deletion);
        false
    }
    /// What the engine does for scripts; `None`: nothing.
    fn scripts(&self) -> Option<&dyn ScriptPorts> {
        None
    }
    /// Marks paths as about to be written by this call, so that the watcher attributes the changes to `agent`.
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]);
    /// The files under these paths changed (called after writing).
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]);
}

/// Where an entry of memory comes from, and what its agent may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOrigin {
    pub provenance: Provenance,
    pub rights: MemoryRights,
    /// The file of the agent's own definition, absolute or relative to the project; `None`: it is built in, or a plugin's.
    pub definition: Option<PathBuf>,
}

/// A change of a memory file that the person is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedWrite {
    /// The file, for people.
    pub path: String,
    /// The exact difference (unified).
    pub diff: String,
    /// A rule is made, changed or removed.
    pub rule: bool,
}

/// What a request to a server of the settings used.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerCost {
    /// The session of the call.
    pub session: SessionId,
    /// The tool's section of the settings, and the model.
    pub model: ModelRef,
    pub usage: Usage,
    /// `None`: the price is not known.
    pub cost: Option<Cost>,
}

/// Limits of output and time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a result that the model sees.
    pub output_bytes: usize,
    /// Bytes of one page of `read_file`.
    pub page_bytes: usize,
    /// Bytes of a spill file.
    pub spill_bytes: u64,
    /// Default and longest time of a command.
    pub command: Duration,
    pub command_max: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
    /// What a command may take of the machine.
    pub bounds: Bounds,
    /// Files that a command may lose without a question.
    pub deletions: usize,
    /// Of scripts.
    pub code: CodeLimits,
    /// Bytes of one fetched page.
    pub fetch_bytes: u64,
    pub fetch_redirects: usize,
    /// Longest time of one fetch, redirects included.
    pub fetch_time: Duration,
    /// Whether private addresses may be fetched.
    pub fetch_private: bool,
    /// Fetch through the system's proxy (`HTTPS_PROXY`, ...). The proxy then finds the addresses itself, so the
    /// check of names is only as good as the proxy.
    pub fetch_proxy: bool,
    /// Where `web_search` searches.
    pub search: crate::web::SearchSettings,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 30_000,
            page_bytes: 50_000,
            spill_bytes: 64 << 20,
            command: Duration::from_secs(120),
            command_max: Duration::from_secs(3600),
            grace: Duration::from_secs(5),
            bounds: Bounds::default(),
            deletions: crate::shell::DELETIONS,
            code: CodeLimits::default(),
            fetch_bytes: 5 << 20,
            fetch_redirects: 5,
            fetch_time: Duration::from_secs(30),
            fetch_private: false,
            fetch_proxy: false,
            search: crate::web::SearchSettings::default(),
        }
    }
}

/// Says why a path (absolute, links resolved) may not be written in any profile; `None` when it may.
pub type Protected = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// Finds the secrets of a text: what a model reads as masks. In order, without overlap.
pub type Secrets = Arc<dyn Fn(&str) -> Vec<Secret> + Send + Sync>;

/// Says which rule forbids to read a path (absolute), in words; `None` when none does.
pub type Unreadable = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// The folder that an agent works in, and the files that the agent has read there.
pub struct Workspace {
    /// Absolute, links resolved.
    pub root: PathBuf,
    /// Open descriptor of `root`: every file of the workspace is opened beneath it.
    pub(crate) dir: OwnedFd,
    /// The names that no tool may write.
    pub(crate) protected: Protected,
    /// What of its files is masked before a model reads it.
    pub(crate) secrets: Secrets,
    /// Says which paths may not be read.
    unreadable: Unreadable,
    /// Says which paths, links resolved, hold keys or personal data.
    secret: Unreadable,
    /// What confines its commands, by their profile.
    pub(crate) confiners: Confiners,
    /// Where commands run instead of on this machine.
    pub(crate) terminal: Option<Arc<dyn Elsewhere>>,
    /// What `Tool::access` declared, by call: the run may touch nothing else.
    pub(crate) declared: crate::files::path::declared::DeclaredPaths,
    /// The journal of change sets while they are published; `None`: there is no journal.
    pub(crate) publishes: Option<crate::files::Publishes>,
    /// Hash of each file (absolute path) as the agent last read or wrote it.
    pub seen: Mutex<HashMap<PathBuf, SeenFile>>,
}

/// A file as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// BLAKE3 of the whole content.
    pub hash: [u8; 32],
    /// The content, when small enough to show a difference later (at most 256 KiB).
    pub text: Option<Arc<str>>,
}

impl Workspace {
    /// `root` must exist.
    ///
    /// # Errors
    /// When it cannot be resolved.
    pub fn new(root: &Path) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = std::fs::File::open(&root)?;
        if !dir.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            root,
            dir: dir.into(),
            protected: Arc::new(|_| None),
            secrets: Arc::new(|_| Vec::new()),
            unreadable: Arc::new(|_| None),
            secret: Arc::new(|_| None),
            confiners: Confiners::default(),
            terminal: None,
            declared: crate::files::path::declared::DeclaredPaths::default(),
            publishes: None,
            seen: Mutex::new(HashMap::new()),
        })
    }

    /// The same folder with the same protection, for another agent. That agent has read no file yet.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn beside(&self) -> std::io::Result<Self> {
        let beside = Self::new(&self.root)?.protect(Arc::clone(&self.protected)).like(self);
        Ok(beside.forbid(Arc::clone(&self.unreadable)).hide(Arc::clone(&self.secret)))
    }

    /// Writes every change set down in `publishes` while it is published, so that the next start can take back what a
    /// kill cuts off.
    #[must_use]
    pub fn publishes(mut self, publishes: crate::files::Publishes) -> Self {
        self.publishes = Some(publishes);
        self
    }

    /// Sets the check that every write goes through, whatever the profile.
    #[must_use]
    pub fn protect(mut self, protected: Protected) -> Self {
        self.protected = protected;
        self
    }

    /// Sets what is masked in everything that a model reads. Writing restores it.
    #[must_use]
    pub fn mask(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Confines commands.
    #[must_use]
    pub fn confine(mut self, confiners: Confiners) -> Self {
        self.confiners = confiners;
        self
    }

    /// Runs commands at this terminal; `None`: on this machine. Elsewhere this machine's kernel confines nothing.
    #[must_use]
    pub fn at(mut self, terminal: Option<Arc<dyn Elsewhere>>) -> Self {
        self.terminal = terminal;
        self
    }

    /// The terminal at which commands run, when that is not this machine.
    pub fn terminal(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.terminal.as_ref()
    }

    /// Why a path (absolute) may not be written, in words; `None` when it may.
    pub fn protection(&self, path: &Path) -> Option<String> {
        (self.protected)(path)
    }

    /// Whether commands of this profile are confined on this system, more than those outside. The first call may take
    /// some 20 ms.
    pub fn confines(&self, profile: CommandProfile) -> bool {
        let outside = self.confiners.outside.as_ref().filter(|_| profile != CommandProfile::Outside);
        self.confiner(profile).is_some_and(|confiner| {
            outside.is_none_or(|outside| !Arc::ptr_eq(confiner, outside)) && confiner.confines()
        })
    }

    /// Whether programs of this profile are confined on this machine, wherever commands run.
    pub fn confines_here(&self, profile: CommandProfile) -> bool {
        self.local_confiner(profile).is_some_and(|confiner| confiner.confines())
    }

    /// What confines commands of this profile; `None`: they run as they are, or elsewhere.
    pub(crate) fn confiner(&self, profile: CommandProfile) -> Option<&Arc<dyn Confiner>> {
        if self.terminal.is_some() {
            return None;
        }
        self.local_confiner(profile)
    }

    /// The same for what runs on this machine, wherever commands run.
    fn local_confiner(&self, profile: CommandProfile) -> Option<&Arc<dyn Confiner>> {
        match profile {
            CommandProfile::Person => None,
            CommandProfile::Outside => self.confiners.outside.as_ref(),
            CommandProfile::Workspace => self.confiners.workspace.as_ref(),
            CommandProfile::Read => self.confiners.read.as_ref(),
        }
    }

    /// Takes the masking, the journal of change sets, the sandbox and the terminal from another workspace.
    #[must_use]
    pub fn like(mut self, other: &Self) -> Self {
        self.publishes = other.publishes.clone();
        self.confiners = other.confiners.clone();
        self.terminal = other.terminal.clone();
        self.mask(Arc::clone(&other.secrets))
    }

    /// Sets the rules that hold for every reader, also for those that look through whole folders.
    #[must_use]
    pub fn forbid(mut self, unreadable: Unreadable) -> Self {
        self.unreadable = unreadable;
        self
    }

    /// Sets what only a call that names it may read, by paths without links.
    #[must_use]
    pub fn hide(mut self, secret: Unreadable) -> Self {
        self.secret = secret;
        self
    }

    /// As [`Self::unreadable`], to be used on another thread.
    pub fn forbidden(&self) -> Unreadable {
        let (unreadable, secret) = (Arc::clone(&self.unreadable), Arc::clone(&self.secret));
        Arc::new(move |path| unreadable(path).or_else(|| secret_by(&secret, path)))
    }

    /// The rule by which `path` (absolute) is not read unless a call names it, in words. Follows links.
    pub fn unreadable(&self, path: &Path) -> Option<String> {
        (self.unreadable)(path).or_else(|| secret_by(&self.secret, path))
    }

    /// The rule by which a reader of a whole folder skips `path`, in words. `path` is absolute and has no links;
    /// `named`: the call names this folder, and was judged for it.
    pub(crate) fn skipped(&self, path: &Path, named: &Path) -> Option<String> {
        (self.unreadable)(path).or_else(|| (self.secret)(path).filter(|_| (self.secret)(named).is_none()))
    }
}

/// Whether a path is secret as it is spelled or as its links lead.
fn secret_by(secret: &Unreadable, path: &Path) -> Option<String> {
    secret(path).or_else(|| secret(&path.canonicalize().ok()?))
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

/// How the command of a call is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandProfile {
    /// The user's own line: not confined.
    Person,
    /// Outside the sandbox, by the user's answer or rule: only protected names cannot be written.
    Outside,
    /// It was approved, or a rule or the mode allows it: it writes in the workspace.
    #[default]
    Workspace,
    /// It runs without a question because it only reads.
    Read,
}

/// The run of a call's command. Shared by the tool and its caller.
#[derive(Debug, Default)]
pub struct CommandRun {
    pub profile: CommandProfile,
    /// Set over the environment of the command alone: with them a command that only reads runs no other program.
    pub variables: Vec<(String, String)>,
    /// The approval of the calls that its script makes.
    pub script: Arc<ScriptApproval>,
    /// What the sandbox refused to commands of the call that failed.
    pub refused: BlockedLog,
    /// What else the audit says of the call.
    notes: Arc<Mutex<Vec<String>>>,
    /// What it seems to have refused besides, from the output alone.
    likely: OnceLock<String>,
    blocked: AtomicBool,
}

impl CommandRun {
    /// In this profile.
    pub fn new(profile: CommandProfile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Without a question, with these variables.
    pub fn reading(variables: Vec<(String, String)>) -> Self {
        Self { profile: CommandProfile::Read, variables, ..Self::default() }
    }

    /// Another run of the same call, in this profile.
    #[must_use]
    pub fn again(&self, profile: CommandProfile) -> Self {
        Self {
            profile,
            script: Arc::clone(&self.script),
            refused: self.refused.clone(),
            notes: Arc::clone(&self.notes),
            ..Self::default()
        }
    }

    /// Adds words to the audit of the call.
    pub(crate) fn note(&self, words: String) {
        tiller_protocol::lock(&self.notes).push(words);
    }

    /// What the audit says of the call beside what decided about it.
    pub fn notes(&self) -> Vec<String> {
        tiller_protocol::lock(&self.notes).clone()
    }

    /// Notes what the sandbox seems to have refused, where its supervisor does not see it.
    pub(crate) fn seems_refused(&self, what: String) {
        // The first one counts.
        let _ = self.likely.set(what);
    }

    /// What the sandbox seems to have refused, as far as the output of the command shows it: a capability, or the reading
    /// of a path.
    pub fn likely(&self) -> Option<&str> {
        self.likely.get().map(String::as_str)
    }

    /// Notes that it failed because of the sandbox.
    pub fn block(&self) {
        self.blocked.store(true, Ordering::Release);
    }

    /// Whether it failed because of the sandbox.
    pub fn blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire)
    }
}

/// The context of one call. Cheap to clone.
#[derive(Clone)]
pub struct ToolCx {
    pub session: SessionId,
    pub agent: AgentId,
    pub call_id: String,
    pub workspace: Arc<Workspace>,
    /// Fires when the call must end. TERM first; see `hard`.
    pub cancel: CancellationToken,
    /// Fires when the person stopped a second time: KILL at once.
    pub hard: CancellationToken,
    /// Live output, cleaned by the reader. Bounded: use `try_send`, drop when full.
    pub progress: mpsc::Sender<String>,
    pub ports: Arc<dyn Ports>,
    pub clock: Arc<dyn Clock>,
    pub limits: Arc<Limits>,
    /// Folder (0700) for full outputs; made when first needed.
    pub spill: PathBuf,
    /// Folder (0700) of this session's plans; made when first needed.
    pub plans: PathBuf,
    /// The whole environment of children that are started now: allow-listed, without keys.
    pub child_env: Arc<Vec<(String, String)>>,
    /// How its command is confined.
    pub run: Arc<CommandRun>,
    /// State that tools keep between calls (shells, background processes), by tool.
    pub state: Arc<crate::state::ToolState>,
}

impl ToolCx {
    /// What is set over the environment of this call's command alone.
    pub fn variables(&self) -> &[(String, String)] {
        &self.run.variables
    }

    /// Notes that its command failed because of the sandbox, where it is confined.
    pub(crate) fn block(&self) {
        if self.workspace.confines(self.run.profile) {
            self.run.block();
        }
    }

    /// What confines its command in a terminal of its own; `None`: it runs as it is.
    pub(crate) fn terminal_confiner(&self) -> Option<Arc<dyn Confiner>> {
        let confiner = self.confiner()?;
        Some(confiner.in_terminal().unwrap_or_else(|| Arc::clone(confiner)))
    }

    /// What confines a program of the call on this machine, wherever its commands run; `None`: it runs as it is.
    pub(crate) fn local_confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.local_confiner(self.run.profile)
    }

    /// What confines a program on this machine that only reads, whatever the call was allowed; `None`: it runs as it is.
    pub(crate) fn reading_confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.local_confiner(CommandProfile::Read)
    }

    /// What confines its command; `None`: it runs as it is.
    pub(crate) fn confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.confiner(self.run.profile)
    }
}
