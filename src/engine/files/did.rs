//! What an entry did to the files: the two states between which it stands. Blocking.

use tiller_protocol::{Entry, EntryBody, EntryId};
use tiller_snapshot::Id;
use tiller_store::{Result, StepOf, Store};

use super::back;

/// Entries of one turn that are walked down to its end, and up to its start.
const LONG: u32 = 5_000;

/// Two states: from a tool result's own call; else from the start of the turn to the entry, or to the turn's end
/// when the entry begins it. `None`: they were not kept.
pub(crate) fn states(store: &Store, entry: &Entry) -> Result<Option<(Id, Id)>> {
    if let EntryBody::ToolResult { call_id, .. } = &entry.body {
        let steps = store.steps(entry.session, 0)?;
        let mine = steps.iter().rev().find(|s| matches!(&s.of, StepOf::Call(c) if c == call_id));
        let ends = mine.and_then(|s| Some((s.before.as_deref()?.parse().ok()?, s.after.parse().ok()?)));
        if ends.is_some() {
            return Ok(ends);
        }
        // A call that changed nothing has no step.
        let here = back::point(store, entry.session, entry.id)?.map(|p| p.snapshot);
        return Ok(here.map(|id| (id, id)));
    }
    let begins = |e: &Entry| matches!(e.body, EntryBody::User { .. });
    let (start, end) = if begins(entry) {
        (Some(entry.id), end(store, entry.id)?)
    } else {
        let above = store.tail_at(entry.id, LONG)?;
        (above.entries.iter().rev().find(|e| begins(e)).map(|e| e.id), entry.id)
    };
    let Some(start) = start else { return Ok(None) };
    // Only a message has a state of its own; what stands before it is of another turn.
    let Some(from) = store.point(start)?.and_then(|row| row.after.parse().ok()) else { return Ok(None) };
    Ok(back::point(store, entry.session, end)?.map(|to| (from, to.snapshot)))
}

/// The last entry of the turn that begins here, on the way that was gone last.
fn end(store: &Store, start: EntryId) -> Result<EntryId> {
    let mut at = start;
    for _ in 0..LONG {
        let Some(next) = store.children(at)?.pop() else { break };
        if matches!(store.kind(next)?.as_deref(), None | Some("user")) {
            break;
        }
        at = next;
    }
    Ok(at)
}
