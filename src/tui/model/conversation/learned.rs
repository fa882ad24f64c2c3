//! The learnings at the end of the result of a call.

use tiller_protocol::EntryBody;

use super::ToolCell;

/// The numbers of the learnings that a result came with. They are a field of its entry: text of a result that looks like
/// a learning is none.
pub(crate) fn of(result: &EntryBody) -> Vec<i64> {
    match result {
        EntryBody::ToolResult { learnings, .. } => learnings.clone(),
        _ => Vec::new(),
    }
}

/// The mark on the row of the call; empty: it has none.
pub(crate) fn mark(t: &ToolCell) -> String {
    match t.learnings.as_slice() {
        [] => String::new(),
        [one] => format!("  learning {one}"),
        many => {
            format!("  learnings {}", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}
