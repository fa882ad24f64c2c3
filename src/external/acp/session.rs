//! Opens a session: handshake, login by key where required, model and mode.

use serde_json::{Value, json};
use tiller_protocol::Usage;

use super::client::{Client, RequestFailure};
use super::mode;
use super::updates::Updates;
use crate::event::AgentEvent;
use crate::out::{Disconnected, Out};
use tiller_rpc::Error;

/// The supported protocol version.
const VERSION: u64 = 1;

/// Whether an error means that a login is needed.
pub(super) fn wants_login(error: &Error) -> bool {
    let text = error.text().to_lowercase();
    error.code == -32000 || text.contains("authentication required") || text.contains("auth_required")
}

/// From the handshake to a session that accepts prompts.
pub(super) async fn open(c: &mut Client) -> Result<(), RequestFailure> {
    let files = c.run.job.files.is_some();
    let hello = json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": files, "writeTextFile": files}, "terminal": false},
        "clientInfo": {"name": "tiller", "title": "Tiller", "version": env!("CARGO_PKG_VERSION")},
    });
    let agent = c.request("initialize", hello).await?;
    let version = agent["protocolVersion"].as_u64().unwrap_or(0);
    if version != VERSION {
        let message =
            format!("it speaks version {version} of the protocol, not {VERSION}; update it or Tiller");
        return Err(RequestFailure::Error(Error::new(0, message)));
    }
    let opened = match begin(c, &agent).await {
        Err(RequestFailure::Error(e)) if wants_login(&e) => {
            let Some(method) = by_key(c, &agent) else { return Err(RequestFailure::Error(e)) };
            c.request("authenticate", json!({"methodId": method})).await?;
            begin(c, &agent).await?
        }
        other => other?,
    };
    let model = opened["models"]["currentModelId"].as_str().or(value(&opened, "model"));
    let model = c.run.job.model.clone().or_else(|| model.map(str::to_owned));
    c.send_event(AgentEvent::Session { id: Some(c.session.clone()), model }).await?;
    if let Some(model) = c.run.job.model.clone() {
        set_model(c, &opened, &model).await?;
    }
    mode::set(c, &opened).await
}

/// A login method that uses the key in its environment.
fn by_key(c: &Client, agent: &Value) -> Option<String> {
    let env = &c.run.launch.env;
    let has = c.run.job.adapter.env.keys.iter().any(|k| env.iter().any(|(n, _)| n == k));
    let methods = agent["authMethods"].as_array().into_iter().flatten();
    let mut ids = methods.filter_map(|m| m["id"].as_str());
    has.then(|| ids.find(|id| id.contains("api-key")).map(str::to_owned)).flatten()
}

/// A new session, or the one to continue.
async fn begin(c: &mut Client, agent: &Value) -> Result<Value, RequestFailure> {
    let Some(id) = c.run.job.resume.session.clone() else { return fresh(c).await };
    let can = &agent["agentCapabilities"];
    let method = if can["sessionCapabilities"]["resume"].is_object() {
        "session/resume"
    } else if can["loadSession"] == true {
        "session/load"
    } else {
        if c.run.job.begin_fresh() {
            c.send_event(AgentEvent::Anew).await?;
            return fresh(c).await;
        }
        let message = "it cannot resume an earlier session; start a new one";
        return Err(RequestFailure::Error(Error::new(0, message)));
    };
    let cwd = c.run.job.cwd.display().to_string();
    c.muted = true;
    let params = with_meta(c, json!({"sessionId": id, "cwd": cwd, "mcpServers": []}));
    let opened = c.request(method, params).await;
    c.muted = false;
    match opened {
        // The program does not have that session any more.
        Err(RequestFailure::Error(e)) if !wants_login(&e) && c.run.job.begin_fresh() => {
            c.send_event(AgentEvent::Anew).await?;
            fresh(c).await
        }
        opened => {
            c.session = id;
            c.updates = Updates::going_on(c.run.job.resume.cost);
            opened
        }
    }
}

/// An empty session.
async fn fresh(c: &mut Client) -> Result<Value, RequestFailure> {
    let cwd = c.run.job.cwd.display().to_string();
    let params = with_meta(c, json!({"cwd": cwd, "mcpServers": []}));
    let opened = c.request("session/new", params).await?;
    let Some(id) = opened["sessionId"].as_str() else {
        let message = "it opened a session without an id";
        return Err(RequestFailure::Error(Error::new(0, message)));
    };
    id.clone_into(&mut c.session);
    Ok(opened)
}

/// Adds what overrides the program's own settings: it asks for permission (where everything is allowed, Tiller's rules
/// answer), and does not read denied paths.
fn with_meta(c: &Client, mut params: Value) -> Value {
    let job = &c.run.job;
    let mut meta = c.acp.ask_meta.clone().unwrap_or(Value::Null);
    if let Some(denied) = &job.adapter.denied {
        denied.add_to(&mut meta, &job.denied);
    }
    if !meta.is_null() {
        params["_meta"] = meta;
    }
    params
}

/// The value of the option in this category.
fn value<'a>(opened: &'a Value, category: &str) -> Option<&'a str> {
    option(opened, category)?["currentValue"].as_str()
}

pub(super) fn option<'a>(opened: &'a Value, category: &str) -> Option<&'a Value> {
    let all = opened["configOptions"].as_array()?;
    all.iter().find(|o| o["category"] == category).or_else(|| all.iter().find(|o| o["id"] == category))
}

/// Whether the option offers this value; options may be in groups.
pub(super) fn offers(option: &Value, wanted: &str) -> bool {
    option["options"].as_array().into_iter().flatten().any(|o| {
        o["value"] == wanted
            || o["options"].as_array().into_iter().flatten().any(|inner| inner["value"] == wanted)
    })
}

async fn set_option(c: &mut Client, option: &Value, value: &str) -> Result<(), RequestFailure> {
    let params = json!({"sessionId": c.session, "configId": option["id"], "value": value});
    c.request("session/set_config_option", params).await.map(|_| ())
}

async fn set_model(c: &mut Client, opened: &Value, model: &str) -> Result<(), RequestFailure> {
    if let Some(o) = option(opened, "model").filter(|o| offers(o, model)) {
        return set_option(c, o, model).await;
    }
    let listed = opened["models"]["availableModels"].as_array().into_iter().flatten();
    if listed.into_iter().any(|m| m["modelId"] == model) {
        let params = json!({"sessionId": c.session, "modelId": model});
        return c.request("session/set_model", params).await.map(|_| ());
    }
    let message = format!("it does not offer the model {model}; omit it, or choose one that it offers");
    Err(RequestFailure::Error(Error::new(0, message)))
}

/// Reports the usage of the turn.
pub(super) async fn usage(result: &Value, out: &Out) -> Result<(), Disconnected> {
    let told = &result["usage"];
    let n = |key: &str| told[key].as_u64().unwrap_or(0);
    if !told.is_object() {
        // Gemini reports it outside of the protocol.
        let count = &result["_meta"]["quota"]["token_count"];
        let n = |key: &str| count[key].as_u64().unwrap_or(0);
        let usage = Usage { input: n("input_tokens"), output: n("output_tokens"), ..Usage::default() };
        return if count.is_object() {
            out.send(AgentEvent::Usage { usage, cost: None }).await
        } else {
            Ok(())
        };
    }
    let usage = Usage {
        input: n("inputTokens"),
        output: n("outputTokens"),
        cache_read: n("cachedReadTokens"),
        cache_write: n("cachedWriteTokens"),
        reasoning: n("thoughtTokens"),
        estimated: false,
    };
    out.send(AgentEvent::Usage { usage, cost: None }).await
}
