//! Sessions of Pi: a header, then entries with `id` and `parentId`. The oldest files have neither and are one path.

use serde_json::Value;
use tiller_protocol::{
    Block, Cost, EntryBody, ModelRef, Origin, Part, StopReason, ToolCall, ToolOutcome, Usage,
};

use super::Reader;
use super::talk::{Conversation, number, said, text, time};

#[derive(Default)]
pub(super) struct Pi {
    /// Key of the entry before, for files without parents.
    before: Option<String>,
}

pub(super) fn recognises(line: &Value) -> bool {
    text(line, "type") == "session" && line.get("id").is_some() && line.get("cwd").is_some()
}

impl Reader for Pi {
    fn line(&mut self, talk: &mut Conversation, number: usize, line: &Value) {
        talk.at(time(line, "timestamp"));
        let kind = text(line, "type");
        if kind == "session" {
            if talk.id.is_empty() {
                talk.id = text(line, "id").to_owned();
                talk.project = text(line, "cwd").to_owned();
            }
            return talk.keep(number, kind, line);
        }
        let (key, parent) = match text(line, "id") {
            "" => (format!("line {number}"), self.before.clone()),
            id => (id.to_owned(), line.get("parentId").and_then(Value::as_str).map(Into::into)),
        };
        let parent = parent.as_deref();
        let body = match kind {
            "message" => line.get("message").and_then(|m| message(talk, m)),
            "compaction" => Some(EntryBody::Compaction {
                summary: text(line, "summary").into(),
                focus: None,
                kept_from: None,
                tokens_before: super::talk::number(line, "tokensBefore"),
                tokens_after: 0,
                taint: None,
                carried: tiller_protocol::Carried::default(),
            }),
            "branch_summary" => Some(summary_entry(&format!(
                "Summary of the branch that was left:\n{}",
                text(line, "summary")
            ))),
            "custom_message" => Some(said(Origin::Engine, parts(line.get("content")))),
            _ => None,
        };
        if body.is_some_and(|body| talk.add(&key, parent, body)) {
            if let (Some(item), kept) = (talk.last(), text(line, "firstKeptEntryId")) {
                item.kept = Some(kept.to_owned()).filter(|k| !k.is_empty());
            }
        } else {
            match kind {
                "label" if !text(line, "label").is_empty() => {
                    talk.tags.push((text(line, "label").into(), text(line, "targetId").into()));
                }
                "label" => talk.tags.retain(|(_, target)| target != text(line, "targetId")),
                "session_info" => talk.title = text(line, "name").to_owned(),
                "model_change" => {
                    talk.model = format!("{}/{}", text(line, "provider"), text(line, "modelId"))
                }
                _ => {}
            }
            talk.stands_for(&key, parent);
            talk.keep(number, if kind.is_empty() { "line without a type" } else { kind }, line);
        }
        talk.end = Some(key.clone());
        self.before = Some(key);
    }
}

fn summary_entry(words: &str) -> EntryBody {
    said(Origin::Engine, vec![Part::Text { text: words.into() }])
}

/// `None`: it is kept as a record.
fn message(talk: &mut Conversation, message: &Value) -> Option<EntryBody> {
    let flag = |name: &str| message.get(name).and_then(Value::as_bool).unwrap_or(false);
    Some(match text(message, "role") {
        "user" => said(Origin::Prompt, parts(message.get("content"))),
        "assistant" => reply(talk, message)?,
        "toolResult" => EntryBody::plain_result(
            text(message, "toolCallId").into(),
            text(message, "toolName").into(),
            if flag("isError") { ToolOutcome::Error } else { ToolOutcome::Ok },
            parts(message.get("content")),
        ),
        "bashExecution" => {
            let (line, output) = (text(message, "command"), text(message, "output"));
            if flag("excludeFromContext") {
                return Some(EntryBody::Note { text: format!("!! {line}\n{output}") });
            }
            let content =
                vec![Part::Text { text: format!("I ran this command myself:\n$ {line}\n{output}") }];
            EntryBody::User {
                message: tiller_protocol::Message::text(format!("! {line}")),
                origin: Origin::Shell,
                content,
                taint: None,
                learnings: Vec::new(),
            }
        }
        "branchSummary" | "compactionSummary" => summary_entry(text(message, "summary")),
        "custom" | "hookMessage" => said(Origin::Engine, parts(message.get("content"))),
        _ => return None,
    })
}

fn reply(talk: &mut Conversation, message: &Value) -> Option<EntryBody> {
    let blocks: Vec<Block> = message.get("content")?.as_array()?.iter().map(block).collect();
    let model = format!("{}/{}", text(message, "provider"), text(message, "model"));
    talk.model.clone_from(&model);
    let used = message.get("usage").cloned().unwrap_or_default();
    let paid = used.get("cost").and_then(|c| c.get("total")).and_then(Value::as_f64);
    let stop = match text(message, "stopReason") {
        "toolUse" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "aborted" => StopReason::Interrupted,
        "error" => StopReason::Cut(text(message, "errorMessage").into()),
        _ => StopReason::EndTurn,
    };
    Some(EntryBody::Assistant {
        blocks,
        stop,
        model: ModelRef(model),
        usage: Usage {
            input: number(&used, "input"),
            output: number(&used, "output"),
            cache_read: number(&used, "cacheRead"),
            cache_write: number(&used, "cacheWrite"),
            reasoning: 0,
            estimated: false,
        },
        // Models without a price are recorded as free.
        cost: paid.filter(|usd| *usd > 0.0).map(Cost::from_usd),
    })
}

fn block(raw: &Value) -> Block {
    match text(raw, "type") {
        "text" => Block::Text { text: text(raw, "text").into() },
        "thinking" => Block::Thinking {
            text: text(raw, "thinking").into(),
            signature: Some(text(raw, "thinkingSignature").to_owned()).filter(|s| !s.is_empty()),
        },
        "toolCall" => Block::ToolCall(ToolCall {
            id: text(raw, "id").into(),
            name: text(raw, "name").into(),
            arguments: raw
                .get("arguments")
                .cloned()
                .filter(Value::is_object)
                .unwrap_or_else(|| serde_json::json!({})),
            malformed: raw.get("arguments").filter(|a| !a.is_object()).map(Value::to_string),
            vendor: None,
        }),
        _ => Block::Unknown { provider: "pi".into(), raw: raw.clone() },
    }
}

fn parts(content: Option<&Value>) -> Vec<Part> {
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(words)) => vec![Part::Text { text: words.clone() }],
        Some(Value::Array(items)) => items
            .iter()
            .map(|p| match text(p, "type") {
                "text" => Part::Text { text: text(p, "text").into() },
                "image" => {
                    Part::Image { media_type: text(p, "mimeType").into(), data: text(p, "data").into() }
                }
                _ => Part::Text { text: p.to_string() },
            })
            .collect(),
        Some(other) => vec![Part::Text { text: other.to_string() }],
    }
}
