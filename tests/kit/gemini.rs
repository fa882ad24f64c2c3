//! Gemini `streamGenerateContent?alt=sse`.

use serde_json::{Value, json};

use crate::script::{Part, Script, Stop, sse};

pub(crate) fn body(script: &Script) -> String {
    let mut out = String::new();
    let mut chunk = |parts: Vec<Value>| {
        out.push_str(&sse(
            "",
            &json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}],
                "modelVersion": "scripted", "responseId": "r1"}),
        ));
    };
    // The signature is on the part after the thinking.
    let mut signature: Option<&str> = None;
    for part in &script.parts {
        match part {
            Part::Text(text) => {
                for t in script.cut(text) {
                    match signature.take() {
                        Some(s) => chunk(vec![json!({"text": t, "thoughtSignature": s})]),
                        None => chunk(vec![json!({"text": t})]),
                    }
                }
            }
            Part::Thinking { text, signature: s } => {
                for t in script.cut(text) {
                    chunk(vec![json!({"text": t, "thought": true})]);
                }
                signature = Some(s);
            }
            Part::Redacted(_) => {}
            Part::Call { id, name, arguments } => {
                let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
                let mut part = json!({"functionCall": {"name": name, "args": args}});
                if !id.is_empty() {
                    part["functionCall"]["id"] = json!(id);
                }
                if let Some(s) = signature.take() {
                    part["thoughtSignature"] = json!(s);
                }
                chunk(vec![part]);
            }
        }
    }
    let finish = match script.stop {
        Stop::Natural => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    };
    let mut last = json!({"candidates": [{"index": 0, "finishReason": finish,
        "content": {"role": "model", "parts": []}}]});
    if let Some(c) = script.counts {
        last["usageMetadata"] = json!({
            "promptTokenCount": c.input.saturating_add(c.cache_read),
            "candidatesTokenCount": c.output.saturating_sub(c.reasoning),
            "thoughtsTokenCount": c.reasoning, "cachedContentTokenCount": c.cache_read,
        });
    }
    out.push_str(&sse("", &last));
    out
}
