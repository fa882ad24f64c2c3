//! Transcripts of Claude Code. A line is one block of a reply (lines of one reply share the message's id), a message of
//! the user, results of tools, or a record of the program; `parentUuid` makes them a tree.

use serde_json::Value;
use tiller_protocol::{
    AgentId, Block, EntryBody, ModelRef, Origin, Part, StopReason, ToolCall, ToolOutcome, Usage,
};

use super::Reader;
use super::talk::{Conversation, number, said, text, time};

/// State between the lines of a file.
#[derive(Default)]
pub(super) struct Claude {
    /// Names of tools by the id of a call.
    tools: std::collections::HashMap<String, String>,
    /// Tokens before the next summary.
    before: u64,
}

pub(super) fn recognises(line: &Value) -> bool {
    line.get("sessionId").is_some_and(Value::is_string)
        || (line.get("parentUuid").is_some() && line.get("uuid").is_some())
        || (text(line, "type") == "summary" && line.get("leafUuid").is_some())
}

impl Reader for Claude {
    fn line(&mut self, talk: &mut Conversation, number: usize, line: &Value) {
        talk.at(time(line, "timestamp"));
        if talk.id.is_empty() {
            // Files of subagents carry the session id of their parent.
            let agent = text(line, "agentId");
            talk.id = [text(line, "sessionId"), agent].join(if agent.is_empty() { "" } else { "/" });
        }
        if talk.project.is_empty() {
            talk.project = text(line, "cwd").to_owned();
        }
        let (uuid, parent) = (text(line, "uuid"), line.get("parentUuid").and_then(Value::as_str));
        let message = line.get("message").filter(|m| m.is_object());
        let known = match (text(line, "type"), message) {
            _ if uuid.is_empty() || talk.knows(uuid) => false,
            ("user", Some(message)) => self.user(talk, line, message, uuid, parent),
            ("assistant", Some(message)) => self.assistant(talk, line, message, uuid, parent),
            _ => false,
        };
        if known {
            return;
        }
        match text(line, "type") {
            "summary" => talk.title = text(line, "summary").to_owned(),
            "custom-title" | "ai-title" => {
                for field in ["customTitle", "aiTitle", "title"] {
                    if !text(line, field).is_empty() {
                        talk.title = text(line, field).to_owned();
                    }
                }
            }
            "last-prompt" => talk.end = Some(text(line, "leafUuid").to_owned()).filter(|k| !k.is_empty()),
            "system" if text(line, "subtype") == "compact_boundary" => {
                self.before = line.get("compactMetadata").map_or(0, |m| super::talk::number(m, "preTokens"));
            }
            _ => {}
        }
        if !uuid.is_empty() {
            let above = parent.or_else(|| line.get("logicalParentUuid").and_then(Value::as_str));
            talk.stands_for(uuid, above);
        }
        let kind = match text(line, "type") {
            "" => "line without a type",
            kind => kind,
        };
        talk.keep(number, kind, line);
    }
}

impl Claude {
    fn user(
        &mut self,
        talk: &mut Conversation,
        line: &Value,
        message: &Value,
        uuid: &str,
        parent: Option<&str>,
    ) -> bool {
        let flag = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or(false);
        let content = match message.get("content") {
            Some(Value::String(words)) => vec![serde_json::json!({"type": "text", "text": words})],
            Some(Value::Array(blocks)) => blocks.clone(),
            _ => return false,
        };
        let (results, rest): (Vec<_>, Vec<_>) =
            content.iter().partition(|b| text(b, "type") == "tool_result");
        let mut keys = Vec::new();
        for (n, result) in results.iter().enumerate() {
            let key = if n == 0 { uuid.to_owned() } else { format!("{uuid}/{n}") };
            let call_id = text(result, "tool_use_id").to_owned();
            let name = self.tools.get(&call_id).cloned().unwrap_or_else(|| "a tool".into());
            let failed = result.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
            let body = EntryBody::plain_result(call_id, name, outcome, parts(result.get("content")));
            keys.push((key, body));
        }
        if !rest.is_empty() {
            let parts = parts(Some(&Value::Array(rest.into_iter().cloned().collect())));
            let key = if keys.is_empty() { uuid.to_owned() } else { format!("{uuid}/said") };
            let body = if flag("isCompactSummary") {
                let summary = parts
                    .iter()
                    .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None });
                EntryBody::Compaction {
                    summary: summary.collect::<Vec<_>>().join("\n"),
                    focus: None,
                    kept_from: None,
                    tokens_before: std::mem::take(&mut self.before),
                    tokens_after: 0,
                    taint: None,
                    carried: tiller_protocol::Carried::default(),
                }
            } else {
                said(if flag("isMeta") { Origin::Engine } else { Origin::Prompt }, parts)
            };
            keys.push((key, body));
        }
        let mut above = parent.map(str::to_owned);
        let mut known = !keys.is_empty();
        for (key, body) in keys {
            known &= talk.add(&key, above.as_deref(), body);
            mark(talk, line);
            above = Some(key);
        }
        known
    }

    fn assistant(
        &mut self,
        talk: &mut Conversation,
        line: &Value,
        message: &Value,
        uuid: &str,
        parent: Option<&str>,
    ) -> bool {
        let Some(content) = message.get("content").and_then(Value::as_array) else { return false };
        let mut blocks: Vec<Block> = content.iter().map(block).collect();
        for block in &blocks {
            if let Block::ToolCall(call) = block {
                self.tools.insert(call.id.clone(), call.name.clone());
            }
        }
        let model = ModelRef(format!("anthropic/{}", text(message, "model")));
        let used = message.get("usage").cloned().unwrap_or_default();
        let usage = Usage {
            input: number(&used, "input_tokens"),
            output: number(&used, "output_tokens"),
            cache_read: number(&used, "cache_read_input_tokens"),
            cache_write: number(&used, "cache_creation_input_tokens"),
            reasoning: 0,
            estimated: false,
        };
        let stop = match text(message, "stop_reason") {
            "max_tokens" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal(String::new()),
            _ if blocks.iter().any(|b| matches!(b, Block::ToolCall(_))) => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        let cost = line.get("costUSD").and_then(Value::as_f64).map(tiller_protocol::Cost::from_usd);
        let whole = text(message, "id");
        // One reply in several consecutive lines. The counts in the last line are those of the whole reply.
        if !whole.is_empty()
            && let Some(first) = talk.get(&format!("reply {whole}"))
            && let EntryBody::Assistant { blocks: all, usage: sum, stop: end, .. } = &mut first.body
        {
            all.append(&mut blocks);
            (*sum, *end) = (usage, if *end == StopReason::ToolUse { StopReason::ToolUse } else { stop });
            talk.stands_for(uuid, Some(&format!("reply {whole}")));
            return true;
        }
        if model.model() != "<synthetic>" {
            talk.model.clone_from(&model.0);
        }
        let key = if whole.is_empty() { uuid.to_owned() } else { format!("reply {whole}") };
        if !talk.add(&key, parent, EntryBody::Assistant { blocks, stop, model, usage, cost }) {
            return false;
        }
        mark(talk, line);
        talk.stands_for(uuid, Some(&key));
        true
    }
}

/// Adds the name of the agent.
fn mark(talk: &mut Conversation, line: &Value) {
    let side = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
    let own = talk.id.contains('/');
    if let Some(item) = talk.last().filter(|_| side && !own) {
        item.agent = AgentId("main/side".into());
    }
}

fn block(raw: &Value) -> Block {
    match text(raw, "type") {
        "text" => Block::Text { text: text(raw, "text").into() },
        "thinking" => Block::Thinking {
            text: text(raw, "thinking").into(),
            signature: Some(text(raw, "signature").to_owned()).filter(|s| !s.is_empty()),
        },
        "redacted_thinking" => Block::Redacted { data: text(raw, "data").into() },
        "tool_use" => Block::ToolCall(ToolCall {
            id: text(raw, "id").into(),
            name: text(raw, "name").into(),
            arguments: raw
                .get("input")
                .cloned()
                .filter(Value::is_object)
                .unwrap_or_else(|| serde_json::json!({})),
            malformed: raw.get("input").filter(|i| !i.is_object()).map(Value::to_string),
            vendor: None,
        }),
        _ => Block::Unknown { provider: "anthropic".into(), raw: raw.clone() },
    }
}

/// Text and images; anything else as its JSON.
fn parts(content: Option<&Value>) -> Vec<Part> {
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(words)) => vec![Part::Text { text: words.clone() }],
        Some(Value::Array(blocks)) => blocks
            .iter()
            .map(|b| match (text(b, "type"), b.get("source")) {
                ("text", _) => Part::Text { text: text(b, "text").into() },
                ("image", Some(source)) if text(source, "type") == "base64" => Part::Image {
                    media_type: text(source, "media_type").into(),
                    data: text(source, "data").into(),
                },
                _ => Part::Text { text: b.to_string() },
            })
            .collect(),
        Some(other) => vec![Part::Text { text: other.to_string() }],
    }
}
