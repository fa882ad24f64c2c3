//! Compares two branches: messages on each side since their common entry, costs, and differing files. Blocking; used
//! by the workbench and by commands without a screen.

use crate::files::written;
use tiller_protocol::compare::Speaker;
use tiller_protocol::compare::{ComparedSide, Comparison, Pair, SaidLine, Side};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    CommandId, Cost, Entry, EntryBody, EntryId, Notice, NoticeKind, Origin, RestoreFile, SessionId,
};
use tiller_snapshot::{Change, FileDiff, Id, Shadow, TextChange};
use tiller_store::Store;

use crate::bus::ClientId;
use crate::core::Core;
use crate::files::restore::back;

/// Entries of a side that are read, and lines of the summary.
const READ: u64 = 20_000;
const SAID: usize = 300;
/// Characters of a line.
const LONG: usize = 600;
/// Files that are listed, and bytes of one difference.
const LISTED: usize = 500;
/// Differing paths that are listed although no state has their content.
const UNKEPT: usize = 20;
const DIFF: usize = 256 << 10;

/// The two sides and their last common entry.
#[derive(Clone, Debug)]
pub struct Sides {
    pub left: SideEnd,
    pub right: SideEnd,
    pub base: Option<EntryId>,
}

/// One side.
#[derive(Clone, Debug)]
pub struct SideEnd {
    pub name: String,
    pub session: SessionId,
    pub entry: EntryId,
    /// Entries since the base.
    pub count: u64,
    /// The state of the files there; `None`: it was not kept.
    pub state: Option<Id>,
}

fn plain(message: impl Into<String>) -> Notice {
    Notice::new(NoticeKind::User, message)
}

/// Finds both sides.
///
/// # Errors
/// When there is no such branch or entry, the session of one is of another folder, or the store cannot be read.
pub fn ends(store: &Store, session: SessionId, pair: &Pair) -> Result<Sides, Notice> {
    let (left, right) = (end(store, session, &pair.left)?, end(store, session, &pair.right)?);
    let apart = store.tree().divergence(left.entry, right.entry).map_err(|e| e.notice())?;
    Ok(Sides {
        left: SideEnd { count: apart.left, ..left },
        right: SideEnd { count: apart.right, ..right },
        base: apart.base,
    })
}

fn end(store: &Store, session: SessionId, side: &Side) -> Result<SideEnd, Notice> {
    let (name, at, entry) = match side {
        Side::Branch(head) => {
            let rows = store.branches().list(session).map_err(|e| e.notice())?;
            let row = rows.into_iter().find(|b| b.name == *head);
            let row = row.ok_or_else(|| plain(format!("there is no branch {head}")))?;
            let name = if row.label.is_empty() { row.name } else { row.label };
            let entry = row.entry.ok_or_else(|| plain(format!("{name} has no messages yet")))?;
            (name, session, entry)
        }
        Side::Entry(id) => {
            let node = store.entries().get(*id).map_err(|e| e.notice())?;
            let name = match node.session == session {
                true => first_line(&node),
                false => format!("{}: {}", title_there(store, session, node.session)?, first_line(&node)),
            };
            (name, node.session, *id)
        }
    };
    let state = back::point(store, at, entry).map_err(|e| e.notice())?.map(|p| p.snapshot);
    Ok(SideEnd { name, session: at, entry, count: 0, state })
}

/// Title of the other session. Fails when it is of another folder, since states of files are kept by folder.
fn title_there(store: &Store, here: SessionId, there: SessionId) -> Result<String, Notice> {
    let summary = |id| store.sessions().get(id).map(|row| row.summary).map_err(|e| e.notice());
    let there = summary(there)?;
    if summary(here)?.project == there.project {
        return Ok(cut(&there.title, 30));
    }
    let why = plain(format!("this entry belongs to another folder: {}", there.project));
    Err(why.hint("Start Tiller there to compare it."))
}

/// The state at the last entry of both; where none was kept, the first that was kept on either side since.
pub fn base_state(store: &Store, ends: &Sides) -> tiller_store::Result<Option<Id>> {
    // The common entry belongs to one of the sessions.
    let there = ends.base.map(|base| back::point(store, ends.right.session, base)).transpose()?.flatten();
    if let Some(point) = there {
        return Ok(Some(point.snapshot));
    }
    let mut first: Option<tiller_store::StepRow> = None;
    for end in [&ends.left, &ends.right] {
        for entry in since(store, end)?.iter().filter(|e| matches!(e.body, EntryBody::User { .. })) {
            if let Some(row) = store.steps().point(entry.id)? {
                first = first.filter(|f| f.id < row.id).or(Some(row));
                break;
            }
        }
    }
    Ok(first.and_then(|row| row.after.parse().ok()))
}

fn since(store: &Store, end: &SideEnd) -> tiller_store::Result<Vec<Entry>> {
    if end.count == 0 {
        return Ok(Vec::new());
    }
    let most = u32::try_from(end.count.min(READ)).unwrap_or(u32::MAX);
    Ok(store.paths().tail_at(end.entry, most)?.entries)
}

fn first_line(entry: &Entry) -> String {
    let text = match &entry.body {
        EntryBody::Checkpoint { name } => name.clone(),
        body => body.search_text(),
    };
    cut(text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim(), 60)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn said(entry: &Entry) -> Option<SaidLine> {
    let (who, text) = match &entry.body {
        EntryBody::User { origin: Origin::Engine | Origin::Task, .. }
        | EntryBody::Prefix { .. }
        | EntryBody::InnerCall { .. } => return None,
        EntryBody::User { message, .. } => (Speaker::You, message.text.clone()),
        EntryBody::Assistant { .. } => (Speaker::Agent, entry.body.search_text()),
        EntryBody::ToolResult { name, .. } => (Speaker::Tool(name.clone()), entry.body.search_text()),
        EntryBody::Compaction { summary, .. } | EntryBody::BranchSummary { summary, .. } => {
            (Speaker::Summary, summary.clone())
        }
        EntryBody::Checkpoint { name } => (Speaker::Checkpoint, name.clone()),
        EntryBody::Note { text } => (Speaker::Note, text.clone()),
    };
    let text = text.trim();
    (!text.is_empty()).then(|| SaidLine { entry: entry.id, who, text: cut(text, LONG) })
}

/// Messages and cost of one side.
fn talk(store: &Store, end: &SideEnd) -> tiller_store::Result<ComparedSide> {
    let entries = since(store, end)?;
    let mut side = ComparedSide {
        name: end.name.clone(),
        entry: Some(end.entry),
        entries: end.count,
        ..ComparedSide::default()
    };
    let sum = |a: Option<Cost>, b: Option<Cost>| match (a, b) {
        (Some(a), Some(b)) => Some(a.plus(b)),
        (a, b) => a.or(b),
    };
    for e in &entries {
        if let EntryBody::Assistant { usage, cost, .. } = &e.body {
            side.usage.add(usage);
            side.cost = sum(side.cost, *cost);
        }
    }
    let (agents, usage, cost) =
        store.agents().spent_below(end.session, &entries.iter().map(|e| e.id).collect())?;
    side.usage.add(&usage);
    (side.agents, side.cost) = (agents, sum(side.cost, cost));
    let lines: Vec<SaidLine> = entries.iter().filter_map(said).collect();
    side.said = lines[lines.len().saturating_sub(SAID)..].to_vec();
    Ok(side)
}

/// The part of the comparison that needs only the store.
///
/// # Errors
/// When the store cannot be read.
pub fn words(store: &Store, ends: &Sides) -> Result<Comparison, Notice> {
    let read = || -> tiller_store::Result<Comparison> {
        let base_line = ends.base.map(|b| store.entries().get(b)).transpose()?;
        Ok(Comparison {
            base: ends.base,
            base_line: base_line.as_ref().map(first_line).unwrap_or_default(),
            left: talk(store, &ends.left)?,
            right: talk(store, &ends.right)?,
            ..Comparison::default()
        })
    };
    read().map_err(|e| e.notice())
}

/// Adds the differing files. `base`: the state where both sides began.
///
/// # Errors
/// When a state cannot be read.
pub fn files(
    shadow: &Shadow,
    compared: &mut Comparison,
    ends: &Sides,
    base: Option<Id>,
) -> Result<(), tiller_snapshot::SnapshotError> {
    let (Some(left), Some(right)) = (ends.left.state, ends.right.state) else {
        compared.notes.push("one side has no snapshot, so the files cannot be compared".into());
        return Ok(());
    };
    if let Some(base) = base {
        compared.left.files = back::named(&shadow.compare(base, left)?);
        compared.right.files = back::named(&shadow.compare(base, right)?);
    }
    let diffs = shadow.compare(left, right)?;
    let unknown = diffs.iter().filter(|d| d.change == Change::Unknown).count();
    if unknown > 0 {
        compared.notes.push(format!("{unknown} files have a snapshot on one side only and are not compared"));
    }
    let unkept = shadow.unkept(left, right)?;
    for unkept in unkept.iter().take(UNKEPT) {
        let (path, reason) = (back::shown(&unkept.path), unkept.reason);
        compared.notes.push(match unkept.change {
            Change::Deleted => {
                format!("{path} exists only on the left, and its content was not kept: {reason}")
            }
            Change::Added => {
                format!("{path} exists only on the right, and its content was not kept: {reason}")
            }
            _ => format!("{path} differs, and one of its contents at least was not kept: {reason}"),
        });
    }
    if unkept.len() > UNKEPT {
        let more = unkept.len() - UNKEPT;
        compared.notes.push(format!("{more} more files differ whose content was not kept"));
    }
    let known: Vec<FileDiff> = diffs.into_iter().filter(|d| d.change != Change::Unknown).collect();
    compared.more = known.len().saturating_sub(LISTED);
    compared.files = known.iter().take(LISTED).map(|d| file(shadow, d)).collect();
    Ok(())
}

fn file(shadow: &Shadow, diff: &FileDiff) -> RestoreFile {
    let (text, added, removed) = match shadow.text(diff) {
        Ok(TextChange::Lines { diff, added, removed }) if diff.len() <= DIFF => (diff, added, removed),
        Ok(TextChange::Lines { added, removed, .. }) => (String::new(), added, removed),
        Ok(TextChange::Binary { .. }) | Err(_) => (String::new(), 0, 0),
    };
    RestoreFile {
        path: back::shown(&diff.path),
        kind: back::kind(diff.change),
        added: u32::try_from(added).unwrap_or(u32::MAX),
        removed: u32::try_from(removed).unwrap_or(u32::MAX),
        diff: text,
        conflict: None,
    }
}

/// Answers `Query::Compare`.
pub(crate) fn compare(core: &mut Core, client: ClientId, cause: CommandId, pair: Pair) {
    let (bus, scope) = (std::sync::Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let (store, session, keeper) =
        (core.services.store.clone(), core.session.id, core.services.snapshots.workspace.clone());
    let written = written::written(core);
    core.spawn(async move {
        written.await;
        let asked = pair.clone();
        let made = async {
            let (mut compared, ends, base) = crate::files::off_thread(move || {
                let ends = ends(&store, session, &asked)?;
                let base = base_state(&store, &ends).map_err(|e| e.notice())?;
                Ok((words(&store, &ends)?, ends, base))
            })
            .await?;
            let Some(keeper) = keeper else {
                compared.notes.push("no snapshots are kept for this folder".into());
                return Ok(compared);
            };
            let look = move |s: &mut Shadow| {
                files(s, &mut compared, &ends, base)?;
                Ok(compared)
            };
            keeper.run(look).await.map_err(|e| e.notice())
        };
        let reply = match made.await {
            Ok(compared) => ReplyEvent::CompareReply { pair, compared: Box::new(compared) },
            Err(notice) => ReplyEvent::ErrorReply { notice },
        };
        bus.reply(client, &scope, reply);
    });
}
