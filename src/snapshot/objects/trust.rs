//! Which packs can be believed. What was not flushed may be torn after a loss of power, and its index may not be; such
//! a pack is still read where nothing else has an object, but it never answers that an object need not be written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tiller_protocol::lock;

use crate::objects::place::write_quick;
use crate::steps::Steps;

/// With more names than this those of packs that are gone are dropped.
const MANY: usize = 64;

/// The names in such a file.
fn read_names(file: &Path) -> impl Iterator<Item = String> {
    let text = std::fs::read(file).unwrap_or_default();
    let names: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
    names.into_iter()
}

/// Names of packs that the disk has whole, kept in a file: the others are looked at when a store is opened. When the
/// file is lost, all are looked at once.
#[derive(Debug)]
pub(crate) struct Flushed {
    file: PathBuf,
    /// The folder of the packs.
    packs: PathBuf,
    steps: Steps,
    names: Mutex<BTreeSet<String>>,
}

impl Flushed {
    /// Reads it. Lines that are damaged name no pack.
    pub(crate) fn read(store: &Path, packs: &Path, steps: &Steps) -> Self {
        let file = store.join("flushed");
        let names = Mutex::new(read_names(&file).collect());
        Self { file, packs: packs.to_owned(), steps: steps.clone(), names }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// These were flushed. When `there` is given, no pack but these and those exists.
    pub(crate) fn add(&self, fresh: &[String], there: &[String]) {
        let mut names = lock(&self.names);
        // Other processes add theirs.
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
            // Without it the next start only looks at more.
            let _ = write_quick(&self.file, text.as_bytes(), &self.steps);
        }
    }
}
