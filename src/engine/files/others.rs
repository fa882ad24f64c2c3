//! Changes by others between two states that a session saw: the user, another program, a background command, another
//! session of this folder.

use std::sync::{Arc, Mutex};

use tiller_protocol::restore::By;
use tiller_protocol::{SessionId, Time};
use tiller_snapshot::{Id, Shadow, Snapshot};
use tiller_store::{StepOf, StepRow, Store};

use super::cut;
use super::keeper::SnapshotNotices;
use crate::files::restore::back;
use crate::lock::lock;

/// The last state that a session saw. Read and advanced on the thread of the snapshots only, so in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastState(Arc<Mutex<SeenState>>);

#[derive(Debug, Default)]
enum SeenState {
    /// The last state is read from the store.
    #[default]
    Stored,
    At(Id, Time),
}

/// The session whose states are compared.
#[derive(Clone)]
pub(crate) struct SessionFiles {
    pub(crate) last: LastState,
    pub(crate) store: Store,
    pub(crate) session: SessionId,
    /// Commands of the session that run in the background.
    pub(crate) background: Vec<String>,
    /// Notices for the user.
    pub(crate) words: SnapshotNotices,
}

impl SessionFiles {
    /// Advances to `now`. Returns changes since the last state, which others made, as a row for `of`.
    pub(crate) fn others(&self, shadow: &Shadow, now: &Snapshot, of: StepOf) -> Option<StepRow> {
        let last = std::mem::replace(&mut *lock(&self.last.0), SeenState::At(now.id, now.time));
        // Changes of calls that a kill interrupted, here or in another process, belong to the agent. Their rows come first.
        if !matches!(last, SeenState::At(id, _) if id == now.id) {
            self.words.credited(cut::credit(shadow, &self.store, now));
        }
        let (before, since) = match last {
            SeenState::At(id, time) => (id, time),
            SeenState::Stored => {
                let row = self.store.steps().last(self.session).ok()??;
                (row.after.parse().ok()?, row.time)
            }
        };
        if before == now.id {
            return None;
        }
        // A state that was collected meanwhile cannot be compared with.
        let mut files = back::named(&shadow.compare(before, now.id).ok()?);
        if files.is_empty() {
            return None;
        }
        let elsewhere = self.store.steps().changed_elsewhere(self.session, since).unwrap_or_default();
        for file in &mut files {
            file.by = Some(match elsewhere.get(&file.path) {
                Some((session, title)) => By::Session { session: *session, title: title.clone() },
                None if self.background.is_empty() => By::Outside,
                None => By::Background { commands: self.background.join(", ") },
            });
        }
        Some(StepRow {
            began: None,
            id: 0,
            of,
            before: Some(before.to_string()),
            after: now.id.to_string(),
            files,
            time: now.time,
        })
    }

    /// Advances to `now`, the result of the session's own action.
    pub(crate) fn own(&self, now: &Snapshot) {
        *lock(&self.last.0) = SeenState::At(now.id, now.time);
    }
}
