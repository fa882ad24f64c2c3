//! The kinds of terminals: one file each, and one line in [`make`].

mod container;
mod kubernetes;
mod ssh;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tiller_config::schema::{Terminal, TerminalKind};
use tiller_tool::shell::{Launch, find_program};

/// Names and values of an environment.
pub(crate) type Vars = Vec<(String, String)>;

/// Why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Another try may succeed. A sentence.
    Broken(String),
    /// Only the person can change that. A sentence with what to do.
    Refused(String),
}

impl Failure {
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Broken(why) | Self::Refused(why) => why,
        }
    }
}

/// How a kind of terminal is reached.
#[async_trait]
pub(crate) trait Kind: Send + Sync + std::fmt::Debug {
    /// Makes it ready, for instance starts its container. True when what ran there before is gone.
    async fn prepare(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// The program that runs `script` in a POSIX shell there. `terminal`: under a pseudo-terminal.
    fn connect(&self, script: &str, terminal: bool) -> Launch;

    /// What the error output of that program means.
    fn explain(&self, errors: &str) -> Failure;

    /// The folder there of the agents' folder here.
    fn folder(&self) -> &str;

    /// Whether the folder is mounted: the files are the same here and there.
    fn mounted(&self) -> bool {
        false
    }

    /// Ends what was started for the session.
    async fn close(&self) {}
}

/// What a terminal is made from.
pub(crate) struct Setting<'a> {
    pub(crate) name: &'a str,
    pub(crate) terminal: &'a Terminal,
    /// The agents' folder here.
    pub(crate) root: &'a Path,
    /// The environment of the person's programs.
    pub(crate) vars: &'a Vars,
}

impl Setting<'_> {
    /// The launch of one of the person's programs. None is taken from the agents' folder.
    fn launch(&self, program: &str) -> Result<Launch, String> {
        let outside = |l: &Launch| !l.program.canonicalize().is_ok_and(|real| real.starts_with(self.root));
        self::program(program, self.vars)
            .filter(outside)
            .ok_or_else(|| format!("the program {program} was not found; install it, or change PATH"))
    }
}

/// The kind that the settings name; `None`: this machine's own terminal.
///
/// # Errors
/// A sentence: a setting or a program is missing.
pub(crate) fn make(setting: &Setting<'_>) -> Result<Option<Arc<dyn Kind>>, String> {
    Ok(Some(match setting.terminal.kind {
        TerminalKind::Local => return Ok(None),
        TerminalKind::Ssh => Arc::new(ssh::Ssh::new(setting)?),
        TerminalKind::Docker => Arc::new(container::Container::new(setting, "docker")?),
        TerminalKind::Podman => Arc::new(container::Container::new(setting, "podman")?),
        TerminalKind::Kubernetes => Arc::new(kubernetes::Kubernetes::new(setting)?),
    }))
}

/// The last lines of an error output, as a part of a sentence.
pub(crate) fn last_lines(errors: &str) -> String {
    let lines: Vec<&str> = errors.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let from = lines.len().saturating_sub(3);
    let text = lines[from..].join("; ");
    let end = text.floor_char_boundary(500);
    if text.is_empty() { "it ended without a message".into() } else { text[..end].to_owned() }
}

/// The launch of one of the person's programs, without arguments; `None`: it is not installed.
pub(crate) fn program(name: &str, vars: &Vars) -> Option<Launch> {
    let program = find_program(name, vars)?;
    Some(Launch { program, args: Vec::new(), env: vars.clone(), folder: "/".into() })
}
