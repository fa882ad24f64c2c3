//! Points and steps of the session, as they come in from the keeper's thread. They come after the entry or the call
//! that they belong to, so nothing waits for them.

use std::path::PathBuf;
use std::time::Duration;

use tiller_protocol::restore::StepFile;
use tiller_protocol::{Entry, EntryBody, EntryId, Notice, NoticeKind, Origin};
use tiller_snapshot::{Id, Snapshot, SnapshotError};
use tiller_store::{StepOf, StepRow};
use tokio::sync::oneshot;

use super::back;
use super::keeper::{Keeper, Word};
use crate::core::Core;
use crate::msg::Msg;

/// What is kept around one call.
pub(crate) enum What {
    /// The call declares what it writes.
    Paths(Vec<PathBuf>),
    /// It runs a command, which may write anything.
    All,
}

/// Snapshots that no session knows are kept so long.
const UNNEEDED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Until the last states must be written down.
const LAST: Duration = Duration::from_secs(1);

/// The state before (none for a point), the one after, and what changed.
type Kept = Result<(Option<Id>, Snapshot, Vec<StepFile>), SnapshotError>;

/// What a call did to the files, once that is known.
pub(crate) type Change = (Id, Snapshot, Vec<StepFile>);

/// The state after a call is being kept.
pub(crate) struct Waiting(oneshot::Receiver<Result<Change, SnapshotError>>);

/// A state could not be kept.
pub(crate) struct NotKept(SnapshotError);

fn look(shadow: &mut tiller_snapshot::Shadow, what: &What) -> Result<Snapshot, SnapshotError> {
    match what {
        What::Paths(paths) => shadow.snapshot_touched(paths),
        What::All => shadow.snapshot(),
    }
}

/// The state before a call, and what is to be looked at after it.
pub(crate) type Before = (Id, What);

/// Keeps the state before a call. Waited for: the call must not change anything before.
pub(crate) async fn before(keeper: &Keeper, what: What) -> Option<Before> {
    let kept = keeper
        .run(move |s| {
            let before = look(s, &what)?;
            Ok((before.id, what))
        })
        .await;
    match kept {
        Ok(kept) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, "the files before a call were not kept");
            None
        }
    }
}

/// Keeps the state after it. Not waited for: what comes next keeps its own, in order.
pub(crate) fn after(keeper: &Keeper, (before, what): Before) -> Waiting {
    Waiting(keeper.submit(move |s| {
        let after = look(s, &what)?;
        let files = if after.id == before { Vec::new() } else { back::named(&s.compare(before, after.id)?) };
        Ok((before, after, files))
    }))
}

impl Core {
    /// Entries that are a checkpoint: what the person said, and moments with a name.
    pub(crate) fn spoken(entries: &[Entry]) -> Vec<EntryId> {
        let spoke = |e: &&Entry| {
            matches!(
                &e.body,
                EntryBody::User { origin: Origin::Prompt | Origin::Steer, .. } | EntryBody::Checkpoint { .. }
            )
        };
        entries.iter().filter(spoke).map(|e| e.id).collect()
    }

    /// Keeps the files as they are when the person speaks. Called when the entries are on their way to the disk.
    pub(crate) fn keep_points(&mut self, entries: Vec<EntryId>) {
        let Some(keeper) = self.w.files.clone() else { return };
        for entry in entries {
            // Handed over now, so that it comes before whatever the turn does; done once the words are on disk,
            // so that the two do not wait for the same disk.
            let (open, gate) = std::sync::mpsc::channel::<()>();
            let saved = self.saves.barrier();
            self.spawn(async move {
                saved.await;
                drop(open);
            });
            let kept = keeper.submit(move |s| {
                // Closed, never sent to.
                let _ = gate.recv();
                s.snapshot()
            });
            let of = StepOf::Point(entry);
            self.record(of, async { Some(kept.await.ok()?.map(|s| (None, s, Vec::new()))) });
        }
    }

    /// A call is over; what it did to the files comes later.
    pub(crate) fn keep_step(&mut self, call_id: &str, waiting: Waiting) {
        let of = StepOf::Call(call_id.to_owned());
        self.record(of, async {
            Some(waiting.0.await.ok()?.map(|(b, after, files)| (Some(b), after, files)))
        });
    }

    /// Writes down what comes, also when the engine is about to end: [`crate::quit`] waits for it.
    fn record(&mut self, of: StepOf, kept: impl Future<Output = Option<Kept>> + Send + 'static) {
        let (tx, session, store) = (self.tx.clone(), self.s.id, self.w.store.clone());
        let keeper = self.w.files.clone();
        self.keeping.spawn(async move {
            let Some(kept) = kept.await else { return };
            match kept {
                // A call that changed nothing is no step.
                Ok((Some(before), after, _)) if before == after.id => {}
                Ok((before, after, files)) => {
                    // A row that survives a loss of power must not name a state that does not.
                    let _order = match &keeper {
                        Some(k) => Some(k.rows.lock().await),
                        None => None,
                    };
                    if let Some(keeper) = &keeper
                        && let Ok(new) = keeper.run(|s| Ok(s.unsettled())).await
                        && let Ok(Err(error)) = tokio::task::spawn_blocking(|| new.settle()).await
                    {
                        return drop(tx.send(Msg::NotKept(Box::new(NotKept(error)))).await);
                    }
                    let row = StepRow {
                        id: 0,
                        of,
                        before: before.map(|b| b.to_string()),
                        after: after.id.to_string(),
                        files,
                        time: after.time,
                    };
                    if let Err(error) = store.add_step(session, row).await {
                        tracing::warn!(%error, "a step was not recorded");
                    }
                }
                Err(error) => drop(tx.send(Msg::NotKept(Box::new(NotKept(error)))).await),
            }
            if keeper.is_some_and(|k| k.has_words()) {
                let _ = tx.send(Msg::FilesWords).await;
            }
        });
    }

    /// Says once that files are not kept, and why.
    pub(crate) fn not_kept(&mut self, n: &NotKept) {
        if !std::mem::replace(&mut self.files_failed, true) {
            let notice = n.0.notice();
            let text = format!("the files of this moment are not kept: {}", notice.message);
            self.notice(Notice { kind: NoticeKind::Store, message: text, ..notice });
        }
    }

    /// The last states are written down. At most a second.
    pub(crate) async fn end_keeping(&mut self) {
        if tokio::time::timeout(LAST, self.keeping.wait()).await.is_err() {
            tracing::warn!("the last states of the files were not recorded in time");
        }
    }

    /// Tells what the snapshots have to say, once.
    pub(crate) fn files_words(&mut self) {
        let words = self.w.files.as_ref().map(Keeper::words).unwrap_or_default();
        for word in words {
            let (kind, text) = match word {
                Word::Recovered(text) => (NoticeKind::Store, text),
                Word::Partly(text) => (NoticeKind::Info, text),
            };
            self.notice(Notice::new(kind, text));
        }
    }

    /// Opens the snapshots at once where a restore was interrupted, and tells what became of it.
    pub(crate) fn finish_restore(&mut self) {
        let Some(keeper) = self.w.files.clone().filter(Keeper::interrupted) else { return };
        let tx = self.tx.clone();
        self.spawn(async move {
            let _ = keeper.run(|_| Ok(())).await;
            let _ = tx.send(Msg::FilesWords).await;
        });
    }

    /// Lets the disk have everything, once nobody waits for anything.
    pub(crate) fn settle_files(&self) {
        let Some(keeper) = &self.w.files else { return };
        let (store, quota, mine) = (self.w.store.clone(), keeper.quota(), keeper.clone());
        let project = self.w.workspace.root.display().to_string();
        drop(keeper.submit(move |s| {
            s.settle()?;
            if mine.collect_now() {
                // When the sessions cannot be read, nothing is taken for unneeded.
                let Ok(used) = store.snapshots_in_use(&project) else { return Ok(()) };
                let keep: Vec<Id> = used.iter().filter_map(|id| id.parse().ok()).collect();
                let done = s.collect(&keep, UNNEEDED, quota)?;
                tracing::info!(?done, "collected snapshots");
            }
            Ok(())
        }));
    }
}
