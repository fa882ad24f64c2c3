//! Calls that were cut off while they changed files: what they did.

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
    /// Writes down that a call begins to change files. Until the returned value is ended, a kill (or dropping it) leaves
    /// a record for [`Self::cut_calls`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_call(&self, note: &CallNote) -> Result<OpenCall> {
        self.calls.begin(note).map_err(at(&self.calls.dir))
    }

    /// A sign of life of every call that is under way in this process; whether there is one.
    pub fn beat(&self) -> bool {
        self.calls.beat()
    }

    /// Calls that were cut off, of all sessions, in the order in which they began. Other processes do not get them
    /// while they are held.
    pub fn cut_calls(&self) -> Vec<CutCall> {
        self.calls.cut()
    }

    /// What a call did that was cut off, out of what changed from its beginning to `now`: the state that it led to,
    /// and its changes. Later changes and those outside of its paths are not its work.
    ///
    /// # Errors
    /// When a snapshot cannot be read, or the state not be written.
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

    /// Whether a path became what it is by `until`. Of one that is gone, the folder that held it tells.
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
