//! The changes of a turn: its own steps among the states of the files. The review, `@diff`, the log of operations and the
//! figures on the screen are made of them, so they agree, whether a tool or a command changed a file. Blocking.
//!
//! | file | job |
//! | --- | --- |
//! | `ended` | the end of a turn: its row of the log, and the event with its figures |
//! | `diffs` | the differences of a turn, for the review and for `@diff` |

pub(crate) mod diffs;
pub(crate) mod ended;

use std::collections::HashSet;
use std::sync::Arc;

use tiller_protocol::op::OpChange;
use tiller_protocol::restore::StepFile;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{Block, Entry, EntryBody, EntryId, OpId, SessionId, Time, names};
use tiller_snapshot::{Change, Entry as Stored, FileDiff, Kind, Shadow, SnapshotError, Step};
use tiller_store::{Result, StepOf, StepRow, Store};

use crate::files::crew;
use crate::files::restore::back;
use crate::files::witnessed::Doubts;
use crate::undo::before;

/// Largest file whose lines are counted, in bytes.
const COUNTED: u64 = 2 << 20;
/// Files of one turn whose lines are counted: those that a review shows.
pub(crate) const SHOWN: usize = 500;
/// Most entries of one turn that are read from the store.
const LONG: u32 = 5_000;

/// A turn: its title and its entries, the message first.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) id: EntryId,
    pub(crate) title: String,
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// The turns that begin in these entries of a path, newest first.
pub(crate) fn turns<'a>(path: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<Turn> {
    let mut out: Vec<Turn> = Vec::new();
    for entry in path {
        if entry.body.begins_turn() {
            let title = entry.body.search_text().lines().next().unwrap_or_default().to_owned();
            out.push(Turn { id: entry.id, title, entries: Vec::new() });
        }
        if let Some(turn) = out.last_mut() {
            turn.entries.push(Arc::clone(entry));
        }
    }
    out.reverse();
    out
}

/// The last turn of the path that ends at `head`, read from the store: it began before the entries that are in memory.
fn stored(store: &Store, head: EntryId) -> Result<Option<Turn>> {
    let path: Vec<Arc<Entry>> =
        store.paths().tail_at(head, LONG)?.entries.into_iter().map(Arc::new).collect();
    Ok(turns(path.iter()).into_iter().next())
}

/// The session's own changes in one turn.
#[derive(Debug)]
pub(crate) struct TurnSteps {
    /// Oldest first. Others changed files between two of them.
    pub(crate) steps: Vec<Step>,
    /// Every path that they changed, also where it is as it was.
    pub(crate) paths: HashSet<String>,
    /// Those of them that others may have changed meanwhile.
    pub(crate) doubts: Doubts,
}

impl TurnSteps {
    /// Reads the steps of a turn, with those of the agents that it started. `None`: no snapshot has a change of it.
    pub(crate) fn read(store: &Store, session: SessionId, turn: &Turn) -> Result<Option<Self>> {
        let Some(point) = store.steps().point(turn.id)? else { return Ok(None) };
        let entries = turn.entries.iter().map(|e| e.id).collect();
        let (own, until) = own_rows(store, session, turn, store.steps().list(session, point.id)?)?;
        let crew = crew::of(store, session, point.id)?.only_started_by(store, &entries)?;
        let (mut steps, mut paths): (Vec<Step>, _) = (Vec::new(), HashSet::new());
        let mut doubts = Doubts::default();
        let mut rows = crew.merged(session, own, &point);
        rows.retain(|row| until.is_none_or(|end| row.time <= end));
        // What is restored between two calls of the turn is no change by others. What is restored after them is no part of it.
        let calls = rows.iter().rposition(|row| matches!(row.of, StepOf::Call(_))).map_or(0, |last| last + 1);
        rows.truncate(calls);
        for row in rows {
            let Some(step) = back::step(&row) else { continue };
            if matches!(row.of, StepOf::Call(_)) {
                doubts.add(&row.files);
                paths.extend(row.files.into_iter().map(|f| f.path));
            }
            match steps.last_mut() {
                Some(last) if last.after == step.before => last.after = step.after,
                _ => steps.push(step),
            }
        }
        Ok((!paths.is_empty()).then_some(Self { steps, paths, doubts }))
    }

    /// The paths that differ after the turn, folders included.
    pub(crate) fn changes(&self, shadow: &Shadow) -> std::result::Result<Vec<FileDiff>, SnapshotError> {
        let mut all = shadow.turn_changes(&self.steps)?;
        all.retain(|d| self.paths.contains(&names::written(&d.path)));
        Ok(all)
    }
}

/// The rows of a session after the beginning of a turn that are of the turn, and when the next one of its branch began. Turns of
/// other branches, which other windows run at the same time, have rows among them.
fn own_rows(
    store: &Store,
    session: SessionId,
    turn: &Turn,
    mut rows: Vec<StepRow>,
) -> Result<(Vec<StepRow>, Option<Time>)> {
    let (mut until, mut beside) = (None, false);
    for (at, row) in rows.iter().enumerate() {
        let StepOf::Point(entry) = row.of else { continue };
        if entry == turn.id {
            continue;
        }
        let Ok(point) = store.entries().get(entry) else { continue };
        if !point.body.begins_turn() {
            continue;
        }
        // Another window may begin a branch anywhere in the turn while it goes on.
        if point.parent.is_some() && point.parent == turn.entries.last().map(|e| e.id) {
            until = Some((at, row.time));
            break;
        }
        beside = true;
    }
    if let Some((at, _)) = until {
        rows.truncate(at);
    }
    if beside {
        let calls: HashSet<&str> = turn.entries.iter().flat_map(|e| calls_of(&e.body)).collect();
        let restores = restores_of(store, session, turn, &rows)?;
        let is_own = |call: &str| {
            calls.contains(call) || InnerCall::split_id(call).is_some_and(|(outer, _)| calls.contains(outer))
        };
        rows.retain(|row| match &row.of {
            StepOf::Call(call) => is_own(call),
            StepOf::Restore(op) => restores.contains(op),
            _ => true,
        });
    }
    Ok((rows, until.map(|(_, time)| time)))
}

/// The restores among these rows that took a turn back or repeated it. Those of other turns and of files alone may be another
/// window's.
fn restores_of(store: &Store, session: SessionId, turn: &Turn, rows: &[StepRow]) -> Result<HashSet<OpId>> {
    if !rows.iter().any(|row| matches!(row.of, StepOf::Restore(_))) {
        return Ok(HashSet::new());
    }
    let ours =
        |change: &OpChange| matches!(change, OpChange::Files { turn: Some(of), .. } if of.entry == turn.id);
    let ops = store.sessions().ops(session, LONG)?;
    Ok(ops.iter().filter(|op| ours(&op.change)).map(|op| op.id).collect())
}

/// The calls that an entry makes, or whose results it is. A message's own ones have only a result.
fn calls_of(body: &EntryBody) -> Vec<&str> {
    match body {
        EntryBody::Assistant { blocks, .. } => {
            let calls = blocks.iter().filter_map(|block| match block {
                Block::ToolCall(call) => Some(call.id.as_str()),
                _ => None,
            });
            calls.collect()
        }
        EntryBody::ToolResult { call_id, .. } | EntryBody::InnerCall { call_id, .. } => vec![call_id],
        _ => Vec::new(),
    }
}

/// True for an empty folder that came or went.
fn is_folder(diff: &FileDiff) -> bool {
    let folder = |e: Option<Stored>| e.is_none_or(|e| e.kind == Kind::Folder);
    folder(diff.before) && folder(diff.after)
}

/// A file's content on one side of a change.
enum Content {
    /// It did not exist.
    Absent,
    Bytes(Vec<u8>),
    /// A link, a folder, or too large.
    Other,
}

fn content(shadow: &Shadow, entry: Option<Stored>) -> std::result::Result<Content, SnapshotError> {
    match entry {
        None => Ok(Content::Absent),
        Some(e) if e.kind == Kind::File && shadow.size(e.id)? <= COUNTED => {
            Ok(Content::Bytes(shadow.content(e.id)?))
        }
        Some(_) => Ok(Content::Other),
    }
}

/// A changed file with its lines, as the review counts them.
fn counted(shadow: &Shadow, diff: &FileDiff) -> StepFile {
    let mut file = StepFile::new(back::shown(&diff.path), back::kind(diff.change));
    let sides = (content(shadow, diff.before), content(shadow, diff.after));
    let bytes = |c: Content| match c {
        Content::Absent => Some(None),
        Content::Bytes(bytes) => Some(Some(bytes)),
        Content::Other => None,
    };
    if diff.change == Change::Mode {
        file.lines = Some((0, 0));
    } else if let (Ok(old), Ok(new)) = sides
        && let (Some(old), Some(new)) = (bytes(old), bytes(new))
    {
        file.lines = before::lines(&file.path, file.kind, old.as_deref(), new.as_deref());
    }
    file
}

/// Files that calls of the turn report and no snapshot covers: outside the workspace, or where none could be taken.
fn reported(entries: &[Arc<Entry>], covered: Option<&HashSet<String>>) -> Vec<StepFile> {
    let mut out: Vec<StepFile> = Vec::new();
    for f in entries.iter().flat_map(|e| e.body.files()) {
        if covered.is_some_and(|paths| paths.contains(&f.path)) {
            continue;
        }
        match out.iter_mut().find(|o| o.path == f.path) {
            Some(known) => {
                let (added, removed) = known.lines.unwrap_or_default();
                known.lines = Some((added.saturating_add(f.added), removed.saturating_add(f.removed)));
            }
            None => {
                let lines = Some((f.added, f.removed));
                out.push(StepFile { lines, ..StepFile::new(f.path.clone(), f.kind) });
            }
        }
    }
    out
}

/// True for an entry of a call, which may have changed files.
fn is_call(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::ToolResult { .. } | EntryBody::InnerCall { .. })
}
