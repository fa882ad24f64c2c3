//! Routes the client's messages to the open sessions.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{ModelRef, NoticeKind, SessionId};
use tiller_rpc::{Error, Line, Malformed, Message};
use tiller_store::{Filter, Store};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::input::LONGEST;
use super::outlet::{Ending, Outlet};
use super::session::{Session, SessionRequest};
use super::{modes, open, params, servers, session};
use crate::commands::Exit;
use crate::commands::args::Common;

/// The protocol's version.
const VERSION: u64 = 1;
/// Capacity of a session's request channel.
const ORDERS: usize = 64;
/// Sessions on one page of the list.
const PAGE: usize = 100;
/// Maximum number of open sessions.
const SESSIONS: usize = 32;
/// Time limit for all engines to end: each takes a few seconds at most.
const LAST: Duration = Duration::from_secs(6);

/// The open sessions and the connection to the client.
pub(super) struct Hub {
    common: Common,
    store: Store,
    out: Outlet,
    /// `None` before `initialize`; then whether the client supports forms.
    client: Option<bool>,
    /// Requests to each open session. Dropping a sender ends its session.
    sessions: HashMap<SessionId, mpsc::Sender<SessionRequest>>,
    /// Sessions that are being opened.
    opening: HashSet<SessionId>,
    /// One task for each session; returns the id of the session that ended.
    tasks: JoinSet<Option<SessionId>>,
    /// Receives the sessions that were opened. The hub holds both ends, so that it never closes.
    opened: (mpsc::Sender<OpenedSession>, mpsc::Receiver<OpenedSession>),
}

/// A session that was just opened.
struct OpenedSession {
    id: SessionId,
    sender: mpsc::Sender<SessionRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenParams {
    cwd: PathBuf,
    session_id: Option<String>,
    #[serde(default)]
    mcp_servers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptParams {
    session_id: String,
    prompt: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    session_id: String,
    mode_id: Option<String>,
    model_id: Option<String>,
    config_id: Option<String>,
    value: Option<Value>,
}

#[derive(Deserialize)]
struct ListParams {
    cwd: Option<PathBuf>,
    cursor: Option<String>,
}

impl Hub {
    pub(super) fn new(common: Common, store: Store, out: Outlet) -> Self {
        Self {
            common,
            store,
            out,
            client: None,
            sessions: HashMap::new(),
            opening: HashSet::new(),
            tasks: JoinSet::new(),
            opened: mpsc::channel(SESSIONS),
        }
    }

    /// Serves until the input ends, the output is closed, or a signal arrives; then ends every session.
    pub(super) async fn serve(
        mut self,
        mut lines: mpsc::Receiver<Line>,
        mut ending: watch::Receiver<Ending>,
    ) -> Exit {
        let out = self.out.clone();
        let exit = loop {
            // A session is registered before its client can name it: the answer is sent later.
            tokio::select! {
                biased;
                Some(session) = self.opened.1.recv() => {
                    self.opening.remove(&session.id);
                    self.sessions.insert(session.id, session.sender);
                }
                Some(ended) = self.tasks.join_next() => {
                    if let Ok(Some(id)) = ended {
                        self.opening.remove(&id);
                        self.sessions.remove(&id);
                    }
                }
                () = out.closed() => break Exit::Done,
                _ = ending.wait_for(|e| *e == Ending::Signal) => break Exit::Interrupted,
                line = lines.recv() => match line {
                    Some(Line::Text(line)) => self.message(Message::read(&line)).await,
                    Some(Line::TooLong) => self.out.answer(&Value::Null, Err(Error::too_long(LONGEST))).await,
                    None => break Exit::Done,
                },
            }
        };
        self.end().await;
        exit
    }

    /// Saves and ends every session.
    async fn end(mut self) {
        self.sessions.clear();
        self.opened.1.close();
        while let Some(session) = self.opened.1.recv().await {
            drop(session);
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST, all).await.is_err() {
            tracing::error!("a session did not end in time");
        }
    }

    async fn message(&mut self, message: Result<Message, Box<Malformed>>) {
        match message {
            Err(malformed) => {
                let Malformed { id, error } = *malformed;
                self.out.answer(&id, Err(error)).await;
            }
            Ok(Message::Notification { method, params }) => self.notification(&method, params).await,
            // An error counts as no answer.
            Ok(Message::Response { id, result }) => self.response(&id, result.ok()).await,
            Ok(Message::Request { id, method, params }) => {
                // `None`: answered elsewhere.
                if let Some(result) = self.request(&id, &method, params).await.transpose() {
                    self.out.answer(&id, result).await;
                }
            }
        }
    }

    async fn notification(&mut self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                let Ok(params) = serde_json::from_value::<SessionParams>(params) else { return };
                let sender = params.session_id.parse().ok().and_then(|id| self.sessions.get(&id));
                if let Some(sender) = sender {
                    let _ = sender.send(SessionRequest::Cancel).await;
                }
            }
            "$/cancel_request" => {
                let Some(id) = params.get("requestId") else { return };
                for sender in self.sessions.values() {
                    let _ = sender.send(SessionRequest::Withdraw { id: id.clone() }).await;
                }
            }
            // Other notifications are ignored.
            _ => {}
        }
    }

    /// An answer to a request of a session: the id names the session.
    async fn response(&self, id: &Value, result: Option<Value>) {
        let Some((session, n)) = id.as_str().and_then(|id| id.rsplit_once('/')) else { return };
        let (Ok(session), Ok(n)) = (session.parse::<SessionId>(), n.parse()) else { return };
        if let Some(sender) = self.sessions.get(&session) {
            let _ = sender.send(SessionRequest::Answer { n, result }).await;
        }
    }

    async fn request(&mut self, id: &Value, method: &str, value: Value) -> Result<Option<Value>, Error> {
        if self.client.is_none() && method != "initialize" && method.starts_with("session/") {
            return Err(Error::invalid_request("initialize must be the first request"));
        }
        let id = id.clone();
        match method {
            "initialize" => Ok(Some(self.initialize(&value))),
            // There is no login: the keys are in the settings.
            "authenticate" => Ok(Some(json!({}))),
            "session/new" => self.open(id, params::read::<OpenParams>(value)?, OpenMode::New).map(|()| None),
            "session/load" => self.open_stored(id, params::read(value)?, OpenMode::Load).await.map(|()| None),
            "session/resume" => {
                self.open_stored(id, params::read(value)?, OpenMode::Resume).await.map(|()| None)
            }
            "session/list" => self.list(params::read(value)?).await.map(Some),
            "session/prompt" => {
                let PromptParams { session_id, prompt } = params::read(value)?;
                self.order(&session_id, SessionRequest::Prompt { id, blocks: prompt }).await
            }
            "session/close" => {
                let params: SessionParams = params::read(value)?;
                self.order(&params.session_id, SessionRequest::Close { id }).await
            }
            "session/set_mode" => {
                let params: SessionParams = params::read(value)?;
                let mode = params.mode_id.ok_or_else(|| Error::invalid_params("modeId is missing"))?;
                let profile = modes::profile(&mode)?;
                self.order(&params.session_id, SessionRequest::Mode { id, profile }).await
            }
            "session/set_model" => {
                let params: SessionParams = params::read(value)?;
                let model = params.model_id.ok_or_else(|| Error::invalid_params("modelId is missing"))?;
                let order = SessionRequest::Model { id, model: ModelRef(model), options: false };
                self.order(&params.session_id, order).await
            }
            "session/set_config_option" => {
                let params: SessionParams = params::read(value)?;
                let value = params.value.as_ref().and_then(Value::as_str);
                let value =
                    value.ok_or_else(|| Error::invalid_params("value must be one of the option's values"))?;
                let order = match params.config_id.as_deref() {
                    Some(modes::MODE) => SessionRequest::Option { id, profile: modes::profile(value)? },
                    Some(modes::MODEL) => {
                        SessionRequest::Model { id, model: ModelRef(value.into()), options: true }
                    }
                    _ => return Err(Error::invalid_params("unknown option")),
                };
                self.order(&params.session_id, order).await
            }
            other => Err(Error::unknown_method(other)),
        }
    }

    fn initialize(&mut self, value: &Value) -> Value {
        let forms = value.pointer("/clientCapabilities/elicitation/form");
        self.client = Some(forms.is_some_and(|f| !f.is_null()));
        json!({
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": true},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "agentInfo": {"name": "tiller", "title": "Tiller", "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [],
        })
    }

    async fn order(&self, session: &str, order: SessionRequest) -> Result<Option<Value>, Error> {
        let sender = session.parse().ok().and_then(|id: SessionId| self.sessions.get(&id));
        let sender = sender.ok_or_else(|| params::no_session(session))?;
        sender.send(order).await.map_err(|_| params::no_session(session))?;
        Ok(None)
    }

    /// Opens a stored session.
    async fn open_stored(&mut self, id: Value, params: OpenParams, how: OpenMode) -> Result<(), Error> {
        let name = params.session_id.clone().unwrap_or_default();
        let session: SessionId = name.parse().map_err(|_| params::no_session(&name))?;
        if let Some(sender) = self.sessions.get(&session) {
            let order = SessionRequest::Load { id, replay: how == OpenMode::Load };
            return sender.send(order).await.map_err(|_| params::no_session(&name));
        }
        if !self.opening.insert(session) {
            return Err(Error::invalid_request("this session is being opened"));
        }
        let opened = self.open(id, params, how);
        if opened.is_err() {
            self.opening.remove(&session);
        }
        opened
    }

    /// Starts an engine for a session; its task answers.
    fn open(&mut self, id: Value, params: OpenParams, how: OpenMode) -> Result<(), Error> {
        open::folder(&params.cwd)?;
        let servers = servers::read(&params.mcp_servers)?;
        if self.tasks.len() >= SESSIONS {
            return Err(Error::invalid_request(format!("{SESSIONS} sessions are open: close one first")));
        }
        let session =
            params.session_id.as_deref().filter(|_| how != OpenMode::New).and_then(|s| s.parse().ok());
        let (common, store, out) = (self.common.clone(), self.store.clone(), self.out.clone());
        let (opened_tx, forms) = (self.opened.0.clone(), self.client == Some(true));
        self.tasks.spawn(async move {
            let books = store.clone();
            let cwd = params.cwd;
            let start = move || open::start(&common, books, cwd, session, servers);
            let started = tokio::task::spawn_blocking(start);
            let opened = match started
                .await
                .unwrap_or_else(|_| Err(open::broken("the session could not be opened")))
            {
                Ok(opened) => opened,
                Err(error) => {
                    out.answer(&id, Err(error)).await;
                    return session;
                }
            };
            let notes: Vec<String> = opened
                .notices
                .iter()
                .filter(|n| n.kind != NoticeKind::Info || !n.hints.is_empty())
                .map(session::words)
                .collect();
            let mut s = Session::new(&opened, store, out.clone(), forms, notes.clone());
            if how == OpenMode::Load
                && let Err(error) = s.replay(&opened.snapshot).await
            {
                opened.engine.stop().await;
                out.answer(&id, Err(error)).await;
                return session;
            }
            // The session's task holds the receiver.
            let (sender, orders) = mpsc::channel(ORDERS);
            let number = opened.snapshot.session.id;
            if opened_tx.send(OpenedSession { id: number, sender }).await.is_err() {
                opened.engine.stop().await;
                return Some(number);
            }
            let mut result = s.state();
            if how == OpenMode::New {
                result["sessionId"] = json!(number);
            }
            if !notes.is_empty() {
                result["_meta"] = json!({"tiller": {"notes": notes}});
            }
            out.answer(&id, Ok(result)).await;
            Some(s.run(orders, opened.events, opened.snapshot, opened.engine).await)
        });
        Ok(())
    }

    async fn list(&self, ListParams { cwd, cursor }: ListParams) -> Result<Value, Error> {
        let from: usize = match cursor {
            None => 0,
            Some(c) => c.parse().map_err(|_| Error::invalid_params("unknown cursor"))?,
        };
        if let Some(cwd) = &cwd {
            open::folder(cwd)?;
        }
        let store = self.store.clone();
        let read = tokio::task::spawn_blocking(move || {
            let project = cwd.map(|c| tiller_protocol::names::written(&c.canonicalize().unwrap_or(c)));
            store.sessions().list(&Filter { project, ..Filter::default() }).map_err(|e| e.notice())
        });
        let rows = read.await.map_err(|_| open::broken("the sessions could not be read"))??;
        let sessions: Vec<Value> = rows
            .iter()
            .skip(from)
            .take(PAGE)
            .map(|s| json!({"sessionId": s.id, "cwd": s.project, "title": s.title, "updatedAt": s.used}))
            .collect();
        let next = from.saturating_add(PAGE);
        let mut result = json!({"sessions": sessions});
        if next < rows.len() {
            result["nextCursor"] = next.to_string().into();
        }
        Ok(result)
    }
}

/// How a session is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenMode {
    New,
    /// With its history sent to the client.
    Load,
    /// Without its history.
    Resume,
}
