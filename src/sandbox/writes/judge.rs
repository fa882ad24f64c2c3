//! The judgement of protected names after a command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use tiller_fs::links::linked_file;

use super::held::Held;
use super::place::{Place, remove_empty};
use super::{BYTES, Before, ENTRIES, ProtectedWrites, Tips, content};
use crate::policy;
use crate::quarantine::{Budget, Keep, State, Violation};

/// Names that a person can keep. The others stay out.
const HELD: usize = 200;
/// Names that are told in full.
const TOLD: usize = 5;

/// The protected names that a command has changed.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Were put back.
    pub(crate) violations: Vec<Violation>,
    /// Stay as they are.
    pub(crate) passed: Vec<PathBuf>,
    /// Those of the first that a person can keep.
    pub(crate) held: Vec<Held>,
}

impl Judged {
    /// Returns one line about what stays, without a full stop.
    pub(crate) fn told(&self) -> Option<String> {
        let names = self.passed.iter().take(TOLD).map(|path| path.display().to_string());
        let mut names = names.collect::<Vec<_>>().join(", ");
        let more = self.passed.len().saturating_sub(TOLD);
        if more > 0 {
            names += &format!(" and {more} more");
        }
        (!self.passed.is_empty()).then(|| {
            format!("protected files were changed to what earlier commits of the repository have: {names}")
        })
    }
}

/// A name that was changed.
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) before: Before,
    pub(super) now: Option<State>,
}

impl ProtectedWrites {
    /// Judges what was noted. What does not pass is kept in `place`, and its former state put back.
    pub(crate) fn restore(&self, tips: &Tips, place: &Path) -> Judged {
        // The supervisor waits meanwhile if the command goes on to write such names.
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = |one: &Changed| one.now.as_ref().is_some_and(|now| one.before.allows(now));
        let (same, changed): (Vec<_>, Vec<_>) =
            changed(std::mem::take(&mut noted.before)).into_iter().partition(allowed);
        // One that a process may still write is judged again.
        let open = same.into_iter().filter(|one| !one.settle());
        noted.before = open.map(|one| (one.path, one.before)).collect();
        noted.bytes = noted.before.values().map(Before::size).sum();
        let seen = |one: &Changed| {
            let now = one.now.as_ref().and_then(content);
            now.is_some_and(|now| noted.seen.get(&one.path).is_some_and(|seen| seen.contains(&now)))
        };
        let asked: Vec<(&Path, &State)> =
            changed.iter().map(|one| (one.path.as_path(), one.asked())).collect();
        let known = if asked.is_empty() { Vec::new() } else { tips.know(&asked) };
        let mut judged = Judged::default();
        let mut keep = Keep::new(place);
        for (one, known) in changed.iter().zip(known) {
            // Another name could be written later.
            let alone = linked_file(&one.path).is_none();
            if (known || seen(one)) && alone && one.settle() {
                judged.passed.push(one.path.clone());
            } else if let Some(violation) = one.put_back(&mut keep) {
                if judged.held.len() < HELD {
                    judged.held.extend(Held::of(one, &violation));
                }
                judged.violations.push(violation);
            }
        }
        judged
    }
}

/// Returns those that lie in a folder that is still there, with their state now.
fn changed(before: BTreeMap<PathBuf, Before>) -> Vec<Changed> {
    let there = |before: &Before| policy::real(&before.above) == before.above && before.above.is_dir();
    let all = before.into_iter().filter(|(_, before)| there(before));
    all.map(|(path, before)| {
        let now = now(&path, &before);
        Changed { path, before, now }
    })
    .collect()
}

/// Returns the state now. `None`: it is not readable, or too large.
fn now(path: &Path, before: &Before) -> Option<State> {
    if path.parent().is_none_or(|folder| policy::real(folder) != folder) {
        // Behind a link, which is judged itself.
        return Some(State::Missing);
    }
    if before.begun && path.symlink_metadata().is_ok_and(|meta| !meta.is_symlink()) {
        return Some(before.state.clone());
    }
    Budget::new(BYTES, ENTRIES).read(path).ok()
}

impl Before {
    /// Returns true if this may be there.
    fn allows(&self, now: &State) -> bool {
        let same = |state: &State| match (state, now) {
            (State::File(old, was), State::File(new, is)) => old == new && was & 0o100 == is & 0o100,
            (old, new) => old == new,
        };
        same(&self.state) || self.moved.as_ref().is_some_and(same)
    }
}

impl Changed {
    /// Returns what a commit must have: of a name that was removed, what was there.
    fn asked(&self) -> &State {
        match &self.now {
            Some(State::Missing) => &self.before.state,
            Some(now) => now,
            None => &State::Other,
        }
    }

    /// Makes what is there a file that no process has open and that has no new name. `false`: it could not be made, or something
    /// else is there meanwhile.
    fn settle(&self) -> bool {
        let Some(State::File(bytes, mode)) = &self.now else { return true };
        if now(&self.path, &self.before) != self.now {
            return false;
        }
        let linked = linked_file(&self.path);
        if linked.is_some() && [self.before.linked, self.before.moved_linked].contains(&linked) {
            // It was so before the command.
            return true;
        }
        let settled =
            Place::open(&self.before.above, &self.path).and_then(|place| place.settle(bytes, *mode));
        if let Err(error) = &settled {
            tracing::debug!(%error, path = %self.path.display(), "a protected file could not be made anew");
        }
        settled.is_ok()
    }

    fn put_back(&self, keep: &mut Keep) -> Option<Violation> {
        let before = &self.before;
        let failed = |error: std::io::Error| Violation {
            path: self.path.clone(),
            kept: None,
            failed: Some(error.to_string()),
            setting: None,
            stripped: false,
        };
        let place = match Place::open(&before.above, &self.path) {
            Ok(place) => place,
            Err(error) => return Some(failed(error)),
        };
        let violation = match (&before.state, before.linked) {
            (State::File(bytes, mode), Some(id)) if linked_file(&place.at) == Some(id) => {
                Violation { path: self.path.clone(), ..keep.rewrite(&place.at, id, bytes, *mode) }
            }
            _ => place.put_back(&self.path, &before.state, keep),
        };
        if before.state == State::Missing {
            remove_empty(&before.above, &self.path);
        }
        Some(violation)
    }
}
