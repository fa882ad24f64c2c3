//! JSON-RPC 2.0, one message a line.

use serde_json::{Map, Value, json};

/// A message from the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// Wants an answer with this id.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// To a request of ours.
    Response {
        id: u64,
        result: Result<Value, RpcError>,
    },
}

/// An error of the other side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl RpcError {
    /// For a person: the message, and what its data adds.
    pub(crate) fn words(&self) -> String {
        let data = match &self.data {
            Value::Null => String::new(),
            Value::String(s) => s.clone(),
            other => {
                let inner = ["details", "message", "error"].iter().find_map(|k| other[*k].as_str());
                inner.map_or_else(|| other.to_string(), str::to_owned)
            }
        };
        let text = if data.is_empty() || self.message.contains(&data) {
            self.message.clone()
        } else {
            format!("{}: {data}", self.message)
        };
        text.chars().take(2000).collect()
    }
}

/// Reads a line. `None`: no message; chatter on standard output is ignored.
pub(crate) fn read(line: &str) -> Option<Incoming> {
    let Value::Object(mut m) = serde_json::from_str(line).ok()? else { return None };
    let id = m.remove("id").filter(|id| !id.is_null());
    if let Some(Value::String(method)) = m.remove("method") {
        let params = m.remove("params").unwrap_or_default();
        return Some(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        });
    }
    let id = id?.as_u64()?;
    let result = match m.remove("error") {
        Some(error) if !error.is_null() => Err(RpcError {
            code: error["code"].as_i64().unwrap_or(0),
            message: error["message"].as_str().unwrap_or("it failed").to_owned(),
            data: error["data"].clone(),
        }),
        _ => Ok(m.remove("result").unwrap_or_default()),
    };
    Some(Incoming::Response { id, result })
}

fn line(mut fields: Map<String, Value>) -> String {
    fields.insert("jsonrpc".into(), "2.0".into());
    Value::Object(fields).to_string() + "\n"
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(m) = value { m } else { Map::new() }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    line(object(json!({"id": id, "method": method, "params": params})))
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    line(object(json!({"method": method, "params": params})))
}

/// An answer: a result, or code and message of an error.
pub(crate) fn answer(id: &Value, result: Result<Value, (i64, String)>) -> String {
    line(object(match result {
        Ok(result) => json!({"id": id, "result": result}),
        Err((code, message)) => json!({"id": id, "error": {"code": code, "message": message}}),
    }))
}
