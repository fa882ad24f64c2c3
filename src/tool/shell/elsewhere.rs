//! Terminals elsewhere: another machine or a container, where the commands of an agent run and its files go.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tiller_protocol::{Part, TerminalPlace, Touch, lock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::backend::{Shell, ShellError, Start};
use super::pool::ShellPool;
use super::processes::launch::{Exit, Launch};
use crate::{ToolCx, ToolError, ToolOutput, Workspace};

/// A terminal elsewhere, for one folder of this machine.
#[async_trait]
pub trait Elsewhere: Send + Sync + std::fmt::Debug {
    /// Its name in the settings.
    fn name(&self) -> &str;

    /// Its name, its kind and what limits commands there.
    fn place(&self) -> &TerminalPlace;

    /// What an agent there has to know, as one sentence: where its commands run, and how its files get there.
    fn describe(&self) -> String;

    /// Opens a persistent shell.
    ///
    /// # Errors
    /// When there is no connection.
    async fn open(&self, start: Start) -> Result<Box<dyn Shell>, ShellError>;

    /// Starts a command in the background.
    ///
    /// # Errors
    /// When there is no connection.
    async fn start(&self, start: Start, command: &str) -> Result<ProcessThere, ShellError>;

    /// What is started here, under a pseudo-terminal, for a command under a pseudo-terminal there.
    ///
    /// # Errors
    /// When there is no connection.
    async fn on_terminal(&self, start: Start, command: &str) -> Result<Launch, ShellError>;

    /// Brings the files of this machine that have changed there. Returns what the model has to know of it, if anything.
    ///
    /// # Errors
    /// When they could not all be brought.
    async fn send(&self, workspace: &Workspace) -> Result<Option<String>, ShellError>;

    /// Fetches the files that have changed there. Returns what the model has to know of it, if anything.
    ///
    /// # Errors
    /// When they could not all be fetched.
    async fn fetch(&self, workspace: &Workspace) -> Result<Option<String>, ShellError>;

    /// Ends what the session has there: containers, connections.
    async fn close(&self);
}

/// A command that runs in the background elsewhere.
#[derive(Debug)]
pub struct ProcessThere {
    /// Its output; closed after its end.
    pub output: OwnedFd,
    /// Its input; it does not block the writer.
    pub input: std::io::PipeWriter,
    /// Set once, when it has ended. The task that holds the connection holds the sender.
    pub exit: watch::Receiver<Option<Exit>>,
    /// Fired by its owner: the command is ended.
    pub end: CancellationToken,
}

/// The terminals of the settings.
pub trait Terminals: Send + Sync {
    /// The terminal of this name for the agents of a folder; `None`: this machine's own.
    ///
    /// # Errors
    /// A sentence: there is no such terminal, or its settings are incomplete.
    fn find(&self, name: &str, root: &std::path::Path) -> Result<Option<Arc<dyn Elsewhere>>, String>;

    /// Their names.
    fn names(&self) -> Vec<String>;
}

/// For the end of what a terminal elsewhere has, at the end of the session.
const CLOSE: Duration = Duration::from_secs(5);

impl ShellPool {
    /// Ends what runs elsewhere; a connection that does not answer is not waited for.
    pub(super) async fn close_there(&self) {
        let jobs: Vec<_> = self.jobs().into_iter().filter(|job| job.there.is_some()).collect();
        jobs.iter().filter_map(|job| job.there.as_ref()).for_each(CancellationToken::cancel);
        let ended = futures_util::future::join_all(jobs.iter().map(|job| {
            let mut exit = job.exit.clone();
            async move { exit.wait_for(Option::is_some).await.is_ok() }
        }));
        let ended = tokio::time::timeout(CLOSE, ended);
        // All at once: each may take seconds, and the session's end does not wait that long. What was begun goes on then.
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let closing = slots.iter().map(|slot| async {
            if let Ok(mut slot) = slot.try_lock()
                && let Some(shell) = slot.shell.as_mut()
            {
                shell.close().await;
            }
        });
        let places = std::mem::take(&mut *lock(&self.places));
        let leaving = places.iter().map(|place| tokio::time::timeout(CLOSE, place.close()));
        let all = (futures_util::future::join_all(closing), futures_util::future::join_all(leaving));
        let _ = futures_util::future::join3(ended, all.0, all.1).await;
    }

    /// Notes a terminal elsewhere, for the end of the session.
    pub(crate) fn uses(&self, place: &Arc<dyn Elsewhere>) {
        let mut places = lock(&self.places);
        if !places.iter().any(|p| Arc::ptr_eq(p, place)) {
            places.push(Arc::clone(place));
        }
    }
}

/// Brings the changes of this machine to the agent's terminal elsewhere, before a command runs there.
pub(crate) async fn before(touch: Touch, cx: &ToolCx) -> Result<(), ToolError> {
    let Some(place) = cx.workspace.terminal().filter(|_| touch == Touch::Execute) else { return Ok(()) };
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Interrupted(String::new())),
        sent = place.send(&cx.workspace) => match sent {
            Ok(_) => Ok(()),
            Err(e) => Err(ToolError::Tell(format!("nothing was run, because the files could not be transferred: {e}"))),
        },
    }
}

/// Brings what a call has changed to the other side, and fetches what a command has changed there. What the model has to
/// know of it stands at the end of the result.
pub(crate) async fn after(
    touch: Touch,
    result: Result<ToolOutput, ToolError>,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    let Some(place) = cx.workspace.terminal() else { return result };
    // What ran may have changed files though it failed or was stopped.
    let done = match touch {
        Touch::Execute => place.fetch(&cx.workspace).await,
        Touch::Write => place.send(&cx.workspace).await,
        _ => return result,
    };
    let note = match done {
        Ok(None) => return result,
        Ok(Some(note)) => note,
        Err(e) if touch == Touch::Execute => {
            format!("the files that changed there could not be fetched: {e}")
        }
        Err(e) => format!("the change has not reached the terminal yet; the next command transfers it: {e}"),
    };
    let note = format!("[{note}]");
    result.map(|mut out| {
        out.content.push(Part::Text { text: note.clone() });
        out
    })
}
