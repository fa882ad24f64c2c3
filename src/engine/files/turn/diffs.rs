//! The differences of a turn from the state before it to the present files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tiller_protocol::tool::FileDiff;
use tiller_protocol::{ChangeKind, Entry, EntryId, SessionId};
use tiller_snapshot::{Change, FileDiff as Diff, Shadow, SnapshotError};
use tiller_store::{Health, Store};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::{Content, SHOWN, Turn, TurnSteps, content, is_folder, stored, turns};
use crate::core::Core;
use crate::files::Keeper;
use crate::files::restore::back;
use crate::lock::lock;
use crate::undo::before::{self, FilesBefore, Reviews};
use crate::undo::changed::changed_paths;

/// Bytes of the files before a turn that are read from the snapshots.
const READ: u64 = 32 << 20;

/// The turns of the open branch, to be compared away from the engine's task.
#[derive(Clone)]
pub(crate) struct TurnSource {
    turns: Vec<Turn>,
    session: SessionId,
    head: Option<EntryId>,
    store: Store,
    keeper: Option<Keeper>,
    keeping: TaskTracker,
    root: PathBuf,
    reviews: Arc<Mutex<Reviews>>,
}

/// A turn, the files that it changed and that are still changed, and what the person should know of the list.
pub(crate) struct TurnDiffs {
    pub(crate) turn: EntryId,
    pub(crate) title: String,
    pub(crate) files: Vec<FileDiff>,
    /// Files that it changed and that are as they were before it, where all are.
    pub(crate) taken_back: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// A file before the turn.
enum Before {
    /// `None`: it did not exist.
    Content(Option<Arc<[u8]>>),
    /// It is compared as a whole only.
    Whole(ChangeKind),
}

impl TurnSource {
    pub(crate) fn of(core: &Core) -> Self {
        Self {
            turns: turns(core.session.history.tail.iter()),
            session: core.session.id,
            head: core.session.head.id,
            store: core.services.store.clone(),
            keeper: core.services.snapshots.workspace.clone(),
            keeping: core.files.keeping.clone(),
            root: core.services.workspace.root.clone(),
            reviews: Arc::clone(&core.files.reviews),
        }
    }

    /// Compares the turn that `wanted` belongs to, or the last one that changed files. `None`: there is none. Blocks, on a
    /// thread of the runtime that may.
    pub(crate) fn diffs(mut self, wanted: Option<EntryId>) -> Option<TurnDiffs> {
        // What the last calls changed is stored after they have ended, if anything can be stored.
        let mut health = self.store.health();
        Handle::current().block_on(async {
            tokio::select! {
                () = self.keeping.wait() => {}
                _ = health.wait_for(|health| matches!(health, Health::Failing(_))) => {}
            }
        });
        if self.turns.is_empty() {
            // The turn is longer than what is in memory.
            self.turns = stored(&self.store, self.head?).ok().flatten().into_iter().collect();
        }
        for turn in std::mem::take(&mut self.turns) {
            let steps = self.steps(&turn);
            let asked = wanted.map(|id| turn.entries.iter().any(|e| e.id == id));
            let changed = || steps.is_some() || turn.entries.iter().any(|e| !e.body.files().is_empty());
            if asked.unwrap_or_else(changed) {
                return Some(self.compare(turn, steps));
            }
        }
        None
    }

    fn steps(&self, turn: &Turn) -> Option<TurnSteps> {
        self.keeper.as_ref()?;
        let read = TurnSteps::read(&self.store, self.session, turn);
        read.inspect_err(|error| tracing::warn!(%error, "the changes of a turn were not read")).ok().flatten()
    }

    fn compare(&self, turn: Turn, steps: Option<TurnSteps>) -> TurnDiffs {
        let Turn { id, title, entries } = turn;
        let mut out =
            TurnDiffs { turn: id, title, files: Vec::new(), taken_back: Vec::new(), notes: Vec::new() };
        let told = changed_paths(entries.iter().map(AsRef::as_ref));
        let covered = steps.as_ref().map(|s| s.paths.clone()).unwrap_or_default();
        match steps.map(|steps| self.before(steps)) {
            Some(Ok((changed, files))) => {
                let all = changed + told.iter().filter(|p| !covered.contains(*p)).count();
                if all > SHOWN {
                    out.notes.push(format!("only {SHOWN} of {all} changed files are shown"));
                }
                for (path, was) in files {
                    self.file(&mut out, &entries, path, was);
                }
                let rest = told.into_iter().filter(|p| !covered.contains(p)).collect();
                self.reported(&mut out, &entries, rest);
            }
            Some(Err(error)) => {
                let why = "the snapshots of this turn cannot be read, so changes by commands are not shown";
                out.notes.push(format!("{why}: {error}"));
                self.reported(&mut out, &entries, told);
            }
            None => {
                if told.len() > SHOWN {
                    out.notes.push(format!("only {SHOWN} of {} changed files are shown", told.len()));
                }
                self.reported(&mut out, &entries, told);
            }
        }
        if !out.files.is_empty() {
            out.taken_back.clear();
        }
        out
    }

    /// The number of files that the turn changed, and the first [`SHOWN`] as they were before it.
    fn before(&self, steps: TurnSteps) -> Result<(usize, Vec<(String, Before)>), SnapshotError> {
        let Some(keeper) = &self.keeper else { return Ok((0, Vec::new())) };
        let read = keeper.submit(move |s| {
            let mut room = READ;
            let all: Vec<Diff> = steps.changes(s)?.into_iter().filter(|d| !is_folder(d)).collect();
            let shown = all.iter().take(SHOWN);
            let files: Result<_, SnapshotError> =
                shown.map(|d| Ok((back::shown(&d.path), before_of(s, d, &mut room)?))).collect();
            Ok((all.len(), files?))
        });
        read.blocking_recv().unwrap_or_else(|_| Err(keeper.gone()))
    }

    /// Adds a file whose state before the turn is known.
    fn file(&self, out: &mut TurnDiffs, entries: &[Arc<Entry>], path: String, was: Before) {
        let whole = |kind| FileDiff { path: path.clone(), kind, added: 0, removed: 0, diff: String::new() };
        let was = match was {
            Before::Content(was) => was,
            Before::Whole(kind) => return out.files.push(whole(kind)),
        };
        match before::since(&self.root, &path, was.as_deref()) {
            before::Since::Same => out.taken_back.push(path.clone()),
            before::Since::Changed(diff) => out.files.push(diff),
            before::Since::TooLarge(why) => {
                out.notes.push(format!("{path}: {why}; its changes are shown one by one"));
                let told = shown(entries, &path);
                out.files.extend(if told.is_empty() { vec![whole(ChangeKind::Modified)] } else { told });
            }
        }
        // What is rejected is taken back from the same content.
        lock(&self.reviews).remember(out.turn, path, was);
    }

    /// Adds files that only their calls tell of.
    fn reported(&self, out: &mut TurnDiffs, entries: &[Arc<Entry>], paths: Vec<String>) {
        let (kept, forgotten): (FilesBefore, bool) = {
            let reviews = lock(&self.reviews);
            (reviews.kept(out.turn), reviews.forgot(out.turn))
        };
        if forgotten && !paths.is_empty() {
            let why =
                "there is no snapshot from before this turn: each change is shown as its call reported it";
            out.notes.push(why.to_owned());
        }
        for path in paths.into_iter().take(SHOWN.saturating_sub(out.files.len())) {
            match kept.get(&path) {
                Some(was) => self.file(out, entries, path, Before::Content(was.clone())),
                None => out.files.extend(shown(entries, &path)),
            }
        }
    }
}

fn before_of(shadow: &Shadow, diff: &Diff, room: &mut u64) -> Result<Before, SnapshotError> {
    let whole = Before::Whole(back::kind(diff.change));
    let is_file = |e: Option<tiller_snapshot::Entry>| e.is_none_or(|e| e.kind == tiller_snapshot::Kind::File);
    let too_large = |e: tiller_snapshot::Entry| Ok::<_, SnapshotError>(shadow.size(e.id)? > *room);
    if !is_file(diff.after)
        || diff.change == Change::Mode
        || is_file(diff.before) && diff.before.map_or(Ok(false), too_large)?
    {
        return Ok(whole);
    }
    Ok(match content(shadow, diff.before)? {
        Content::Absent => Before::Content(None),
        Content::Bytes(bytes) if bytes.len() as u64 <= *room => {
            *room -= bytes.len() as u64;
            Before::Content(Some(bytes.into()))
        }
        Content::Bytes(_) | Content::Other => whole,
    })
}

/// The differences of one path that the calls showed, in order.
fn shown(entries: &[Arc<Entry>], path: &str) -> Vec<FileDiff> {
    entries.iter().flat_map(|e| e.body.files()).filter(|f| f.path == path).cloned().collect()
}
