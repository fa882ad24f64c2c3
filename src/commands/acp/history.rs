//! Converts stored entries to the updates that they were at the time.

use std::path::Path;

use serde_json::{Value, json};
use tiller_protocol::{AgentId, Attachment, Block, Entry, EntryBody, Message, Origin, ToolCatalog};

use super::{call, view};

/// The updates for entries of a path, oldest first.
pub(super) fn replay(root: &Path, tools: &ToolCatalog, entries: &[Entry]) -> Vec<Value> {
    entries.iter().filter(|e| e.agent == AgentId::main()).flat_map(|e| entry(root, tools, e)).collect()
}

fn entry(root: &Path, tools: &ToolCatalog, entry: &Entry) -> Vec<Value> {
    match &entry.body {
        EntryBody::User { message, origin, .. } if !origin.is_of_tiller() => person(message),
        // What Tiller wrote to begin a turn is no message of the user's.
        EntryBody::User { message, origin: Origin::Task, .. } => vec![view::thought(&message.text)],
        EntryBody::Assistant { blocks, .. } => blocks.iter().filter_map(|b| block(root, tools, b)).collect(),
        EntryBody::ToolResult { call_id, name, outcome, content, display, .. } => {
            let begun = |arguments| call::begun(root, tools, call_id, name, &arguments, "pending");
            let mut out: Vec<Value> = entry.body.message_call().map(begun).into_iter().collect();
            out.push(call::ended(root, call_id, *outcome, content, display.as_ref()));
            out
        }
        EntryBody::InnerCall { of, call: inner, most, .. } => vec![call::inner(of, inner, *most)],
        EntryBody::BranchSummary { summary, .. } => vec![view::thought(summary)],
        _ => Vec::new(),
    }
}

fn person(message: &Message) -> Vec<Value> {
    let mut text = message.text.clone();
    let mut out = Vec::new();
    for a in &message.attachments {
        match a {
            Attachment::Paste { label, text: pasted } => text = text.replacen(label, pasted, 1),
            Attachment::Image { label, media_type, data, .. } => {
                text = text.replacen(label, "", 1);
                let content = json!({"type": "image", "mimeType": media_type, "data": data});
                out.push(json!({"sessionUpdate": "user_message_chunk", "content": content}));
            }
            Attachment::File { .. } => {}
        }
    }
    if !text.trim().is_empty() {
        out.insert(0, view::chunk("user_message_chunk", text.trim_end()));
    }
    out
}

fn block(root: &Path, tools: &ToolCatalog, block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(view::said(text)),
        Block::Thinking { text, .. } if !text.is_empty() => Some(view::thought(text)),
        Block::ToolCall(c) => Some(call::begun(root, tools, &c.id, &c.name, &c.arguments, "pending")),
        _ => None,
    }
}
