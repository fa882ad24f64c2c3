//! Messages of JSON-RPC 2.0, one a line.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tiller_protocol::{Notice, NoticeKind};
use tokio::sync::{mpsc, watch};

/// The line is no JSON.
const PARSE: i64 = -32700;
/// It is JSON, but no message, or one that does not fit here.
const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// There is no such session.
const NOT_FOUND: i64 = -32002;

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a request of ours; an error is as good as none.
    Response {
        id: Value,
        result: Option<Value>,
    },
    /// To be refused; `id` is null where there is none.
    Wrong {
        id: Value,
        error: Error,
    },
}

/// Reads one line.
pub(super) fn read(line: &[u8]) -> Incoming {
    let wrong = |id: Value, error| Incoming::Wrong { id, error };
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(e) => return wrong(Value::Null, Error::new(PARSE, format!("the line is not JSON: {e}"))),
    };
    let Value::Object(mut message) = value else {
        return wrong(Value::Null, Error::new(INVALID, "a message must be a JSON object"));
    };
    let id = message.remove("id");
    if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number() || id.is_null())) {
        return wrong(Value::Null, Error::new(INVALID, "an id must be a string or a number"));
    }
    match (message.remove("method"), id) {
        (Some(Value::String(method)), id) => {
            let params = message.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
            match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            }
        }
        (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
            Incoming::Response { id, result: message.remove("result") }
        }
        (_, id) => {
            let error = Error::new(INVALID, "a message needs a method, or an id with a result or an error");
            wrong(id.unwrap_or_default(), error)
        }
    }
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Error {
    code: i64,
    message: String,
    /// What to do about it.
    hints: Vec<String>,
}

impl Error {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    pub(super) fn too_long(limit: usize) -> Self {
        Self::new(PARSE, format!("a message can be at most {} MB", limit >> 20))
    }

    pub(super) fn no_method(name: &str) -> Self {
        let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
        Self::new(NO_METHOD, format!("unknown method '{name}'"))
    }

    /// The request does not fit now.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID, message)
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(PARAMS, message)
    }

    pub(super) fn no_session(id: &str) -> Self {
        let id: String = id.chars().filter(|c| !c.is_control()).take(100).collect();
        Self::new(NOT_FOUND, format!("there is no session '{id}'"))
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL, message)
    }
}

impl From<Notice> for Error {
    fn from(n: Notice) -> Self {
        let code = match n.kind {
            NoticeKind::User => PARAMS,
            NoticeKind::Denied => INVALID,
            _ => INTERNAL,
        };
        Self { code, message: n.message, hints: n.hints }
    }
}

/// Reads the parameters of a method.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|e| Error::params(format!("the parameters cannot be read: {e}")))
}

/// Where messages go out. Clones write to the same place, each message whole.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    /// The printing thread holds the other end; it closes when nobody reads any more.
    tx: mpsc::Sender<String>,
    ending: watch::Receiver<Ending>,
}

/// Whether it is time to end, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// Nothing more comes in.
    Input,
    Signal,
}

/// For a client that does not read, while everything ends.
const PATIENCE: Duration = Duration::from_secs(1);

impl Outlet {
    /// `ending`: from then on a client that does not read is not waited for.
    pub(super) fn new(tx: mpsc::Sender<String>, ending: watch::Receiver<Ending>) -> Self {
        Self { tx, ending }
    }

    /// Waits until nobody reads any more.
    pub(super) async fn closed(&self) {
        self.tx.closed().await;
    }

    /// Waits for room. A reader that is gone is noticed by the hub.
    async fn send(&self, message: Value) {
        let text = crate::commands::json_line(&message);
        let mut ending = self.ending.clone();
        let late = async {
            if ending.wait_for(|e| *e != Ending::No).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            biased;
            room = self.tx.reserve() => if let Ok(room) = room {
                room.send(text);
            },
            () = late => {}
        }
    }

    pub(super) async fn answer(&self, id: &Value, result: Result<Value, Error>) {
        self.send(match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Error { code, message, hints }) => {
                let mut error = json!({"code": code, "message": message});
                if !hints.is_empty() {
                    error["message"] = format!("{message} {}", hints.join(" ")).into();
                    error["data"] = json!({"hints": hints});
                }
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        })
        .await;
    }

    pub(super) async fn request(&self, id: &str, method: &str, params: &Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_requests_notifications_responses_or_wrong() {
        let request = read(br#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1}}"#);
        let want = Incoming::Request { id: json!(7), method: "m".into(), params: json!({"a": 1}) };
        assert_eq!(request, want);
        assert_eq!(
            read(br#"{"method":"m"}"#),
            Incoming::Notification { method: "m".into(), params: json!({}) }
        );
        let answer = |result| Incoming::Response { id: json!("x"), result };
        assert_eq!(read(br#"{"id":"x","result":{}}"#), answer(Some(json!({}))));
        assert_eq!(read(br#"{"id":"x","error":{"code":1,"message":"no"}}"#), answer(None));
        for (line, code, id) in [
            (&b"{"[..], PARSE, Value::Null),
            (b"\xff\xfe", PARSE, Value::Null),
            (b"[]", INVALID, Value::Null),
            (b"{\"id\":3}", INVALID, json!(3)),
            (b"{\"id\":[],\"method\":\"m\"}", INVALID, Value::Null),
            (b"{\"id\":3,\"method\":4}", INVALID, json!(3)),
            (&[b'['; 100_000], PARSE, Value::Null),
        ] {
            match read(line) {
                Incoming::Wrong { id: got, error } => assert_eq!((error.code, got), (code, id)),
                other => panic!("{other:?}"),
            }
        }
    }
}
