//! The installed packs.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tiller_fs::lock::{LockError, LockFile};

use super::contents::pin;
use super::lock::{Lock, Origin, Pack, PinnedFile};
use super::stage::Staged;
use crate::PackSource;

/// How long another process may hold the folder.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long what was removed is kept, in seconds.
const KEPT: i64 = 30 * 24 * 3600;

/// The folder of the packs, and their lock file.
#[derive(Clone)]
pub struct Packs {
    home: PathBuf,
    pub(super) lock: PathBuf,
    /// Called between two writes; tests end the process there.
    step: Arc<dyn Fn() + Send + Sync>,
}

/// Whether a pack is as it was agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackState {
    /// It is, and is used.
    Used,
    /// These files were added, changed or removed since; it is not used.
    Changed(Vec<String>),
    /// Its folder cannot be read; it is not used.
    Broken(String),
}

impl PackState {
    /// Why the pack is not used, without a full stop; `None`: it is used.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Used => None,
            Self::Changed(files) => {
                let first = files.first().map(|file| file.escape_debug().to_string()).unwrap_or_default();
                let more =
                    if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
                Some(format!("{first}{more} changed since you agreed to it"))
            }
            Self::Broken(why) => Some(why.clone()),
        }
    }

    /// What makes the pack `name` used again, without a full stop; `None`: it is used.
    pub fn remedy(&self, name: &str) -> Option<String> {
        match self {
            Self::Used => None,
            Self::Changed(_) => Some(format!(
                "`tiller skills trust {name}` shows what changed and asks; `tiller skills update {name}` fetches it again"
            )),
            Self::Broken(_) => Some(format!("`tiller skills update {name}` fetches it again")),
        }
    }
}

/// Packs that are not used, with their state.
type Unused = Vec<(Pack, PackState)>;

impl Packs {
    /// `home`: their folder. `lock`: the lock file, in the data folder.
    pub fn new(home: PathBuf, lock: PathBuf) -> Self {
        Self { home, lock, step: Arc::new(|| ()) }
    }

    /// With a function that is called between two writes.
    #[must_use]
    pub fn with_steps(self, step: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { step, ..self }
    }

    /// The installed packs, by name.
    ///
    /// # Errors
    /// A sentence, when the lock file cannot be read.
    pub fn list(&self) -> Result<Vec<Pack>, String> {
        Ok(Lock::read(&self.lock)?.packs)
    }

    /// What was removed or replaced and can come back, the newest last.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn removed(&self) -> Result<Vec<Pack>, String> {
        Ok(Lock::read(&self.lock)?.removed)
    }

    /// The folder of a pack.
    pub fn folder(&self, pack: &Pack) -> PathBuf {
        self.home.join(&pack.folder)
    }

    /// A pack as it was agreed to.
    pub fn source(&self, pack: &Pack) -> PackSource {
        let agreed = pack.files.iter().map(|file| (file.path.clone(), file.hash.clone())).collect();
        PackSource {
            folder: self.folder(pack),
            name: Some(pack.name.clone()),
            agreed: Some(Arc::new(agreed)),
        }
    }

    /// Compares a pack with what was agreed to. Reads all of its files.
    pub fn state(&self, pack: &Pack) -> PackState {
        match pin(&self.folder(pack)) {
            Err(why) => PackState::Broken(why),
            Ok(files) => {
                let changed = differing(&pack.files, &files);
                if changed.is_empty() { PackState::Used } else { PackState::Changed(changed) }
            }
        }
    }

    /// The packs that are as they were agreed to, by name, and the others with their state. Reads all files.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn verified(&self) -> Result<(Vec<PackSource>, Unused), String> {
        let (mut used, mut others) = (Vec::new(), Vec::new());
        for pack in self.list()? {
            match self.state(&pack) {
                PackState::Used => used.push(self.source(&pack)),
                state => others.push((pack, state)),
            }
        }
        Ok((used, others))
    }

    /// Installs a pack that the user agreed to, in place of an earlier one of its name. `now`: seconds since 1970.
    ///
    /// # Errors
    /// A sentence; the earlier one is in use then.
    pub fn install(&self, staged: &Staged, origin: Origin, now: i64) -> Result<Pack, String> {
        let _held = self.hold()?;
        let mut lock = Lock::read(&self.lock)?;
        let fail = |e: std::io::Error| format!("the pack cannot be stored: {e}");
        let files = staged.files.clone();
        let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.home).map_err(fail)?;
        let copied = scratch.path().join("pack");
        DirBuilder::new().mode(0o700).create(&copied).map_err(fail)?;
        (self.step)();
        tiller_fs::archive::copy(&staged.folder, &copied, super::LIMITS)?;
        if pin(&copied)? != files {
            return Err("its files changed since they were shown".into());
        }
        sync(&copied).map_err(fail)?;
        (self.step)();
        let folder = self.free_name(&staged.name, &files);
        std::fs::rename(&copied, self.home.join(&folder)).map_err(fail)?;
        File::open(&self.home).and_then(|home| home.sync_all()).map_err(fail)?;
        (self.step)();
        let pack = Pack { name: staged.name.clone(), origin, time: now, folder, files };
        take(&mut lock, &pack.name, now);
        lock.packs.push(pack.clone());
        self.commit(lock, now)?;
        Ok(pack)
    }

    /// Agrees to the files of a pack that the user was shown.
    ///
    /// # Errors
    /// A sentence, also when the pack has other files by now.
    pub fn agree(&self, name: &str, shown: &[PinnedFile], now: i64) -> Result<Pack, String> {
        let _held = self.hold()?;
        let mut lock = Lock::read(&self.lock)?;
        let pack = lock.packs.iter_mut().find(|pack| pack.name == name).ok_or_else(|| no_such(name))?;
        let files = pin(&self.home.join(&pack.folder))?;
        if let [first, ..] = differing(shown, &files).as_slice() {
            return Err(format!(
                "nothing was agreed to: {} changed after it was shown",
                first.escape_debug()
            ));
        }
        pack.files = files;
        pack.time = now;
        let pack = pack.clone();
        self.commit(lock, now)?;
        Ok(pack)
    }

    /// Removes a pack. It is kept for 30 days.
    ///
    /// # Errors
    /// A sentence.
    pub fn remove(&self, name: &str, now: i64) -> Result<Pack, String> {
        let _held = self.hold()?;
        let mut lock = Lock::read(&self.lock)?;
        let pack = take(&mut lock, name, now).ok_or_else(|| no_such(name))?;
        self.commit(lock, now)?;
        Ok(pack)
    }

    /// Brings back one of [`Self::removed`]; what is there under its name is kept in turn.
    ///
    /// # Errors
    /// A sentence, also when it is no longer kept.
    pub fn restore(&self, earlier: &Pack, now: i64) -> Result<Pack, String> {
        let name = &earlier.name;
        let _held = self.hold()?;
        let mut lock = Lock::read(&self.lock)?;
        let at = lock.removed.iter().rposition(|pack| pack == earlier && now - pack.time <= KEPT);
        let at = at.ok_or_else(|| format!("no earlier version of {name} is kept"))?;
        let pack = Pack { time: now, ..lock.removed.remove(at) };
        take(&mut lock, name, now);
        lock.packs.push(pack.clone());
        self.commit(lock, now)?;
        Ok(pack)
    }

    /// Writes the lock file, then removes folders that it does not name.
    fn commit(&self, mut lock: Lock, now: i64) -> Result<(), String> {
        lock.packs.sort_by(|a, b| a.name.cmp(&b.name));
        lock.removed.retain(|pack| now - pack.time <= KEPT);
        lock.write(&self.lock, &*self.step)?;
        (self.step)();
        self.keep(&lock);
        // Under the lock: no other installation has a folder here that it needs.
        let named: BTreeSet<&str> =
            lock.packs.iter().chain(&lock.removed).map(|pack| pack.folder.as_str()).collect();
        for entry in std::fs::read_dir(&self.home).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let left = name.to_str().is_none_or(|name| !named.contains(name));
            if left && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // It is tried again at the next change.
                let _ = std::fs::remove_dir_all(entry.path());
                (self.step)();
            }
        }
        Ok(())
    }

    /// Holds the folder until the lock is dropped. It is waited for also because of this process itself: a program that another
    /// thread is about to start has the lock as well until it runs.
    fn hold(&self) -> Result<LockFile, String> {
        let fail = |e: std::io::Error| format!("{} cannot be used: {e}", self.home.display());
        for folder in [Some(self.home.as_path()), self.lock.parent()].into_iter().flatten() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        }
        LockFile::acquire(&self.home.join(".lock"), TIMEOUT).map_err(|error| match error {
            LockError::Held => "another process changes packs at this moment".into(),
            LockError::Io(e) => fail(e),
        })
    }

    fn free_name(&self, name: &str, files: &[PinnedFile]) -> String {
        let mut hasher = blake3::Hasher::new();
        for file in files {
            hasher.update(format!("{}\0{}\0{}\n", file.path, file.hash, file.executable).as_bytes());
        }
        let base = format!("{name}-{}", &hasher.finalize().to_hex()[..12]);
        let mut names = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") });
        let free = |name: &String| std::fs::symlink_metadata(self.home.join(name)).is_err();
        // There is always a number that no folder has.
        names.find(free).unwrap_or(base)
    }
}

/// Takes the pack of this name out of those in use, into those that are kept.
fn take(lock: &mut Lock, name: &str, now: i64) -> Option<Pack> {
    let at = lock.packs.iter().position(|pack| pack.name == name)?;
    let pack = lock.packs.remove(at);
    lock.removed.push(Pack { time: now, ..pack.clone() });
    Some(pack)
}

fn no_such(name: &str) -> String {
    format!("no pack {} is installed", name.escape_debug())
}

/// The paths of files that differ.
pub(super) fn differing(before: &[PinnedFile], now: &[PinnedFile]) -> Vec<String> {
    let gone = before.iter().filter(|file| now.iter().all(|other| other.path != file.path));
    let other = now.iter().filter(|file| !before.contains(file));
    let mut paths: Vec<String> = gone.chain(other).map(|file| file.path.clone()).collect();
    paths.sort();
    paths
}

/// Writes all files and folders below a folder to the disk.
fn sync(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}
