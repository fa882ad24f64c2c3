//! Terminals elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place where commands of agents run: this machine, a container, or another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Terminal {
    /// What kind of place it is.
    pub kind: TerminalKind,
    /// ssh: the host, as your ssh knows it.
    pub host: Option<String>,
    /// docker, podman: the image of a container that is started for the session.
    pub image: Option<String>,
    /// docker, podman: a container that runs already. kubernetes: the container in the pod.
    pub container: Option<String>,
    /// kubernetes: the pod, or `deploy/NAME`.
    pub pod: Option<String>,
    /// kubernetes: the namespace.
    pub namespace: Option<String>,
    /// kubernetes: the context of your kubectl settings.
    pub context: Option<String>,
    /// The folder there. For ssh `~/tiller/NAME` by default, for a mounted folder the same path as here, else `/work`.
    pub folder: Option<String>,
    /// How files get there: `mount` by default for docker and podman, else `sync`.
    pub files: Option<TerminalFiles>,
    /// Where files are copied: copy git's own files there too, without hooks, remotes and programs, so that `git status` and
    /// `git log` work there. Nothing of them is copied back: commits belong on this machine.
    pub git: bool,
    /// More arguments: for ssh options as for `-o`, for docker and podman arguments of `run`, for kubernetes those of kubectl.
    pub options: Vec<String>,
}

/// The fault of a name that no terminal of these names has.
pub fn unknown_terminal(name: &str, known: Vec<String>) -> String {
    match tiller_protocol::nearest::nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("there is no terminal `{name}`; did you mean `{near}`?"),
        None if known.is_empty() => {
            format!("there is no terminal `{name}`: the settings have no [terminals]")
        }
        None => format!("there is no terminal `{name}`; there are {}", known.join(", ")),
    }
}

/// Kinds of terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TerminalKind {
    /// This machine.
    #[default]
    Local,
    /// A container, with your docker.
    Docker,
    /// A container, with your podman.
    Podman,
    /// Another machine, with your ssh.
    Ssh,
    /// A pod, with your kubectl.
    Kubernetes,
}

/// How files get to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TerminalFiles {
    /// The folder is mounted in the container.
    Mount,
    /// Changed files are copied there before each command and back after it; ignored files stay where they are.
    Sync,
}
