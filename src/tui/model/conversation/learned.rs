//! The marks of learnings at the end of the result of a call, or of a message.

use super::ToolCell;

/// The mark on the row of the call; empty: it has none.
pub(crate) fn mark(t: &ToolCell) -> String {
    let words = words(t.learnings());
    if words.is_empty() { words } else { format!("  {words}") }
}

/// The mark before the time of a message; empty: it has none.
pub(crate) fn before(learnings: &[i64]) -> String {
    let words = words(learnings);
    if words.is_empty() { words } else { format!("{words}  ") }
}

fn words(learnings: &[i64]) -> String {
    match learnings {
        [] => String::new(),
        [one] => format!("learning {one}"),
        many => format!("learnings {}", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    }
}
