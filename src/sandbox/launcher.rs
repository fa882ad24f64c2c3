//! The first steps of a confined process.
//!
//! `main` calls [`run`] before anything else, while there is one thread. A launch that [`crate::confine`] has changed
//! starts this program with the policy as an argument; it restricts itself and replaces itself by the command, so that
//! nothing of the policy is left in the arguments or the environment of the command.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use crate::SandboxError;
use crate::policy::Policy;
#[cfg(target_os = "linux")]
use crate::policy::Profile;
use crate::probe;

/// The first argument of a launcher. Its policy follows, then the command.
pub const MARK: &str = "__sandbox";

/// Exit code when the command could not be confined or started: the code by which shells say "not executable".
pub const FAILED: u8 = 126;

/// What the launcher does once it is confined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Becomes the command.
    Exec,
    /// Tries what must fail, and prints the results.
    Probe(probe::Targets),
}

/// The instructions of a launcher, from its argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub policy: Policy,
    /// It runs inside of bubblewrap.
    pub namespaces: bool,
    /// The folder in which it finds its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<PathBuf>,
    pub step: Step,
}

impl Spec {
    pub(crate) fn encode(&self) -> String {
        // Paths that are no text cannot be written as JSON: then the launcher fails on the empty argument.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The exit code, if this process was started as a launcher. Otherwise `None`, after a look at one argument.
pub fn run() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    if args.nth(1)? != MARK {
        return None;
    }
    Some(launch(args))
}

/// Acts as a launcher with the arguments after [`MARK`].
pub(crate) fn launch(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let spec = args.next().and_then(|text| serde_json::from_str::<Spec>(text.to_str()?).ok());
    let Some(spec) = spec else {
        return fail(&SandboxError("the sandbox cannot read its policy".into()));
    };
    if let Err(e) = join_proxy(&spec).and_then(|()| restrict(&spec)) {
        return fail(&e);
    }
    match spec.step {
        Step::Probe(targets) => {
            probe::child::run(&spec.policy, &targets);
            ExitCode::SUCCESS
        }
        Step::Exec => {
            let Some(program) = args.next() else {
                return fail(&SandboxError("there is no command".into()));
            };
            fail(&become_command(&program, args))
        }
    }
}

/// Hands the proxy a listening socket of the command's own network namespace. Without one there is nothing to hand over.
#[cfg(target_os = "linux")]
fn join_proxy(spec: &Spec) -> Result<(), SandboxError> {
    match spec.policy.proxy_socket().filter(|_| spec.namespaces) {
        Some(socket) => crate::proxy::offer(socket)
            .map_err(|e| SandboxError::new("the proxy for sandbox_network cannot be used", e)),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn join_proxy(_spec: &Spec) -> Result<(), SandboxError> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn restrict(spec: &Spec) -> Result<(), SandboxError> {
    // Afterwards no socket can be made.
    let supervisor = spec.supervisor.as_deref().map(crate::supervisor::channel::connect).transpose();
    let supervisor = match supervisor {
        // It only counts removals and processes there.
        Err(_) if spec.policy.profile == Profile::Floor => None,
        supervisor => supervisor.map_err(|e| SandboxError::new("the supervisor cannot be reached", e))?,
    };
    crate::linux::restrict(&spec.policy, spec.namespaces, supervisor)
}

#[cfg(not(target_os = "linux"))]
fn restrict(_spec: &Spec) -> Result<(), SandboxError> {
    Err(SandboxError("there is no sandbox on this system".into()))
}

/// Returns only when the command could not be started.
fn become_command(program: &std::ffi::OsStr, args: impl Iterator<Item = std::ffi::OsString>) -> SandboxError {
    use std::convert::Infallible;
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command.args(args);
    let error = match tiller_tool::shell::retry_while_busy::<Infallible>(|| Err(command.exec())) {
        Err(error) => error,
        Ok(never) => match never {},
    };
    SandboxError::new(&Path::new(program).display().to_string(), error)
}

fn fail(error: &SandboxError) -> ExitCode {
    use std::io::Write;
    // Standard error may be closed; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "tiller: {error}");
    ExitCode::from(FAILED)
}
