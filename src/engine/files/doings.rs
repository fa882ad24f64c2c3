//! Remembers writes of calls, so that a change which is seen late is attributed to its call.

use std::collections::VecDeque;
use std::path::PathBuf;

use tiller_protocol::{SessionId, Time};
use tiller_snapshot::{FileDiff, Id};

/// Most writes that are remembered.
pub(crate) const MOST: usize = 10_000;

/// Writes of calls that named their files: by path and resulting content.
#[derive(Debug, Default)]
pub(crate) struct WriteLog(VecDeque<RecordedWrite>);

#[derive(Debug)]
pub(crate) struct RecordedWrite {
    pub(crate) session: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) left: Option<Id>,
    pub(crate) time: Time,
}

impl WriteLog {
    pub(crate) fn wrote(&mut self, session: SessionId, files: &[FileDiff], time: Time) {
        for d in files {
            let left = d.after.map(|e| e.id);
            self.0.push_back(RecordedWrite { session, path: d.path.clone(), left, time });
        }
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }

    /// Whether another session left the file in this state since then.
    pub(crate) fn others(&self, session: SessionId, file: &FileDiff, since: Time) -> bool {
        let recent = self.0.iter().rev().take_while(|d| d.time >= since);
        let last = recent.into_iter().find(|d| d.path == file.path);
        last.is_some_and(|d| d.session != session && d.left == file.after.map(|e| e.id))
    }
}
