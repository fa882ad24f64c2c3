//! A hub over scripted servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tiller_config::McpServer;
use tiller_tool::foreign::unframed;
use tiller_tool::shell::Bounds;
use tiller_tool::testing::Bench;
use tiller_tool::{ChildEnv, Tool};

use crate::hub::{Hub, HubConfig};
use crate::settings::{Origin, ServerSettings, Transport, project_servers};
use crate::tools::{McpCall, ToolSearch};

/// Longer than any server that answers takes, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A hub, and the world of its calls.
pub(crate) struct Rig {
    pub(crate) hub: Arc<Hub>,
    pub(crate) bench: Bench,
    script: PathBuf,
    python: PathBuf,
}

/// `None`, with words, where there is no python3.
pub(crate) fn rig() -> Option<Rig> {
    let path = std::env::var("PATH").unwrap_or_default();
    let vars = vec![("PATH".to_owned(), path)];
    let Some(python) = tiller_tool::shell::find_program("python3", &vars) else {
        println!("skipped: there is no python3");
        return None;
    };
    let bench = Bench::new();
    let script = bench.scratch.path().join("server.py");
    std::fs::write(&script, tiller_testkit::MCP_SERVER).unwrap();
    let config = HubConfig {
        root: bench.root.clone(),
        state: bench.scratch.path().join("state"),
        vars: ChildEnv::new(vars),
        confine: Arc::new(|_, _| None),
        bounds: Bounds::default(),
    };
    Some(Rig { hub: Hub::new(config, Vec::new()), bench, script, python })
}

/// A hub with the one server `remote`.
pub(crate) fn hub_with(folder: &std::path::Path, server: McpServer) -> Arc<Hub> {
    let config = HubConfig {
        root: folder.to_owned(),
        state: folder.join("state"),
        vars: ChildEnv::new(Vec::new()),
        confine: Arc::new(|_, _| None),
        bounds: Bounds::default(),
    };
    Hub::new(config, vec![ServerSettings::new("remote", Origin::User, &server, &|_| None).unwrap()])
}

impl Hub {
    /// Learns the tools of all servers; why some cannot be used.
    pub(crate) async fn learn_all(&self, cx: Option<&tiller_tool::ToolCx>) -> Vec<(String, crate::Failure)> {
        let learned = self.learn(cx, None, TIMEOUT).await;
        assert!(learned.waiting.is_empty(), "{learned:?}");
        learned.failed
    }
}

impl Rig {
    /// Settings of a server that behaves like this. Its name is how it behaves.
    pub(crate) fn settings(&self, how: &str) -> ServerSettings {
        let server = McpServer {
            command: Some(self.python.display().to_string()),
            args: vec![self.script.display().to_string(), how.into()],
            ..McpServer::default()
        };
        let mut settings = ServerSettings::new(how, Origin::User, &server, &|_| None).unwrap();
        (settings.start, settings.call) = (TIMEOUT, TIMEOUT);
        settings
    }

    /// Adds such a server.
    pub(crate) fn add(&self, how: &str) {
        self.hub.add(vec![self.settings(how)]);
    }

    /// What a hub of the place is made from.
    fn config(&self, confine: crate::Confine, bounds: Bounds) -> HubConfig {
        HubConfig {
            root: self.bench.root.clone(),
            state: self.bench.scratch.path().join("state"),
            vars: ChildEnv::new(vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())]),
            confine,
            bounds,
        }
    }

    /// Adds one with variables, as another server of that name after a restart of Tiller would be.
    pub(crate) fn again(&self, how: &str, vars: &[(&str, &str)]) -> Arc<Hub> {
        let config = self.config(Arc::new(|_, _| None), Bounds::default());
        let mut settings = self.settings(how);
        if let Transport::Stdio { env, .. } = &mut settings.transport {
            env.extend(vars.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        }
        Hub::new(config, vec![settings])
    }

    /// A hub with the server `good`, whose program is confined so.
    pub(crate) fn confined(&self, confine: crate::Confine) -> Arc<Hub> {
        let config = self.config(confine, Bounds::default());
        Hub::new(config, vec![self.settings("good")])
    }

    /// A hub with one server that is this command, and these bounds.
    pub(crate) fn bounded(&self, command: &str, bounds: Bounds, start: Duration) -> Arc<Hub> {
        let config = self.config(Arc::new(|_, _| None), bounds);
        let server = McpServer {
            command: Some("/bin/sh".into()),
            args: vec!["-c".into(), command.into()],
            ..McpServer::default()
        };
        let mut settings = ServerSettings::new("bomb", Origin::User, &server, &|_| None).unwrap();
        settings.start = start;
        Hub::new(config, vec![settings])
    }

    /// The same server with other settings after a restart of Tiller.
    pub(crate) fn changed_settings(&self, how: &str) -> Arc<Hub> {
        let hub = self.again("other", &[]);
        let mut settings = self.settings(how);
        settings.hash = "of other settings".into();
        hub.add(vec![settings]);
        hub
    }

    /// The same server from the project's file.
    pub(crate) fn add_of_project(&self, how: &str) {
        let file = json!({"mcpServers": {how: {
            "command": self.python, "args": [self.script, how], "env": {"TOKEN": "t"}
        }}});
        let (mut servers, problems) = project_servers(file.to_string().as_bytes(), &|_| None);
        assert!(problems.is_empty(), "{problems:?}");
        (servers[0].start, servers[0].call) = (TIMEOUT, TIMEOUT);
        self.hub.add(servers);
    }

    /// What a model reads of a call of `echo`. Text of the server is in a frame, which is taken off here.
    pub(crate) async fn echo(&self, server: &str, text: &str) -> String {
        let said = self.call(json!({"server": server, "tool": "echo", "arguments": {"text": text}})).await;
        let Some((text, from)) = unframed(&said) else { return said };
        assert_eq!(from, format!("the MCP server {server}"));
        text
    }

    /// What a model reads of a call.
    pub(crate) async fn call(&self, args: Value) -> String {
        self.bench.say(&McpCall::new(Arc::clone(&self.hub)), args).await
    }

    /// What a model reads of a search.
    pub(crate) async fn search(&self, query: &str) -> String {
        self.bench.say(&ToolSearch::new(Arc::clone(&self.hub)), json!({"query": query})).await
    }

    /// The text about the servers for the model.
    pub(crate) fn description(&self) -> String {
        ToolSearch::new(Arc::clone(&self.hub)).spec().description
    }
}
