//! The results of one reply share what is left of the window: each is bounded when it is added to the conversation.

use tiller_protocol::{Block, EntryBody, Part};
use tiller_tool::output::shortened;

use crate::context::compaction::compact::UNKNOWN_WINDOW;
use crate::context::tokens;
use crate::core::Core;
use crate::session::model;
use crate::tool_call::calls;
use crate::turn::CallResult;

/// Tokens that are left of a result, however little is left of the window.
const LEAST: u64 = 100;

/// Shortens what the tool said to the call's share of what is left of the window. The whole is kept in a file.
pub(super) fn share_window(core: &Core, call_id: &str, result: &mut CallResult) {
    let size = tokens::of_parts(&result.content);
    if size <= LEAST {
        return;
    }
    let window = model::window(core).unwrap_or(UNKNOWN_WINDOW);
    // A tenth is left for the answer.
    let left = (window - window / 10).saturating_sub(core.session.context_tokens().0);
    let share = (left / results_to_come(core)).max(LEAST);
    if size <= share {
        return;
    }
    let end = result.content.len().saturating_sub(result.added.after.len());
    let own = result.added.before.min(end)..end;
    let texts: Vec<&str> = result.content[own.clone()]
        .iter()
        .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None })
        .collect();
    let text = texts.join("\n");
    // Pictures, and what others said around it, are short.
    let others = size.saturating_sub(tokens::of_text(&text));
    let bytes = tokens::bytes(share.saturating_sub(others).max(LEAST));
    if text.len() <= bytes {
        return;
    }
    let short = Part::Text { text: shortened(&text, bytes, &calls::spill(core), call_id) };
    let pictures = result.content.splice(own, [short]).filter(|p| matches!(p, Part::Image { .. }));
    let pictures: Vec<Part> = pictures.collect();
    let at = result.added.before.min(end) + 1;
    result.content.splice(at..at, pictures);
}

/// The calls of the last reply that have no result yet, this one included.
fn results_to_come(core: &Core) -> u64 {
    let mut results = 0;
    for entry in core.session.history.path.iter().rev() {
        match &entry.body {
            EntryBody::ToolResult { .. } => results += 1,
            EntryBody::Assistant { blocks, .. } => {
                let calls = blocks.iter().filter(|b| matches!(b, Block::ToolCall(_))).count() as u64;
                return calls.saturating_sub(results).max(1);
            }
            EntryBody::InnerCall { .. } | EntryBody::Note { .. } => {}
            _ => break,
        }
    }
    1
}
