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

/// What a call read and wrote.
pub fn of_usage(usage: &tiller_protocol::Usage) -> u64 {
    usage.context().saturating_add(usage.output)
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
        EntryBody::Compaction { summary, .. } | EntryBody::BranchSummary { summary, .. } => of_text(summary),
        EntryBody::Checkpoint { .. } | EntryBody::Note { .. } => 0,
    }
}

/// An estimate, put right by what a server counted where the estimate was `guessed`. Within reason: a count that
/// is far off says more of the server than of the text.
fn scaled(estimate: u64, counted: u64, guessed: u64) -> u64 {
    if guessed == 0 {
        return estimate;
    }
    let (least, most) = (estimate / 3, estimate.saturating_mul(3));
    let right = u128::from(estimate) * u128::from(counted) / u128::from(guessed);
    u64::try_from(right).unwrap_or(u64::MAX).clamp(least, most)
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
            let guess = |part: &[&Arc<Entry>]| part.iter().map(|e| of_entry(e)).sum::<u64>();
            let rest = scaled(guess(&path[i + 1..]), tokens, guess(&path[..=i]));
            (tokens.saturating_add(rest), true)
        }
        _ => (path.iter().map(|e| of_entry(e)).sum(), false),
    }
}
