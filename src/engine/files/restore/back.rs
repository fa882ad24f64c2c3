//! What a restore to an entry means: the state of the files there, and the session's own changes since. Blocking; used
//! by the workbench and by commands without a screen.

use crate::undo::{Inverse, OpTitle};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use tiller_protocol::compare::TakePart;
use tiller_protocol::op::{OpChange, TurnOp};
use tiller_protocol::restore::StepFile;
use tiller_protocol::{
    ChangeKind, EntryBody, EntryId, Op, OpId, RestoreFile, RestorePreview, SessionId, Time, names,
};
use tiller_snapshot::{
    Answer, Change, Conflict, Entry, FileDiff, Goal, Id, Item, Kind, Plan, RestoreResult, Shadow, SkipReason,
    SnapshotError, Step, TextChange, UnkeptChange,
};
use tiller_store::{Result, StepOf, StepRow, Store};

use crate::files::crew;
use crate::files::restore::hunks;
use crate::files::witnessed::Doubts;
use crate::prompts::message_commands::stored;
use crate::undo;

/// Entries that are searched for the last known state.
const UP: u32 = 1000;
/// Files that a preview lists, and bytes of one difference in it.
pub(crate) const LISTED: usize = 300;
const DIFF: usize = 64 << 10;
/// Files that a row of the log names; the undo of a longer one compares all files.
pub const NAMED: usize = 10_000;
/// Files that a sentence names.
const SAID: usize = 5;

/// A state that can be restored.
#[derive(Clone, Debug)]
pub struct RestorePoint {
    pub snapshot: Id,
    pub time: Time,
    /// The session's changes since, oldest first.
    pub steps: Vec<Step>,
    /// Files that others may have changed while one of these steps did, and those of steps that no witness saw, as [`Goal`] has them.
    pub mixed: Vec<PathBuf>,
    pub unseen: Vec<PathBuf>,
}

impl RestorePoint {
    /// Returns the goal of restoring it.
    pub fn goal(self) -> Goal {
        Goal { mixed: self.mixed, unseen: self.unseen, ..Goal::back(self.snapshot, self.steps) }
    }
}

/// The state at an entry: the state that was kept there, else the last one before it on its path. Changes by agents in
/// the session's folder count as its own.
///
/// # Errors
/// When the store cannot be read.
pub fn point(store: &Store, session: SessionId, entry: EntryId) -> Result<Option<RestorePoint>> {
    let rows = store.steps().list(session, 0)?;
    // Most calls have no row: they changed nothing.
    let of_call =
        |call: &str, time: Time| match rows.iter().any(|r| matches!(&r.of, StepOf::Call(c) if c == call)) {
            true => store.steps().of_call(session, call, time),
            false => Ok(None),
        };
    let (mut found, mut passed, mut until) = (None, HashSet::new(), None);
    // A message below. Its own state is that before its commands, which stand above it.
    let mut message: Option<EntryId> = None;
    for e in store.paths().tail_at(entry, UP)?.entries.iter().rev() {
        until = until.or(Some(e.time));
        if let Some(below) = message.filter(|below| !stored::may_precede(&e.body, *below)) {
            found = store.steps().point(below)?;
            if found.is_some() {
                break;
            }
            message = None;
        }
        found = match &e.body {
            EntryBody::ToolResult { call_id, .. } | EntryBody::InnerCall { call_id, .. } => {
                message = message.or_else(|| stored::message_of(&e.body));
                of_call(call_id, e.time)?
            }
            EntryBody::User { .. } if e.id != entry && message.is_none() => {
                message = Some(e.id);
                continue;
            }
            // The state of the message below is a later one.
            _ if message.is_some() => None,
            _ => store.steps().point(e.id)?,
        };
        if found.is_some() {
            break;
        }
        if message.is_none() || stored::message_of(&e.body).is_some() {
            passed.insert(e.id);
        }
    }
    if let Some(below) = message.filter(|_| found.is_none()) {
        found = store.steps().point(below)?;
    }
    let (Some(mut row), Some(until)) = (found, until) else { return Ok(None) };
    let crew = crew::of(store, session, 0)?;
    if let Some(later) = crew.last(store, &passed, row.id, until)? {
        row = later.clone();
    }
    let Ok(snapshot) = row.after.parse() else { return Ok(None) };
    let since = crew.merged(session, rows, &row);
    let steps = since.iter().filter_map(step).collect();
    let mut doubts = Doubts::default();
    since.iter().for_each(|row| doubts.add(&row.files));
    let Doubts { both: mixed, unseen } = doubts;
    Ok(Some(RestorePoint { snapshot, time: row.time, steps, mixed, unseen }))
}

/// A change by the session itself.
pub(crate) fn step(row: &StepRow) -> Option<Step> {
    if !matches!(row.of, StepOf::Call(_) | StepOf::Restore(_)) {
        return None;
    }
    Some(Step { before: row.before.as_deref()?.parse().ok()?, after: row.after.parse().ok()? })
}

/// The user's choices for a restore, by path.
#[derive(Clone, Debug, Default)]
pub struct RestoreChoices {
    pub keep: Vec<String>,
    pub force: Vec<String>,
    /// Overwrite every path that was changed outside of this session, listed or not.
    pub force_all: bool,
    /// Only these hunks of a file.
    pub parts: Vec<TakePart>,
}

/// Restores a state. Returns also the changed files, for a row of the log.
///
/// # Errors
/// As [`Shadow::restore`].
pub fn go(
    shadow: &mut Shadow,
    goal: &Goal,
    wishes: &RestoreChoices,
) -> Result<(RestoreResult, Vec<StepFile>), SnapshotError> {
    let plan = shadow.plan(goal)?;
    let (mut answers, mut partly, mut stale) = (BTreeMap::new(), Vec::new(), Vec::new());
    for item in &plan.items {
        let name = shown(&item.diff.path);
        let parts: Vec<_> =
            wishes.parts.iter().filter(|p| p.path == name).filter_map(|p| p.hunk.as_deref()).collect();
        let answer = if wishes.keep.contains(&name) {
            Answer::Keep
        } else if !parts.is_empty() {
            match some(shadow, item, &parts)? {
                Some(content) => {
                    partly.push(name);
                    Answer::Content(content)
                }
                // It changed after the preview was shown.
                None => {
                    stale.push(item.diff.path.clone());
                    Answer::Keep
                }
            }
        } else if wishes.force.contains(&name) || (wishes.force_all && item.conflict.is_some()) {
            Answer::Restore
        } else {
            continue;
        };
        answers.insert(item.diff.path.clone(), answer);
    }
    let mut done = shadow.restore(&plan, &answers)?;
    for left in done.left.iter_mut().filter(|l| stale.contains(&l.path)) {
        left.why = SkipReason::ChangedSince;
    }
    let mut files = named(&shadow.compare(done.before.id, done.after.id)?);
    for file in &mut files {
        file.partly = partly.contains(&file.path);
    }
    Ok((done, files))
}

/// The present text with some hunks of the restore applied. `None`: they do not fit, or it is not text.
fn some(shadow: &Shadow, item: &Item, parts: &[&str]) -> Result<Option<Vec<u8>>, SnapshotError> {
    let file = |e: Option<Entry>| e.filter(|e| e.kind == Kind::File);
    let Some(now) = file(item.diff.before) else { return Ok(None) };
    if item.diff.after.is_some() && file(item.diff.after).is_none() {
        return Ok(None);
    }
    let Ok(text) = String::from_utf8(shadow.content(now.id)?) else { return Ok(None) };
    Ok(hunks::apply(&text, parts).map(String::into_bytes))
}

/// A differing file, with its lines where it is text and not too long.
pub fn compared(shadow: &Shadow, file: &FileDiff) -> RestoreFile {
    let (diff, added, removed) = match shadow.text(file) {
        Ok(TextChange::Lines { diff, added, removed }) if diff.len() <= DIFF => (diff, added, removed),
        Ok(TextChange::Lines { added, removed, .. }) => (String::new(), added, removed),
        Ok(TextChange::Binary { .. }) | Err(_) => (String::new(), 0, 0),
    };
    RestoreFile {
        path: shown(&file.path),
        kind: kind(file.change),
        added: u32::try_from(added).unwrap_or(u32::MAX),
        removed: u32::try_from(removed).unwrap_or(u32::MAX),
        diff,
        conflict: None,
    }
}

/// The preview of a plan with at most `listed` files and as many unchanged paths, and the number of further ones.
pub fn preview(shadow: &Shadow, plan: &Plan, title: String, time: Time, listed: usize) -> RestorePreview {
    let file = |item: &Item| RestoreFile {
        conflict: item.conflict.as_ref().and_then(|c| match c {
            Conflict::Changed { .. } => Some("changed since by you or another program".to_owned()),
            Conflict::ReadOnly => Some("the file is read-only".to_owned()),
            Conflict::Links(n) => {
                Some(format!("the file has {n} names (hard links); only this one would change"))
            }
            // It is restored and kept, as a note of the preview states.
            Conflict::Mixed | Conflict::Unseen => None,
        }),
        ..compared(shadow, &item.diff)
    };
    let mut notes: Vec<String> = plan.now.notice().into_iter().collect();
    let uncovered = plan.now.uncovered.len() + plan.now.more;
    if uncovered > 0 {
        let some = plan.now.uncovered.iter().take(3);
        let names: Vec<String> = some.map(|u| format!("{} ({})", shown(&u.path), u.reason)).collect();
        notes.push(format!("Not covered: {}{}", names.join(", "), if uncovered > 3 { ", ..." } else { "" }));
    }
    notes.extend(kept_copies(plan));
    let stay = plan.left.len().saturating_sub(listed);
    if stay > 0 {
        notes.push(format!("{stay} more are kept and not listed"));
    }
    RestorePreview {
        title,
        time: Some(time),
        files: plan.items.iter().take(listed).map(file).collect(),
        more: plan.items.len().saturating_sub(listed),
        left: plan.left.iter().take(listed).map(|l| format!("{}: {}", shown(&l.path), l.why)).collect(),
        notes,
        messages: None,
    }
}

/// The files of which a restore keeps copies, for the preview.
fn kept_copies(plan: &Plan) -> Vec<String> {
    let copies = [
        (Conflict::Mixed, "stays beside each, as NAME.kept-1"),
        (Conflict::Unseen, "is kept for 30 days in a folder that the result names"),
    ];
    let note = |(conflict, place): (Conflict, &str)| {
        let of = plan.items.iter().filter(|item| item.conflict == Some(conflict));
        let paths: Vec<&PathBuf> = of.map(|item| &item.diff.path).collect();
        let named = some_of(&paths)?;
        Some(format!("Perhaps changed by you while a command ran: {named}. The present content {place}"))
    };
    copies.into_iter().filter_map(note).collect()
}

/// The first of these paths, and how many more there are.
fn some_of(paths: &[&PathBuf]) -> Option<String> {
    let names: Vec<String> = paths.iter().take(SAID).map(|path| shown(path)).collect();
    let more = paths.len().saturating_sub(SAID);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
}

/// A file that is not covered, with what happened to it and why it is not covered.
fn unkept(change: &UnkeptChange) -> String {
    let what = match change.change {
        Change::Added => "new, ",
        Change::Deleted => "deleted, ",
        _ => "",
    };
    format!("{} ({what}{})", shown(&change.path), change.reason)
}

/// The first of these files, and how many more there are.
pub(crate) fn unkept_files(changes: &[UnkeptChange]) -> Option<String> {
    let some: Vec<String> = changes.iter().take(SAID).map(unkept).collect();
    let more = changes.len().saturating_sub(SAID);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!some.is_empty()).then(|| format!("{}{more}", some.join(", ")))
}

/// The files of a difference, for a row of the log.
pub fn named(diffs: &[FileDiff]) -> Vec<StepFile> {
    let known = diffs.iter().filter(|d| d.change != Change::Unknown);
    known.take(NAMED).map(|d| StepFile::new(shown(&d.path), kind(d.change))).collect()
}

/// A path as text for records and users; [`tiller_protocol::names::path`] reads it back.
pub fn shown(path: &std::path::Path) -> String {
    names::written(path)
}

pub(crate) fn kind(change: Change) -> ChangeKind {
    match change {
        Change::Added => ChangeKind::Added,
        Change::Deleted => ChangeKind::Deleted,
        Change::Modified | Change::Mode | Change::Type | Change::Unknown => ChangeKind::Modified,
    }
}

/// A restore that can be undone or redone.
#[derive(Clone, Debug)]
pub struct Undoable {
    /// Its first operation.
    pub root: OpId,
    pub goal: Goal,
    pub title: String,
}

/// The last restore that is in force (or, with `redo`, the restore that was undone last).
pub fn undoable(ops: &[Op], redo: bool) -> Option<Undoable> {
    let next = undo::next(ops, redo, |op| matches!(op.change, OpChange::Files { turn: None, .. }))?;
    Some(Undoable { root: next.root, goal: reverse(&next.row)?, title: next.title })
}

/// The state of the files before a row of the log. A turn is taken back along its own changes, so that what others changed in
/// between or afterwards stays.
pub fn reverse(op: &Op) -> Option<Goal> {
    let OpChange::Files { before, after, files, turn, .. } = &op.change else { return None };
    let folders = turn.iter().flat_map(|t| &t.folders);
    let paths = files.iter().map(|f| &f.path).chain(folders);
    let select = (files.len() < NAMED).then(|| paths.map(|p| names::path(p)).collect());
    let to: Id = before.parse().ok()?;
    let steps: Vec<Step> = turn
        .iter()
        .flat_map(|t| &t.steps)
        .map(|(before, after)| Some(Step { before: before.parse().ok()?, after: after.parse().ok()? }))
        .collect::<Option<_>>()?;
    let base = if steps.is_empty() { after.parse().ok()? } else { to };
    let Doubts { both: mixed, unseen } = Doubts::of(files);
    Some(Goal { to, base, steps, select, mixed, unseen })
}

/// What a restore records: the change for the log, and a row among the session's own steps. `of`: the restore that it
/// undoes or redoes; `whose`: its operation, or the call that requested it.
pub fn traces(
    states: Step,
    files: Vec<StepFile>,
    time: Time,
    of: Option<OpId>,
    whose: StepOf,
) -> (OpChange, StepRow) {
    let (before, after) = (states.before.to_string(), states.after.to_string());
    let (from, to) = (before.clone(), after.clone());
    let change = OpChange::Files { before: from, after: to, files: files.clone(), of, turn: None };
    (change, StepRow { began: None, id: 0, of: whose, before: Some(before), after, files, time })
}

/// The change of an undo or redo of `root` that could change nothing, at `state`. `turn`: the turn that it is of.
pub fn nothing(state: String, root: OpId, turn: Option<Box<TurnOp>>) -> OpChange {
    OpChange::Files { before: state.clone(), after: state, files: Vec::new(), of: Some(root), turn }
}

/// The turn whose changes a row of the log is, for the row that inverts it.
pub fn turn_of(op: &Op) -> Option<Box<TurnOp>> {
    let OpChange::Files { turn: Some(turn), .. } = &op.change else { return None };
    Some(Box::new(TurnOp { steps: Vec::new(), folders: Vec::new(), ..TurnOp::clone(turn) }))
}

/// A sentence about the result of an undo or redo.
pub fn undone(title: &OpTitle, done: &RestoreResult, files: &[StepFile]) -> String {
    said(title, done, &sentence(done, files))
}

fn said(title: &OpTitle, done: &RestoreResult, sentence: &str) -> String {
    let redo = title.inverse == Some(Inverse::Redo);
    let word = match (done.done.is_empty(), done.left.is_empty(), redo) {
        (true, true, false) => "There was nothing left to undo",
        (true, true, true) => "There was nothing left to redo",
        (true, false, false) => "Not undone",
        (true, false, true) => "Not redone",
        (false, false, false) => "Partly undone",
        (false, false, true) => "Partly redone",
        (false, true, false) => "Undone",
        (false, true, true) => "Redone",
    };
    let on = match (done.done.is_empty(), redo) {
        (true, false) => ". The next undo continues with the step before it",
        (true, true) => ". The next redo continues with the step after it",
        _ => "",
    };
    format!("{word}: {}; {sentence}{on}", title.operation)
}

/// As [`undone`], with the names of the files: the person may not have seen which ones the turn changed.
pub fn turn_undone(title: &OpTitle, done: &RestoreResult, files: &[StepFile]) -> String {
    let mut text = sentence(done, files);
    let restored: Vec<&PathBuf> = done.done.iter().filter(|path| !done.kept.contains(path)).collect();
    if restored.len() > 1 {
        let names: Vec<String> = restored.iter().take(SAID).map(|p| shown(p)).collect();
        let more = restored.len().saturating_sub(SAID);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        // Before what was left unchanged.
        let at = text.find(';').unwrap_or(text.len());
        text.insert_str(at, &format!(": {}{more}", names.join(", ")));
    }
    said(title, done, &text)
}

/// A sentence about what changed and what stayed.
pub fn sentence(done: &RestoreResult, files: &[StepFile]) -> String {
    let n = done.done.len() - done.kept.len();
    let partly = files.iter().filter(|f| f.partly).count();
    let restored = done.done.iter().find(|path| !done.kept.contains(path));
    let only = restored.map_or(Path::new(""), PathBuf::as_path);
    let mut text = match n {
        0 if !done.left.is_empty() => "No file was changed".to_owned(),
        0 => "No file had to change".to_owned(),
        1 if partly == 1 => format!("{} was partly restored", shown(only)),
        1 => format!("{} was restored", shown(only)),
        _ if partly == n => format!("{n} files were partly restored"),
        _ if partly > 0 => format!("{n} files were restored ({partly} of them partly)"),
        _ => format!("{n} files were restored"),
    };
    if !done.kept.is_empty() {
        let names: Vec<String> = done.kept.iter().take(SAID).map(|p| shown(p)).collect();
        let more = if done.kept.len() > SAID { ", ..." } else { "" };
        text.push_str(&format!("; you may have changed what is kept in {}{more}", names.join(", ")));
    }
    if let Some(apart) = &done.apart
        && let Some(named) = some_of(&apart.paths.iter().collect::<Vec<_>>())
    {
        text.push_str(&format!(
            "; you may have changed {named} while a command ran: the content before this is kept for 30 days in {}",
            apart.folder.display()
        ));
    }
    if !done.left.is_empty() {
        let some: Vec<String> =
            done.left.iter().take(3).map(|l| format!("{} ({})", shown(&l.path), l.why)).collect();
        let more = if done.left.len() > 3 { ", ..." } else { "" };
        text.push_str(&format!("; left unchanged: {}{more}", some.join(", ")));
    }
    text
}
