//! The marks of rules and learnings at the end of the result of a call, or of a message.

use tiller_protocol::Addition;

use super::ToolCell;

/// The mark on the row of the call; empty: it has none.
pub(crate) fn mark(t: &ToolCell) -> String {
    let rules = t.behind().iter().filter(|(what, _)| matches!(what, Addition::Rule(_))).count();
    let rules = match rules {
        0 => String::new(),
        1 => "rule".to_owned(),
        n => format!("{n} rules"),
    };
    let all: Vec<String> = [rules, words(t.learnings())].into_iter().filter(|w| !w.is_empty()).collect();
    if all.is_empty() { String::new() } else { format!("  {}", all.join(", ")) }
}

/// Returns what stands behind the result of a call, for its opened row: the text of each rule, and everything else as the model reads it.
pub(crate) fn behind(t: &ToolCell) -> impl Iterator<Item = String> {
    t.behind().iter().map(|(what, text)| match what {
        Addition::Rule(rule) => format!("rule: {rule}"),
        _ => text.clone(),
    })
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
