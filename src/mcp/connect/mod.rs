//! Connections: each is a peer of the SDK, and what has to end with it.

mod client;
mod http;
mod lists;
mod sse;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService};
use tiller_config::McpTransport;
use tiller_tool::shell::{Bounds, HostedProgram};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::bounds::Tail;
use crate::handler::{ActiveCalls, Handler};
use crate::hub::Confined;
use crate::read::words::of_start;
use crate::settings::{ServerSettings, Transport};

/// Time in which a program ends by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What a connection is made with.
#[derive(Clone)]
pub(crate) struct Environment {
    /// The variables of programs: allow-listed, without keys.
    pub(crate) vars: Arc<Vec<(String, String)>>,
    /// The workspace.
    pub(crate) root: std::path::PathBuf,
    /// The folder with the tokens of servers at an address.
    pub(crate) state: std::path::PathBuf,
    /// `None`: programs run as they are.
    pub(crate) confined: Option<Confined>,
    pub(crate) bounds: Bounds,
    /// Without a person, requests for input are answered with their defaults.
    pub(crate) accept_defaults: bool,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoConnection {
    /// A sentence without a full stop.
    pub(crate) why: String,
    /// The end of the program's standard error.
    pub(crate) tail: String,
    /// The person has to log in.
    pub(crate) login: bool,
    /// What the server said about the login.
    pub(crate) challenge: Option<String>,
    /// It ended or failed while it was asked which revision it speaks.
    pub(crate) probe: bool,
    /// The part of `why` that may be words of the server.
    pub(crate) theirs: Option<String>,
}

impl NoConnection {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            tail: String::new(),
            login: false,
            challenge: None,
            probe: false,
            theirs: None,
        }
    }

    /// For a reason in which words of the server may be.
    fn of_server(why: String) -> Self {
        Self { theirs: Some(why.clone()), ..Self::new(why) }
    }
}

/// A living connection. Dropping it ends the program with all that it started.
pub(crate) struct Connection {
    pub(crate) running: RunningService<RoleClient, Handler>,
    pub(crate) calls: ActiveCalls,
    pub(crate) changed: Arc<AtomicBool>,
    pub(crate) tail: Tail,
    /// `None`: it is no program of this machine.
    program: Option<HostedProgram>,
}

impl Connection {
    /// For requests.
    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    /// True if it can still be used.
    pub(crate) fn is_alive(&self) -> bool {
        !self.running.is_closed() && !self.peer().is_transport_closed() && self.exit().is_none()
    }

    /// How the program ended, when it has.
    pub(crate) fn exit(&self) -> Option<String> {
        let exit = self.program.as_ref()?.exited()?;
        Some(match exit.code {
            code if code > 128 => format!("it was ended by signal {}", code - 128),
            code => format!("it ended with exit code {code}"),
        })
    }

    /// The revision of the protocol that was agreed on.
    pub(crate) fn revision(&self) -> String {
        self.peer().peer_info().map_or_else(String::new, |info| info.protocol_version.to_string())
    }

    /// True for each of tools, prompts and resources that it announces.
    pub(crate) fn offers(&self) -> [bool; 3] {
        let Some(info) = self.peer().peer_info() else { return [true; 3] };
        let can = &info.capabilities;
        [can.tools.is_some(), can.prompts.is_some(), can.resources.is_some()]
    }

    /// Returns true if it says that some of its resources are skills.
    pub(crate) fn has_skills(&self) -> bool {
        self.peer().peer_info().is_some_and(|info| info.capabilities.supports_skills())
    }

    /// Ends it. A program has [`GRACE`] to end by itself.
    pub(crate) async fn end(mut self) {
        // The program sees the end of its input.
        let _ = self.running.close_with_timeout(Duration::from_millis(500)).await;
        if let Some(program) = self.program.take() {
            program.end(GRACE, &CancellationToken::new()).await;
        }
    }
}

/// Connects. `revision`: what the server spoke the last time. The receiver hears that its prompts or resources changed, and
/// ends when the connection is dropped.
pub(crate) async fn connect(
    settings: &ServerSettings,
    environment: &Environment,
    revision: Option<&str>,
) -> Result<(Connection, Receiver<()>), NoConnection> {
    let (lists, listed) = tokio::sync::mpsc::channel(1);
    let handler = Handler {
        name: settings.name.clone(),
        calls: ActiveCalls::default(),
        changed: Arc::default(),
        lists,
        accept_defaults: environment.accept_defaults,
        root: environment.root.clone(),
    };
    let limit = settings.start;
    let work = async {
        match &settings.transport {
            Transport::Stdio { command, args, env, folder } => {
                let program = stdio::Program { command, args, env, folder: folder.as_deref() };
                match stdio::connect(&program, environment, handler.clone(), mode(revision)).await {
                    // Some programs end at a request that they do not know.
                    Err(failed) if failed.probe && revision.is_none() => {
                        stdio::connect(&program, environment, handler, ClientLifecycleMode::Initialize).await
                    }
                    other => other,
                }
            }
            Transport::Http { url, headers, kind: Some(McpTransport::Sse), .. } => {
                sse::connect(url, headers, handler).await
            }
            Transport::Http { url, headers, kind, client, grant } => {
                let (client, grant) = (client.as_ref(), grant.as_ref());
                let address = http::Address { url, headers, client, grant, state: &environment.state };
                let mut made = http::connect(&address, handler.clone(), mode(revision)).await;
                // Some servers answer a request that they do not know with an empty result.
                if made.as_ref().is_err_and(|failed| failed.probe && !failed.login)
                    && !matches!(mode(revision), ClientLifecycleMode::Initialize)
                {
                    made = http::connect(&address, handler.clone(), ClientLifecycleMode::Initialize).await;
                }
                match made {
                    Err(failed) if kind.is_none() && !failed.login && grant.is_none() => {
                        match sse::connect(url, headers, handler).await {
                            Err(_) => Err(failed),
                            connected => connected,
                        }
                    }
                    other => other,
                }
            }
        }
    };
    let mut result = match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(NoConnection::new(format!("it did not answer within {} s", limit.as_secs()))),
    };
    if let Err(failed) = &mut result
        && matches!(settings.transport, Transport::Stdio { .. })
        && let Some(confined) = &environment.confined
    {
        let said = failed.tail.clone();
        let (root, confiner) = (environment.root.clone(), Arc::clone(&confined.confiner));
        // It looks at files.
        let hidden = tokio::task::spawn_blocking(move || confiner.hidden_in(&said, &root, &root)).await;
        match hidden.ok().flatten() {
            Some(path) => failed.why.push_str(&hides(&path)),
            None if confined.offline && may_be_offline(failed) => failed.why.push_str(OFFLINE),
            None => {}
        }
    }
    result.map(|connection| (connection, listed))
}

/// Why a confined program may fail, and what to do.
const OFFLINE: &str = ". The sandbox gives its program no network: if it fetches itself, as npx and uvx do, or needs a \
                       server, allow the hosts by --network HOST, or by network = [\"HOST\"] in [mcp.NAME]";

/// The sentence about a file that a confined program does not find.
fn hides(path: &str) -> String {
    let path: String = tiller_tool::text::visible(path).chars().take(300).collect();
    format!(
        ". The sandbox hides {path} from its program: name its folder, if that lies below /tmp, in the server's args, move it \
         into the workspace, or set unconfined = true in [mcp.NAME]"
    )
}

/// Words by which programs say that a file of theirs is missing, and those for a missing network.
const MISSING: [&str; 6] = [
    "no such file",
    "can't open file",
    "cannot find module",
    "modulenotfounderror",
    "enoent",
    "not executable",
];
const UNREACHABLE: [&str; 8] =
    ["enotfound", "eai_again", "econn", "network", "resolve", "resolution", "unreachable", "dns"];

/// True if a program may have failed for want of a network: not one that was not started, or that missed a file.
fn may_be_offline(failed: &NoConnection) -> bool {
    let said = failed.tail.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let unstarted =
        ["exit code 126 ", "exit code 127 ", "could not be started", "is not installed", "no folder"];
    says(&UNREACHABLE) || !(says(&MISSING) || unstarted.iter().any(|word| failed.why.contains(word)))
}

/// How the revision is agreed on.
fn mode(revision: Option<&str>) -> ClientLifecycleMode {
    let newest = || vec![ProtocolVersion::V_2026_07_28];
    match revision {
        Some(revision) if revision < ProtocolVersion::NO_INITIALIZE.as_str() => {
            ClientLifecycleMode::Initialize
        }
        // It may have been replaced by an older one meanwhile.
        _ => ClientLifecycleMode::Auto {
            preferred_versions: newest(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

/// The SDK's error in words.
fn words(error: &ClientInitializeError) -> NoConnection {
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return words(fallback);
    }
    let challenge = error.auth_challenge().map(str::to_owned);
    let probe = matches!(
        error,
        ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. }
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
    );
    NoConnection {
        login: error.is_authorization_required() || challenge.is_some(),
        challenge,
        probe,
        ..NoConnection::of_server(of_start(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_started_or_misses_a_file_does_not_lack_a_network() {
        for (why, tail, offline) in [
            ("it ended with exit code 1 before it answered", "npm error code ENOTFOUND", true),
            (
                "it ended with exit code 1 before it answered",
                "npm error code ENOENT\nnpm error EAI_AGAIN",
                true,
            ),
            ("it did not answer within 30 s", "", true),
            ("it ended with exit code 126 before it answered", "", false),
            ("it ended with exit code 127 before it answered", "sh: x: not found", false),
            (
                "it ended with exit code 2 before it answered",
                "python3: can't open file '/tmp/x/server.py': [Errno 2] No such file or directory",
                false,
            ),
            (
                "it ended with exit code 1 before it answered",
                "Error: Cannot find module '/tmp/x/index.js'",
                false,
            ),
            ("/x/server could not be started: Permission denied", "", false),
            ("the program nothing is not installed here", "", false),
        ] {
            let failed = NoConnection { tail: tail.into(), ..NoConnection::new(why) };
            assert_eq!(may_be_offline(&failed), offline, "{why}: {tail}");
        }
        assert!(hides("/tmp/x\u{1b}[2J").contains("unconfined") && !hides("a\u{1b}").contains('\u{1b}'));
    }
}
