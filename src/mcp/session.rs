//! Requests over a connection: lists and calls, with their limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequestParams,
    GetPromptResult, InputRequest, InputRequiredResult, InputResponses, PaginatedRequestParams, Prompt,
    ReadResourceRequestParams, ReadResourceResult, Resource, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tiller_tool::ToolCx;
use tiller_tool::foreign::seen;
use tiller_tool::text::visible;
use tokio_util::sync::CancellationToken;

use crate::connect::Connection;
use crate::known::{KnownTool, TOOLS, accepted};

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
    /// The person has to log in again; what the server said about it.
    Login(Option<String>),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) | Self::Ended(why) => f.write_str(why),
            Self::Login(_) => f.write_str("the server wants you to log in"),
            Self::TimedOut(seconds) => write!(f, "no answer and no progress for {seconds} s"),
            Self::Interrupted => f.write_str("it was stopped"),
        }
    }
}

impl Connection {
    fn failed(&self, error: ServiceError) -> CallError {
        let cut = |text: &str| -> String { visible(&seen(text)).chars().take(2000).collect() };
        let challenge = error.auth_challenge().map(str::to_owned);
        if error.is_authorization_required() || challenge.is_some() {
            return CallError::Login(challenge);
        }
        match error {
            ServiceError::McpError(error) => CallError::Refused(cut(&error.message)),
            ServiceError::Cancelled { .. } => CallError::Interrupted,
            ServiceError::TransportClosed => CallError::Ended(self.why_ended()),
            ServiceError::UnexpectedResponse => {
                CallError::Refused("the answer has a form that the protocol does not have".into())
            }
            other => CallError::Ended(cut(&with_causes(&other))),
        }
    }

    /// Why the connection ended, as far as it is known.
    pub(crate) fn why_ended(&self) -> String {
        self.tail.closed().or_else(|| self.exit()).unwrap_or_else(|| "the connection ended".into())
    }

    /// All tools, and how many were left out because of their names or number.
    pub(crate) async fn tools(&self) -> Result<(Vec<KnownTool>, usize), CallError> {
        if !self.offers()[0] {
            return Ok((Vec::new(), 0));
        }
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let page = self.peer().list_tools(page(cursor.take())).await.map_err(|e| self.failed(e))?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > TOOLS {
                break;
            }
        }
        Ok(accepted(tools))
    }

    /// Reads a resource.
    pub(crate) async fn resource(&self, uri: &str) -> Result<ReadResourceResult, CallError> {
        let request = ReadResourceRequestParams::new(uri);
        self.running.read_resource(request).await.map_err(|e| self.failed(e))
    }

    /// Reads a prompt.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<GetPromptResult, CallError> {
        let mut request = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            request = request.with_arguments(arguments);
        }
        self.running.get_prompt(request).await.map_err(|e| self.failed(e))
    }

    /// Calls a tool. `idle`: time without progress after which it fails. A call that fails or is stopped is cancelled at
    /// the server.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cx: Option<&ToolCx>,
        idle: Duration,
    ) -> Result<CallToolResult, CallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..ROUNDS {
            match self.call_once(params.clone(), cx, idle).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(result) => {
                    let state = result.request_state.clone();
                    params.input_responses = Some(self.input(result, cx).await?);
                    params.request_state = state;
                }
                ServerResult::EmptyResult(_) => return Ok(CallToolResult::success(Vec::new())),
                _ => return Err(self.failed(ServiceError::UnexpectedResponse)),
            }
        }
        Err(CallError::Refused(format!("it asked for input more than {ROUNDS} times")))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        cx: Option<&ToolCx>,
        idle: Duration,
    ) -> Result<ServerResult, CallError> {
        let cancel = cx.map_or_else(CancellationToken::new, |cx| cx.cancel.clone());
        let reports = Arc::new(AtomicU64::new(0));
        // Before it is sent: a fast server asks and reports at once.
        let active = self.calls.enter(cx.cloned(), Arc::clone(&reports));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = self.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallError::Interrupted),
            sent = sending => sent.map_err(|e| self.failed(e))?,
            // A program that does not read its input.
            () = tokio::time::sleep(idle) => return Err(CallError::TimedOut(idle.as_secs())),
        };
        active.sent(handle.progress_token.clone());
        let mut seen = 0;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return match answer {
                        Ok(answer) => answer.map_err(|e| self.failed(e)),
                        Err(_) => Err(CallError::Ended(self.settled().await)),
                    };
                }
                () = cancel.cancelled() => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), handle.cancel(Some("stopped by the user".into()))).await;
                    return Err(CallError::Interrupted);
                }
                () = tokio::time::sleep(idle) => {
                    let now = reports.load(Ordering::Relaxed);
                    if now != std::mem::replace(&mut seen, now) {
                        continue;
                    }
                    let _ = tokio::time::timeout(Duration::from_secs(1), handle.cancel(Some("timed out".into()))).await;
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
    ) -> Result<InputResponses, CallError> {
        let mut answers = InputResponses::new();
        let handler = self.running.service();
        for (key, request) in result.input_requests.unwrap_or_default() {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    let _active = self.calls.enter(cx.cloned(), Arc::default());
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
        Ok(answers)
    }
}

fn page(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    text
}

/// All resources, at most [`ENTRIES`].
pub(crate) async fn resources(peer: &Peer<RoleClient>) -> Result<Vec<Resource>, ServiceError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = peer.list_resources(page(cursor.take())).await?;
        all.extend(page.resources);
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() > ENTRIES {
            break;
        }
    }
    all.truncate(ENTRIES);
    Ok(all)
}

/// All prompts, at most [`ENTRIES`].
pub(crate) async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<Prompt>, ServiceError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = peer.list_prompts(page(cursor.take())).await?;
        all.extend(page.prompts);
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() > ENTRIES {
            break;
        }
    }
    all.truncate(ENTRIES);
    Ok(all)
}
