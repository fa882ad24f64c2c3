//! The comparison of protected files and repositories after a command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_tool::shell::{Compared, FileGuard, HeldFile};

use crate::git::Repositories;
use crate::quarantine::{Guard, State, Violation};
use crate::writes::{Held, Judged, ProtectedWrites};

/// Lines about protected files that one command has changed.
const LINES: usize = 20;

/// Protected files before a command, and where changed ones are kept.
#[derive(Debug)]
pub(crate) struct Protected {
    pub(crate) guard: Guard,
    /// Those that git may write.
    pub(crate) judged: Vec<PathBuf>,
    pub(crate) repositories: Option<Repositories>,
    pub(crate) writes: Arc<ProtectedWrites>,
    pub(crate) quarantine: PathBuf,
}

impl FileGuard for Protected {
    fn restore(&self) -> Compared {
        // Links in the way of protected files go first.
        let repositories = self.repositories.as_ref();
        let mut found = repositories.map(|all| all.restore(&self.quarantine)).unwrap_or_default();
        let mut passed = Vec::new();
        let passes = |path: &Path, before: &State, now: &State| {
            let tips =
                repositories.map(Repositories::tips).filter(|_| self.judged.iter().any(|one| one == path));
            let passes = tips.is_some_and(|tips| tips.allow(path, before, now));
            passed.extend(passes.then(|| path.to_owned()));
            passes
        };
        found.extend(self.guard.restore_but(&self.quarantine, passes));
        let judged = repositories.map(|all| self.writes.restore(all.tips(), &self.quarantine));
        let mut judged = judged.unwrap_or_default();
        judged.passed.extend(passed);
        let told = judged.told();
        let held = held(&mut judged, &self.writes);
        found.extend(judged.violations);
        let gap = repositories.and_then(Repositories::gap);
        Compared {
            restored: lines(found, &self.quarantine),
            held,
            told: gap.into_iter().chain(told).collect(),
            remade: judged.passed,
        }
    }
}

/// Takes out what a person can keep, with the line about each.
fn held(judged: &mut Judged, writes: &Arc<ProtectedWrites>) -> Vec<HeldFile> {
    let held: HashMap<PathBuf, Held> =
        std::mem::take(&mut judged.held).into_iter().map(|one| (one.path.clone(), one)).collect();
    let is_held = |violation: &mut Violation| held.contains_key(&violation.path);
    let lines: Vec<Violation> = judged.violations.extract_if(.., is_held).collect();
    let file = |violation: Violation| {
        let words = violation.words();
        held.get(&violation.path).map(|one| one.clone().file(words, writes))
    };
    lines.into_iter().filter_map(file).collect()
}

/// Returns a line for each, as far as they are not too many. Those that could not be put back come first.
fn lines(mut found: Vec<Violation>, quarantine: &Path) -> Vec<String> {
    found.sort_by_key(|violation| violation.failed.is_none());
    let more = found.len().saturating_sub(LINES);
    let mut lines: Vec<String> = found.iter().take(LINES).map(Violation::words).collect();
    if more > 0 {
        let place = quarantine.display();
        lines.push(format!("{more} more protected paths were changed; the changed ones are in {place}"));
    }
    lines
}
