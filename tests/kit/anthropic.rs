//! Anthropic Messages, streamed.

use serde_json::json;

use crate::script::{Counts, Part, Script, Stop, sse};

pub(crate) fn body(script: &Script) -> String {
    let mut out = String::new();
    let mut event = |name: &str, data: serde_json::Value| out.push_str(&sse(name, &data));
    let c = script.counts.unwrap_or_default();
    let start = match script.counts {
        Some(Counts { input, cache_read, cache_write, .. }) => json!({
            "input_tokens": input, "output_tokens": 1,
            "cache_read_input_tokens": cache_read, "cache_creation_input_tokens": cache_write,
        }),
        None => json!({}),
    };
    event(
        "message_start",
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": start,
        }}),
    );
    event("ping", json!({"type": "ping"}));
    for (index, part) in script.parts.iter().enumerate() {
        let (block, deltas) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                script.cut(text).into_iter().map(|t| json!({"type": "text_delta", "text": t})).collect(),
            ),
            Part::Thinking { text, signature } => {
                let mut deltas: Vec<_> = script
                    .cut(text)
                    .into_iter()
                    .map(|t| json!({"type": "thinking_delta", "thinking": t}))
                    .collect();
                deltas.push(json!({"type": "signature_delta", "signature": signature}));
                (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
            }
            Part::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), Vec::new()),
            Part::Call { id, name, arguments } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                script
                    .cut(arguments)
                    .into_iter()
                    .map(|t| json!({"type": "input_json_delta", "partial_json": t}))
                    .collect(),
            ),
        };
        event(
            "content_block_start",
            json!({"type": "content_block_start", "index": index, "content_block": block}),
        );
        for delta in deltas {
            event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            );
        }
        event("content_block_stop", json!({"type": "content_block_stop", "index": index}));
    }
    let stop = match script.stop {
        Stop::Natural if script.calls() => "tool_use",
        Stop::Natural => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    };
    let usage = if script.counts.is_some() { json!({"output_tokens": c.output}) } else { json!({}) };
    event(
        "message_delta",
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
    );
    event("message_stop", json!({"type": "message_stop"}));
    out
}
