//! Starts an engine for a new or stored session.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tiller_config::Flags;
use tiller_engine::{EngineHandle, EventStream, Human, Open};
use tiller_mcp::ServerSettings;
use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::view::Snapshot;
use tiller_protocol::{
    Command, CommandBody, CommandId, Entry, Event, EventBody, Notice, NoticeKind, SessionId, ToolCatalog,
};
use tiller_store::Store;

use super::modes::Choices;
use super::params;
use crate::app::definitions::mcp::McpSetup;
use crate::app::{Running, Setup, Start};
use crate::commands::args::Common;
use crate::commands::exec::prepare::{check_model, holder};
use crate::commands::exec::stop;
use tiller_rpc::Error;

/// The number of the first command.
pub(super) const LOOK: CommandId = CommandId(0);

/// A session that runs.
pub(super) struct RunningSession {
    pub(super) engine: OwnedEngine,
    pub(super) handle: EngineHandle,
    pub(super) events: EventStream,
    pub(super) snapshot: Snapshot,
    pub(super) choices: Choices,
    pub(super) root: PathBuf,
    pub(super) tools: ToolCatalog,
    /// Notices for the person.
    pub(super) notices: Vec<Notice>,
}

/// Starts the engine. Blocks. `servers`: MCP servers of the client, for this session.
///
/// # Errors
/// When the folder, the settings, the model or the session cannot be used.
pub(super) fn start(
    common: &Common,
    store: Store,
    cwd: PathBuf,
    id: Option<SessionId>,
    servers: Vec<ServerSettings>,
) -> Result<RunningSession, Error> {
    let common = Common { dir: Some(cwd), ..common.clone() };
    let mut setup = Setup::read(&common, Flags::default())?;
    setup.check_config()?;
    setup.keep_secret(servers.iter().flat_map(ServerSettings::secrets).collect());
    let taken = McpSetup::bring(&mut setup, servers);
    let open = match id {
        None => Open::New,
        Some(id) => {
            let row = store.sessions().get(id).map_err(|_| params::no_session(&id.to_string()))?;
            if row.summary.project != setup.project_name() {
                let there = row.summary.project;
                return Err(Error::invalid_params(format!(
                    "this session belongs to another folder: {there}"
                )));
            }
            Open::Session(id)
        }
    };
    check_model(&setup, id.is_none())?;
    if let Some(holder) = holder(&setup, &store, open) {
        return Err(Error::invalid_request(format!(
            "the session is open in process {holder}; close it there first"
        )));
    }
    let (root, tools) = (setup.project.clone(), setup.tools.catalog());
    let config = Arc::new(setup.config.config.clone());
    let start = Start {
        human: Human::Present,
        made_by: tiller_store::MadeBy::Person,
        exporter: Some(Arc::new(crate::commands::export_file)),
        ..Start::headless(open)
    };
    let mut engine = Running::start(setup, store, start)?;
    let (handle, mut events) = (engine.handle(), engine.events());
    let mut notices = std::mem::take(&mut engine.notices);
    notices.extend(taken.into_iter().map(|name| {
        let text =
            format!("the MCP server {name} of the client is left out: your settings have one of this name");
        Notice::new(NoticeKind::Config, text)
    }));
    engine.block_on(async { stop::heed(&engine) })?;
    let snapshot = engine.block_on(look(&handle, &mut events, &mut notices));
    // Dropping it ends the engine, also when the session cannot be continued.
    let engine = OwnedEngine(Some(engine));
    let snapshot = snapshot?;
    let choices = Choices::new(snapshot.profile, snapshot.model.clone(), &config);
    Ok(RunningSession { engine, handle, events, snapshot, choices, root, tools, notices })
}

/// Requests the whole state. It contains everything that happened before, except notices.
async fn look(
    handle: &EngineHandle,
    events: &mut EventStream,
    notices: &mut Vec<Notice>,
) -> Result<Snapshot, Error> {
    let ended = || Error::internal("the engine ended");
    handle.send(Command::new(LOOK, CommandBody::Query(Query::Snapshot))).map_err(|_| ended())?;
    loop {
        let event = events.next().await.ok_or_else(ended)?;
        let Event { cause, body, .. } = &*event;
        match body {
            EventBody::State(StateEvent::Notice { notice }) => notices.push(notice.clone()),
            EventBody::Reply(r) if *cause == Some(LOOK) => {
                if let ReplyEvent::SnapshotReply { snapshot } = r.as_ref() {
                    return Ok((**snapshot).clone());
                }
            }
            _ => {}
        }
    }
}

/// Every entry of the open path, oldest first. The last ones come from the engine, because new entries may not be on
/// disk yet. Blocks.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn path(store: &Store, snapshot: &Snapshot) -> Result<Vec<Entry>, Notice> {
    let before = snapshot.entries.first().and_then(|e| e.parent);
    let mut all = match before {
        Some(entry) => store.paths().tail_at(entry, u32::MAX).map_err(|e| e.notice())?.entries,
        None => Vec::new(),
    };
    all.extend(snapshot.entries.iter().cloned());
    Ok(all)
}

/// Checks whether a client may use this folder.
pub(super) fn folder(cwd: &Path) -> Result<(), Error> {
    if cwd.is_absolute() {
        return Ok(());
    }
    Err(Error::invalid_params("cwd must be an absolute path"))
}

/// An engine that is shut down regularly when it is dropped. The shutdown blocks, so it runs on another thread.
pub(super) struct OwnedEngine(Option<Running>);

impl OwnedEngine {
    /// Ends it and waits.
    pub(super) async fn stop(mut self) {
        let Some(engine) = self.0.take() else { return };
        let _ = tokio::task::spawn_blocking(move || engine.stop()).await;
    }
}

impl Drop for OwnedEngine {
    fn drop(&mut self) {
        if let Some(engine) = self.0.take() {
            let made = thread::Builder::new().name("end".into()).spawn(move || engine.stop());
            if let Err(e) = made {
                tracing::error!(%e, "an engine could not be stopped cleanly");
            }
        }
    }
}

/// An internal error, as the answer to a pending request.
pub(super) fn broken(what: &str) -> Error {
    Notice::new(NoticeKind::Internal, what).into()
}
