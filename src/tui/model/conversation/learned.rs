//! Learnings at the end of the result of a call: they stand in its text, so that they are known after a restart as well.

use super::ToolCell;

/// How a learning begins.
const BEGINS: &str = "[Learning ";
/// Lines of a result that are looked at, from its end.
const LINES: usize = 20;

/// The numbers of the learnings at the end of a result.
pub(crate) fn learnings(t: &ToolCell) -> Vec<i64> {
    let lines = t.output.text().lines().rev().take(LINES);
    let mut found: Vec<i64> = lines.filter_map(number).collect();
    found.reverse();
    found.dedup();
    found
}

fn number(line: &str) -> Option<i64> {
    let (number, _) = line.strip_prefix(BEGINS)?.split_once(": ")?;
    number.parse().ok().filter(|_| line.ends_with(']'))
}

/// The mark on the row of the call; empty: it has none.
pub(crate) fn mark(t: &ToolCell) -> String {
    match learnings(t).as_slice() {
        [] => String::new(),
        [one] => format!("  learning {one}"),
        many => {
            format!("  learnings {}", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}
