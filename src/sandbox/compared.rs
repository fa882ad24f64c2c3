//! The comparison of protected files and repositories after a command.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tiller_tool::shell::{Compared, FileGuard, HeldFile};

use crate::git::Repositories;
use crate::quarantine::{Guard, Violation};
use crate::writes::{Held, Judged, ProtectedWrites};

/// Protected files before a command, and where changed ones are kept.
#[derive(Debug)]
pub(crate) struct Protected {
    pub(crate) guard: Guard,
    pub(crate) repositories: Option<Repositories>,
    pub(crate) writes: Arc<ProtectedWrites>,
    pub(crate) quarantine: PathBuf,
}

impl FileGuard for Protected {
    fn restore(&self) -> Compared {
        // Links in the way of protected files go first.
        let repositories = self.repositories.as_ref();
        let mut found = repositories.map(|all| all.restore(&self.quarantine)).unwrap_or_default();
        found.extend(self.guard.restore(&self.quarantine));
        let missed = repositories.and_then(|all| all.note_names(&self.writes));
        let judged = repositories.map(|all| self.writes.restore(all.tips(), &self.quarantine));
        let mut judged = judged.unwrap_or_default();
        let told = judged.told();
        let held = held(&mut judged, &self.writes);
        found.extend(judged.violations);
        let gap = repositories.and_then(Repositories::gap);
        Compared {
            restored: Violation::lines(found, &self.quarantine),
            held,
            told: gap.into_iter().chain(missed).chain(told).collect(),
            remade: judged.passed,
        }
    }

    fn stays(&self) {
        if let Some(repositories) = &self.repositories {
            repositories.take_names();
        }
    }

    fn has_news(&self) -> bool {
        self.writes.take_news()
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
