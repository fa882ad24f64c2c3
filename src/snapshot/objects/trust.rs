//! Which packs are known to be intact. A pack that was not flushed may be torn after a loss of power while its index is
//! not; it is still read where no other pack has an object, but it never counts as having an object that is to be written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tiller_protocol::lock;

use crate::objects::place::write_quick;
use crate::steps::Steps;

/// With more names than this, those of deleted packs are removed from the file.
const MANY: usize = 64;

/// The names in such a file.
fn read_names(file: &Path) -> impl Iterator<Item = String> {
    let text = std::fs::read(file).unwrap_or_default();
    let names: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
    names.into_iter()
}

/// Names of packs that were flushed, kept in a file: all others are checked when a store is opened. When the file is
/// lost, all packs are checked once.
#[derive(Debug)]
pub(crate) struct FlushedPacks {
    file: PathBuf,
    /// The folder of the packs.
    packs: PathBuf,
    steps: Steps,
    names: Mutex<BTreeSet<String>>,
}

impl FlushedPacks {
    /// Reads the file. Damaged lines are ignored.
    pub(crate) fn read(store: &Path, packs: &Path, steps: &Steps) -> Self {
        let file = store.join("flushed");
        let names = Mutex::new(read_names(&file).collect());
        Self { file, packs: packs.to_owned(), steps: steps.clone(), names }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Records that `fresh` were flushed. When `there` is given, it lists all other existing packs.
    pub(crate) fn add(&self, fresh: &[String], there: &[String]) {
        let mut names = lock(&self.names);
        // Other processes add names too.
        names.extend(read_names(&self.file));
        let before = names.len();
        names.extend(fresh.iter().cloned());
        let mut changed = names.len() != before;
        if !there.is_empty() {
            let all = names.len();
            names.retain(|n| there.contains(n) || fresh.contains(n));
            changed |= names.len() != all;
        }
        if names.len() > MANY {
            // Joined with others since, or collected.
            let all = names.len();
            names.retain(|n| self.packs.join(format!("{n}.pack")).exists());
            changed |= names.len() != all;
        }
        if changed {
            let text: String = names.iter().map(|n| format!("{n}\n")).collect();
            // Without it the next start only checks more packs.
            let _ = write_quick(&self.file, text.as_bytes(), &self.steps);
        }
    }
}
