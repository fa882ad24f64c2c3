//! Who gets which message, and the sessions that are open.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{ModelRef, NoticeKind, SessionId};
use tiller_store::{Filter, Store};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::input::{LONGEST, Line};
use super::rpc::{self, Ending, Error, Incoming, Outlet, params};
use super::session::{Ordered, Session};
use super::{modes, open, session};
use crate::commands::Exit;
use crate::commands::args::Common;

/// The protocol's version.
const VERSION: u64 = 1;
/// Orders that wait for one session.
const ORDERS: usize = 64;
/// Sessions on one page of the list.
const PAGE: usize = 100;
/// Sessions that are open at once.
const SESSIONS: usize = 32;
/// Until every engine must have ended: each takes a few seconds at most.
const LAST: Duration = Duration::from_secs(6);

/// What is open, and who asked for what.
pub(super) struct Hub {
    common: Common,
    store: Store,
    out: Outlet,
    /// The client said who it is; whether it has forms.
    client: Option<bool>,
    /// The way into each session. Dropping it ends the session.
    doors: HashMap<SessionId, mpsc::Sender<Ordered>>,
    /// Sessions that are being opened.
    opening: HashSet<SessionId>,
    /// One task a session; the id of one that ended.
    tasks: JoinSet<Option<SessionId>>,
    /// Sessions that opened come in here. The hub holds both ends: it never closes.
    came: (mpsc::Sender<Came>, mpsc::Receiver<Came>),
}

/// A session is there.
struct Came {
    id: SessionId,
    door: mpsc::Sender<Ordered>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Setup {
    cwd: PathBuf,
    session_id: Option<String>,
    #[serde(default)]
    mcp_servers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
    mode_id: Option<String>,
    model_id: Option<String>,
    config_id: Option<String>,
    value: Option<Value>,
}

#[derive(Deserialize)]
struct List {
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
            doors: HashMap::new(),
            opening: HashSet::new(),
            tasks: JoinSet::new(),
            came: mpsc::channel(SESSIONS),
        }
    }

    /// Serves until the input ends, nobody reads, or a signal comes. Then everything ends.
    pub(super) async fn serve(
        mut self,
        mut lines: mpsc::Receiver<Line>,
        mut ending: watch::Receiver<Ending>,
    ) -> Exit {
        let out = self.out.clone();
        let exit = loop {
            // A session is known before its client can name it: its answer goes out after it came in.
            tokio::select! {
                biased;
                Some(came) = self.came.1.recv() => {
                    self.opening.remove(&came.id);
                    self.doors.insert(came.id, came.door);
                }
                Some(ended) = self.tasks.join_next() => {
                    if let Ok(Some(id)) = ended {
                        self.opening.remove(&id);
                        self.doors.remove(&id);
                    }
                }
                () = out.closed() => break Exit::Done,
                _ = ending.wait_for(|e| *e == Ending::Signal) => break Exit::Interrupted,
                line = lines.recv() => match line {
                    Some(Line::Text(line)) => self.message(rpc::read(&line)).await,
                    Some(Line::TooLong) => self.out.answer(&Value::Null, Err(Error::too_long(LONGEST))).await,
                    None => break Exit::Done,
                },
            }
        };
        self.end().await;
        exit
    }

    /// Every session is saved and ended.
    async fn end(mut self) {
        self.doors.clear();
        self.came.1.close();
        while let Some(came) = self.came.1.recv().await {
            drop(came);
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST, all).await.is_err() {
            tracing::error!("a session did not end in time");
        }
    }

    async fn message(&mut self, message: Incoming) {
        match message {
            Incoming::Wrong { id, error } => self.out.answer(&id, Err(error)).await,
            Incoming::Notification { method, params } => self.notification(&method, params).await,
            Incoming::Response { id, result } => self.response(&id, result).await,
            Incoming::Request { id, method, params } => {
                // `None`: another part answers.
                if let Some(result) = self.request(&id, &method, params).await.transpose() {
                    self.out.answer(&id, result).await;
                }
            }
        }
    }

    async fn notification(&mut self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                let Ok(named) = serde_json::from_value::<Named>(params) else { return };
                let door = named.session_id.parse().ok().and_then(|id| self.doors.get(&id));
                if let Some(door) = door {
                    let _ = door.send(Ordered::Cancel).await;
                }
            }
            "$/cancel_request" => {
                let Some(id) = params.get("requestId") else { return };
                for door in self.doors.values() {
                    let _ = door.send(Ordered::Withdraw { id: id.clone() }).await;
                }
            }
            // Whatever else a client tells is not for us.
            _ => {}
        }
    }

    /// An answer to a request of a session's: the id says which.
    async fn response(&self, id: &Value, result: Option<Value>) {
        let Some((session, n)) = id.as_str().and_then(|id| id.rsplit_once('/')) else { return };
        let (Ok(session), Ok(n)) = (session.parse::<SessionId>(), n.parse()) else { return };
        if let Some(door) = self.doors.get(&session) {
            let _ = door.send(Ordered::Answer { n, result }).await;
        }
    }

    async fn request(&mut self, id: &Value, method: &str, value: Value) -> Result<Option<Value>, Error> {
        if self.client.is_none() && method != "initialize" && method.starts_with("session/") {
            return Err(Error::invalid("initialize must be the first request"));
        }
        let id = id.clone();
        match method {
            "initialize" => Ok(Some(self.initialize(&value))),
            // There is nothing to log in to: keys are the person's, in the settings.
            "authenticate" => Ok(Some(json!({}))),
            "session/new" => self.open(id, params::<Setup>(value)?, How::New).map(|()| None),
            "session/load" => self.come_back(id, params(value)?, How::Load).await.map(|()| None),
            "session/resume" => self.come_back(id, params(value)?, How::Resume).await.map(|()| None),
            "session/list" => self.list(params(value)?).await.map(Some),
            "session/prompt" => {
                let Prompt { session_id, prompt } = params(value)?;
                self.order(&session_id, Ordered::Prompt { id, blocks: prompt }).await
            }
            "session/close" => {
                let named: Named = params(value)?;
                self.order(&named.session_id, Ordered::Close { id }).await
            }
            "session/set_mode" => {
                let named: Named = params(value)?;
                let mode = named.mode_id.ok_or_else(|| Error::params("modeId is missing"))?;
                let profile = modes::profile(&mode)?;
                self.order(&named.session_id, Ordered::Mode { id, profile }).await
            }
            "session/set_model" => {
                let named: Named = params(value)?;
                let model = named.model_id.ok_or_else(|| Error::params("modelId is missing"))?;
                let order = Ordered::Model { id, model: ModelRef(model), options: false };
                self.order(&named.session_id, order).await
            }
            "session/set_config_option" => {
                let named: Named = params(value)?;
                let value = named.value.as_ref().and_then(Value::as_str);
                let value = value.ok_or_else(|| Error::params("value must be one of the option's values"))?;
                let order = match named.config_id.as_deref() {
                    Some(modes::MODE) => Ordered::Option { id, profile: modes::profile(value)? },
                    Some(modes::MODEL) => Ordered::Model { id, model: ModelRef(value.into()), options: true },
                    _ => return Err(Error::params("unknown option")),
                };
                self.order(&named.session_id, order).await
            }
            other => Err(Error::no_method(other)),
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
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "agentInfo": {"name": "tiller", "title": "Tiller", "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [],
        })
    }

    async fn order(&self, session: &str, order: Ordered) -> Result<Option<Value>, Error> {
        let door = session.parse().ok().and_then(|id: SessionId| self.doors.get(&id));
        let door = door.ok_or_else(|| Error::no_session(session))?;
        door.send(order).await.map_err(|_| Error::no_session(session))?;
        Ok(None)
    }

    /// A session that was there before.
    async fn come_back(&mut self, id: Value, setup: Setup, how: How) -> Result<(), Error> {
        let name = setup.session_id.clone().unwrap_or_default();
        let session: SessionId = name.parse().map_err(|_| Error::no_session(&name))?;
        if let Some(door) = self.doors.get(&session) {
            let order = Ordered::Load { id, replay: how == How::Load };
            return door.send(order).await.map_err(|_| Error::no_session(&name));
        }
        if !self.opening.insert(session) {
            return Err(Error::invalid("this session is being opened"));
        }
        let opened = self.open(id, setup, how);
        if opened.is_err() {
            self.opening.remove(&session);
        }
        opened
    }

    /// Starts an engine for a session; its task answers.
    fn open(&mut self, id: Value, setup: Setup, how: How) -> Result<(), Error> {
        open::folder(&setup.cwd)?;
        if self.tasks.len() >= SESSIONS {
            return Err(Error::invalid(format!("{SESSIONS} sessions are open: close one first")));
        }
        let session = setup.session_id.as_deref().filter(|_| how != How::New).and_then(|s| s.parse().ok());
        let (common, store, out) = (self.common.clone(), self.store.clone(), self.out.clone());
        let (came, forms) = (self.came.0.clone(), self.client == Some(true));
        self.tasks.spawn(async move {
            let books = store.clone();
            let cwd = setup.cwd;
            let started = tokio::task::spawn_blocking(move || open::start(&common, books, cwd, session));
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
            let mut notes: Vec<String> = opened
                .notices
                .iter()
                .filter(|n| n.kind != NoticeKind::Info || !n.hints.is_empty())
                .map(session::words)
                .collect();
            notes.extend(unused(&setup.mcp_servers));
            let mut s = Session::new(&opened, store, out.clone(), forms, notes.clone());
            if how == How::Load
                && let Err(error) = s.replay(&opened.snapshot).await
            {
                opened.engine.stop().await;
                out.answer(&id, Err(error)).await;
                return session;
            }
            // The session holds the other end.
            let (door, orders) = mpsc::channel(ORDERS);
            let number = opened.snapshot.session.id;
            if came.send(Came { id: number, door }).await.is_err() {
                opened.engine.stop().await;
                return Some(number);
            }
            let mut result = s.state();
            if how == How::New {
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

    async fn list(&self, List { cwd, cursor }: List) -> Result<Value, Error> {
        let from: usize = match cursor {
            None => 0,
            Some(c) => c.parse().map_err(|_| Error::params("unknown cursor"))?,
        };
        if let Some(cwd) = &cwd {
            open::folder(cwd)?;
        }
        let store = self.store.clone();
        let read = tokio::task::spawn_blocking(move || {
            let project = cwd.map(|c| tiller_protocol::names::written(&c.canonicalize().unwrap_or(c)));
            store.sessions(&Filter { project, ..Filter::default() }).map_err(|e| e.notice())
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
enum How {
    New,
    /// With all that was said.
    Load,
    /// Without.
    Resume,
}

/// The answer about servers that a client brings.
fn unused(servers: &[Value]) -> Option<String> {
    let names: Vec<&str> = servers.iter().filter_map(|s| s.get("name").and_then(Value::as_str)).collect();
    let names: Vec<String> = names.into_iter().map(super::call::line).collect();
    (!servers.is_empty()).then(|| format!("MCP servers are not used yet: {}.", names.join(", ")))
}
