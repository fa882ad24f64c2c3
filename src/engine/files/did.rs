//! The states of the files before and after an entry. Reads the entry's own turn, however long the session is.
//! Blocking.

use tiller_protocol::restore::By;
use tiller_protocol::{Entry, EntryBody, EntryId};
use tiller_snapshot::Id;
use tiller_store::{Result, StepRow, Store};

use crate::prompts::message_commands::stored;

/// Most entries of one turn that are read.
const LONG: usize = 5_000;
/// Most files changed by others that are named.
const NAMED: usize = 10;

/// The states around a tool result's call; for other entries from the start of the turn to the entry, and to the
/// turn's end for the message that begins it. What the commands of a message changed belongs to its turn. `None`: the
/// states were not kept.
pub(crate) fn states(store: &Store, entry: &Entry) -> Result<Option<(Id, Id)>> {
    if let Some(message) = stored::message_of(&entry.body) {
        if let Some(ends) = of_result(store, entry)?.as_ref().and_then(ends) {
            return Ok(Some(ends));
        }
        // It changed nothing.
        let at = store.steps().point(message)?.and_then(|row| after(&row));
        return Ok(at.map(|at| (at, at)));
    }
    let begins = matches!(entry.body, EntryBody::User { .. });
    let turn = if begins { down(store, entry.id)? } else { up(store, entry)? };
    let Some(start) = turn.first() else { return Ok(None) };
    let Some(from) = store.steps().point(*start)?.and_then(|row| after(&row)) else { return Ok(None) };
    if let EntryBody::ToolResult { call_id, .. } | EntryBody::InnerCall { call_id, .. } = &entry.body {
        // A call that changed nothing has no step.
        let step = store.steps().of_call(entry.session, call_id, entry.time)?;
        let ends = match step {
            Some(step) => ends(&step),
            None => of_script(store, call_id, &turn)?,
        };
        return Ok(ends.or(Some((from, from))));
    }
    for id in turn.iter().skip(1).rev() {
        let there = store.entries().get(*id)?;
        let row = match &there.body {
            // A command of another message, which follows it or was never sent.
            body if stored::message_of(body).is_some() => None,
            EntryBody::Checkpoint { .. } => store.steps().point(*id)?,
            _ => of_result(store, &there)?,
        };
        if let Some(to) = row.and_then(|row| after(&row)) {
            return Ok(Some((from, to)));
        }
    }
    for result in stored::results_before(store, &store.entries().get(*start)?)? {
        if let Some(to) = of_result(store, &result)?.and_then(|row| after(&row)) {
            return Ok(Some((from, to)));
        }
    }
    Ok(Some((from, from)))
}

/// The step of the call that this entry is the result of.
fn of_result(store: &Store, entry: &Entry) -> Result<Option<StepRow>> {
    match &entry.body {
        EntryBody::ToolResult { call_id, .. } | EntryBody::InnerCall { call_id, .. } => {
            store.steps().of_call(entry.session, call_id, entry.time)
        }
        _ => Ok(None),
    }
}

/// Sentences about changes by others right before the entry.
pub(crate) fn others(store: &Store, entry: &Entry) -> Result<Vec<String>> {
    let row = match &entry.body {
        EntryBody::ToolResult { call_id, .. } => {
            store.steps().others_before_call(entry.session, call_id, entry.time)?
        }
        _ => store.steps().others_before(entry.id)?,
    };
    let Some(row) = row else { return Ok(Vec::new()) };
    let mut by: Vec<(String, Vec<&str>)> = Vec::new();
    for file in &row.files {
        let who = file.by.as_ref().unwrap_or(&By::Outside).to_string();
        match by.iter_mut().find(|(w, _)| *w == who) {
            Some((_, paths)) => paths.push(&file.path),
            None => by.push((who, vec![&file.path])),
        }
    }
    let sentence = |(who, paths): (String, Vec<&str>)| {
        let more = paths.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("changed by {who} before it: {}{more}", paths[..paths.len().min(NAMED)].join(", "))
    };
    Ok(by.into_iter().map(sentence).collect())
}

/// The states around all calls that the script `outer` made, which end a turn's entries `turn`.
fn of_script(store: &Store, outer: &str, turn: &[EntryId]) -> Result<Option<(Id, Id)>> {
    let mut around: Option<(Id, Id)> = None;
    for id in turn.iter().rev() {
        let there = store.entries().get(*id)?;
        match &there.body {
            EntryBody::InnerCall { call_id, of, .. } if of == outer => {
                let step = store.steps().of_call(there.session, call_id, there.time)?;
                if let Some((first, last)) = step.as_ref().and_then(ends) {
                    around = Some((first, around.map_or(last, |(_, last)| last)));
                }
            }
            EntryBody::InnerCall { .. } | EntryBody::ToolResult { .. } => {}
            _ => break,
        }
    }
    Ok(around)
}

/// The states before and after a step.
fn ends(row: &StepRow) -> Option<(Id, Id)> {
    Some((row.before.as_deref()?.parse().ok()?, after(row)?))
}

fn after(row: &StepRow) -> Option<Id> {
    row.after.parse().ok()
}

/// The entries of the turn that begins here, along the branch that was used last.
fn down(store: &Store, start: EntryId) -> Result<Vec<EntryId>> {
    let mut turn = vec![start];
    while let Some(next) = turn.last().filter(|_| turn.len() < LONG) {
        let Some(next) = store.entries().children(*next)?.pop() else { break };
        if matches!(store.entries().kind(next)?.as_deref(), None | Some("user")) {
            break;
        }
        turn.push(next);
    }
    Ok(turn)
}

/// The entries of the turn up to this one, its message first; empty when there is none.
fn up(store: &Store, entry: &Entry) -> Result<Vec<EntryId>> {
    let mut turn = vec![entry.id];
    let mut at = entry.parent;
    while let Some(id) = at.filter(|_| turn.len() < LONG) {
        turn.push(id);
        let above = store.entries().get(id)?;
        if matches!(above.body, EntryBody::User { .. }) {
            turn.reverse();
            return Ok(turn);
        }
        at = above.parent;
    }
    Ok(Vec::new())
}
