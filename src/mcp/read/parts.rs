//! Lists and results, read piece by piece. What cannot be read is left out, with words for it.

use rmcp::model::ServerResult;
use serde_json::Value;

use super::words::line;

/// Maximum number of sentences about what was left out.
const NOTES: usize = 20;

/// The pieces that were left out of a list or a result, in sentences without a full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    notes: Vec<String>,
    more: usize,
}

impl LeftOut {
    pub(crate) fn push(&mut self, note: impl Into<String>) {
        if self.notes.len() < NOTES {
            self.notes.push(note.into());
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn sentences(self) -> Vec<String> {
        let Self { mut notes, more } = self;
        if more > 0 {
            notes.push(format!("and {more} more"));
        }
        notes
    }
}

/// A result as JSON. One without a type in the SDK, since a part of it is odd, is the JSON that came.
pub(crate) fn json(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(it) => it.0,
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// The elements of a list of a result. `what`: a word for one of them.
pub(crate) fn list(result: &mut Value, key: &str, what: &str, left: &mut LeftOut) -> Vec<Value> {
    match result.get_mut(key).map(Value::take) {
        Some(Value::Array(all)) => all,
        // A server with one sends it alone.
        Some(one @ Value::Object(_)) => vec![one],
        None | Some(Value::Null) => Vec::new(),
        Some(other) => {
            left.push(format!("its list of {what}s is {}", kind(&other)));
            Vec::new()
        }
    }
}

/// The kind of a JSON value in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A text of an object; `Err`: why there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    match value.get(key) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Err(format!("it has no {key}")),
        Some(other) => Err(format!("its {key} is {}", kind(other))),
    }
}

/// A text that may be missing, or odd.
pub(crate) fn some<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// A piece of a server in words, short.
pub(crate) fn short(value: &str) -> String {
    line(value, 60)
}
