//! What a server may ask of Tiller, and what it reports of calls that run.

// Roots: servers of older revisions ask for them.
#![expect(deprecated)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    InitializeRequestParams, ListRootsResult, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value, json};
use tiller_protocol::{AskBody, AskReply, lock};
use tiller_tool::ToolCx;
use tiller_tool::text::visible;

/// Maximum number of values that one request of a server may ask a person for.
const FIELDS: usize = 12;
/// Maximum length of what a server says in a question, in characters.
const WORDS: usize = 1500;

/// A call that waits for its answer.
#[derive(Clone)]
struct ActiveCall {
    id: u64,
    /// What reports of its progress name; `None`: it is being sent. A fast server reports before this side has it.
    token: Option<ProgressToken>,
    /// The agent's call; `None`: a command without a screen.
    cx: Option<ToolCx>,
    /// Reports of progress so far.
    reports: Arc<AtomicU64>,
}

/// The calls of one connection that wait. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<VecDeque<ActiveCall>>>);

/// Calls so far, of all connections.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl ActiveCalls {
    /// Adds a call; it is removed when the value is dropped. `reports` counts the reports of its progress.
    pub(crate) fn enter(&self, cx: Option<ToolCx>, reports: Arc<AtomicU64>) -> ActiveGuard {
        let id = CALLS.fetch_add(1, Ordering::Relaxed);
        lock(&self.0).push_back(ActiveCall { id, token: None, cx, reports });
        ActiveGuard { calls: self.clone(), id }
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
}

impl ActiveGuard {
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
    /// Answers a request for input. Without a person, or without a call that it belongs to, it is declined.
    pub(crate) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let cx = self.calls.last().and_then(|call| call.cx);
        let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
        let Some(properties) = schema["properties"].as_object().filter(|p| p.len() <= FIELDS) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let Some(cx) = cx else {
            let defaults = defaults(&schema).filter(|_| self.accept_defaults);
            return match defaults {
                Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                None => ElicitResult::new(ElicitationAction::Decline),
            };
        };
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
        };
        let said: String = visible(&message).chars().take(WORDS).collect();
        let mut content = Map::new();
        if properties.is_empty() {
            let question = format!("The MCP server {} asks: {said}", self.name);
            let body = question_of(question, vec!["Yes".into(), "No".into()], false);
            let yes = matches!(cx.ports.ask(&cx.agent, body).await, Ok(AskReply::Choice { answers }) if answers.first().is_some_and(|a| a == "Yes"));
            let action = if yes { ElicitationAction::Accept } else { ElicitationAction::Decline };
            let result = ElicitResult::new(action);
            return if yes { result.with_content(json!({})) } else { result };
        }
        for (name, property) in properties {
            let field = Field::of(property);
            let mut question = format!("The MCP server {} asks: {said}", self.name);
            let label = property["title"].as_str().or(property["description"].as_str()).unwrap_or(name);
            let label: String = visible(label).chars().take(200).collect();
            let usual = property.get("default").filter(|default| !default.is_null());
            let note = match (required(name), usual) {
                (true, _) => String::new(),
                (false, None) => " (optional)".into(),
                (false, Some(usual)) => {
                    let usual = usual.as_str().map_or_else(|| usual.to_string(), str::to_owned);
                    let usual: String = visible(&usual).chars().take(200).collect();
                    format!(" (optional; {usual} if you give none)")
                }
            };
            question.push_str(&format!("\n{label}{note}"));
            let answers = match cx
                .ports
                .ask(&cx.agent, question_of(question, field.choices.clone(), field.choices.is_empty()))
                .await
            {
                Ok(AskReply::Choice { answers }) if !answers.is_empty() => answers,
                _ if required(name) => return ElicitResult::new(ElicitationAction::Decline),
                _ => {
                    content.extend(usual.map(|usual| (name.clone(), usual.clone())));
                    continue;
                }
            };
            let Some(value) = field.value(&answers[0]) else {
                return ElicitResult::new(ElicitationAction::Decline);
            };
            content.insert(name.clone(), value);
        }
        ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
    }

    /// The folders for a server of an older revision, which asks for them.
    pub(crate) fn roots(&self) -> ListRootsResult {
        let url =
            reqwest::Url::from_file_path(&self.root).map_or_else(|()| "file:///".to_owned(), String::from);
        ListRootsResult::new(vec![Root::new(url)])
    }
}

/// The defaults of a form; `None`: a value that it needs has none.
fn defaults(schema: &Value) -> Option<Value> {
    let properties = schema["properties"].as_object()?;
    let with_default = |(name, property): (&String, &Value)| {
        property.get("default").filter(|value| !value.is_null()).map(|value| (name.clone(), value.clone()))
    };
    let content: Map<String, Value> = properties.iter().filter_map(with_default).collect();
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    needed.into_iter().all(|name| content.contains_key(name)).then_some(Value::Object(content))
}

/// A question of the dialog that `clarify` uses.
fn question_of(question: String, choices: Vec<String>, free: bool) -> AskBody {
    AskBody::Clarify {
        question,
        choices,
        allow_freetext: free,
        multiple: false,
        default: None,
        decides: Vec::new(),
    }
}

/// A value that a person is asked for.
struct Field {
    kind: String,
    choices: Vec<String>,
    /// What the choices stand for, where that differs.
    values: Vec<String>,
}

impl Field {
    fn of(property: &Value) -> Self {
        let kind = property["type"].as_str().unwrap_or("string").to_owned();
        let texts = |value: &Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(|t| visible(t).chars().take(200).collect()).take(6).collect()
        };
        if kind == "boolean" {
            return Self { kind, choices: vec!["Yes".into(), "No".into()], values: Vec::new() };
        }
        let one_of = property["oneOf"].as_array().or(property["anyOf"].as_array());
        if let Some(options) = one_of {
            let texts = |key: &str| -> Vec<String> {
                options
                    .iter()
                    .take(6)
                    .map(|o| o[key].as_str().or(o["const"].as_str()).unwrap_or_default().to_owned())
                    .collect()
            };
            return Self {
                kind,
                choices: texts("title").iter().map(|t| visible(t).into_owned()).collect(),
                values: texts("const"),
            };
        }
        let values = texts(&property["enum"]);
        let names = texts(&property["enumNames"]);
        let choices = if names.len() == values.len() && !names.is_empty() { names } else { values.clone() };
        Self { kind, choices, values }
    }

    /// The answer in the type of the schema; `None`: it is not of that type.
    fn value(&self, answer: &str) -> Option<Value> {
        match self.kind.as_str() {
            "boolean" => Some(Value::Bool(answer == "Yes")),
            "integer" => answer.trim().parse::<i64>().ok().map(Value::from),
            "number" => answer.trim().parse::<f64>().ok().map(Value::from),
            _ => {
                let at = self.choices.iter().position(|choice| choice == answer);
                let value = at.and_then(|at| self.values.get(at)).map_or(answer, String::as_str);
                Some(Value::from(value))
            }
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_form_whose_needed_values_have_defaults_can_be_answered_without_a_person() {
        let form = |required: &[&str]| {
            json!({"properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer"}},
                "required": required})
        };
        assert_eq!(defaults(&form(&["name"])), Some(json!({"name": "Ada"})));
        assert_eq!(defaults(&form(&[])), Some(json!({"name": "Ada"})));
        assert_eq!(defaults(&form(&["age"])), None);
    }

    #[test]
    fn an_answer_has_the_type_that_the_server_asked_for() {
        for (schema, answer, value) in [
            (json!({"type": "string"}), "x", Some(json!("x"))),
            (json!({"type": "integer"}), " 7 ", Some(json!(7))),
            (json!({"type": "integer"}), "seven", None),
            (json!({"type": "number"}), "1.5", Some(json!(1.5))),
            (json!({"type": "boolean"}), "Yes", Some(json!(true))),
            (
                json!({"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]}),
                "green",
                Some(json!("g")),
            ),
            (json!({"type": "string", "oneOf": [{"const": "r", "title": "red"}]}), "red", Some(json!("r"))),
        ] {
            assert_eq!(Field::of(&schema).value(answer), value, "{schema}");
        }
    }
}
