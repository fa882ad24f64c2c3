//! Calls that the death of a process interrupted: their changes belong to their session, not to the user. Blocking.

use tiller_protocol::SessionId;
use tiller_protocol::tool::InnerCall;
use tiller_snapshot::{CutCall, Shadow, Snapshot, SnapshotError};
use tiller_store::{StepOf, StepRow, Store};

use crate::files::restore::back;
use crate::files::witnessed;

/// Files that a sentence names.
const NAMED: usize = 3;

/// The changes of an interrupted call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedCall {
    pub session: SessionId,
    /// The changed files, as far as they are listed.
    pub files: Vec<tiller_protocol::restore::StepFile>,
    /// Number of changed files in all.
    pub count: usize,
}

impl InterruptedCall {
    /// A sentence for the user.
    pub fn sentence(&self) -> String {
        let some: Vec<&str> = self.files.iter().take(NAMED).map(|f| &*f.path).collect();
        let more = if self.count > NAMED { ", ..." } else { "" };
        let files = if self.count == 1 { "1 file".to_owned() } else { format!("{} files", self.count) };
        format!(
            "A call was interrupted. Its changes are attributed to the agent: {files} ({}{more}).",
            some.join(", ")
        )
    }
}

/// Records the changes of every interrupted call among the steps of its session. `now` is the present state. What
/// cannot be recorded now is tried again the next time.
pub fn credit(shadow: &Shadow, store: &Store, now: &Snapshot) -> Vec<InterruptedCall> {
    let mut done = Vec::new();
    for cut in shadow.cut_calls() {
        match one(shadow, store, now, &cut) {
            Ok(found) => {
                done.extend(found);
                cut.end();
            }
            // Its changes can no longer be determined.
            Err(Fault::Snapshot(SnapshotError::Missing(_)) | Fault::Unknown) => cut.end(),
            Err(error) => tracing::warn!(%error, "the changes of an interrupted call are not recorded yet"),
        }
    }
    done
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Store(#[from] tiller_store::StoreError),
    /// The session is gone.
    #[error("no such session")]
    Unknown,
}

fn one(
    shadow: &Shadow,
    store: &Store,
    now: &Snapshot,
    cut: &CutCall,
) -> Result<Option<InterruptedCall>, Fault> {
    let note = &cut.note;
    let session: SessionId = note.session.parse().map_err(|_| Fault::Unknown)?;
    match store.sessions().get(session) {
        Ok(_) => {}
        Err(tiller_store::StoreError::NoSession(_)) => return Err(Fault::Unknown),
        Err(e) => return Err(e.into()),
    }
    // The process was killed between the row and the end of the record.
    let before = note.before.to_string();
    let recorded = |row: &StepRow| {
        let StepOf::Call(call) = &row.of else { return false };
        let ours = *call == note.call || InnerCall::split_id(call).is_some_and(|(of, _)| of == note.call);
        ours && row.before.as_deref() == Some(before.as_str())
    };
    if store.steps().list(session, 0)?.iter().any(recorded) {
        return Ok(None);
    }
    let (after, changes) = shadow.work_of(cut, now)?;
    if changes.is_empty() {
        return Ok(None);
    }
    let mut files = back::named(&changes);
    if note.paths.is_none() {
        // No witness is left of what the command changed until it was cut off, nor of changes afterwards.
        witnessed::mark_unseen(&mut files);
    }
    let row = StepRow {
        id: 0,
        of: StepOf::Call(note.call.clone()),
        before: Some(before),
        after: after.id.to_string(),
        files: files.clone(),
        time: now.time,
        began: Some(note.began),
    };
    store.steps().add(session, row).wait()?;
    Ok(Some(InterruptedCall { session, files, count: changes.len() }))
}
