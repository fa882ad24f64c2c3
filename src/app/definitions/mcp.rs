//! MCP servers of the settings and of the folder, and the tools that reach them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::McpServer;
use tiller_mcp::{
    Hub, HubConfig, McpCall, Origin, ServerSettings, StartCheck, Started, ToolSearch, named_tools,
    project_servers,
};
use tiller_permit::trust::{FolderConfig, ServerLine, server_lines};
use tiller_protocol::ask::TrustItem;
use tiller_protocol::{Notice, NoticeKind};
use tiller_tool::ChildEnv;
use tiller_tool::shell::{Bounds, share_of_memory};

use crate::app::{Setup, sandbox};

/// The files of a folder that name servers.
const FILES: [&str; 2] = [".mcp.json", ".tiller/mcp.json"];

/// The servers of this process.
#[derive(Clone)]
pub(crate) struct McpSetup {
    /// `None`: neither the settings nor the folder name any.
    pub(crate) hub: Option<Arc<Hub>>,
    /// Servers of the settings that cannot be used, each in a sentence without a full stop.
    pub(crate) problems: Vec<String>,
    vars: Arc<ChildEnv>,
    /// The folder, in which its servers start.
    root: PathBuf,
}

impl McpSetup {
    /// Without servers.
    pub(crate) fn none() -> Self {
        Self { hub: None, problems: Vec::new(), vars: ChildEnv::new(Vec::new()), root: PathBuf::new() }
    }

    /// Reads the servers of the settings; those of the folder follow with its trust. Starts none. The tools are added where
    /// there may be servers.
    pub(crate) fn add_to(setup: &mut Setup) {
        let named = !setup.config.config.mcp.is_empty() || setup.common.demo;
        if !named && !FILES.iter().any(|file| setup.project.join(file).is_file()) {
            return;
        }
        let (servers, problems) = own_servers(setup);
        setup.keep_secret(servers.iter().flat_map(ServerSettings::secrets).collect());
        Self::start(setup, servers);
        setup.services.mcp.problems = problems;
    }

    /// Makes the list of servers, and adds the tools that reach them.
    fn start(setup: &mut Setup, servers: Vec<ServerSettings>) -> Arc<Hub> {
        let hub = hub(setup, servers);
        // For the life of the process, like the tools that come with the program: there is one such list in it.
        setup.tools.push(Box::leak(Box::new(McpCall::new(Arc::clone(&hub)))));
        setup.tools.push(Box::leak(Box::new(ToolSearch::new(Arc::clone(&hub)))));
        for tool in named_tools(&hub, setup.config.config.context.mcp_tokens) {
            setup.tools.push(Box::leak(Box::new(tool)));
        }
        setup.services.mcp = Self {
            hub: Some(Arc::clone(&hub)),
            problems: Vec::new(),
            vars: setup.children(),
            root: setup.project.clone(),
        };
        hub
    }

    /// Adds servers that neither the settings nor the folder name. Returns the names of those that are taken.
    pub(crate) fn bring(setup: &mut Setup, servers: Vec<ServerSettings>) -> Vec<String> {
        if servers.is_empty() {
            return Vec::new();
        }
        let hub = setup.services.mcp.hub.clone().unwrap_or_else(|| Self::start(setup, Vec::new()));
        hub.add(servers)
    }

    /// Adds the servers of a folder that the person trusts. Returns what is wrong in its files.
    pub(crate) fn trust(&self, folder: &FolderConfig) -> Vec<Notice> {
        let Some(hub) = &self.hub else { return Vec::new() };
        let vars = self.vars.now();
        // A repository names only variables that every child may see: none holds a key.
        let lookup =
            |name: &str| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let mut notices = Vec::new();
        for bytes in FILES.iter().filter_map(|file| folder.bytes(file)) {
            let (mut servers, problems) = project_servers(bytes, &lookup);
            let lines = server_lines(bytes);
            for server in &mut servers {
                let line = lines.iter().find(|line| line.name == server.name);
                server.check = line.map(|line| check(&self.root, line, &folder.items()));
            }
            hub.add(servers);
            notices.extend(problems.iter().map(|problem| notice(problem)));
        }
        notices
    }

    /// Ends the servers of a folder that the person no longer trusts.
    pub(crate) fn distrust(&self) {
        if let Some(hub) = &self.hub {
            hub.revoke_project();
        }
    }

    /// What is wrong in the settings.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.problems.iter().map(|problem| notice(problem)).collect()
    }
}

/// Compares what a server of the folder runs with what the person trusted, before it starts and once it has.
fn check(root: &Path, line: &ServerLine, trusted: &[TrustItem]) -> StartCheck {
    let (root, line, trusted) = (root.to_owned(), line.clone(), trusted.to_vec());
    let before = line.pins(&root);
    StartCheck(Arc::new(move || {
        let now = line.pins(&root);
        if let Some(file) = now.changed(&before, &trusted) {
            return Err(format!("{file} has changed since you trusted it; `tiller trust` shows it and asks"));
        }
        let held = now.held(&root);
        Ok(Box::new(move || match held.changed() {
            None => Ok(()),
            Some(file) => Err(format!("{file} changed while it started")),
        }) as Started)
    }))
}

fn notice(problem: &str) -> Notice {
    Notice::new(NoticeKind::Config, problem).hint("`tiller mcp list` shows the MCP servers that can be used.")
}

/// The servers of the person's settings, and what is wrong with the others.
fn own_servers(setup: &Setup) -> (Vec<ServerSettings>, Vec<String>) {
    let (mut servers, mut problems) = (Vec::new(), Vec::new());
    for (name, server) in &setup.config.config.mcp {
        match ServerSettings::new(name, Origin::User, server, &|name| (setup.env)(name)) {
            Ok(settings) => servers.push(settings),
            Err(why) => problems.push(format!("[mcp.{}]: {why}", name.escape_default())),
        }
    }
    if setup.common.demo {
        servers.extend(demo_server(setup));
    }
    (servers, problems)
}

/// The server of `tiller demo`: this program itself. `None`: it cannot be found any more.
fn demo_server(setup: &Setup) -> Option<ServerSettings> {
    let program = std::env::current_exe().ok()?.display().to_string();
    // Linux adds this where the file was replaced while it ran: the new one has its name.
    let program = program.strip_suffix(" (deleted)").unwrap_or(&program).to_owned();
    let server =
        McpServer { command: Some(program), args: vec!["demo-server".into()], ..McpServer::default() };
    ServerSettings::new("issues", Origin::Demo, &server, &|name| (setup.env)(name)).ok()
}

/// A hub with these servers.
pub(crate) fn hub(setup: &Setup, servers: Vec<ServerSettings>) -> Arc<Hub> {
    let limits = &setup.config.config.limits;
    let config = HubConfig {
        root: setup.project.clone(),
        state: setup.places.state.join("mcp"),
        vars: setup.children(),
        confine: sandbox::servers(setup),
        bounds: Bounds {
            processes: limits.program_processes.max(16),
            memory: share_of_memory(limits.program_memory.clamp(1, 100)),
            whose: "program",
        },
    };
    Hub::new(config, servers)
}
