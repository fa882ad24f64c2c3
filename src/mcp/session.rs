//! Requests over a connection: lists and calls, with their limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    InputRequest, InputRequiredResult, InputResponses, ListPromptsRequest, ListResourcesRequest,
    ListSkillsRequest, ListToolsRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tiller_tool::ToolCx;
use tokio_util::sync::CancellationToken;

use crate::connect::Connection;
use crate::handler::CallNotes;
use crate::known::{KnownTool, TOOLS, accepted};
use crate::read::parts::{LeftOut, json, list};
use crate::read::words::of_request;

/// Maximum number of pages of a list.
const PAGES: usize = 50;
/// Maximum number of times that a call may ask for input.
const ROUNDS: usize = 10;
/// Maximum number of resources and prompts of a server.
const ENTRIES: usize = 1000;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The server refused it, in its words. Cleaned.
    Refused(String),
    /// No answer, and no progress, for this many seconds.
    TimedOut(u64),
    /// It was stopped.
    Interrupted,
    /// The connection ended; a sentence without a full stop.
    Ended(String),
    /// The request failed on its way, in words that may be the server's. Cleaned; without a full stop.
    Failed(String),
    /// The person has to log in again; what the server said about it.
    Login(Option<String>),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) | Self::Ended(why) | Self::Failed(why) => f.write_str(why),
            Self::Login(_) => f.write_str("the server wants you to log in"),
            Self::TimedOut(seconds) => write!(f, "no answer and no progress for {seconds} s"),
            Self::Interrupted => f.write_str("it was stopped"),
        }
    }
}

/// Time in which a cancellation has to be sent.
const CANCEL: Duration = Duration::from_secs(1);

/// A request that was sent. When it is dropped before its answer has come, however that happens, it is cancelled at the
/// server; an answer that comes nevertheless goes nowhere.
struct SentRequest {
    handle: Option<RequestHandle<RoleClient>>,
    answered: bool,
}

impl SentRequest {
    async fn new(peer: &Peer<RoleClient>, request: ClientRequest) -> Result<Self, ServiceError> {
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        Ok(Self { handle: Some(handle), answered: false })
    }

    /// Waits for the answer. `None`: the connection ended. Can be called again when it was dropped.
    async fn answer(&mut self) -> Option<Result<ServerResult, ServiceError>> {
        let answer = (&mut self.handle.as_mut()?.rx).await;
        self.answered = true;
        answer.ok()
    }

    /// Tells the server, and waits until that is sent.
    async fn cancel(mut self, why: &str) {
        if let Some(handle) = self.handle.take() {
            let _ = tokio::time::timeout(CANCEL, handle.cancel(Some(why.into()))).await;
        }
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take().filter(|_| !self.answered) else { return };
        // Where the program ends, the connection ends too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime
                .spawn(tokio::time::timeout(CANCEL, handle.cancel(Some("it is not needed any more".into()))));
        }
    }
}

/// Sends a request and reads its answer as JSON. Dropping it cancels the request at the server.
async fn request(peer: &Peer<RoleClient>, request: ClientRequest) -> Result<Value, ServiceError> {
    let mut sent = SentRequest::new(peer, request).await?;
    sent.answer().await.unwrap_or(Err(ServiceError::TransportClosed)).map(json)
}

impl Connection {
    fn failed(&self, error: &ServiceError) -> CallError {
        let challenge = error.auth_challenge().map(str::to_owned);
        if error.is_authorization_required() || challenge.is_some() {
            return CallError::Login(challenge);
        }
        match error {
            ServiceError::Cancelled { .. } => CallError::Interrupted,
            ServiceError::TransportClosed => CallError::Ended(self.why_ended()),
            ServiceError::McpError(_) | ServiceError::UnexpectedResponse => {
                CallError::Refused(of_request(error))
            }
            _ => CallError::Failed(of_request(error)),
        }
    }

    /// Why the connection ended, as far as it is known.
    pub(crate) fn why_ended(&self) -> String {
        self.tail.closed().or_else(|| self.exit()).unwrap_or_else(|| "the connection ended".into())
    }

    /// All tools that can be called, and what was left out.
    pub(crate) async fn tools(&self) -> Result<(Vec<KnownTool>, Vec<String>), CallError> {
        if !self.offers()[0] {
            return Ok(Default::default());
        }
        let make = |params| {
            ClientRequest::ListToolsRequest(ListToolsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            })
        };
        let (tools, left) =
            pages(self.peer(), make, ("tools", "tool"), TOOLS).await.map_err(|e| self.failed(&e))?;
        let (known, mut notes) = accepted(tools);
        notes.extend(left);
        Ok((known, notes))
    }

    /// Reads a resource.
    pub(crate) async fn resource(&self, uri: &str) -> Result<Value, CallError> {
        let params = ReadResourceRequestParams::new(uri);
        self.read(|answers, state| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        })
        .await
    }

    /// Reads a prompt, by its own name.
    pub(crate) async fn prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params = params.with_arguments(arguments);
        }
        self.read(|answers, state| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        })
        .await
    }

    /// Sends what `make` makes, again with answers where the server asks for input.
    async fn read(
        &self,
        make: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
    ) -> Result<Value, CallError> {
        let (mut answers, mut state) = (None, None);
        for _ in 0..ROUNDS {
            let sent = SentRequest::new(self.peer(), make(answers.take(), state.take())).await;
            let answer = sent.map_err(|e| self.failed(&e))?.answer().await;
            match answer.unwrap_or(Err(ServiceError::TransportClosed)).map_err(|e| self.failed(&e))? {
                ServerResult::InputRequiredResult(result) => {
                    state = result.request_state.clone();
                    answers = self.input(result, None, &CallNotes::default()).await?;
                }
                other => return Ok(json(other)),
            }
        }
        Err(too_often())
    }

    /// Calls a tool by its own name. `idle`: time without progress after which it fails. A call that fails or is stopped is
    /// cancelled at the server. `notes` gets what the user should know of it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cx: Option<&ToolCx>,
        (idle, notes): (Duration, &CallNotes),
    ) -> Result<Value, CallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..ROUNDS {
            match self.call_once(params.clone(), cx, (idle, notes)).await? {
                ServerResult::InputRequiredResult(result) => {
                    let state = result.request_state.clone();
                    params.input_responses = self.input(result, cx, notes).await?;
                    params.request_state = state;
                }
                other => match json(other) {
                    answer @ Value::Object(_) => return Ok(answer),
                    _ => return Err(self.failed(&ServiceError::UnexpectedResponse)),
                },
            }
        }
        Err(too_often())
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        cx: Option<&ToolCx>,
        (idle, notes): (Duration, &CallNotes),
    ) -> Result<ServerResult, CallError> {
        let cancel = cx.map_or_else(CancellationToken::new, |cx| cx.cancel.clone());
        let reports = Arc::new(AtomicU64::new(0));
        // Before it is sent: a fast server asks and reports at once.
        let active = self.calls.enter(cx.cloned(), Arc::clone(&reports), notes.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut sent = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallError::Interrupted),
            sent = SentRequest::new(self.peer(), request) => sent.map_err(|e| self.failed(&e))?,
            // A program that does not read its input.
            () = tokio::time::sleep(idle) => return Err(CallError::TimedOut(idle.as_secs())),
        };
        if let Some(handle) = &sent.handle {
            active.sent(handle.progress_token.clone());
        }
        let mut seen = 0;
        loop {
            tokio::select! {
                biased;
                answer = sent.answer() => {
                    return match answer {
                        Some(answer) => answer.map_err(|e| self.failed(&e)),
                        None => Err(CallError::Ended(self.settled().await)),
                    };
                }
                () = cancel.cancelled() => {
                    sent.cancel("stopped by the user").await;
                    return Err(CallError::Interrupted);
                }
                () = tokio::time::sleep(idle) => {
                    let now = reports.load(Ordering::Relaxed);
                    // What the user answers meanwhile takes its time.
                    if active.asks() || now != std::mem::replace(&mut seen, now) {
                        continue;
                    }
                    sent.cancel("timed out").await;
                    return Err(CallError::TimedOut(idle.as_secs()));
                }
            }
        }
    }

    /// Why the connection ended, a moment after the end: a program's exit comes after the end of its output.
    async fn settled(&self) -> String {
        for _ in 0..50 {
            if self.exit().is_some() || self.tail.closed().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.why_ended()
    }

    /// Answers what a server needs before it goes on (revision 2026-07-28).
    async fn input(
        &self,
        result: InputRequiredResult,
        cx: Option<&ToolCx>,
        notes: &CallNotes,
    ) -> Result<Option<InputResponses>, CallError> {
        let mut answers = InputResponses::new();
        let handler = self.running.service();
        for (key, request) in result.input_requests.unwrap_or_default() {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    let _active = self.calls.enter(cx.cloned(), Arc::default(), notes.clone());
                    serde_json::to_value(handler.elicit(request.params).await)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(handler.roots()),
                _ => {
                    return Err(CallError::Refused(
                        "it asked for a model, which Tiller offers to no server".into(),
                    ));
                }
            };
            answers.insert(key, answer.unwrap_or_default());
        }
        if answers.is_empty() {
            // It only wants to be asked again.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok((!answers.is_empty()).then_some(answers))
    }
}

fn too_often() -> CallError {
    CallError::Refused(format!("it asked for input more than {ROUNDS} times"))
}

fn page(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

/// The pages of a list, at most `most` entries and one page more, and what was left out of them.
async fn pages(
    peer: &Peer<RoleClient>,
    make: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    (key, what): (&str, &str),
    most: usize,
) -> Result<(Vec<Value>, Vec<String>), ServiceError> {
    let (mut all, mut cursor, mut left) = (Vec::new(), None, LeftOut::default());
    for _ in 0..PAGES {
        let mut answer = request(peer, make(page(cursor.take()))).await?;
        if !answer.is_object() {
            return Err(ServiceError::UnexpectedResponse);
        }
        all.extend(list(&mut answer, key, what, &mut left));
        cursor = answer.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || all.len() > most {
            break;
        }
    }
    if cursor.is_some() && all.len() <= most {
        left.push(format!("its list of {what}s has more than {PAGES} pages: the rest was not read"));
    }
    Ok((all, left.sentences()))
}

/// At most [`ENTRIES`] of a list, and what was left out of it.
fn cut((mut all, mut left): (Vec<Value>, Vec<String>), what: &str) -> (Vec<Value>, Vec<String>) {
    if all.len() > ENTRIES {
        left.push(format!("{what}s after the first {ENTRIES} were left out"));
        all.truncate(ENTRIES);
    }
    (all, left)
}

/// All resources, at most [`ENTRIES`], and what was left out.
pub(crate) async fn resources(peer: &Peer<RoleClient>) -> Result<(Vec<Value>, Vec<String>), ServiceError> {
    let make = |params| {
        ClientRequest::ListResourcesRequest(ListResourcesRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        })
    };
    Ok(cut(pages(peer, make, ("resources", "resource"), ENTRIES).await?, "resource"))
}

/// All prompts, at most [`ENTRIES`], and what was left out.
pub(crate) async fn prompts(peer: &Peer<RoleClient>) -> Result<(Vec<Value>, Vec<String>), ServiceError> {
    let make = |params| {
        ClientRequest::ListPromptsRequest(ListPromptsRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        })
    };
    Ok(cut(pages(peer, make, ("prompts", "prompt"), ENTRIES).await?, "prompt"))
}

/// All skills, at most [`ENTRIES`], and what was left out. No file of one is read.
pub(crate) async fn skills(peer: &Peer<RoleClient>) -> Result<(Vec<Value>, Vec<String>), ServiceError> {
    let make = |params| {
        ClientRequest::ListSkillsRequest(ListSkillsRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        })
    };
    Ok(cut(pages(peer, make, ("skills", "skill"), ENTRIES).await?, "skill"))
}
