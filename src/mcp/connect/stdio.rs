//! A program of this machine, over its pipes.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tiller_tool::shell::{Host, HostedProgram, Launch, find_program};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::{Connection, Environment, NoConnection, words};
use crate::bounds::{MESSAGE, Tail, forward, keep_tail};
use crate::handler::Handler;

/// Bytes between the program's output and the SDK.
const BUFFER: usize = 64 << 10;

/// Variables by which programs that fetch themselves find their caches, and the folder of each. The sandbox keeps them from
/// the person's own.
const CACHES: [(&str, &str); 6] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("UV_TOOL_DIR", "uv-tools"),
    ("UV_PYTHON_INSTALL_DIR", "uv-python"),
];

/// What is started.
pub(super) struct Program<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) folder: Option<&'a Path>,
}

pub(super) async fn connect(
    program: &Program<'_>,
    environment: &Environment,
    handler: Handler,
    mode: ClientLifecycleMode,
) -> Result<Connection, NoConnection> {
    let launch = launch(program, environment)?;
    let confiner = environment.confined.as_ref().map(|confined| Arc::clone(&confined.confiner));
    let bounds = environment.bounds;
    let start = move || -> std::io::Result<(HostedProgram, OwnedFd, OwnedFd, OwnedFd)> {
        let (stdin, input) = std::io::pipe()?;
        let (out, stdout) = std::io::pipe()?;
        let (err, stderr) = std::io::pipe()?;
        let host = Host::default().confined(confiner);
        let hosted = host.start(launch, Stdio::from(stdin), Stdio::from(stdout), Stdio::from(stderr))?;
        Ok((hosted, input.into(), out.into(), err.into()))
    };
    let failed = |e: &dyn std::fmt::Display| {
        NoConnection::new(format!("{} could not be started: {e}", program.command))
    };
    let (mut hosted, input, out, err) =
        tokio::task::spawn_blocking(start).await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
    hosted.bound(bounds);
    let input = Sender::from_owned_fd(input).map_err(|e| failed(&e))?;
    let out = Receiver::from_owned_fd(out).map_err(|e| failed(&e))?;
    let err = Receiver::from_owned_fd(err).map_err(|e| failed(&e))?;
    let tail = Tail::default();
    // Both end with their pipes, which close with the program.
    let last_words = tokio::spawn(keep_tail(err, tail.clone()));
    let (theirs, ours) = tokio::io::duplex(BUFFER);
    tokio::spawn(forward(out, theirs, tail.clone()));
    let transport = AsyncRwTransport::new(ours, input).with_max_line_length(MESSAGE + 1);
    let (calls, changed) = (handler.calls.clone(), handler.changed.clone());
    match handler.serve_with_lifecycle(transport, mode).await {
        Ok(running) => Ok(Connection { running, calls, changed, tail, program: Some(hosted) }),
        Err(error) => {
            let mut failed = words(&error);
            // The end of a program comes a moment after the end of its output.
            if failed.probe
                && let Ok(exit) = tokio::time::timeout(super::GRACE, hosted.ended()).await
            {
                (failed.why, failed.theirs) =
                    (format!("it ended with exit code {} before it answered", exit.code), None);
            }
            // They may still be on their way. Something that it started may hold the pipe.
            if hosted.exited().is_some() {
                let _ = tokio::time::timeout(super::GRACE, last_words).await;
            }
            // One that was ended for what it did would do it again.
            if let Some(ended) = tail.closed().or_else(|| hosted.excess()) {
                (failed.why, failed.theirs, failed.probe) = (ended, None, false);
            }
            failed.tail = tail.text();
            Err(failed)
        }
    }
}

/// Says that a program is missing; one of Windows has a name that says so.
fn not_installed(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    let ends = [".cmd", ".bat", ".exe", ".ps1"].iter().find_map(|end| name.strip_suffix(end));
    match (name.as_str(), ends) {
        ("cmd" | "powershell", _) | (_, Some("cmd" | "powershell")) => format!(
            "the program {command} is not installed here: it is a shell of Windows; give the command behind its /c itself"
        ),
        (_, Some(plain)) => {
            format!("the program {command} is not installed here: it is a file of Windows; try {plain}")
        }
        _ => format!("the program {command} is not installed here"),
    }
}

fn launch(program: &Program<'_>, environment: &Environment) -> Result<Launch, NoConnection> {
    let mut env: Vec<(String, String)> = (*environment.vars).clone();
    if let Some(confined) = &environment.confined {
        env.retain(|(name, _)| !CACHES.iter().any(|(cache, _)| cache == name));
        let inside = |folder: &str| confined.cache.join(folder).display().to_string();
        env.extend(CACHES.iter().map(|(name, folder)| ((*name).to_owned(), inside(folder))));
    }
    env.retain(|(name, _)| !program.env.iter().any(|(own, _)| own == name));
    env.extend(program.env.iter().cloned());
    let folder =
        program.folder.map_or_else(|| environment.root.clone(), |folder| environment.root.join(folder));
    let relative = program.command.contains('/') && !program.command.starts_with('/');
    let command = if relative {
        folder.join(program.command).display().to_string()
    } else {
        program.command.to_owned()
    };
    let found =
        find_program(&command, &env).ok_or_else(|| NoConnection::new(not_installed(program.command)))?;
    if !folder.is_dir() {
        return Err(NoConnection::new(format!("there is no folder {}", folder.display())));
    }
    Ok(Launch { program: found, args: program.args.to_vec(), env, folder })
}
