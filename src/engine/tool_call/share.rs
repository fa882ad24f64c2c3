//! The results of one reply share what is left of the window: each is bounded when it is added to the conversation.

use tiller_protocol::{Block, EntryBody, Part};
use tiller_tool::output::shortened;

use crate::context::compaction::compact::UNKNOWN_WINDOW;
use crate::context::request;
use crate::context::tokens::{self, Calibration};
use crate::core::Core;
use crate::session::model;
use crate::tool_call::calls;
use crate::turn::CallResult;

/// Tokens that are left of a result, however little is left of the window.
const LEAST: u64 = 100;

/// Tokens that are kept for each later result of the reply, as far as there is room; many need less.
const RESERVE: u64 = 8_000;

/// Shortens what the tool said to the call's share of what is left of the window. The whole is kept in a file, which is
/// written here: results that are that long are few.
pub(super) fn share_window(core: &Core, call_id: &str, result: &mut CallResult) {
    let estimate = tokens::of_parts(&result.content);
    if estimate <= LEAST {
        return;
    }
    let live = request::live(&core.session.history.path);
    let size = Calibration::of(&live).read(estimate);
    let window = model::window(core).unwrap_or(UNKNOWN_WINDOW);
    // A tenth is left for the answer.
    let left = (window - window / 10).saturating_sub(tokens::of_path(&live).0);
    let later = results_to_come(core) - 1;
    let share = (left - later * (left / (later + 1)).min(RESERVE)).max(LEAST);
    if size <= share {
        return;
    }
    // As an estimate again.
    let share = (u128::from(share) * u128::from(estimate) / u128::from(size)).try_into().unwrap_or(u64::MAX);
    let end = result.content.len().saturating_sub(result.added.after.len());
    let own = result.added.before.min(end)..end;
    let texts: Vec<&str> = result.content[own.clone()]
        .iter()
        .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None })
        .collect();
    // A secret is masked before it can be cut.
    let text = core.redact(&texts.join("\n"));
    // Pictures, and what others said around it, are short.
    let others = estimate.saturating_sub(tokens::of_text(&text));
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
