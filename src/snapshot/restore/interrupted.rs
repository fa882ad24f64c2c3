//! Changes of calls that were cut off.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calls::{CallNote, CutCall, OpenCall};
use crate::error::{Result, at};
use crate::report::Snapshot;
use crate::restore::journal::Op;
use crate::shadow::Shadow;
use crate::view::compare::FileDiff;

impl Shadow {
    /// Records that a call begins to change files. Until the returned value is ended, a kill (or dropping it) leaves
    /// the record for [`Self::cut_calls`].
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn begin_call(&self, note: &CallNote) -> Result<OpenCall> {
        self.calls.begin(note).map_err(at(&self.calls.dir))
    }

    /// Renews the heartbeat of every running call of this process; returns whether there is one.
    pub fn beat(&self) -> bool {
        self.calls.beat()
    }

    /// Calls that were cut off, of all sessions, in the order of their start. Other processes do not get them while the
    /// values live.
    pub fn cut_calls(&self) -> Vec<CutCall> {
        self.calls.cut()
    }

    /// The part of the changes since the call's beginning up to `now` that is the call's own: the state that it led to,
    /// and its changes. Later changes and those outside of its paths are not attributed to it.
    ///
    /// # Errors
    /// When a snapshot cannot be read, or the state cannot be written.
    pub fn work_of(&self, cut: &CutCall, now: &Snapshot) -> Result<(Snapshot, Vec<FileDiff>)> {
        let mut own = self.compare(cut.note.before, now.id)?;
        let paths: Option<Vec<PathBuf>> =
            cut.note.paths.as_ref().map(|all| all.iter().filter_map(|p| self.relative(p)).collect());
        own.retain(|d| {
            paths.as_ref().is_none_or(|all| all.iter().any(|p| d.path.starts_with(p)))
                && self.changed_by(&d.path, cut.until)
        });
        let ops: Vec<Op> = own
            .iter()
            .map(|d| Op {
                path: d.path.as_os_str().as_bytes().to_vec(),
                from: d.before,
                to: d.after,
                links: false,
                source: None,
            })
            .collect();
        let _lock = self.lock()?;
        let after = self.amend(cut.note.before, now.clone(), &ops, &|_| true)?;
        Ok((after, own))
    }

    /// Whether a path got its present state by `until`. For a deleted path the time of its folder decides.
    fn changed_by(&self, path: &Path, until: SystemTime) -> bool {
        let full = self.workspace.join(path);
        let there = full.ancestors().find_map(|p| p.symlink_metadata().ok());
        there.is_some_and(|meta| {
            let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
            let changed = UNIX_EPOCH + Duration::new(u64::try_from(meta.ctime()).unwrap_or(0), nanos);
            changed <= until
        })
    }
}
