//! A call and its result as text: for the model, the audit and the screen.

use serde_json::Value;
use tiller_protocol::{Part, ToolOutcome};
use tiller_tool::ToolError;

use crate::core::services::Redact;
use crate::turn::CallResult;

/// Longest description of a call in the audit, in bytes.
pub(crate) const AUDIT_TEXT: usize = 2_000;

/// A failed call, for the model.
pub(crate) fn failed(e: ToolError) -> CallResult {
    let partial = |head: &str, rest: String| {
        if rest.trim().is_empty() { head.to_owned() } else { format!("{rest}\n{head}") }
    };
    match e {
        ToolError::Tell(text) => CallResult::text(ToolOutcome::Error, text),
        ToolError::Interrupted(so_far) => CallResult::text(
            ToolOutcome::Interrupted,
            partial("[Interrupted by the user before it finished.]", so_far),
        ),
        ToolError::TimedOut(so_far) => {
            CallResult::text(ToolOutcome::TimedOut, partial("[Timed out and was stopped.]", so_far))
        }
        ToolError::Declined(text) => CallResult::text(ToolOutcome::Denied, text),
        ToolError::Unanswered(text) => {
            CallResult { unanswered: true, ..CallResult::text(ToolOutcome::Denied, text) }
        }
    }
}

/// Arguments for the audit: redacted, of bounded length. Each text is redacted by itself: in JSON its escaped line
/// ends would hide the boundaries of words.
pub(crate) fn what(redact: &Redact, args: &Value) -> String {
    let mut args = shortened(args);
    crate::context::clean::value(redact, &mut args);
    cut(&redact(&args.to_string()), AUDIT_TEXT)
}

/// A copy whose texts are cut to what the audit could keep.
fn shortened(args: &Value) -> Value {
    match args {
        Value::String(s) => s[..s.floor_char_boundary(2 * AUDIT_TEXT)].into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(k, v)| (k.clone(), shortened(v))).collect())
        }
        other => other.clone(),
    }
}

/// Cuts a text to `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

pub(crate) fn text_of(content: &[Part]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n")
}
