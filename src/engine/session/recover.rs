//! Recovery after a crash: every call gets a result, the user is notified of what was interrupted, and may continue.

use crate::turn::begin::{self, TurnStart};
use std::collections::HashSet;
use std::sync::Arc;

use tiller_protocol::{Ask, Block, Entry, EntryBody, Notice, NoticeKind, Part, ToolCall, ToolOutcome};
use tiller_store::Running;

use crate::core::Core;
use crate::core::saves::Then;
use crate::turn::CallResult;

/// Result of a call whose process ended before it was done.
const ENDED: &str =
    "Interrupted: Tiller ended before this call finished. Its changes up to that point are kept.";

/// The note in the conversation after a crash.
const CRASHED: &str = "Interrupted: Tiller ended before this turn finished.";

/// Repairs the open session after its last process ended.
pub(crate) fn recover(core: &mut Core, running: Option<Running>, asks: &[Ask]) {
    let dangling = dangling(&core.session.history.path.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    let asked: HashSet<&str> = asks.iter().filter_map(|a| a.call.as_deref()).collect();
    if dangling.iter().any(|c| asked.contains(c.id.as_str())) {
        // A call with an open question never ran. It asks again, and the turn continues from there.
        let calls = dangling
            .into_iter()
            .map(|c| {
                let again = asked.contains(c.id.as_str());
                (c, (!again).then(ended))
            })
            .collect();
        let scope = core.scope_of(None);
        begin::begin(core, TurnStart { calls, ..TurnStart::new(scope) });
        return;
    }
    if dangling.is_empty() && running.is_none() {
        return;
    }
    let mut entries: Vec<Entry> = Vec::new();
    for call in dangling {
        let mut r = ended();
        r.content.extend(done_calls(core, &call.id));
        let body = EntryBody::ToolResult {
            call_id: call.id,
            name: call.name,
            outcome: r.outcome,
            content: r.content,
            display: None,
            seconds: 0.0,
            learnings: Vec::new(),
            taint: None,
            added: r.added,
        };
        entries.push(core.session.grow(&core.services, body));
    }
    entries.push(core.session.grow(&core.services, EntryBody::Note { text: CRASHED.into() }));
    let mut append = core.append().entries(entries);
    append.running = Some(None);
    append.asks = Some(Vec::new());
    core.save(append, Vec::new(), Then::Nothing);
    let what = running.map_or_else(|| "its last turn".to_owned(), |r| r.what);
    core.session.interrupted = Some(what.clone());
    crate::files::record::finish_restore(core);
    crate::files::turn::ended::turn_cut(core);
    let notice = Notice::new(NoticeKind::Info, format!("this session was interrupted: {what}"))
        .hint("continue to resume where it stopped");
    core.notice(notice);
}

/// How many calls a script had made. They are kept below it.
fn done_calls(core: &Core, outer: &str) -> Option<Part> {
    let inner = |e: &&Arc<Entry>| matches!(&e.body, EntryBody::InnerCall { of, .. } if of == outer);
    let text = match core.session.history.tail.iter().filter(inner).count() {
        0 => return None,
        1 => "[1 call of the script had ended before.]".to_owned(),
        n => format!("[{n} calls of the script had ended before.]"),
    };
    Some(Part::Text { text })
}

fn ended() -> CallResult {
    CallResult::text(ToolOutcome::Interrupted, ENDED)
}

/// Calls of the path's last reply that have no result, in order.
pub(crate) fn dangling(path: &[&Entry]) -> Vec<ToolCall> {
    let mut done: HashSet<&str> = HashSet::new();
    for e in path.iter().rev() {
        match &e.body {
            EntryBody::ToolResult { call_id, .. } => {
                done.insert(call_id);
            }
            EntryBody::Assistant { blocks, .. } => {
                return blocks
                    .iter()
                    .filter_map(|b| if let Block::ToolCall(c) = b { Some(c) } else { None })
                    .filter(|c| !done.contains(c.id.as_str()))
                    .cloned()
                    .collect();
            }
            _ => {}
        }
    }
    Vec::new()
}
