//! OpenAI Responses, streamed.

use serde_json::{Value, json};

use crate::script::{Part, Script, Stop, sse};

pub(crate) fn body(script: &Script) -> String {
    let mut out = String::new();
    let mut number = 0;
    let mut event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        number += 1;
        out.push_str(&sse(name, &data));
    };
    event("response.created", json!({"response": {"id": "resp_1", "status": "in_progress", "output": []}}));
    let mut output = Vec::new();
    for (index, part) in script.parts.iter().enumerate() {
        let item = match part {
            Part::Text(text) => {
                let id = format!("msg_{index}");
                event(
                    "response.output_item.added",
                    json!({"output_index": index, "item": {"id": id, "type": "message", "role": "assistant",
                        "status": "in_progress", "content": []}}),
                );
                event(
                    "response.content_part.added",
                    json!({"output_index": index, "content_index": 0, "item_id": id,
                        "part": {"type": "output_text", "text": "", "annotations": []}}),
                );
                for t in script.cut(text) {
                    event(
                        "response.output_text.delta",
                        json!({"output_index": index, "content_index": 0, "item_id": id, "delta": t}),
                    );
                }
                event(
                    "response.output_text.done",
                    json!({"output_index": index, "content_index": 0, "item_id": id, "text": text}),
                );
                json!({"id": id, "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]})
            }
            Part::Thinking { text, signature } => {
                let id = format!("rs_{index}");
                event(
                    "response.output_item.added",
                    json!({"output_index": index, "item": {"id": id, "type": "reasoning", "summary": []}}),
                );
                for t in script.cut(text) {
                    event(
                        "response.reasoning_summary_text.delta",
                        json!({"output_index": index, "summary_index": 0, "item_id": id, "delta": t}),
                    );
                }
                json!({"id": id, "type": "reasoning", "encrypted_content": signature,
                    "summary": [{"type": "summary_text", "text": text}]})
            }
            Part::Redacted(_) => continue,
            Part::Call { id: call, name, arguments } => {
                let id = format!("fc_{index}");
                event(
                    "response.output_item.added",
                    json!({"output_index": index, "item": {"id": id, "type": "function_call",
                        "status": "in_progress", "call_id": call, "name": name, "arguments": ""}}),
                );
                for t in script.cut(arguments) {
                    event(
                        "response.function_call_arguments.delta",
                        json!({"output_index": index, "item_id": id, "delta": t}),
                    );
                }
                event(
                    "response.function_call_arguments.done",
                    json!({"output_index": index, "item_id": id, "arguments": arguments}),
                );
                json!({"id": id, "type": "function_call", "status": "completed", "call_id": call,
                    "name": name, "arguments": arguments})
            }
        };
        event("response.output_item.done", json!({"output_index": index, "item": item}));
        output.push(item);
    }
    let usage = script.counts.map_or(Value::Null, |c| {
        let input = c.input.saturating_add(c.cache_read).saturating_add(c.cache_write);
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": c.cache_read},
            "output_tokens": c.output, "output_tokens_details": {"reasoning_tokens": c.reasoning},
            "total_tokens": input.saturating_add(c.output)})
    });
    let (name, status, details) = match script.stop {
        Stop::Natural => ("response.completed", "completed", Value::Null),
        Stop::MaxTokens => ("response.incomplete", "incomplete", json!({"reason": "max_output_tokens"})),
        Stop::Refusal => ("response.incomplete", "incomplete", json!({"reason": "content_filter"})),
    };
    event(
        name,
        json!({"response": {"id": "resp_1", "status": status, "incomplete_details": details,
            "output": output, "usage": usage}}),
    );
    out
}
