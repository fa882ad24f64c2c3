//! What the engine is given from outside. Everything that differs from run to run comes in here.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tiller_config::agents::{Definition, Definitions};
use tiller_config::{Config, Places};
use tiller_protocol::{Clock, Cost, IdSource, ModelRef, Profile, SessionId};
use tiller_provider::Providers;
use tiller_store::Store;
use tiller_tool::shell::{Bounds, share_of_memory};
use tiller_tool::state::ToolState;
use tiller_tool::{ChildEnv, Limits, Tool, Workspace};

/// Whether a person can answer questions. Passed down as a value; never guessed from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Human {
    Present,
    /// What would be asked is refused, recorded, and told at the next start.
    Absent,
}

/// Which session to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    New,
    /// The last one of this folder; a new one when there is none.
    Last,
    Session(SessionId),
}

/// Masks known secrets in a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Whether the last word of a text may still become a part of a secret when it grows.
pub type Growing = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Makes a git worktree of the first folder at the second, which is not there yet; gives the folder in it that stands
/// for the first. Blocks. Errors are in words.
pub type Folders = Arc<dyn Fn(&Path, &Path) -> Result<PathBuf, String> + Send + Sync>;

/// A workflow by its name.
pub type Find = Arc<dyn Fn(&str) -> Result<tiller_tool::crew::Workflow, String> + Send + Sync>;

/// What a program lacks, in words.
pub type Lacks = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// All workflows that have a name.
pub type Listed = Arc<dyn Fn() -> Vec<tiller_protocol::WorkflowFile> + Send + Sync>;

/// Where workflows come from, and what is known of the programs that they name.
#[derive(Clone)]
pub struct Workflows {
    /// All that there are, those with a mistake as well. Blocks.
    pub list: Listed,
    /// One by its name. Blocks. Errors are in words.
    pub find: Find,
    /// What is wrong with a program of another vendor. Blocks.
    pub cli: Lacks,
}

/// What agents beside the main one are made with.
#[derive(Clone)]
pub struct CrewConfig {
    /// Runs delegated tasks and workflows.
    pub delegation: Arc<dyn tiller_tool::crew::Delegation>,
    /// Programs of other vendors as agents. `None`: they cannot be run.
    pub programs: Option<crate::crew::Programs>,
    /// Makes folders for agents that work apart. `None`: they cannot be made.
    pub folders: Option<Folders>,
    /// Where workflows are found. `None`: there are none with a name.
    pub workflows: Option<Workflows>,
}

/// What [`crate::Engine::start`] needs.
pub struct EngineConfig {
    pub store: Store,
    pub providers: Providers,
    pub config: Config,
    /// The workspace. Its root is resolved already.
    pub workspace: Workspace,
    pub places: Places,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    /// The whole environment of children: allow-listed, without keys.
    pub child_env: Arc<ChildEnv>,
    pub human: Human,
    pub open: Open,
    /// What its sessions are made by.
    pub made_by: tiller_store::MadeBy,
    /// From the command line; wins over the session's own and the configuration.
    pub model: Option<ModelRef>,
    pub profile: Option<Profile>,
    pub effort: Option<tiller_protocol::Effort>,
    /// Only look: nothing is sent, nothing is written.
    pub read_only: bool,
    /// Hard limits from the command line.
    pub max_requests: Option<u32>,
    pub max_cost: Option<Cost>,
    /// The tools that the model may be told about.
    pub tools: Vec<&'static dyn Tool>,
    /// Kinds of agents by name.
    pub roles: Definitions,
    /// The kind that the main agent is; `None`: as it is built in.
    pub role: Option<Arc<Definition>>,
    pub crew: CrewConfig,
    pub permit: crate::questions::permission::Permit,
    /// Ask a model for a title after the first turn; without, it is made from the prompt.
    pub titles: bool,
    /// Masks secrets in everything that is stored or sent.
    pub redact: Redact,
    /// Which words wait for their end before they are shown.
    pub growing: Growing,
    /// What the folder brings, if the person is to be asked about it.
    pub trust: Option<crate::core::given::TrustOffer>,
    /// What was found wrong before the start, to be told as events. (The screen tells it itself.)
    pub notices: Vec<tiller_protocol::Notice>,
    /// How keys that the person enters are kept. `None`: they cannot be.
    pub keys: Option<crate::core::given::Keys>,
    /// How settings are read again while it runs. `None`: they stay as they are.
    pub settings: Option<crate::core::given::Settings>,
    pub watcher: Option<Arc<dyn crate::core::given::Watcher>>,
    /// Keeps what the files were. `None`: nothing is kept, and nothing can be restored.
    pub files: Option<crate::files::Keeper>,
    /// Writes sessions to files. `None`: they cannot be exported from here.
    pub exporter: Option<crate::core::given::Exporter>,
    /// Scale of the waits before a failed request is tried again: 1 but for tests.
    pub retry: f64,
}

/// The part of it that tasks share.
pub(crate) struct Services {
    pub(crate) store: Store,
    /// One for all agents, like the settings.
    pub(crate) providers: Arc<RwLock<Providers>>,
    /// Replaced as a whole when the settings are read again.
    pub(crate) config: Arc<RwLock<Arc<Config>>>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) places: Places,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) child_env: Arc<ChildEnv>,
    pub(crate) human: Human,
    pub(crate) made_by: tiller_store::MadeBy,
    pub(crate) tools: Vec<&'static dyn Tool>,
    /// All that there are; agents of the crew may have some that the main one does not see.
    pub(crate) all_tools: Vec<&'static dyn Tool>,
    pub(crate) specs: Arc<crate::context::prefix::specs::Specs>,
    /// One for all agents; more when the person trusts the folder.
    pub(crate) roles: Arc<RwLock<Definitions>>,
    pub(crate) crew: CrewConfig,
    pub(crate) titles: bool,
    pub(crate) windows: crate::context::windows::learned_windows::Windows,
    pub(crate) retry: f64,
    pub(crate) permit: crate::questions::permission::Permit,
    pub(crate) redact: Redact,
    pub(crate) growing: Growing,
    pub(crate) keys: Option<crate::core::given::Keys>,
    pub(crate) settings: Option<crate::core::given::Settings>,
    pub(crate) exporter: Option<crate::core::given::Exporter>,
    /// Shells and background processes; one set per session.
    pub(crate) tool_state: Mutex<Arc<ToolState>>,
    pub(crate) files: Option<crate::files::Keeper>,
    /// For an agent with a folder of its own: keeps copies of files elsewhere before it writes them.
    pub(crate) elsewhere: Option<crate::files::Keeper>,
}

impl Services {
    /// Kinds of agents, as they are now.
    pub(crate) fn roles(&self) -> Definitions {
        self.roles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The settings as they are now.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&'static dyn Tool> {
        self.tools.iter().copied().find(|t| t.name() == name)
    }

    /// Seconds since `began`.
    pub(crate) fn since(&self, began: Duration) -> f64 {
        self.clock.mono().saturating_sub(began).as_secs_f64()
    }
}

/// The tools' limits, from the configuration.
pub(crate) fn limits(config: &Config) -> Limits {
    let l = &config.limits;
    Limits {
        output_bytes: l.output_bytes,
        command: Duration::from_secs(l.command),
        command_max: Duration::from_secs(l.command_max),
        fetch_private: l.fetch_private,
        bounds: Bounds {
            processes: l.command_processes.max(16),
            memory: share_of_memory(l.command_memory.clamp(1, 100)),
            ..Bounds::default()
        },
        ..Limits::default()
    }
}

/// What a program of another vendor may take of the machine.
pub(crate) fn program_bounds(config: &Config) -> Bounds {
    let l = &config.limits;
    Bounds {
        processes: l.program_processes.max(16),
        memory: share_of_memory(l.program_memory.clamp(1, 100)),
        whose: "program",
    }
}
