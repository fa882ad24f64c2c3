//! The start of a server: one at a time, after a delay that grows with its failures. Its tools are read then, and compared with
//! the approved ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_protocol::lock;

use super::{Failure, Server};
use crate::connect::{Connection, NoConnection, connect};
use crate::hub::ServerRights;
use crate::session::CallError;
use crate::settings::{Started, Transport};

/// Delay before a server that failed is tried again, by the number of failures, in seconds.
const DELAYS: [u64; 6] = [0, 2, 5, 15, 30, 60];

/// Why a program that nothing confines is not started to list its tools.
const NOT_STARTED: &str = "it is not started to list its tools, since nothing confines its program here; a call of it that \
                           the user approves starts it, and so does /mcp";
/// Said of a program that could not be started to list its tools.
const LISTED: &str = "; it was started to list its tools, without the right to write in the workspace: a call of it that the \
                      user approves starts it with it, and so does /mcp";

impl Server {
    /// The connection; starts it where there is none whose program has these rights.
    pub(super) async fn connected(&self, rights: ServerRights) -> Result<Arc<Connection>, Failure> {
        if let Some(connection) = self.living(rights) {
            return Ok(connection);
        }
        let _one = self.starting.lock().await;
        if let Some(connection) = self.living(rights) {
            return Ok(connection);
        }
        // One with fewer rights has only listed its tools.
        self.end().await;
        // Since this call began, too.
        self.on()?;
        self.wait_over()?;
        let revision = {
            let mut state = lock(&self.state);
            state.starting = true;
            state.used = false;
            state.connection = None;
            state.known.revision.clone()
        };
        let _mark = StartingMark(self);
        let environment = {
            let (make, settings) = (Arc::clone(&self.environment), self.settings.clone());
            tokio::task::spawn_blocking(move || {
                let started = settings.check.as_ref().map(|check| (check.0)()).transpose()?;
                Ok::<_, String>((make(&settings, rights), started))
            })
            .await
        };
        let (environment, started) = environment
            .unwrap_or_else(|e| Err(e.to_string()))
            .map_err(|why| Failure::new(format!("it could not be started: {why}")))?;
        let free =
            matches!(self.settings.transport, Transport::Stdio { .. }) && environment.confined.is_none();
        if free && rights == ServerRights::Read {
            return Err(Failure::new(NOT_STARTED));
        }
        let made = match connect(&self.settings, &environment, revision.as_deref()).await {
            Ok((connection, lists)) => {
                let connection = Arc::new(connection);
                let read = match unchanged(started).await {
                    Ok(()) => self.read_tools(&connection).await,
                    Err(why) => Err(Failure::new(format!("it was ended: {why}"))),
                };
                if read.is_ok() {
                    let [_, prompts, resources] = connection.offers();
                    let can = [prompts, resources, connection.has_skills()];
                    let (offers, peer) = (Arc::clone(&self.offers), connection.peer().clone());
                    // It ends with the connection.
                    tokio::spawn(offers.follow(peer, can, lists));
                }
                read.map(|()| connection)
            }
            Err(NoConnection { tail, login: true, challenge, .. }) => {
                Err(Failure { tail, ..self.logged_out(challenge, None) })
            }
            Err(NoConnection { mut why, tail, theirs, .. }) => {
                if rights == ServerRights::Read && environment.confined.is_some() {
                    why.push_str(LISTED);
                }
                Err(Failure { tail, theirs, ..Failure::new(why) })
            }
        };
        let mut state = lock(&self.state);
        // What was started meanwhile ends with its connection.
        state.on()?;
        match &made {
            Ok(connection) => {
                (state.failure, state.failures, state.failed_at) = (None, 0, None);
                state.connection = Some(Arc::clone(connection));
                state.rights = if environment.confined.is_some() { rights } else { ServerRights::Write };
            }
            Err(failure) => {
                state.failure = Some(failure.clone());
                state.failures += 1;
                state.failed_at = Some(Instant::now());
            }
        }
        made
    }

    pub(super) fn living(&self, rights: ServerRights) -> Option<Arc<Connection>> {
        let mut state = lock(&self.state);
        let connection = state.connection.clone()?;
        if connection.is_alive() {
            return Some(connection).filter(|_| state.rights >= rights);
        }
        // It ended by itself: that counts as a failure, so that one that crashes at each call is not started without end.
        state.failure =
            Some(Failure { tail: connection.tail.text(), ..Failure::new(connection.why_ended()) });
        state.failures += 1;
        state.failed_at = Some(Instant::now());
        state.connection = None;
        None
    }

    /// Refuses a start that follows too soon on a failure.
    fn wait_over(&self) -> Result<(), Failure> {
        let state = lock(&self.state);
        let (Some(failure), Some(at)) = (&state.failure, state.failed_at) else { return Ok(()) };
        let delay = Duration::from_secs(DELAYS[(state.failures.saturating_sub(1)).min(DELAYS.len() - 1)]);
        let left = delay.saturating_sub(at.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let why =
            format!("{}; it is tried again in {} s, or at once by /mcp", failure.why, left.as_secs() + 1);
        Err(Failure { why, ..failure.clone() })
    }

    /// Reads the tools, and compares them with the approved ones.
    pub(super) async fn read_tools(&self, connection: &Connection) -> Result<(), Failure> {
        let reading = tokio::time::timeout(self.settings.start, connection.tools());
        let (tools, left_out) = match reading.await {
            Err(_) => {
                let why = format!("it did not list its tools within {} s", self.settings.start.as_secs());
                return Err(Failure { tail: connection.tail.text(), ..Failure::new(why) });
            }
            Ok(Err(CallError::Login(challenge))) => return Err(self.logged_out(challenge, None)),
            Ok(Err(error)) => {
                let failure = Failure::of_server("its tools cannot be listed: ", error);
                return Err(Failure { tail: connection.tail.text(), ..failure });
            }
            Ok(Ok(tools)) => tools,
        };
        for note in &left_out {
            tracing::warn!(server = self.name(), note, "a part of the list of an MCP server was left out");
        }
        let known = {
            let mut state = lock(&self.state);
            state.known.revision = Some(connection.revision()).filter(|r| !r.is_empty());
            // What was approved stays so, also while a tool is gone.
            if state.approved(&self.settings.hash).is_none() {
                state.known.tools = Some(tools.clone());
                state.known.hash.clone_from(&self.settings.hash);
            }
            (state.now, state.left_out) = (Some(tools), left_out);
            state.known.clone()
        };
        if let Err(error) = self.file.write(&known) {
            tracing::warn!(server = self.name(), error, "the tools of an MCP server could not be kept");
        }
        Ok(())
    }
}

/// Set while a start runs, also when it is given up.
struct StartingMark<'a>(&'a Server);

impl Drop for StartingMark<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).starting = false;
    }
}

/// Fails where a file that a program runs did not stay as it was until it had started.
async fn unchanged(started: Option<Started>) -> Result<(), String> {
    let Some(look) = started else { return Ok(()) };
    tokio::task::spawn_blocking(look).await.unwrap_or_else(|e| Err(e.to_string()))
}
