//! How many tokens things have: the provider's own count where there is one, else an estimate.

use std::sync::Arc;

use tiller_protocol::{Block, Entry, EntryBody, Part, StopReason, ToolSpec};

/// Tokens that an image is taken for.
const IMAGE: u64 = 1_500;

/// About 2.5 characters a token.
pub fn of_text(text: &str) -> u64 {
    // Bytes are counted, not characters: the same for ASCII, and scripts with longer characters have
    // more tokens for each.
    (text.len() as u64).saturating_mul(2).div_ceil(5)
}

/// Of parts of a message or result.
pub fn of_parts(parts: &[Part]) -> u64 {
    parts
        .iter()
        .map(|p| match p {
            Part::Text { text } => of_text(text),
            Part::Image { .. } => IMAGE,
        })
        .sum()
}

/// Of the tool list.
pub fn of_tools(tools: &[ToolSpec]) -> u64 {
    tools.iter().map(|t| of_text(&t.name) + of_text(&t.description) + of_text(&t.schema.to_string())).sum()
}

/// Of a reply.
pub fn of_blocks(blocks: &[Block]) -> u64 {
    blocks
        .iter()
        .map(|b| match b {
            Block::Text { text } | Block::Thinking { text, .. } => of_text(text),
            Block::Redacted { data } => of_text(data),
            Block::ToolCall(c) => of_text(&c.name) + of_text(&c.arguments.to_string()),
            Block::Unknown { raw, .. } => of_text(&raw.to_string()),
        })
        .sum()
}

/// Of what an entry adds to a request; notes and the like add nothing.
pub fn of_entry(entry: &Entry) -> u64 {
    match &entry.body {
        EntryBody::Prefix { system, tools, .. } => of_text(system) + of_tools(tools),
        EntryBody::User { content, .. } | EntryBody::ToolResult { content, .. } => of_parts(content),
        EntryBody::Assistant { blocks, .. } => of_blocks(blocks),
        EntryBody::Compaction { summary, .. } => of_text(summary),
        EntryBody::Checkpoint { .. } | EntryBody::Note { .. } => 0,
    }
}

/// Tokens of the next request along `path`, and whether the greater part is the provider's own count.
/// `path` is as [`super::request::live`] gives it.
pub fn of_path(path: &[&Arc<Entry>]) -> (u64, bool) {
    let counted = path.iter().enumerate().rev().find_map(|(i, e)| match &e.body {
        // What a model says of a reply that was cut short is not to be relied on.
        EntryBody::Assistant { usage, stop, .. }
            if usage.context() > 0 && !matches!(stop, StopReason::Interrupted | StopReason::Cut(_)) =>
        {
            Some((i, usage.context().saturating_add(usage.output)))
        }
        // Counts from before a compaction are of another path.
        EntryBody::Compaction { .. } => Some((usize::MAX, 0)),
        _ => None,
    });
    match counted {
        Some((i, tokens)) if i != usize::MAX => {
            let rest: u64 = path[i + 1..].iter().map(|e| of_entry(e)).sum();
            (tokens.saturating_add(rest), true)
        }
        _ => (path.iter().map(|e| of_entry(e)).sum(), false),
    }
}
