//! The learnings at the end of the result of a call.

use super::ToolCell;

/// The mark on the row of the call; empty: it has none.
pub(crate) fn mark(t: &ToolCell) -> String {
    match t.learnings() {
        [] => String::new(),
        [one] => format!("  learning {one}"),
        many => {
            format!("  learnings {}", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}
