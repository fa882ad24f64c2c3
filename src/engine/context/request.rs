//! The path from the root to the head, as a request. Pure: the same path gives the same request, and a
//! longer path gives the same messages with more at the end.

use std::sync::Arc;

use tiller_protocol::{Block, Carried, Entry, EntryBody, EntryId, ModelRef, Part, SessionId, ToolCall};
use tiller_provider::{ChatMessage, Effort, Request};

/// The part of the path that a request is made of: the last prefix, the last summary, the messages kept before it, and
/// everything after it.
pub fn live(path: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let summary = path.iter().rposition(|e| matches!(e.body, EntryBody::Compaction { .. }));
    let prefix = path.iter().rposition(|e| matches!(e.body, EntryBody::Prefix { .. }));
    let mut out: Vec<Arc<Entry>> = prefix.map(|p| Arc::clone(&path[p])).into_iter().collect();
    let mut from = 0;
    if let Some(s) = summary {
        out.push(Arc::clone(&path[s]));
        if let EntryBody::Compaction { kept_from: Some(kept), carried, .. } = &path[s].body
            && let Some(k) = path[..s].iter().position(|e| e.id == *kept)
        {
            let kept = path[k..s].iter().filter(|e| is_message(e));
            out.extend(kept.map(|e| as_carried(e, carried)));
        }
        from = s + 1;
    }
    out.extend(path[from..].iter().filter(|e| is_message(e)).map(Arc::clone));
    out
}

/// A kept entry as later requests have it.
fn as_carried(entry: &Arc<Entry>, carried: &Carried) -> Arc<Entry> {
    if let EntryBody::Assistant { .. } = &entry.body {
        let mut entry = Entry::clone(entry);
        if let EntryBody::Assistant { usage, .. } = &mut entry.body {
            // The server counted the path before the compaction.
            usage.estimated = true;
        }
        return Arc::new(entry);
    }
    let Some(short) = carried.shortened.iter().find(|c| c.entry == entry.id) else {
        return Arc::clone(entry);
    };
    let mut entry = Entry::clone(entry);
    if let EntryBody::ToolResult { content, .. } | EntryBody::User { content, .. } = &mut entry.body {
        content.clone_from(&short.content);
    }
    Arc::new(entry)
}

/// Whether a model sees it as a message of its own.
pub fn is_message(entry: &Entry) -> bool {
    match &entry.body {
        // The output of a command of a message stands in the message.
        EntryBody::ToolResult { call_id, .. } => !ToolCall::is_of_message(call_id),
        EntryBody::User { .. } | EntryBody::Assistant { .. } | EntryBody::BranchSummary { .. } => true,
        _ => false,
    }
}

/// Index of the first entry that requests along `path` need; entries before it may be left on disk.
pub fn needed_from(path: &[Arc<Entry>]) -> usize {
    let Some(s) = path.iter().rposition(|e| matches!(e.body, EntryBody::Compaction { .. })) else { return 0 };
    match &path[s].body {
        EntryBody::Compaction { kept_from: Some(kept), .. } => {
            path[..s].iter().position(|e| e.id == *kept).unwrap_or(s)
        }
        _ => s,
    }
}

/// Settings of a request that are not part of the path.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    pub model: ModelRef,
    pub session: SessionId,
    pub max_output: Option<u64>,
    pub effort: Effort,
}

/// The request that continues `path`; `None` when the path has no prefix yet.
pub fn build(path: &[Arc<Entry>], settings: &RequestSettings) -> Option<Request> {
    let live = live(path);
    let EntryBody::Prefix { system, tools, .. } = &live.first()?.body else { return None };
    Some(Request {
        model: settings.model.model().to_owned(),
        system: system.as_str().into(),
        tools: tools.as_slice().into(),
        messages: live.iter().filter_map(|e| message(e)).collect(),
        max_output: settings.max_output,
        effort: settings.effort,
        cache_key: settings.session.to_string(),
    })
}

fn message(entry: &Entry) -> Option<ChatMessage> {
    match &entry.body {
        EntryBody::User { content, .. } => Some(ChatMessage::User { content: content.clone() }),
        EntryBody::Assistant { blocks, model, .. } if answers(blocks) => {
            Some(ChatMessage::Assistant { blocks: blocks.clone(), model: model.clone() })
        }
        EntryBody::ToolResult { call_id, name, outcome, content, .. } => Some(ChatMessage::ToolResult {
            call_id: call_id.clone(),
            name: name.clone(),
            ok: outcome.ok(),
            content: content.clone(),
        }),
        EntryBody::Compaction { summary, carried, .. } => {
            let mut content = Vec::new();
            if !summary.is_empty() {
                content.push(Part::Text { text: recall(summary, entry.id) });
            }
            let first = carried.first.iter().map(|m| (FIRST, m));
            for (said, message) in first.chain(carried.messages.iter().map(|m| (NOW, m))) {
                content.push(Part::Text { text: said.into() });
                content.extend(message.content.iter().cloned());
            }
            (!content.is_empty()).then_some(ChatMessage::User { content })
        }
        EntryBody::BranchSummary { summary, .. } => {
            Some(ChatMessage::User { content: vec![Part::Text { text: of_branch(summary) }] })
        }
        _ => None,
    }
}

/// A reply of thinking alone is not sent back: no API accepts it as an answer.
fn answers(blocks: &[Block]) -> bool {
    blocks.iter().any(|b| match b {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolCall(_) => true,
        _ => false,
    })
}

/// Stands before the first message of the session, which a compaction carries along.
const FIRST: &str = "The first message of the conversation:";
/// Stands before each message of the running turn that a compaction carries along.
const NOW: &str = "A message of the present turn:";

fn of_branch(summary: &str) -> String {
    format!(
        "Another approach was tried before, on a different branch of this conversation. This is its summary. The \
         files are in the state of the current branch, which may differ from that one.\n\n{summary}"
    )
}

fn recall(summary: &str, id: EntryId) -> String {
    format!(
        "The conversation before this point was replaced by this summary (entry {id}). Files on disk are \
         unaffected: read again what you need verbatim.\n\n{summary}"
    )
}

#[cfg(test)]
#[path = "request_tests.rs"]
pub(crate) mod tests;
