//! All servers of a process.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tiller_protocol::Part;
use tiller_protocol::lock;
use tiller_protocol::mcp::{McpAct, McpPromptView, McpResourceView, McpServerView};
use tiller_tool::shell::{Bounds, Confiner};
use tiller_tool::{ChildEnv, ToolCx};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connect::Environment;
use crate::handler::CallNotes;
use crate::known::KnownFile;
use crate::read::result::{has_failed, parts};
use crate::server::{Failure, MakeEnvironment, Server};
use crate::session::CallError;
use crate::settings::{Origin, ServerSettings};
use crate::shared::refused;

/// Makes what confines the program of a server; `None`: nothing does. May take some 20 ms.
pub type Confine = Arc<dyn Fn(&ServerSettings, ServerRights) -> Option<Confined> + Send + Sync>;

/// The rights of a confined program in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerRights {
    /// It was started to list its tools: no call of it has been approved.
    Read,
    /// For calls that were approved, or that the mode allows.
    Write,
}

/// The rights of a confined program.
#[derive(Clone, Debug)]
pub struct Confined {
    pub confiner: Arc<dyn Confiner>,
    /// Folder in which it keeps what it fetches; it may write there.
    pub cache: PathBuf,
    /// It reaches no host.
    pub offline: bool,
}

/// The things that the servers share.
pub struct HubConfig {
    /// The workspace.
    pub root: PathBuf,
    /// The folder for what is kept of servers.
    pub state: PathBuf,
    /// The variables of programs.
    pub vars: Arc<ChildEnv>,
    pub confine: Confine,
    pub bounds: Bounds,
}

/// All servers of a process. Servers are only ever added, or replaced once they are revoked; none is started before it is
/// needed.
pub struct Hub {
    servers: RwLock<Vec<Arc<Server>>>,
    environment: MakeEnvironment,
    accept_defaults: Arc<AtomicBool>,
    root: PathBuf,
    state: PathBuf,
    /// Starts that a search did not wait for. They end with the servers.
    starts: Mutex<JoinSet<()>>,
}

/// The findings of a search about servers whose tools were not known.
#[derive(Debug, Default)]
pub struct Learned {
    /// Why some cannot be used.
    pub failed: Vec<(String, Failure)>,
    /// Those that have not answered yet.
    pub waiting: Vec<String>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    pub parts: Vec<Part>,
    /// The server says that it failed.
    pub failed: bool,
    /// Notes to the user and the model besides, in sentences without a full stop.
    pub notes: Vec<String>,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// There is no such server; the names of those that there are.
    NoServer(Vec<String>),
    /// The server has no such tool; the nearest name.
    NoTool(Option<String>),
    /// The server cannot be used.
    Unusable(Failure),
    /// The tool is new or changed since the tools were approved; the others can be called.
    HeldBack(Failure),
    /// The tool changes what all agents see, and a subagent called it.
    MainAgentOnly,
    /// The call failed.
    Failed(CallError),
}

impl Hub {
    /// Reads what is kept of the servers; starts none.
    pub fn new(config: HubConfig, servers: Vec<ServerSettings>) -> Arc<Self> {
        let HubConfig { root, state, vars, confine, bounds } = config;
        let (folder, tokens) = (root.clone(), state.clone());
        let accept_defaults: Arc<AtomicBool> = Arc::default();
        let accepts = Arc::clone(&accept_defaults);
        let environment: MakeEnvironment = Arc::new(move |settings: &ServerSettings, rights| Environment {
            vars: vars.now(),
            root: folder.clone(),
            state: tokens.clone(),
            confined: if settings.unconfined { None } else { confine(settings, rights) },
            bounds,
            accept_defaults: accepts.load(Ordering::Relaxed),
        });
        let hub = Self {
            servers: RwLock::default(),
            environment,
            accept_defaults,
            root,
            state,
            starts: Mutex::default(),
        };
        hub.add(servers);
        Arc::new(hub)
    }

    /// From now on, servers that are started and ask for input where there is no person get the defaults of their forms.
    pub fn accept_defaults(&self) {
        self.accept_defaults.store(true, Ordering::Relaxed);
    }

    /// Adds servers. One whose name is taken is ignored: the person's own come first. Returns the names of those.
    pub fn add(&self, servers: Vec<ServerSettings>) -> Vec<String> {
        let mut taken = Vec::new();
        let mut all = self.servers.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        for settings in servers {
            // The person trusts its folder again.
            all.retain(|server| server.name() != settings.name || !server.is_revoked());
            if all.iter().any(|server| server.name() == settings.name) {
                taken.push(settings.name);
                continue;
            }
            // What is kept of a server is of its own folder: other projects, plugins and clients use the same names.
            let place = match settings.origin {
                Origin::Project => Some(self.root.clone()),
                Origin::Client => {
                    let mut place = self.root.clone().into_os_string();
                    place.push("//client");
                    Some(place.into())
                }
                Origin::Plugin => Some(PathBuf::from("//plugin")),
                Origin::User | Origin::Argument | Origin::Demo => None,
            };
            let file = KnownFile::new(&self.state, &settings.name, place.as_deref());
            all.push(Arc::new(Server::new(settings, file, Arc::clone(&self.environment))));
        }
        all.sort_by(|a, b| a.name().cmp(b.name()));
        taken
    }

    /// All servers, sorted by name.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The server of this name.
    pub fn find(&self, name: &str) -> Option<Arc<Server>> {
        self.servers().into_iter().find(|server| server.name() == name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.servers().is_empty()
    }

    /// Starts all that are enabled and whose tools are not known, at the same time; `only`: this one alone. Waits for the
    /// answers of the user, then for the servers, as long as each time one answers within `patience` after the one before. A
    /// start that takes longer goes on: its tools are there when it answers.
    pub async fn learn(&self, cx: Option<&ToolCx>, only: Option<&str>, patience: Duration) -> Learned {
        let unknown =
            self.servers().into_iter().filter(|server| !server.is_disabled() && server.tools().is_none());
        let unknown: Vec<Arc<Server>> =
            unknown.filter(|server| only.is_none_or(|only| only == server.name())).collect();
        let mut learned = Learned::default();
        let asked = join_all(unknown.iter().map(|server| server.permitted(cx))).await;
        let mut left: Vec<String> = Vec::new();
        // Each start sends once; dropping the receiver is no fault.
        let (tell, mut told) = tokio::sync::mpsc::channel(unknown.len().max(1));
        for (server, asked) in unknown.into_iter().zip(asked) {
            match asked {
                Err(failure) => learned.failed.push((server.name().to_owned(), failure)),
                Ok(()) => {
                    left.push(server.name().to_owned());
                    self.start_beside(server, cx.cloned(), tell.clone());
                }
            }
        }
        drop(tell);
        let mut until = Instant::now() + patience;
        while !left.is_empty() {
            match tokio::time::timeout_at(until, told.recv()).await {
                Ok(Some((name, failure))) => {
                    left.retain(|waiting| *waiting != name);
                    learned.failed.extend(failure.map(|failure| (name, failure)));
                    until = Instant::now() + patience;
                }
                Ok(None) | Err(_) => break,
            }
        }
        learned.failed.sort_by(|a, b| a.0.cmp(&b.0));
        learned.waiting = left;
        learned
    }

    /// Starts a server in a task of its own, or waits there for the start that runs.
    fn start_beside(
        &self,
        server: Arc<Server>,
        cx: Option<ToolCx>,
        tell: tokio::sync::mpsc::Sender<(String, Option<Failure>)>,
    ) {
        let mut starts = lock(&self.starts);
        while starts.try_join_next().is_some() {}
        starts.spawn(async move {
            let failure = match server.is_starting() {
                true => {
                    server.started().await;
                    server.failure()
                }
                false => server.open(cx.as_ref()).await.err(),
            };
            // The search may have ended before.
            let _ = tell.send((server.name().to_owned(), failure)).await;
        });
    }

    /// Calls a tool. Starts the server where it does not run.
    ///
    /// # Errors
    /// When there is no result.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cx: Option<&ToolCx>,
    ) -> Result<CallResult, NoResult> {
        let Some(server) = self.find(server) else {
            return Err(NoResult::NoServer(self.servers().iter().map(|s| s.name().to_owned()).collect()));
        };
        if refused(server.settings(), tool, cx) {
            return Err(NoResult::MainAgentOnly);
        }
        let connection = server.ready(cx).await.map_err(NoResult::Unusable)?;
        let Some(tool) = server.safe_name(tool) else { return Err(no_tool(&server, tool)) };
        // Its own name may be one of these, too.
        if refused(server.settings(), &tool, cx) {
            return Err(NoResult::MainAgentOnly);
        }
        server.allow(cx, &tool).await.map_err(NoResult::HeldBack)?;
        let tools = server.tools().unwrap_or_default();
        let Some(known) = tools.iter().find(|known| known.name == tool) else {
            return Err(no_tool(&server, &tool));
        };
        if refused(server.settings(), known.own_name(), cx) {
            return Err(NoResult::MainAgentOnly);
        }
        server.used();
        let notes = CallNotes::default();
        let limits = (server.settings.call, &notes);
        let mut result = match connection.call(known.own_name(), arguments, cx, limits).await {
            Err(_) if server.is_revoked() => return Err(NoResult::Unusable(Failure::revoked())),
            Err(CallError::Login(challenge)) => {
                return Err(NoResult::Unusable(server.logged_out(challenge, Some(&tool))));
            }
            other => other.map_err(NoResult::Failed)?,
        };
        server.rights_are_enough(&tool);
        let failed = has_failed(&result);
        Ok(CallResult { parts: parts(&mut result), failed, notes: notes.take() })
    }

    /// Ends the servers of the project, and refuses every further use of them: the person no longer trusts the folder.
    pub fn revoke_project(&self) {
        for server in self.servers().iter().filter(|server| server.settings().origin == Origin::Project) {
            server.revoke();
        }
    }

    /// Ends all servers, at the same time.
    pub async fn end(&self) {
        lock(&self.starts).abort_all();
        join_all(self.servers().iter().map(|server| server.end())).await;
    }
}

/// That a server has no such tool, with the nearest name.
pub(crate) fn no_tool(server: &Server, tool: &str) -> NoResult {
    let all: Vec<String> =
        server.tools().unwrap_or_default().into_iter().chain(server.held()).map(|t| t.name).collect();
    let near = tiller_protocol::nearest::nearest(tool, all.iter().map(String::as_str));
    NoResult::NoTool(near.map(str::to_owned))
}

/// The servers as the engine needs them.
#[async_trait]
impl tiller_tool::mcp::McpServers for Hub {
    fn views(&self) -> Vec<McpServerView> {
        self.servers().iter().map(|server| server.view()).collect()
    }

    fn writes_files(&self, name: &str) -> bool {
        self.find(name).is_some_and(|server| server.writes_files())
    }

    fn names(&self) -> Vec<String> {
        let on = self.servers().into_iter().filter(|server| !server.is_disabled());
        on.map(|server| server.name().to_owned()).collect()
    }

    fn resources(&self) -> Vec<McpResourceView> {
        Self::resources(self)
    }

    fn prompts(&self) -> Vec<McpPromptView> {
        Self::prompts(self)
    }

    async fn resource(&self, server: &str, uri: &str) -> Result<Vec<Part>, String> {
        self.read(server, uri).await.map_err(|failure| failure.words())
    }

    async fn prompt(&self, server: &str, name: &str, words: &str) -> Result<Vec<Part>, String> {
        Self::prompt(self, server, name, words).await.map_err(|failure| failure.words())
    }

    async fn act(&self, name: &str, act: McpAct, shown: Option<&str>) -> Result<(), String> {
        let server =
            self.find(name).ok_or_else(|| format!("there is no MCP server {}", name.escape_default()))?;
        if server.is_revoked() {
            return Err(Failure::revoked().why);
        }
        match act {
            McpAct::Disable => server.enable(false).await,
            McpAct::Enable => server.enable(true).await,
            McpAct::Approve => server.approve(&server.shown(shown)?)?,
            McpAct::Restart => {
                if server.needs_approval() {
                    return Err("it has not been approved".into());
                }
                server.reset().await;
                server.ready(None).await.map_err(|failure| failure.words())?;
            }
            other => return Err(format!("unknown: {}", other.word())),
        }
        Ok(())
    }

    async fn end(&self) {
        Self::end(self).await;
    }
}
