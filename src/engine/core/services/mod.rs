//! What the composition root hands to the engine ([`EngineConfig`]), and what the engine's tasks share ([`Services`]).

mod keys;
mod limits;
mod settings;
mod trust;
mod watcher;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tiller_config::agents::{Definition, Definitions};
use tiller_config::{Config, Places};
use tiller_hooks::Hooks;
use tiller_protocol::{
    AgentId, Clock, Cost, Effort, IdSource, MemoryRights, ModelRef, Notice, Profile, SandboxState, SessionId,
    ToolGrant, ToolSet,
};
use tiller_provider::Providers;
use tiller_skills::{Library, Skills};
use tiller_store::{MadeBy, Store};
use tiller_tool::mcp::McpServers;
use tiller_tool::state::ToolState;
use tiller_tool::{ChildEnv, Registry, Tool, Workspace};

use crate::context::prefix::specs::Specs;
use crate::context::windows::learned_windows::LearnedWindows;
use crate::files::Keeper;
use crate::questions::permission::Permit;

pub use keys::KeyStore;
pub(crate) use keys::{KeyError, KeyReport};
pub(crate) use limits::{limits, program_bounds};
pub(crate) use settings::SettingsReport;
pub use settings::{LoadedSettings, SettingsSource};
pub use trust::{TrustCheck, TrustGrant, TrustLoss, TrustOffer};
pub use watcher::{StaleFile, StaleFiles, WatchReport, WatchSink, Watcher};

/// Whether a user can answer questions. Passed down as a value; never guessed from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Human {
    Present,
    /// Questions are refused, recorded, and reported at the next start.
    Absent,
}

/// Which session to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    New,
    /// The last session of this folder; a new one when there is none.
    Last,
    Session(SessionId),
}

/// Masks known secrets in a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Whether the last word of a text may still become a part of a secret when more text follows.
pub type Incomplete = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Makes a git worktree of the first folder at the second path, which must not exist yet. Returns the folder inside the
/// worktree that corresponds to the first. Blocks. An error is a sentence.
pub type Folders = Arc<dyn Fn(&Path, &Path) -> Result<PathBuf, String> + Send + Sync>;

/// Finds a workflow by its name.
pub type FindWorkflow = Arc<dyn Fn(&str) -> Result<tiller_tool::crew::Workflow, String> + Send + Sync>;

/// Why a program of another vendor cannot be run, as a sentence; `None`: it can.
pub type Unavailable = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Lists all workflows that have a name.
pub type ListWorkflows = Arc<dyn Fn() -> Vec<tiller_protocol::WorkflowFile> + Send + Sync>;

/// Where workflows come from, and whether the programs that they name can be run.
#[derive(Clone)]
pub struct Workflows {
    /// All workflows, faulty ones included. Blocks.
    pub list: ListWorkflows,
    /// One workflow by its name. Blocks. An error is a sentence.
    pub find: FindWorkflow,
    /// Why a program of another vendor cannot be run. Blocks.
    pub unavailable: Unavailable,
}

/// Writes a session to a new file; returns a sentence for the user. Blocks.
pub type Exporter = Arc<dyn Fn(&Store, SessionId, &Path) -> Result<String, Notice> + Send + Sync>;

/// What [`crate::Engine::start`] needs.
pub struct EngineConfig {
    pub store: Store,
    pub config: Config,
    pub providers: Providers,
    /// The workspace. Its root is resolved already.
    pub workspace: Workspace,
    pub environment: Environment,
    pub session: SessionOptions,
    pub limits: RunLimits,
    /// The tools of this process.
    pub tools: Registry,
    pub crew: CrewConfig,
    pub permit: Permit,
    /// Commands of the settings that run when something happens.
    pub hooks: Hooks,
    pub redaction: Redaction,
    pub user: UserServices,
    pub files: FileServices,
    pub startup: Startup,
}

/// What differs from machine to machine, and what tests replace.
pub struct Environment {
    /// Folders for settings, data and state.
    pub places: Places,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    /// The whole environment of child processes: allow-listed, without keys.
    pub child_env: Arc<ChildEnv>,
    /// Reads a variable of this process, as the key of a search engine.
    pub variables: Variables,
    /// Factor on the delay before a failed request is tried again; 1 except in tests.
    pub retry_scale: f64,
}

/// The value of an environment variable.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Which session to open, and how.
pub struct SessionOptions {
    pub open: Open,
    /// What new sessions are made by.
    pub made_by: MadeBy,
    /// From the command line; wins over the session's own model and the configuration.
    pub model: Option<ModelRef>,
    /// From the command line, like `model`.
    pub profile: Option<Profile>,
    /// From the command line, like `model`.
    pub effort: Option<Effort>,
    /// The definition of the main agent; `None`: the built-in one.
    pub role: Option<Arc<Definition>>,
    /// The session is only shown: nothing is sent, nothing is written.
    pub read_only: bool,
    /// Ask a model for a title after the first turn; otherwise it is made from the prompt.
    pub titles: bool,
}

/// Hard limits from the command line. `None`: no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLimits {
    /// Requests to the model (`--max-turns`).
    pub requests: Option<u32>,
    /// Cost of this run (`--max-cost`).
    pub cost: Option<Cost>,
}

/// Makes the crew of an engine that starts.
pub type MakeCrew = Arc<dyn Fn() -> Box<dyn crate::crew::Crew> + Send + Sync>;

/// What agents beside the main one are made with.
#[derive(Clone)]
pub struct CrewConfig {
    /// Makes the crew of an engine.
    pub agents: MakeCrew,
    /// Runs delegated tasks and workflows.
    pub delegation: Arc<dyn tiller_tool::crew::Delegation>,
    /// Programs of other vendors as agents. `None`: they cannot be run.
    pub programs: Option<crate::crew::Programs>,
    /// Makes folders for agents that work apart. `None`: they cannot be made.
    pub folders: Option<Folders>,
    /// Terminals elsewhere. `None`: there are none.
    pub terminals: Option<Arc<dyn tiller_tool::shell::Terminals>>,
    /// Where workflows are found. `None`: there are none with a name.
    pub workflows: Option<Workflows>,
    /// Kinds of agents by name.
    pub roles: Roles,
}

/// Kinds of agents and skills by name. Clones share one list, which is replaced as a whole when the user trusts the folder.
#[derive(Clone)]
pub struct Roles {
    definitions: Arc<RwLock<Definitions>>,
    skills: Library,
}

impl Roles {
    /// A list of its own, without skills.
    pub fn new(definitions: Definitions) -> Self {
        Self::with_skills(definitions, Library::default())
    }

    /// A list of its own, with skills that others may share.
    pub fn with_skills(definitions: Definitions, skills: Library) -> Self {
        Self { definitions: Arc::new(RwLock::new(definitions)), skills }
    }

    /// The skills, which are replaced as a whole.
    pub(crate) fn library(&self) -> &Library {
        &self.skills
    }

    /// The skills as they are now.
    pub fn skills(&self) -> Skills {
        self.skills.now()
    }

    /// The definitions as they are now.
    pub fn now(&self) -> Definitions {
        self.definitions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the definitions, for all clones.
    pub(crate) fn replace(&self, definitions: Definitions) {
        *self.definitions.write().unwrap_or_else(PoisonError::into_inner) = definitions;
    }
}

/// Keeps secrets out of everything that is stored, shown or sent.
#[derive(Clone)]
pub struct Redaction {
    pub redact: Redact,
    pub incomplete: Incomplete,
}

/// How the user is reached, and what is done on the user's behalf. Only the main agent's engine has all of it.
#[derive(Clone)]
pub struct UserServices {
    pub human: Human,
    /// How keys that the user enters are kept. `None`: they cannot be.
    pub keys: Option<KeyStore>,
    /// How settings are read again while the engine runs. `None`: they stay as they are.
    pub settings: Option<SettingsSource>,
    /// Writes sessions to files. `None`: they cannot be exported from here.
    pub exporter: Option<Exporter>,
    /// MCP servers. `None`: there are none.
    pub mcp: Option<Arc<dyn McpServers>>,
    /// Memory across sessions. `None`: there is none, or the agent may not see it.
    pub memory: Option<Arc<tiller_memory::Memory>>,
    /// What the agent may do with it.
    pub memory_rights: MemoryRights,
    /// Learnings, and rules that are shown with calls. `None`: there are none.
    pub learnings: Option<Arc<tiller_memory::Learnings>>,
    /// Learnings are attached to results and messages. Rules are in any case.
    pub may_learn: bool,
    /// Search over sessions, memory, learnings and skills. `None`: sessions only, by keywords.
    pub search: Option<Arc<tiller_search::Finder>>,
    /// Called before each message and each call. `None`: the trust in the folder cannot be taken back.
    pub trust: Option<TrustCheck>,
    /// What programs of this agent can reach, in the engine of an agent that may not use it itself.
    pub exposure: Exposure,
}

impl UserServices {
    /// With no more of memory than the main agent's definition says, where it says it.
    fn with_memory_of(mut self, role: Option<&Definition>) -> Self {
        if let Some(rights) = role.and_then(|r| r.memory) {
            self.memory_rights = self.memory_rights.min(rights);
            self.memory = self.memory.filter(|_| rights != MemoryRights::Off);
        }
        self
    }
}

/// What a program that nothing confines can change or reach beside Tiller.
#[derive(Clone, Default)]
pub struct Exposure {
    pub memory: Option<Arc<tiller_memory::Memory>>,
    pub mcp: Option<Arc<dyn McpServers>>,
}

impl UserServices {
    /// The same for every agent of a session, whatever it may do with memory and servers itself.
    pub fn exposed(&self) -> Exposure {
        Exposure {
            memory: self.memory.clone().or_else(|| self.exposure.memory.clone()),
            mcp: self.mcp.clone().or_else(|| self.exposure.mcp.clone()),
        }
    }
}

/// What keeps and watches the files of the workspace.
pub struct FileServices {
    /// Keeps earlier states of the files. `None`: none are kept, and none can be restored.
    pub snapshots: Option<Keeper>,
    /// Reports changes by other programs. `None`: they are not noticed.
    pub watcher: Option<Arc<dyn Watcher>>,
}

/// What the test of the sandbox found.
#[derive(Clone, Debug, Default)]
pub struct SandboxFindings {
    /// `None`: there is nothing to say.
    pub state: Option<SandboxState>,
    /// What the person is to know of the files of this folder.
    pub notices: Vec<Notice>,
}

/// Tests the sandbox of this machine, and looks at the files of the folder. Blocks for up to some seconds where these are
/// many.
pub type SandboxTest = Arc<dyn Fn() -> SandboxFindings + Send + Sync>;

/// What is asked and shown when the engine starts.
pub struct Startup {
    /// What the folder brings, if the user is to be asked about it.
    pub trust: Option<TrustOffer>,
    /// Faults found before the start, published as events. (The screen shows them itself.)
    pub notices: Vec<Notice>,
    /// Finds out what confines commands, shortly after the start. `None`: nothing says it.
    pub sandbox: Option<SandboxTest>,
}

/// The services that all tasks of an engine share.
pub(crate) struct Services {
    pub(crate) store: Store,
    /// Replaced as a whole when the settings are read again.
    pub(crate) config: Arc<RwLock<Arc<Config>>>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) places: Places,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) made_by: MadeBy,
    pub(crate) models: ModelServices,
    pub(crate) tools: ToolServices,
    pub(crate) crew: CrewConfig,
    pub(crate) permit: Permit,
    /// One list for all agents.
    pub(crate) hooks: Hooks,
    pub(crate) redaction: Redaction,
    pub(crate) user: UserServices,
    pub(crate) snapshots: Snapshots,
}

/// The models, and how they are asked.
#[derive(Clone)]
pub(crate) struct ModelServices {
    /// One list for all agents, like the settings.
    pub(crate) providers: Arc<RwLock<Providers>>,
    /// Sizes of context windows that the servers' errors stated.
    pub(crate) windows: LearnedWindows,
    /// Factor on the delay before a failed request is tried again; 1 except in tests.
    pub(crate) retry_scale: f64,
    /// Ask a model for a title after the first turn.
    pub(crate) titles: bool,
}

/// The tools of one agent, and what they share.
pub(crate) struct ToolServices {
    /// The tools that this agent's model sees.
    pub(crate) visible: Vec<&'static dyn Tool>,
    /// Every tool; other agents may have some that this one does not see.
    pub(crate) all: Registry,
    pub(crate) specs: Arc<Specs>,
    /// The whole environment of child processes.
    pub(crate) env: Arc<ChildEnv>,
    pub(crate) variables: Variables,
    /// Shells and background processes; one set per session.
    pub(crate) state: Mutex<Arc<ToolState>>,
}

/// Where states of files are kept before they are written.
#[derive(Clone)]
pub(crate) struct Snapshots {
    /// For an agent that works in the workspace. `None`: nothing is kept, and nothing can be restored.
    pub(crate) workspace: Option<Keeper>,
    /// For an agent with a folder of its own: keeps copies of files outside of it.
    pub(crate) elsewhere: Option<Keeper>,
}

impl Services {
    /// The services of the main agent.
    pub(crate) fn new(config: EngineConfig) -> Self {
        let EngineConfig { environment: env, session, files, permit, .. } = config;
        let visible = main_tools(&config.tools, session.role.as_deref(), &config.config);
        let mut user = config.user.with_memory_of(session.role.as_deref());
        user.trust = user.trust.map(|check| trust::applied(check, permit.clone(), config.crew.roles.clone()));
        Self {
            store: config.store,
            config: Arc::new(RwLock::new(Arc::new(config.config))),
            workspace: Arc::new(
                config
                    .workspace
                    .forbid(permit.unreadable(&AgentId::main()))
                    .bar(permit.unreachable(&AgentId::main()))
                    .hide(permit.secret()),
            ),
            places: env.places,
            clock: env.clock,
            ids: env.ids,
            made_by: session.made_by,
            models: ModelServices {
                providers: Arc::new(RwLock::new(config.providers)),
                windows: LearnedWindows::default(),
                retry_scale: env.retry_scale,
                titles: session.titles,
            },
            tools: ToolServices {
                visible,
                all: config.tools,
                specs: Arc::default(),
                env: env.child_env,
                variables: env.variables,
                state: Mutex::default(),
            },
            crew: config.crew,
            permit,
            hooks: config.hooks,
            redaction: config.redaction,
            user,
            snapshots: Snapshots { workspace: files.snapshots, elsewhere: None },
        }
    }

    /// Kinds of agents, as they are now.
    pub(crate) fn roles(&self) -> Definitions {
        self.crew.roles.now()
    }

    /// The skills, as they are now.
    pub(crate) fn skills(&self) -> Skills {
        self.crew.roles.skills()
    }

    /// The settings as they are now.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tool of this name, if this agent's model sees it.
    pub(crate) fn tool(&self, name: &str) -> Option<&'static dyn Tool> {
        self.tools.visible.iter().copied().find(|t| t.name() == name)
    }

    /// Seconds since `began`.
    pub(crate) fn since(&self, began: Duration) -> f64 {
        self.clock.mono().saturating_sub(began).as_secs_f64()
    }
}

impl ModelServices {
    /// The model that a session without one begins with.
    pub(crate) fn default_model(&self) -> ModelRef {
        let providers = self.providers.read().unwrap_or_else(PoisonError::into_inner);
        providers.default_model().unwrap_or_default()
    }
}

/// The tools that the main agent sees.
fn main_tools(all: &Registry, role: Option<&Definition>, config: &Config) -> Vec<&'static dyn Tool> {
    let crew = &config.agents;
    let usual = |grant: ToolGrant| match grant {
        ToolGrant::All | ToolGrant::Main => true,
        ToolGrant::Named => crew.all_tools,
        ToolGrant::Siblings => false,
    };
    let has = |tool: &&'static dyn Tool| {
        let info = tool.info();
        let memory = role.and_then(|r| r.memory).filter(|_| info.set == ToolSet::Memory);
        let granted = match memory {
            Some(rights) => rights != MemoryRights::Off,
            None => role.and_then(|r| r.tools.grants(info.name)).unwrap_or_else(|| usual(info.grant)),
        };
        granted && (crew.depth > 0 || info.set != ToolSet::Crew)
    };
    all.iter().filter(has).collect()
}
