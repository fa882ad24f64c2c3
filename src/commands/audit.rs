//! `tiller audit`: every call, its decision, and its outcome.

use tiller_protocol::Notice;

use crate::app::Setup;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say, say_beside};

/// Prints rows, newest last.
pub(super) fn run(setup: &Setup, filter: Option<&str>, limit: u32, json: bool) -> Result<Exit, Notice> {
    let store = crate::commands::opened(setup)?;
    // 0 means all. One more row than shown tells whether the list is cut.
    let ask = if limit == 0 { 0 } else { limit.saturating_add(1) };
    let mut rows = store.audit().list(None, filter.unwrap_or(""), ask).map_err(|e| e.notice())?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit > 0 && rows.len() > shown {
        rows.truncate(shown);
        say_beside(&format!(
            "There are calls older than these {limit}: --limit N shows more, --limit 0 shows all"
        ));
    }
    rows.reverse();
    if json {
        return say(&rows.iter().map(json_line).collect::<String>());
    }
    if rows.is_empty() {
        return say("Nothing has run yet.\n");
    }
    let mut text = String::new();
    for r in rows {
        text.push_str(&format!(
            "{}  {:8} {:12} {:14} {:12} {:>7.1}s  {}  ({})\n",
            tiller_tui::zone::written(r.time),
            one_line(&r.agent),
            one_line(&r.tool),
            r.decision.label(),
            r.outcome,
            r.seconds,
            one_line(&r.what),
            one_line(&r.by),
        ));
    }
    say(&text)
}
