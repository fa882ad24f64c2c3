//! Requests of a server to Tiller, and its reports of calls that run.

// Roots: servers of older revisions ask for them.
#![expect(deprecated)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorCode, ErrorData, Implementation, InitializeRequestParams, ListRootsResult,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Value, json};
use tiller_protocol::lock;
use tiller_tool::ToolCx;
use tiller_tool::text::visible;

mod form;

use form::Answered;

/// Notes to the user and the model about a call besides its result, in sentences without a full stop. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallNotes(Arc<Mutex<Vec<String>>>);

impl CallNotes {
    fn push(&self, note: String) {
        let mut notes = lock(&self.0);
        if notes.len() < 8 && !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0))
    }
}

/// A call that waits for its answer.
#[derive(Clone)]
struct ActiveCall {
    id: u64,
    /// The name that reports of its progress have; `None`: it is being sent. A fast server reports before this side has it.
    token: Option<ProgressToken>,
    /// The agent's call; `None`: a command without a screen.
    cx: Option<ToolCx>,
    /// Reports of progress so far.
    reports: Arc<AtomicU64>,
    notes: CallNotes,
    /// Questions to the user that are open for it.
    asking: Arc<AtomicU64>,
}

/// The calls of one connection that wait. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<VecDeque<ActiveCall>>>);

/// Calls so far, of all connections.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl ActiveCalls {
    /// Adds a call; it is removed when the value is dropped. `reports` counts the reports of its progress.
    pub(crate) fn enter(&self, cx: Option<ToolCx>, reports: Arc<AtomicU64>, notes: CallNotes) -> ActiveGuard {
        let id = CALLS.fetch_add(1, Ordering::Relaxed);
        let asking: Arc<AtomicU64> = Arc::default();
        lock(&self.0).push_back(ActiveCall {
            id,
            token: None,
            cx,
            reports,
            notes,
            asking: Arc::clone(&asking),
        });
        ActiveGuard { calls: self.clone(), id, asking }
    }

    /// The call that a report names. Without one of this name: the call that is being sent.
    fn of(&self, token: &ProgressToken) -> Option<ActiveCall> {
        let calls = lock(&self.0);
        let named = calls.iter().find(|call| call.token.as_ref() == Some(token));
        named.or_else(|| calls.iter().rev().find(|call| call.token.is_none())).cloned()
    }

    /// The call that a request of the server most likely belongs to: the last one. Old revisions of the protocol do not say
    /// which it is.
    fn last(&self) -> Option<ActiveCall> {
        lock(&self.0).back().cloned()
    }
}

/// Removes a call when it ends.
pub(crate) struct ActiveGuard {
    calls: ActiveCalls,
    id: u64,
    asking: Arc<AtomicU64>,
}

impl ActiveGuard {
    /// Returns true while a question to the user is open for it.
    pub(crate) fn asks(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Notes what reports of its progress name.
    pub(crate) fn sent(&self, token: ProgressToken) {
        if let Some(call) = lock(&self.calls.0).iter_mut().find(|call| call.id == self.id) {
            call.token = Some(token);
        }
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        lock(&self.calls.0).retain(|call| call.id != self.id);
    }
}

/// The client's side of one connection.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) name: String,
    pub(crate) calls: ActiveCalls,
    /// The server said that its tools changed.
    pub(crate) changed: Arc<AtomicBool>,
    /// The server says that its prompts or resources changed.
    pub(crate) lists: tokio::sync::mpsc::Sender<()>,
    /// Without a person, requests for input are answered with their defaults.
    pub(crate) accept_defaults: bool,
    pub(crate) root: PathBuf,
}

impl Handler {
    /// Answers a request for input: with what the user answers, or with "cancel" and the reason where no user can. Only the
    /// user declines.
    pub(crate) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                self.answer_form(&message, &schema).await
            }
            _ => {
                let call = self.calls.last();
                self.cancelled(call.as_ref(), "Tiller opens no pages for a server")
            }
        }
    }

    async fn answer_form(&self, message: &str, schema: &Value) -> ElicitResult {
        let call = self.calls.last();
        let Some(cx) = call.as_ref().and_then(|call| call.cx.clone()) else {
            let defaults = form::defaults(schema).filter(|_| self.accept_defaults);
            return match defaults {
                Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                None => self.cancelled(call.as_ref(), "there is no user to ask here"),
            };
        };
        let open = call.as_ref().map(|call| OpenQuestion::new(&call.asking));
        let answered = form::ask(&self.name, message, schema, &cx).await;
        drop(open);
        match answered {
            Answered::Given(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            Answered::Declined => ElicitResult::new(ElicitationAction::Decline),
            Answered::Unanswered(why) => self.cancelled(call.as_ref(), &why),
        }
    }

    /// "cancel", which decides nothing for the user. The call gets a note of it, without words of the server.
    fn cancelled(&self, call: Option<&ActiveCall>, why: &str) -> ElicitResult {
        tracing::info!(server = self.name, why, "a request of an MCP server for input was cancelled");
        if let Some(call) = call {
            call.notes.push(format!("the server asked for input and got none: {why}"));
        }
        let mut result = ElicitResult::new(ElicitationAction::Cancel);
        result.meta = serde_json::from_value(json!({"reason": why})).ok();
        result
    }

    /// The folders for a server of an older revision, which asks for them.
    pub(crate) fn roots(&self) -> ListRootsResult {
        let url =
            reqwest::Url::from_file_path(&self.root).map_or_else(|()| "file:///".to_owned(), String::from);
        ListRootsResult::new(vec![Root::new(url)])
    }
}

/// Counts an open question while it lives.
struct OpenQuestion(Arc<AtomicU64>);

impl OpenQuestion {
    fn new(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // `roots` is for servers of older revisions. Sampling is not offered: no server asks a model on the person's account.
        let capabilities =
            serde_json::from_value(json!({"elicitation": {"form": {}}, "roots": {}})).unwrap_or_default();
        // Newer revisions have no such request: a server could refuse one that names them.
        InitializeRequestParams::new(capabilities, Implementation::new("tiller", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicit(request).await)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        // A form with a member that the SDK does not know is still one that the user can answer.
        let params = request.params.unwrap_or_default();
        let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
        let Some(schema) = schema.filter(|_| request.method == "elicitation/create") else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Tiller has no such method", None));
        };
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let answer = self.answer_form(message, schema).await;
        Ok(CustomResult::new(serde_json::to_value(answer).unwrap_or_default()))
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let Some(call) = self.calls.of(&report.progress_token) else { return };
        call.reports.fetch_add(1, Ordering::Relaxed);
        let Some(cx) = call.cx else { return };
        let mut line = match report.total.filter(|total| *total > 0.0) {
            Some(total) => format!("{} of {total}", report.progress),
            None => format!("{}", report.progress),
        };
        if let Some(message) = &report.message {
            line.push_str(": ");
            line.extend(visible(message).chars().take(200));
        }
        line.push('\n');
        // Dropped when the row is behind: the next report replaces it.
        let _ = cx.progress.try_send(line);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        // A full channel has such a word in it already.
        let _ = self.lists.try_send(());
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let _ = self.lists.try_send(());
    }
}

#[cfg(test)]
mod form_tests;
