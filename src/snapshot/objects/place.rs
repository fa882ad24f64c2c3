//! The store's folder: its format, its locks, and the removal of files that a kill left there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_fs::lock::{LockError, LockFile};

use crate::error::{Result, SnapshotError, at};
use crate::names;
use crate::objects::id::Id;
use crate::steps::Steps;

/// The format that this program writes. The store of a newer format is not changed. Format 1: all objects whole. Format
/// 2: folders may be deltas.
const FORMAT: u32 = 2;
/// A program that only knows format 1 may have opened the store before it was upgraded. During this time nothing is
/// written that it cannot read.
const OLD_MAY_RUN: Duration = Duration::from_secs(24 * 3600);
/// The file whose time tells when the store was upgraded to this format.
const UPGRADED: &str = "upgraded";
/// The temporary name of a pack into which others are joined.
pub(crate) const JOINING: &str = "tmp_join";

/// What git must know to read the store. `preciousObjects`: git itself never collects it.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n\tpreciousobjects = true\n[gc]\n\tauto = 0\n";

/// Paths in a store.
#[derive(Clone, Debug)]
pub(crate) struct StoreFolder {
    pub(crate) dir: PathBuf,
}

impl StoreFolder {
    /// Creates the store of a workspace, or verifies that an existing one belongs to it.
    pub(crate) fn open(dir: &Path, workspace: &Path, wait: Duration, steps: &Steps) -> Result<Self> {
        let place = Self { dir: dir.to_owned() };
        let mine = names::escape(workspace.as_os_str().as_bytes());
        let format = format!("tiller snapshots {FORMAT}\n{mine}\n");
        if place.format_of(Some(&mine))? == Some(FORMAT) {
            // A new empty folder may be lost at a loss of power.
            folder(&place.packs())?;
            return Ok(place);
        }
        folder(dir)?;
        // Two processes may open it at once; the second finds what the first created.
        let _lock = place.lock(wait)?;
        match place.format_of(Some(&mine))? {
            Some(FORMAT) => return Ok(place),
            Some(_) => {
                write(&dir.join(UPGRADED), b"", steps)?;
                write(&dir.join("format"), format.as_bytes(), steps)?;
                folder(&place.packs())?;
                return Ok(place);
            }
            None => {}
        }
        for sub in ["repo", "repo/objects", "repo/objects/pack", "repo/objects/info", "repo/refs"] {
            folder(&dir.join(sub))?;
        }
        write(&dir.join("repo/HEAD"), b"ref: refs/heads/none\n", steps)?;
        write(&dir.join("repo/config"), CONFIG.as_bytes(), steps)?;
        // Last: a store without this file is created again.
        write(&dir.join("format"), format.as_bytes(), steps)?;
        Ok(place)
    }

    /// An existing store, of any workspace.
    pub(crate) fn existing(dir: &Path) -> Result<Option<Self>> {
        let place = Self { dir: dir.to_owned() };
        Ok(place.format_of(None)?.map(|_| place))
    }

    /// Whether folders may be written as deltas: no running program may be unable to read them.
    pub(crate) fn deltas(&self) -> bool {
        if !matches!(self.format_of(None), Ok(Some(FORMAT))) {
            return false;
        }
        match self.dir.join(UPGRADED).metadata().and_then(|m| m.modified()) {
            Ok(since) => since.elapsed().is_ok_and(|age| age > OLD_MAY_RUN),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        }
    }

    /// The store's format, if it exists. A newer format is an error, and so is a store of another workspace than
    /// `mine`, when that is given.
    fn format_of(&self, mine: Option<&str>) -> Result<Option<u32>> {
        let path = self.dir.join("format");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(at(&path)(e)),
        };
        let bad = |detail: String| SnapshotError::NotOurs { path: self.dir.clone(), detail };
        let found = text.lines().next().and_then(|l| l.strip_prefix("tiller snapshots "));
        let found: u32 =
            found.and_then(|n| n.parse().ok()).ok_or_else(|| bad("its format is unknown".into()))?;
        if found > FORMAT {
            return Err(SnapshotError::Newer { path: self.dir.clone(), found, known: FORMAT });
        }
        let of = text.lines().nth(1).unwrap_or_default();
        if mine.is_some_and(|mine| mine != of) {
            return Err(bad(format!("it belongs to {of}")));
        }
        Ok(Some(found))
    }

    pub(crate) fn packs(&self) -> PathBuf {
        self.dir.join("repo/objects/pack")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// The snapshot that was taken last, by any process.
    pub(crate) fn last(&self) -> Option<Id> {
        std::fs::read_to_string(self.dir.join("last")).ok()?.trim().parse().ok()
    }

    pub(crate) fn set_last(&self, id: Id, steps: &Steps) -> Result<()> {
        write_quick(&self.dir.join("last"), format!("{id}\n").as_bytes(), steps)
    }

    /// Waits for the lock. It is released when its owner drops it or ends.
    pub(crate) fn lock(&self, wait: Duration) -> Result<Lock> {
        self.wait_for("lock", wait)
    }

    /// Waits for the lock for joining packs. Where both locks are needed, it is taken before [`Self::lock`].
    pub(crate) fn join_lock(&self, wait: Duration) -> Result<Lock> {
        self.wait_for("lock-join", wait)
    }

    fn wait_for(&self, name: &str, wait: Duration) -> Result<Lock> {
        let path = self.dir.join(name);
        match LockFile::acquire(&path, wait) {
            Ok(file) => Ok(Lock { _file: file }),
            Err(LockError::Held) => Err(SnapshotError::Busy { path: self.dir.clone() }),
            Err(LockError::Io(e)) => Err(at(&path)(e)),
        }
    }

    /// Removes what a kill left half written; returns the number of files. The caller holds the lock.
    pub(crate) fn sweep(&self, steps: &Steps) -> Result<usize> {
        let mut swept = 0;
        // Unless this lock is free, a process is joining packs.
        let joining = self.join_lock(Duration::ZERO);
        for dir in [self.dir.clone(), self.packs()] {
            for item in std::fs::read_dir(&dir).map_err(at(&dir))? {
                let path = item.map_err(at(&dir))?.path();
                let name = path.file_name().unwrap_or_default().as_bytes();
                let orphan = name.ends_with(b".idx") && !path.with_extension("pack").exists();
                let working = joining.is_err() && name.starts_with(JOINING.as_bytes());
                if (name.starts_with(b"tmp_") && !working) || orphan {
                    steps.at("sweep").map_err(at(&path))?;
                    std::fs::remove_file(&path).map_err(at(&path))?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }
}

/// The lock for changing the store, and the workspace by means of it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: LockFile,
}

fn folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Writes a small file atomically and durably.
pub(crate) fn write(path: &Path, data: &[u8], steps: &Steps) -> Result<()> {
    put(path, data, steps, true)
}

/// As [`write`], without waiting for the disk: after a loss of power the file may be the old one, or damaged.
pub(crate) fn write_quick(path: &Path, data: &[u8], steps: &Steps) -> Result<()> {
    put(path, data, steps, false)
}

fn put(path: &Path, data: &[u8], steps: &Steps, sync: bool) -> Result<()> {
    let sync = sync && steps.durable();
    let dir = path.parent().unwrap_or(path);
    let temp = dir.join(format!("tmp_{}", path.file_name().unwrap_or_default().to_string_lossy()));
    let all = || -> io::Result<()> {
        steps.at("write file")?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
        file.write_all(data)?;
        if sync {
            steps.at("sync file")?;
            file.sync_all()?;
        }
        steps.at("name file")?;
        std::fs::rename(&temp, path)?;
        if sync { File::open(dir)?.sync_all() } else { Ok(()) }
    };
    all().map_err(at(path))
}
