//! `tiller audit`: every call, who allowed it, how it ended.

use tiller_protocol::Notice;

use crate::app::Setup;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Prints rows, newest last.
pub(super) fn run(setup: &Setup, filter: Option<&str>, limit: u32, json: bool) -> Result<Exit, Notice> {
    let store = crate::commands::opened(setup)?;
    let mut rows = store.audit(None, filter.unwrap_or(""), limit).map_err(|e| e.notice())?;
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
            r.decision,
            r.outcome,
            r.seconds,
            one_line(&r.what),
            one_line(&r.by),
        ));
    }
    say(&text)
}
