//! Rollouts of Codex: one path without forks. The conversation is in `response_item` lines, in the format of the
//! Responses API; the other lines repeat it for the screen, or count tokens.

use serde_json::Value;
use tiller_protocol::{Block, EntryBody, ModelRef, Origin, Part, StopReason, ToolCall, ToolOutcome, Usage};

use super::Reader;
use super::talk::{Conversation, number, said, text, time};

/// Beginnings of messages that the program sends in the user's name.
const OURS: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<permissions",
];

#[derive(Default)]
pub(super) struct Codex {
    provider: String,
    model: String,
    /// Key of the last item: later items are attached to it.
    above: Option<String>,
    /// Key of the reply in progress.
    reply: Option<String>,
    /// Key of the last reply: token counts follow it.
    counted: Option<String>,
    names: std::collections::HashMap<String, String>,
}

pub(super) fn recognises(line: &Value) -> bool {
    let wrapped =
        matches!(text(line, "type"), "session_meta" | "response_item" | "event_msg" | "turn_context");
    // The oldest files begin with an unwrapped header.
    (wrapped && line.get("payload").is_some())
        || (line.get("type").is_none() && line.get("id").is_some() && line.get("instructions").is_some())
}

impl Reader for Codex {
    fn line(&mut self, talk: &mut Conversation, number: usize, line: &Value) {
        talk.at(time(line, "timestamp"));
        let (kind, body) = match line.get("payload") {
            Some(payload) => (text(line, "type"), payload),
            None if text(line, "type").is_empty() && line.get("instructions").is_some() => {
                ("session_meta", line)
            }
            None => ("response_item", line),
        };
        let key = format!("line {number}");
        let known = match kind {
            "session_meta" => {
                self.head(talk, body);
                false
            }
            "turn_context" => {
                self.model(talk, text(body, "model"));
                false
            }
            "response_item" => self.item(talk, &key, body),
            "compacted" => {
                let summary = text(body, "message").to_owned();
                (self.reply, self.counted) = (None, None);
                self.put(
                    talk,
                    &key,
                    EntryBody::Compaction {
                        summary,
                        focus: None,
                        kept_from: None,
                        tokens_before: 0,
                        tokens_after: 0,
                        taint: None,
                        carried: tiller_protocol::Carried::default(),
                    },
                );
                false
            }
            "event_msg" if text(body, "type") == "token_count" => {
                self.count(talk, body.get("info").and_then(|i| i.get("last_token_usage")));
                false
            }
            "token_usage_record" => {
                self.count(talk, body.get("usage"));
                false
            }
            _ => false,
        };
        if !known {
            let inner = text(body, "type");
            let kind =
                if inner.is_empty() || kind == inner { kind.to_owned() } else { format!("{kind}/{inner}") };
            talk.keep(number, &kind, line);
        }
    }
}

impl Codex {
    fn head(&mut self, talk: &mut Conversation, body: &Value) {
        // A resumed or forked file repeats headers; the first is its own.
        if talk.id.is_empty() {
            talk.id = text(body, "id").to_owned();
            talk.project = text(body, "cwd").to_owned();
            self.provider = text(body, "model_provider").to_owned();
        }
    }

    fn model(&mut self, talk: &mut Conversation, model: &str) {
        if model.is_empty() {
            return;
        }
        let provider = match self.provider.as_str() {
            "" | "openai" => "openai-responses",
            other => other,
        };
        self.model = format!("{provider}/{model}");
        talk.model.clone_from(&self.model);
    }

    fn put(&mut self, talk: &mut Conversation, key: &str, body: EntryBody) {
        talk.add(key, self.above.as_deref(), body);
        self.above = Some(key.to_owned());
    }

    /// Adds to the reply in progress, or begins one.
    fn grow(&mut self, talk: &mut Conversation, key: &str, block: Block) {
        let call = matches!(block, Block::ToolCall(_));
        if let Some(item) = self.reply.as_deref().and_then(|key| talk.get(key))
            && let EntryBody::Assistant { blocks, stop, .. } = &mut item.body
        {
            blocks.push(block);
            if call {
                *stop = StopReason::ToolUse;
            }
            return;
        }
        let body = EntryBody::Assistant {
            blocks: vec![block],
            stop: if call { StopReason::ToolUse } else { StopReason::EndTurn },
            model: ModelRef(self.model.clone()),
            usage: Usage::default(),
            cost: None,
        };
        self.put(talk, key, body);
        self.reply = Some(key.to_owned());
        self.counted = Some(key.to_owned());
    }

    fn count(&self, talk: &mut Conversation, used: Option<&Value>) {
        let Some(used) = used else { return };
        if let Some(item) = self.counted.as_deref().and_then(|key| talk.get(key))
            && let EntryBody::Assistant { usage, .. } = &mut item.body
        {
            let (read, write) =
                (number(used, "cached_input_tokens"), number(used, "cache_write_input_tokens"));
            *usage = Usage {
                input: number(used, "input_tokens").saturating_sub(read).saturating_sub(write),
                output: number(used, "output_tokens"),
                cache_read: read,
                cache_write: write,
                reasoning: number(used, "reasoning_output_tokens"),
                estimated: false,
            };
        }
    }

    /// False: it is (also) kept as a record.
    fn item(&mut self, talk: &mut Conversation, key: &str, body: &Value) -> bool {
        match text(body, "type") {
            "message" => match text(body, "role") {
                "assistant" => {
                    let words = parts(body.get("content"));
                    for part in words {
                        if let Part::Text { text } = part {
                            self.grow(talk, key, Block::Text { text });
                        }
                    }
                    true
                }
                "user" if !ours(body) => {
                    self.reply = None;
                    self.put(talk, key, said(Origin::Prompt, parts(body.get("content"))));
                    true
                }
                // Instructions of one program about itself are wrong in another.
                _ => false,
            },
            "reasoning" => {
                let all = ["summary", "content"].into_iter().filter_map(|f| body.get(f)?.as_array());
                let words: Vec<&str> =
                    all.flatten().map(|p| text(p, "text")).filter(|t| !t.is_empty()).collect();
                if !words.is_empty() {
                    self.grow(talk, key, Block::Thinking { text: words.join("\n\n"), signature: None });
                }
                // The encrypted part is useful to its owner only; the line is kept as a record.
                body.get("encrypted_content").is_none_or(Value::is_null) && !words.is_empty()
            }
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                let call = call(body);
                self.names.insert(call.id.clone(), call.name.clone());
                self.grow(talk, key, Block::ToolCall(call));
                true
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.reply = None;
                let call_id = text(body, "call_id").to_owned();
                let output = body.get("output");
                let failed = output.and_then(|o| o.get("success")).and_then(Value::as_bool) == Some(false);
                let content = match output {
                    Some(Value::Object(o)) => parts(o.get("content")),
                    other => parts(other),
                };
                let name = self.names.get(&call_id).cloned().unwrap_or_else(|| "a tool".into());
                let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
                let body = EntryBody::plain_result(call_id, name, outcome, content);
                self.put(talk, key, body);
                true
            }
            _ => false,
        }
    }
}

/// Whether the program wrote a message of the user's.
fn ours(body: &Value) -> bool {
    let kinds = body.pointer("/internal_chat_message_metadata_passthrough/content_item_kinds");
    if let Some(kinds) = kinds.and_then(Value::as_array) {
        return !kinds.iter().any(|k| k.as_str().is_some_and(|k| k.starts_with("user.")));
    }
    let first = body.get("content").and_then(|c| c.get(0)).map(|p| text(p, "text")).unwrap_or_default();
    OURS.iter().any(|start| first.trim_start().starts_with(start))
}

fn call(body: &Value) -> ToolCall {
    let id = match text(body, "call_id") {
        "" => text(body, "id"),
        id => id,
    };
    let name = if text(body, "type") == "local_shell_call" { "local_shell" } else { text(body, "name") };
    let raw = match text(body, "type") {
        "local_shell_call" => body.get("action").map(Value::to_string).unwrap_or_default(),
        "custom_tool_call" => serde_json::json!({"input": text(body, "input")}).to_string(),
        _ => text(body, "arguments").to_owned(),
    };
    let read: Option<Value> = serde_json::from_str(&raw).ok().filter(Value::is_object);
    ToolCall {
        id: id.into(),
        name: name.into(),
        malformed: if read.is_none() { Some(raw) } else { None },
        arguments: read.unwrap_or_else(|| serde_json::json!({})),
        vendor: None,
    }
}

fn parts(content: Option<&Value>) -> Vec<Part> {
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(words)) => vec![Part::Text { text: words.clone() }],
        Some(Value::Array(items)) => items
            .iter()
            .map(|p| match text(p, "type") {
                "input_text" | "output_text" | "text" => Part::Text { text: text(p, "text").into() },
                "refusal" => Part::Text { text: text(p, "refusal").into() },
                "input_image" => picture(text(p, "image_url")),
                _ => Part::Text { text: p.to_string() },
            })
            .collect(),
        Some(other) => vec![Part::Text { text: other.to_string() }],
    }
}

/// An inline image; others by their address.
fn picture(url: &str) -> Part {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((kind, data)) => Part::Image { media_type: kind.into(), data: data.into() },
        None => Part::Text { text: format!("[image {url}]") },
    }
}
