//! Replies of model servers: event streams and documents of all formats.

use std::collections::HashSet;

use serde_json::json;
use tiller_protocol::Block;
use tiller_provider::testing::{FORMATS, read_reply};
use tiller_testkit::{Script, Wire};

use crate::outline::{cuts, pieces};
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "reply", words: &[super::words::JSON, WORDS], seeds, run };

const WORDS: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "event: ",
    "event: message_start\n",
    "id: 1\n",
    "retry: 9\n",
    ": ping\n",
    "\r\n\r\n",
    "\r",
    "[DONE]",
    "data: [DONE]\n\n",
    "\"message_start\"",
    "\"content_block_start\"",
    "\"content_block_delta\"",
    "\"content_block_stop\"",
    "\"message_delta\"",
    "\"message_stop\"",
    "\"ping\"",
    "\"error\"",
    "\"index\":",
    "\"content_block\":",
    "\"delta\":",
    "\"text_delta\"",
    "\"input_json_delta\"",
    "\"partial_json\":",
    "\"thinking_delta\"",
    "\"thinking\":",
    "\"signature_delta\"",
    "\"signature\":",
    "\"redacted_thinking\"",
    "\"input\":",
    "\"usage\":",
    "\"output_tokens\":",
    "\"stop_reason\":",
    "\"end_turn\"",
    "\"max_tokens\"",
    "\"choices\":[{",
    "\"choices\":",
    "\"message\":",
    "\"content\":",
    "\"role\":\"assistant\"",
    "\"tool_calls\":[{",
    "\"function\":{",
    "\"arguments\":",
    "\"finish_reason\":",
    "\"stop\"",
    "\"length\"",
    "\"reasoning_content\":",
    "\"reasoning\":",
    "\"reasoning_details\":",
    "\"refusal\":",
    "\"response.output_item.added\"",
    "\"response.output_text.delta\"",
    "\"response.completed\"",
    "\"response.failed\"",
    "\"response.function_call_arguments.delta\"",
    "\"response\":{",
    "\"output_index\":",
    "\"function_call\"",
    "\"call_id\":",
    "\"candidates\":[{",
    "\"parts\":[{",
    "\"functionCall\":{",
    "\"args\":{",
    "\"thought\":true",
    "\"thoughtSignature\":",
    "\"finishReason\":\"STOP\"",
    "\"usageMetadata\":{",
    "\"promptTokenCount\":",
    "<think>",
    "</think>",
    "\"{}\"",
    "\"{\\\"a\\\":1}\"",
    "\"\\u00e9\"",
    "<html><title>x</title>",
    "data: {\"error\":{\"message\":\"x\",\"type\":\"overloaded_error\"}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
];

fn seeds() -> Vec<Vec<u8>> {
    let scripts = [
        Script::new().thinking("Über", "sig").text("te—xt").call("c1", "run", json!({"x": "é"})).pieces_of(3),
        Script::new()
            .text("a")
            .call("c1", "run", json!({}))
            .call("c2", "run", json!({"b": [1]}))
            .pieces_of(9),
    ];
    let body = |wire| scripts.iter().map(move |s| s.body(wire));
    let mut all: Vec<Vec<u8>> = Wire::ALL.into_iter().flat_map(body).collect();
    all.extend(super::texts(&[
        "{\"choices\":[{\"message\":{\"content\":\"a\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}",
        "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}]",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\"}",
        "<!doctype html><title>Sign in</title>",
    ]));
    all
}

fn run(data: &[u8]) -> u64 {
    let mut outline = Outline::default();
    let cuts = cuts(data, 6);
    for format in FORMATS {
        let (reply, error) = read_reply(format, &[data]);
        let (again, same) = read_reply(format, &pieces(data, &cuts));
        assert_eq!((&reply, &error), (&again, &same), "{format}, cut at {cuts:?}");
        let ids: HashSet<&str> = reply.calls().map(|c| c.id.as_str()).collect();
        assert_eq!(ids.len(), reply.calls().count(), "{format}: an id twice");
        for call in reply.calls() {
            assert!(!call.id.is_empty() && call.arguments.is_object(), "{format}: {call:?}");
        }
        assert!(error.is_some() || reply.stop.is_some(), "{format}: neither an end nor an error");
        assert!(
            reply.blocks.iter().map(size).sum::<usize>() <= 4 * data.len() + 1024,
            "{format}: more than was sent"
        );
        let usage = &reply.usage;
        let _ = (usage.context(), usage.input.checked_add(usage.output));
        outline.add((
            reply.stop.is_some(),
            reply.dropped.len().min(3),
            reply.usage.input.min(2),
            reply.truncated,
        ));
        outline.add(reply.blocks.iter().take(5).map(std::mem::discriminant).collect::<Vec<_>>());
        outline.add(
            reply.calls().take(3).map(|c| (c.malformed.is_some(), c.vendor.is_some())).collect::<Vec<_>>(),
        );
        outline.message(&error.map(|e| e.to_string()).unwrap_or_default());
    }
    outline.end()
}

/// Bytes of a block, as far as they were sent.
fn size(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Thinking { text, signature } => text.len() + signature.as_ref().map_or(0, String::len),
        _ => 0,
    }
}
