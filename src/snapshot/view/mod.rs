//! What a snapshot knows of a path: its state, that it did not exist, or nothing.

pub(crate) mod compare;
pub(crate) mod text;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tiller_fs::Attributes;

use crate::error::{Result, SnapshotError};
use crate::names;
use crate::objects::Objects;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{Entry, FolderEntry, Kind};
use crate::report::{Mode, Reason};
use crate::scan::beside;
use crate::scan::ignored;
use crate::scan::notes::SnapshotNotes;
use crate::scan::rules::{self, Rules};
use crate::shadow::Shadow;

/// A path in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It existed.
    Is(Entry),
    /// It did not exist.
    Absent,
    /// The snapshot does not know it: it was ignored, not covered, or not named.
    Unknown,
}

impl State {
    /// The entry, when it existed.
    pub fn entry(self) -> Option<Entry> {
        match self {
            Self::Is(entry) => Some(entry),
            _ => None,
        }
    }
}

/// One snapshot, with the objects that were read so far. Cheap to create: a plan creates two for each step.
pub(crate) struct View<'a> {
    objects: &'a Objects,
    workspace: &'a Path,
    pub(crate) kept: SnapshotNotes,
    repositories: Vec<Vec<u8>>,
    hidden: Vec<Vec<u8>>,
    global: Option<&'a Path>,
    person: OnceCell<Arc<Rules>>,
    outer: OnceCell<Arc<Rules>>,
    folders: RefCell<HashMap<Id, Rc<Vec<FolderEntry>>>>,
    rules: RefCell<HashMap<Vec<u8>, Arc<Rules>>>,
}

impl Shadow {
    pub(crate) fn view(&self, id: Id) -> Result<View<'_>> {
        let kept = self.kept(id)?;
        let paths = |repositories: bool| -> Vec<Vec<u8>> {
            let all = kept.snapshot.uncovered.iter();
            let these = all.filter(|u| (u.reason == Reason::Repository) == repositories);
            these.map(|u| u.path.as_os_str().as_bytes().to_vec()).collect()
        };
        let (repositories, hidden) = (paths(true), paths(false));
        let global = self.limits.global_ignore.as_deref();
        Ok(View {
            objects: &self.objects,
            workspace: &self.workspace,
            kept,
            repositories,
            hidden,
            global,
            person: OnceCell::new(),
            outer: OnceCell::new(),
            folders: RefCell::default(),
            rules: RefCell::default(),
        })
    }

    /// The state of a path in a snapshot.
    ///
    /// # Errors
    /// When the snapshot cannot be read, or the path is not one of the workspace.
    pub fn state(&self, id: Id, path: &Path) -> Result<State> {
        let path = names::relative(&self.workspace, path)?;
        self.view(id)?.state(&path)
    }
}

impl View<'_> {
    pub(crate) fn tree(&self) -> Id {
        self.kept.snapshot.tree
    }

    fn folder(&self, id: Id) -> Result<Rc<Vec<FolderEntry>>> {
        if let Some(known) = self.folders.borrow().get(&id) {
            return Ok(known.clone());
        }
        let read = Rc::new(self.objects.folder(&id)?);
        self.folders.borrow_mut().insert(id, read.clone());
        Ok(read)
    }

    /// The entry of a path; a folder with its content.
    pub(crate) fn entry(&self, path: &[u8]) -> Result<Option<Entry>> {
        let mut here = Entry { kind: Kind::Folder, mode: 0o755, id: self.tree() };
        for part in names::parts(path) {
            if here.kind != Kind::Folder {
                return Ok(None);
            }
            match self.folder(here.id)?.iter().find(|n| n.name == part) {
                Some(found) => here = found.entry,
                None => return Ok(None),
            }
        }
        Ok(Some(here))
    }

    /// The state of a path. A folder with content counts as existing.
    pub(crate) fn state(&self, path: &[u8]) -> Result<State> {
        if let Some(entry) = self.entry(path)? {
            return Ok(State::Is(entry));
        }
        Ok(if self.looked_at(path)? { State::Absent } else { State::Unknown })
    }

    /// Whether the snapshot would contain the path if it had existed.
    pub(crate) fn looked_at(&self, path: &[u8]) -> Result<bool> {
        if self.hidden.iter().any(|u| names::within(path, u)) || self.kept.snapshot.more > 0 {
            return Ok(false);
        }
        if self.kept.snapshot.mode != Mode::Full {
            return Ok(self.kept.named.iter().any(|n| names::within(path, n)));
        }
        Ok(self.kept.named.iter().any(|n| n == path) || self.scanned(path)?)
    }

    /// The attributes of its files and folders; `None`: they are not all known.
    pub(crate) fn attributes(&self) -> Result<Option<HashMap<Vec<u8>, Attributes>>> {
        let Some(object) = self.kept.attributes else { return Ok(Some(HashMap::new())) };
        match self.objects.read(&object, Sort::Content) {
            Ok(data) => Ok(beside::is_complete(&data).then(|| beside::read(&data))),
            Err(SnapshotError::Missing(_) | SnapshotError::Damaged { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Why a path is not covered, when it or a folder above it is listed.
    pub(crate) fn uncovered(&self, path: &[u8]) -> Option<Reason> {
        self.kept.snapshot.uncovered(&names::path(path))
    }

    /// Whether all files of the mount that the path is below have stamps.
    pub(crate) fn watches(&self, path: &[u8]) -> bool {
        self.uncovered(path) == Some(Reason::OtherDisk)
            && !self.kept.watched.partly.iter().any(|mount| names::within(path, mount))
    }

    /// The ignored folder above a path that is not scanned because it has too many files.
    pub(crate) fn left_out(&self, path: &[u8]) -> Option<&[u8]> {
        let all = self.kept.snapshot.uncovered.iter().filter(|u| u.reason == Reason::Ignored);
        let mut all = all.map(|u| u.path.as_os_str().as_bytes());
        all.find(|u| names::within(path, u))
    }

    /// Whether a complete scan at that time looked at the path: it was not ignored, or is no build output.
    fn scanned(&self, path: &[u8]) -> Result<bool> {
        let parts: Vec<&[u8]> = names::parts(path).collect();
        let mut here = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let rules = self.rules(&here)?;
            here = names::join(&here, part);
            let folder = i + 1 < parts.len();
            if rules.ignores(&rules::absolute(self.workspace, &here), folder) {
                let seen = &self.kept.watched;
                let kept = if folder { seen.folders.contains(&here) } else { !seen.over };
                return Ok(kept && !parts[i..].iter().any(|part| ignored::is_output(part)));
            }
        }
        Ok(true)
    }

    /// The rules of a folder at that time.
    fn rules(&self, folder: &[u8]) -> Result<Arc<Rules>> {
        if let Some(known) = self.rules.borrow().get(folder) {
            return Ok(known.clone());
        }
        let here = rules::absolute(self.workspace, folder);
        let above = if folder.is_empty() {
            self.outer.get_or_init(|| rules::outer(self.workspace, self.global)).clone()
        } else if self.repositories.iter().any(|r| r == folder) {
            let person = self.person.get_or_init(|| rules::person(self.workspace, self.global));
            rules::excluded(person, &here, &here.join(".git"))
        } else {
            self.rules(names::split(folder).0)?
        };
        let rules = match self.entry(&names::join(folder, b".gitignore"))? {
            Some(Entry { kind: Kind::File, id, .. }) => {
                above.and(&here, self.objects.read(&id, Sort::Content)?)
            }
            _ => above,
        };
        self.rules.borrow_mut().insert(folder.to_vec(), rules.clone());
        Ok(rules)
    }

    /// Whether the folder was a repository of its own.
    pub(crate) fn repository(&self, path: &[u8]) -> bool {
        self.repositories.iter().any(|r| r == path)
    }

    /// The repositories in the workspace.
    pub(crate) fn repositories(&self) -> &[Vec<u8>] {
        &self.repositories
    }
}
