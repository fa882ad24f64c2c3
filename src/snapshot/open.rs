//! Opening a store: its folder, the cache of the last process, and an interrupted restore.

use std::path::Path;
use std::sync::Arc;

use tiller_protocol::Clock;

use crate::error::{Result, SnapshotError, at};
use crate::objects::place::StoreFolder;
use crate::report::{CostReason, Limits, Mode};
use crate::restore::recover;
use crate::shadow::Shadow;
use crate::steps::Steps;

impl Shadow {
    /// Opens or creates the store of a workspace. An interrupted restore is finished or rolled back first;
    /// [`Self::recovered`] reports it.
    ///
    /// # Errors
    /// When a folder cannot be used, or belongs to another workspace or to a newer program.
    pub fn open(workspace: &Path, store: &Path, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_with(workspace, store, limits, clock, Steps::default())
    }

    pub(crate) fn open_with(
        workspace: &Path,
        store: &Path,
        limits: Limits,
        clock: Arc<dyn Clock>,
        steps: Steps,
    ) -> Result<Self> {
        let workspace = workspace.canonicalize().map_err(at(workspace))?;
        let inside = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        if inside.starts_with(&workspace) {
            return Err(SnapshotError::Inside { path: store.to_owned() });
        }
        let home = limits.home.as_deref().map(|h| h.canonicalize().unwrap_or_else(|_| h.to_owned()));
        let above = workspace.parent().is_none() || home.is_some_and(|h| h.starts_with(&workspace));
        let place = StoreFolder::open(store, &workspace, limits.wait, &steps)?;
        let mode = if above { Mode::Named(CostReason::Home) } else { Mode::Full };
        let mut new = Self::new(workspace, place, mode, limits, clock, steps);
        let lock = new.lock()?;
        new.place.sweep(&new.steps)?;
        // The cache assumes that its objects are stored.
        if new.objects.distrust()? == 0 {
            new.remember();
        }
        new.recovered = recover::run(&mut new, &lock)?;
        Ok(new)
    }
}
