//! All servers of a process.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tiller_protocol::Part;
use tiller_protocol::mcp::{McpAct, McpPromptView, McpResourceView, McpServerView};
use tiller_tool::shell::{Bounds, Confiner};
use tiller_tool::{ChildEnv, ToolCx};

use crate::connect::Environment;
use crate::known::KnownFile;
use crate::result::parts;
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

/// What a confined program gets.
#[derive(Clone, Debug)]
pub struct Confined {
    pub confiner: Arc<dyn Confiner>,
    /// Folder in which it keeps what it fetches; it may write there.
    pub cache: PathBuf,
    /// It reaches no host.
    pub offline: bool,
}

/// What the servers share.
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
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    pub parts: Vec<Part>,
    /// The server says that it failed.
    pub failed: bool,
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
        let hub = Self { servers: RwLock::default(), environment, accept_defaults, root, state };
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

    /// Starts all that are enabled and whose tools are not known, at the same time, and waits for them. Returns why some
    /// cannot be used.
    pub async fn learn(&self, cx: Option<&ToolCx>) -> Vec<(String, Failure)> {
        let unknown =
            self.servers().into_iter().filter(|server| !server.is_disabled() && server.tools().is_none());
        let starts = unknown.map(|server| async move {
            let failed = server.ready(cx).await.err();
            failed.map(|failure| (server.name().to_owned(), failure))
        });
        join_all(starts).await.into_iter().flatten().collect()
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
        let tools = server.tools().unwrap_or_default();
        if !tools.iter().any(|known| known.name == tool) {
            let names = tools.iter().map(|known| known.name.as_str());
            return Err(NoResult::NoTool(tiller_protocol::nearest::nearest(tool, names).map(str::to_owned)));
        }
        server.used();
        let result = match connection.call(tool, arguments, cx, server.settings.call).await {
            Err(_) if server.is_revoked() => return Err(NoResult::Unusable(Failure::revoked())),
            Err(CallError::Login(challenge)) => return Err(NoResult::Unusable(server.logged_out(challenge))),
            other => other.map_err(NoResult::Failed)?,
        };
        Ok(CallResult { parts: parts(&result), failed: result.is_error == Some(true) })
    }

    /// Ends the servers of the project, and refuses every further use of them: the person no longer trusts the folder.
    pub fn revoke_project(&self) {
        for server in self.servers().iter().filter(|server| server.settings().origin == Origin::Project) {
            server.revoke();
        }
    }

    /// Ends all servers, at the same time.
    pub async fn end(&self) {
        join_all(self.servers().iter().map(|server| server.end())).await;
    }
}

/// What the engine needs of the servers.
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

    async fn act(&self, name: &str, act: McpAct) -> Result<(), String> {
        let server =
            self.find(name).ok_or_else(|| format!("there is no MCP server {}", name.escape_default()))?;
        if server.is_revoked() {
            return Err(Failure::revoked().why);
        }
        match act {
            McpAct::Disable => server.enable(false).await,
            McpAct::Enable => server.enable(true).await,
            McpAct::Approve => server.approve()?,
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
