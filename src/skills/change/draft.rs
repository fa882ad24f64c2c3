//! A planned state as a folder of its own, so that it can be tried before it is accepted.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::apply::{copy, write_new};
use super::{Editor, Plan};
use crate::skill::FILE;

/// How long a draft is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);

impl Plan {
    /// The `SKILL.md` after the change; `None`: there is none then. Blocks.
    pub fn text(&self) -> Option<Vec<u8>> {
        let whole = self.whole.as_ref().map(|whole| whole.after.as_ref());
        match (whole, self.files.iter().find(|file| file.path == FILE)) {
            (Some(after), _) => fs::read(after?.0.join(FILE)).ok(),
            (None, Some(file)) => file.new.clone(),
            (None, None) => fs::read(self.folder.join(FILE)).ok(),
        }
    }
}

impl Editor {
    /// Lays the state after a change out in a folder of its own, which replaces an earlier one of the skill. `None`: the
    /// skill is gone then, or it cannot be laid out. Blocks.
    pub fn draft(&self, plan: &Plan) -> Option<PathBuf> {
        let drafts = self.0.drafts.as_ref()?;
        plan.text()?;
        let folder = drafts.join(&plan.name);
        self.lay_out(plan, &folder).ok().map(|()| folder)
    }

    /// Removes the draft of a skill. Blocks.
    pub fn drop_draft(&self, name: &str) {
        if let Some(drafts) = &self.0.drafts {
            // One that is left is replaced by the next, or removed after a day.
            drop(fs::remove_dir_all(drafts.join(name)));
        }
    }

    fn lay_out(&self, plan: &Plan, folder: &Path) -> io::Result<()> {
        let above = folder.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        let old = |entry: &fs::DirEntry| {
            let time = entry.metadata().and_then(|meta| meta.modified());
            time.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT))
        };
        for entry in fs::read_dir(above)?.flatten().filter(old) {
            drop(fs::remove_dir_all(entry.path()));
        }
        if fs::symlink_metadata(folder).is_ok() {
            fs::remove_dir_all(folder)?;
        }
        DirBuilder::new().mode(0o700).create(folder)?;
        if let Some((after, _)) = plan.whole.as_ref().and_then(|whole| whole.after.as_ref()) {
            return copy(after, folder);
        }
        if fs::symlink_metadata(&plan.folder).is_ok_and(|meta| meta.is_dir()) {
            copy(&plan.folder, folder)?;
        }
        for change in &plan.files {
            let path = folder.join(&change.path);
            if fs::symlink_metadata(&path).is_ok() {
                fs::remove_file(&path)?;
            }
            let Some(content) = &change.new else { continue };
            if let Some(parent) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            }
            write_new(&path, content)?;
        }
        Ok(())
    }
}
