//! The repositories of a workspace, compared after a command that the kernel does not keep from making or changing them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tiller_shell::check_git_change_but;

use super::items::{self, Found, Kind};
use super::names::{self, Names};
use super::touched::Touched;
use super::tree::{FileId, Stamp, Tree};
use crate::policy::{self, Policy, Profile};
use crate::quarantine::{Budget, Keep, State, Violation};
use crate::writes::{ProtectedWrites, Tips};

/// Workspaces that are remembered.
const WORKSPACES: usize = 64;
/// Of one file, or of one folder of hooks that cannot be read.
const BYTES: usize = 4 << 20;
const ENTRIES: usize = 100;
/// Of everything that is read before one command; what is beyond counts as not readable.
const ALL: usize = 32 << 20;
const ENTRIES_IN_ALL: usize = 10_000;
/// A workspace with more folders is not looked through before each command, only after it.
const SMALL: usize = 500;

/// Something that git obeys, as it was.
#[derive(Clone, Debug)]
struct Item {
    stamp: Option<Stamp>,
    found: Found,
    /// Of the folder of its repository.
    folder: Option<FileId>,
    /// `None`: it could not be read.
    state: Option<Arc<State>>,
}

/// What is known of one workspace.
#[derive(Debug, Default)]
struct Known {
    tree: Tree,
    items: BTreeMap<PathBuf, Item>,
    /// That it has too many folders.
    told: bool,
    /// The commits that its repositories had when it was looked at first.
    tips: Option<Arc<Tips>>,
    /// The protected names that were read last.
    names: Names,
}

static KNOWN: Mutex<Option<HashMap<PathBuf, Arc<Mutex<Known>>>>> = Mutex::new(None);

/// The repositories of a workspace before a command.
#[derive(Debug)]
pub(crate) struct Repositories {
    /// The workspace, and the folders of its repository that lie elsewhere.
    tops: Vec<PathBuf>,
    /// What something else protects.
    protected: Vec<PathBuf>,
    since: SystemTime,
    before: BTreeMap<PathBuf, Item>,
    tips: Arc<Tips>,
    /// The protected names, where no supervisor notes them, until they were compared.
    names: Mutex<Option<Names>>,
    known: Arc<Mutex<Known>>,
}

impl Repositories {
    /// Records them. The first time in a workspace it reads all of its folders, later those that were changed; in a large one
    /// only what git obeys in the repositories that are known. `None`: the policy does not let the workspace be written.
    pub(crate) fn record(policy: &Policy) -> Option<Self> {
        let writes = policy.profile == Profile::Floor
            || policy.profile == Profile::Workspace && !policy.only_reads_workspace;
        if !writes {
            return None;
        }
        let since = SystemTime::now();
        let mut tops = vec![policy::real(&policy.workspace)];
        tops.extend(policy.repository().iter().flat_map(|git| git.folders()).map(Path::to_owned));
        let known = of_workspace(&tops[0]);
        let (before, commits, names) = {
            let mut known = lock(&known);
            if known.tree.len() < SMALL {
                known.tree.look(&tops);
            }
            known.read_items(&tops);
            let names = (!policy.judges_writes && !policy.stays).then(|| known.read_names());
            (known.items.clone(), known.tips(&tops[0]), names)
        };
        let protected = policy.protected_paths();
        let names = Mutex::new(names);
        Some(Self { tops, protected, since, before, tips: commits, names, known })
    }

    /// Notes the protected names that are not as before, where no supervisor has noted them, once: later the person may have
    /// changed them. Call it after [`Self::restore`], which looks at the folders. Returns a line about those that cannot be
    /// judged.
    pub(crate) fn note_names(&self, writes: &ProtectedWrites) -> Option<String> {
        let (names, workspace) = (self.take_names()?, self.tops.first()?);
        let missed = names::note_changed(workspace, (&names, &lock(&self.known).tree), self.since, writes);
        (missed > 0).then(|| format!("{missed} protected files were too large or too many to be compared"))
    }

    /// The commits that the repositories had before the first command.
    pub(crate) fn tips(&self) -> &Tips {
        &self.tips
    }

    /// Takes the protected names out: they are not compared any more.
    pub(crate) fn take_names(&self) -> Option<Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes away what a command has made or changed and git would run, and keeps it in `place`.
    pub(crate) fn restore(&self, place: &Path) -> Vec<Violation> {
        self.restore_those(place, |_, _| true)
    }

    /// The same for what a program has made or written that stays.
    pub(crate) fn restore_touched(&self, place: &Path, touched: &Touched) -> Vec<Violation> {
        // What is replaced on the way leads a pointer elsewhere.
        let turned = |path: &Path, found: &Found| {
            found.kind == Kind::Pointer
                && self.before.get(path).is_some_and(|before| before.found.leads != found.leads)
        };
        self.restore_those(place, |path, found| touched.has(path, &found.repository) || turned(path, found))
    }

    fn restore_those(&self, place: &Path, counts: impl Fn(&Path, &Found) -> bool) -> Vec<Violation> {
        let mut known = lock(&self.known);
        known.tree.look(&self.tops);
        let mut keep = Keep::new(place);
        let mut violations = Vec::new();
        for (path, found) in items::all(&known.tree, &self.tops) {
            if !self.protected.iter().any(|own| path.starts_with(own)) && counts(&path, &found) {
                violations.extend(self.judge(&path, &found, &mut keep));
            }
        }
        violations
    }

    /// A line about the folders that are not looked at, once.
    pub(crate) fn gap(&self) -> Option<String> {
        let mut known = lock(&self.known);
        let cut = known.tree.cut;
        let told = std::mem::replace(&mut known.told, cut);
        let workspace = self.tops.first().filter(|_| cut && !told)?.display();
        Some(format!(
            "{workspace} has too many folders: what lies in the lower ones is not compared after commands"
        ))
    }

    fn judge(&self, path: &Path, found: &Found, keep: &mut Keep) -> Option<Violation> {
        let stamp = Stamp::at(path);
        let before = self.before.get(path).or_else(|| self.moved(path, found));
        let alike = |before: &Item| (before.found.kind, &before.found.leads) == (found.kind, &found.leads);
        // Shortly before, it may have been changed twice at what is the same time for the file system.
        let same = |before: &Item| before.stamp == stamp && alike(before) && !self.is_new(stamp);
        if before.is_some_and(same) || before.is_none() && self.is_older(stamp, found) {
            return None;
        }
        let now = Budget::new(BYTES, ENTRIES).read(path).ok();
        let was = before.and_then(|before| before.state.as_deref());
        if before.is_some_and(alike) && now.is_some() && now.as_ref() == was {
            return None;
        }
        let (setting, harmless) = match found.kind {
            Kind::Program => (None, None),
            Kind::Pointer if self.leads_inside(found) => return None,
            Kind::Pointer => (Some("it leads out of the workspace".to_owned()), None),
            Kind::Settings => match self.check_settings(was, now.as_ref(), &found.repository) {
                Ok(()) => return None,
                Err((key, harmless)) => (key.map(|key| format!("{key} was set")), harmless),
            },
        };
        // What was there is put back, except for a pointer: that leads elsewhere because of what else was changed.
        let was = was.filter(|was| now.as_ref() != Some(*was));
        let (put, stripped) = match (was, harmless) {
            (Some(was), _) => (Some(was.clone()), false),
            (None, harmless) => (harmless.map(|text| State::File(text.into_bytes(), 0o644)), true),
        };
        let mut violation = keep.replace(path, put.as_ref().unwrap_or(&State::Missing));
        violation.setting = setting;
        violation.stripped = stripped && put.is_some();
        Some(violation)
    }

    /// What this was in the same repository, when that had another path.
    fn moved(&self, path: &Path, found: &Found) -> Option<&Item> {
        let folder = Stamp::at(&found.repository)?.file;
        let name = path.strip_prefix(&found.repository).ok()?;
        let is_it = |(old, item): &(&PathBuf, &Item)| {
            item.folder == Some(folder) && old.strip_prefix(&item.found.repository) == Ok(name)
        };
        self.before.iter().find(is_it).map(|(_, item)| item)
    }

    /// True for something that may have been changed since the command began.
    fn is_new(&self, stamp: Option<Stamp>) -> bool {
        stamp.is_none_or(|stamp| stamp.is_since(self.since))
    }

    /// True for what was not known before the command, but is older than it: the person made it since the workspace was
    /// read. Its repository must be older too, since a folder can become one.
    fn is_older(&self, stamp: Option<Stamp>, found: &Found) -> bool {
        let git = &found.repository;
        let parts = ["HEAD", "objects", "refs", "hooks"].map(|part| Stamp::at(&git.join(part)));
        let parts = parts.into_iter().flatten().chain(Stamp::at(git));
        found.kind != Kind::Pointer
            && !self.is_new(stamp)
            && !parts.into_iter().any(|part| self.is_new(Some(part)))
    }

    fn leads_inside(&self, found: &Found) -> bool {
        found.leads.iter().all(|to| self.tops.iter().any(|top| to.starts_with(top)))
    }

    /// # Errors
    /// The setting by which git would run a program, and the file without such settings.
    fn check_settings(
        &self,
        before: Option<&State>,
        now: Option<&State>,
        git: &Path,
    ) -> Result<(), (Option<String>, Option<String>)> {
        let before = match before {
            Some(State::File(bytes, _)) => bytes,
            _ => &[][..],
        };
        // The work tree of a submodule stands in its configuration, and a copy of all branches says that it is one.
        let passes = |key: &str, value: &str| {
            let tree = || policy::real(&items::plain(&git.join(value)));
            key == "core.worktree" && self.tops.first().is_some_and(|top| tree().starts_with(top))
                || key.starts_with("remote.") && key.ends_with(".mirror")
        };
        match now {
            Some(State::File(bytes, _)) => check_git_change_but(before, bytes, passes)
                .map_err(|refused| (Some(refused.key), refused.harmless)),
            _ => Err((None, None)),
        }
    }
}

impl Known {
    /// Notes the commits of the repositories at the first call.
    fn tips(&mut self, workspace: &Path) -> Arc<Tips> {
        let tree = &self.tree;
        let look = || Arc::new(Tips::record(workspace, tree.repositories()));
        Arc::clone(self.tips.get_or_insert_with(look))
    }

    /// Reads the protected names, as far as they were changed.
    fn read_names(&mut self) -> Names {
        self.names = names::read(&self.tree, std::mem::take(&mut self.names));
        self.names.clone()
    }

    /// Reads what git obeys in the known repositories, as far as it was changed.
    fn read_items(&mut self, tops: &[PathBuf]) {
        let old = std::mem::take(&mut self.items);
        let settled = SystemTime::now();
        let mut budget = Budget::new(ALL, ENTRIES_IN_ALL);
        for (path, found) in items::all(&self.tree, tops) {
            let stamp = Stamp::at(&path);
            let same =
                |item: &&Item| item.stamp == stamp && stamp.is_some_and(|stamp| !stamp.is_since(settled));
            let state = match old.get(&path).filter(same) {
                Some(item) => item.state.clone(),
                None => budget.read(&path).ok().map(Arc::new),
            };
            let folder = Stamp::at(&found.repository).map(|stamp| stamp.file);
            self.items.insert(path, Item { stamp, found, folder, state });
        }
    }
}

fn of_workspace(workspace: &Path) -> Arc<Mutex<Known>> {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if all.len() >= WORKSPACES && !all.contains_key(workspace) {
        all.retain(|_, known| Arc::strong_count(known) > 1);
    }
    Arc::clone(all.entry(workspace.to_owned()).or_default())
}

fn lock(known: &Mutex<Known>) -> std::sync::MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
