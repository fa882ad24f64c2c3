//! Why a request was refused.

use serde_json::{Value, json};
use tiller_protocol::{Notice, NoticeKind};

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The line is JSON but not a message, or a message that is not allowed now.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not match the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The session or file does not exist (a code of the Agent Client Protocol).
pub const NOT_FOUND: i64 = -32002;

/// Maximum length of an error that is shown to a person, in characters.
const SHOWN: usize = 2000;

/// The error of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub code: i64,
    pub message: String,
    /// Additional data in any form; `Null`: none.
    pub data: Value,
}

impl Error {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// The message exceeds `limit` bytes.
    pub fn too_long(limit: usize) -> Self {
        Self::new(PARSE_ERROR, format!("a message can be at most {} MB", limit >> 20))
    }

    /// The receiver has no method of this name.
    pub fn unknown_method(name: &str) -> Self {
        let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
        Self::new(METHOD_NOT_FOUND, format!("unknown method '{name}'"))
    }

    /// The request is not allowed now.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// The parameters do not match the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The receiver failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// The message for a person, with what the data adds.
    pub fn text(&self) -> String {
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
        text.chars().take(SHOWN).collect()
    }

    /// The `error` member of a response.
    pub(crate) fn to_value(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if !self.data.is_null() {
            error["data"] = self.data.clone();
        }
        error
    }

    /// Reads the `error` member of a response. Programs may leave members out.
    pub(crate) fn from_value(value: &Value) -> Self {
        Self {
            code: value["code"].as_i64().unwrap_or(0),
            message: value["message"].as_str().unwrap_or("it failed").to_owned(),
            data: value["data"].clone(),
        }
    }
}

impl From<Notice> for Error {
    /// The hints stand in the message, for clients that show nothing else, and in the data.
    fn from(n: Notice) -> Self {
        let code = match n.kind {
            NoticeKind::User => INVALID_PARAMS,
            NoticeKind::Denied => INVALID_REQUEST,
            _ => INTERNAL_ERROR,
        };
        if n.hints.is_empty() {
            return Self::new(code, n.message);
        }
        let message = format!("{} {}", n.message, n.hints.join(" "));
        Self { code, message, data: json!({"hints": n.hints}) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_error_adds_its_data_once() {
        let error = |data| Error { code: 1, message: "it failed".into(), data };
        for (data, text) in [
            (Value::Null, "it failed"),
            (json!("no key"), "it failed: no key"),
            (json!("failed"), "it failed"),
            (json!({"details": "no key", "n": 1}), "it failed: no key"),
            (json!({"n": 1}), "it failed: {\"n\":1}"),
        ] {
            assert_eq!(error(data).text(), text);
        }
        assert_eq!(Error::new(1, "x".repeat(5000)).text().len(), SHOWN);
    }

    #[test]
    fn hints_of_a_notice_stand_in_message_and_data() {
        let mut notice = Notice::new(NoticeKind::User, "there is no model.");
        assert_eq!(Error::from(notice.clone()), Error::invalid_params("there is no model."));
        notice.hints = vec!["Name one.".into()];
        let error = Error::from(notice);
        assert_eq!(
            error.to_value().to_string(),
            r#"{"code":-32602,"message":"there is no model. Name one.","data":{"hints":["Name one."]}}"#
        );
    }
}
