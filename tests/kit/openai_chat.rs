//! OpenAI Chat Completions, streamed, as compatible servers with `reasoning_content` send it.

use serde_json::{Value, json};

use crate::script::{Part, Script, Stop, sse};

pub(crate) fn body(script: &Script) -> String {
    let mut out = String::new();
    let mut chunk = |delta: Value, finish: Value| {
        out.push_str(&sse(
            "",
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
        ));
    };
    chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    let mut call = 0;
    for part in &script.parts {
        match part {
            Part::Text(text) => {
                for t in script.cut(text) {
                    chunk(json!({"content": t}), Value::Null);
                }
            }
            Part::Thinking { text, .. } => {
                for t in script.cut(text) {
                    chunk(json!({"reasoning_content": t}), Value::Null);
                }
            }
            Part::Redacted(_) => {}
            Part::Call { id, name, arguments } => {
                chunk(
                    json!({"tool_calls": [{"index": call, "id": id, "type": "function",
                        "function": {"name": name, "arguments": ""}}]}),
                    Value::Null,
                );
                for t in script.cut(arguments) {
                    chunk(
                        json!({"tool_calls": [{"index": call, "function": {"arguments": t}}]}),
                        Value::Null,
                    );
                }
                call += 1;
            }
        }
    }
    let finish = match script.stop {
        Stop::Natural if script.calls() => "tool_calls",
        Stop::Natural => "stop",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
    };
    chunk(json!({}), json!(finish));
    if let Some(c) = script.counts {
        let prompt = c.input.saturating_add(c.cache_read).saturating_add(c.cache_write);
        out.push_str(&sse(
            "",
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": {
                "prompt_tokens": prompt, "completion_tokens": c.output,
                "total_tokens": prompt.saturating_add(c.output),
                "prompt_tokens_details": {"cached_tokens": c.cache_read},
                "completion_tokens_details": {"reasoning_tokens": c.reasoning},
            }}),
        ));
    }
    out.push_str("data: [DONE]\n\n");
    out
}
