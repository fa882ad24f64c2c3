//! A planned state as a folder of its own, so that it can be tried before it is accepted.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tiller_fs::beneath;

use super::apply::{copy, write_new};
use super::{Editor, Plan};
use crate::skill::{FILE, is_name};

/// How long a draft is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A short name of an author, for a folder.
fn of_author(author: &str) -> String {
    blake3::hash(author.as_bytes()).to_hex().chars().take(8).collect()
}

impl Plan {
    /// The `SKILL.md` after the change; `None`: there is none then. Blocks.
    pub fn text(&self) -> Option<Vec<u8>> {
        let whole = self.whole.as_ref().map(|whole| whole.after.as_ref());
        match (whole, self.files.iter().find(|file| file.path == FILE)) {
            (Some(after), _) => fs::read(after?.0.join(FILE)).ok(),
            (None, Some(file)) => file.new.clone(),
            (None, None) => beneath::read_below(&self.folder, Path::new(FILE), u64::MAX).ok(),
        }
    }
}

impl Editor {
    /// Lays the state after a change out in a folder of its own, which replaces an earlier one of the skill by the same
    /// `author`, an agent of a session: others have theirs. `None`: the skill is gone then, or it cannot be laid out.
    /// Blocks.
    pub fn draft(&self, plan: &Plan, author: &str) -> Option<PathBuf> {
        let drafts = self.0.drafts.as_ref()?;
        plan.text()?;
        // The folder of a skill has its name, in drafts as well.
        let folder = drafts.join(of_author(author)).join(&plan.name);
        self.lay_out(plan, drafts, &folder).ok().map(|()| folder)
    }

    /// Removes the draft of a skill by this author. Nothing is done for a name that no skill can have. Blocks.
    pub fn drop_draft(&self, name: &str, author: &str) {
        if let Some(drafts) = self.0.drafts.as_ref().filter(|_| is_name(name)) {
            let own = drafts.join(of_author(author));
            // One that is left is replaced by the next, or removed after a day.
            drop(fs::remove_dir_all(own.join(name)));
            // It may hold others.
            drop(fs::remove_dir(own));
        }
    }

    fn lay_out(&self, plan: &Plan, drafts: &Path, folder: &Path) -> io::Result<()> {
        let above = folder.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        let old = |entry: &fs::DirEntry| {
            let time = entry.metadata().and_then(|meta| meta.modified());
            time.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT))
        };
        for entry in fs::read_dir(drafts)?.flatten().filter(old) {
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
