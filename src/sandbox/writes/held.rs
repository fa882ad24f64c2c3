//! Changes of protected names that were put back, and that a person can keep.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tiller_tool::shell::{HeldFile, HeldRelease, HeldState};

use super::judge::Changed;
use super::place::{Place, remove_empty};
use super::{ProtectedWrites, content, folder_above, instructs, may_keep};
use crate::policy;
use crate::quarantine::{State, Violation};

/// A change that was put back.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) path: PathBuf,
    above: PathBuf,
    was: HeldState,
    now: HeldState,
    instructs: bool,
}

impl Held {
    /// `None`: no person can keep it.
    pub(super) fn of(changed: &Changed, violation: &Violation) -> Option<Self> {
        let Changed { path, before, now } = changed;
        let workspace = &before.workspace;
        let plain = !before.begun && before.linked.is_none() && before.moved_linked.is_none();
        if violation.failed.is_some() || !plain || !may_keep(workspace, path) {
            return None;
        }
        let (was, now) = (held_state(&before.state)?, held_state(now.as_ref()?)?);
        let leads = match &now {
            HeldState::Link(to) => leads_to_protected(workspace, path, to),
            HeldState::Missing | HeldState::File(..) => true,
        };
        let instructs = instructs(workspace, path);
        leads.then(|| Self { path: path.clone(), above: before.above.clone(), was, now, instructs })
    }

    /// Returns it for the question. `words`: the line about it.
    pub(crate) fn file(self, words: String, writes: &Arc<ProtectedWrites>) -> HeldFile {
        let Self { path, above, was, now, instructs } = self;
        let release = Arc::clone(writes) as Arc<dyn HeldRelease>;
        HeldFile { path, above, was, now, instructs, words, release }
    }
}

/// Returns the state; `None`: it is neither a file nor a link.
fn held_state(state: &State) -> Option<HeldState> {
    match state {
        State::Missing => Some(HeldState::Missing),
        State::File(bytes, mode) => Some(HeldState::File(bytes.as_slice().into(), *mode)),
        State::Link(to) => Some(HeldState::Link(to.clone())),
        State::Folder(..) | State::Other => None,
    }
}

fn state_of(held: &HeldState) -> State {
    match held {
        HeldState::Missing => State::Missing,
        HeldState::File(bytes, mode) => State::File(bytes.to_vec(), *mode),
        HeldState::Link(to) => State::Link(to.clone()),
    }
}

/// Returns the state with the rights that the question shows: those of what was there and the bits of a program, or of a new file
/// that only its owner writes.
fn with_shown_rights(now: State, was: &State) -> State {
    match (now, was) {
        (State::File(bytes, mode), State::File(_, old)) => State::File(bytes, old & 0o666 | mode & 0o111),
        (State::File(bytes, mode), _) => State::File(bytes, mode & 0o755),
        (now, _) => now,
    }
}

/// Returns true if this link, which lies in a real folder, leads to another protected name of the workspace: what lies elsewhere is
/// written by everyone. Only steps up at the beginning of its text are followed.
fn leads_to_protected(workspace: &Path, link: &Path, to: &Path) -> bool {
    let Some(mut at) = link.parent().map(Path::to_path_buf) else { return false };
    let mut down = false;
    for part in to.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !down && at.pop() && at.starts_with(workspace) => {}
            Component::Normal(name) => {
                down = true;
                at.push(name);
            }
            _ => return false,
        }
    }
    // No other link on its way.
    let straight = at.parent().is_some_and(|folder| policy::real(folder) == folder);
    down && straight && folder_above(workspace, &at, false).is_some()
}

impl HeldRelease for ProtectedWrites {
    fn release(&self, file: &HeldFile) -> io::Result<()> {
        // Commands that write such names wait meanwhile.
        let mut noted = self.hold();
        let was = state_of(&file.was);
        let now = with_shown_rights(state_of(&file.now), &was);
        let place = Place::open(&file.above, &file.path)?;
        let made = place.exchange(&was, &now);
        if made.is_err() || now == State::Missing {
            remove_empty(&file.above, &file.path);
        }
        made?;
        noted.keep(&file.path, &now);
        Ok(())
    }
}

impl super::Holding<'_> {
    /// Lets this state of a path be there from now on.
    fn keep(&mut self, path: &Path, now: &State) {
        if let Some(id) = content(now) {
            self.0.seen.entry(path.to_owned()).or_default().insert(id);
        }
        // A command that runs has changed it since.
        if let Some(before) = self.0.before.get_mut(path) {
            before.state = now.clone();
        }
        self.0.bytes = self.0.before.values().map(super::Before::size).sum();
    }
}
