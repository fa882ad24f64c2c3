//! A workspace and its store in a temporary folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tiller_protocol::{ManualClock, Time};

use crate::steps::Steps;
use crate::{Change, Goal, Id, Limits, RestoreResult, Shadow, Snapshot, Step};

/// The state of paths, for comparing folders: type, permissions and content.
pub(crate) type Tree = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

pub(crate) struct World {
    _scratch: tempfile::TempDir,
    pub(crate) top: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) limits: Limits,
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        fs::create_dir(top.join("work")).unwrap();
        let clock = Arc::new(ManualClock::new(Time(1_800_000_000_000)));
        Self { _scratch: scratch, top, clock, limits: Limits::default() }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.top.join("work")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.top.join("store")
    }

    pub(crate) fn open(&self) -> Shadow {
        Shadow::open(&self.work(), &self.store(), self.limits.clone(), self.clock.clone()).unwrap()
    }

    pub(crate) fn open_with(&self, steps: Steps) -> crate::Result<Shadow> {
        Shadow::open_with(&self.work(), &self.store(), self.limits.clone(), self.clock.clone(), steps)
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.work().join(path)).unwrap()).into_owned()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.work().join(path)).unwrap();
    }

    /// Runs a shell command in the workspace, without the person's git settings.
    pub(crate) fn sh(&self, line: &str) -> String {
        sh(&self.work(), line)
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.work())
    }
}

pub(crate) fn sh(dir: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    let out = tiller_testkit::plain_git(command.args(["-ec", line]).current_dir(dir)).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{line}\n{text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// The paths of everything in a folder where files come and go meanwhile.
pub(crate) fn paths(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(here) = todo.pop() {
        let items = match fs::read_dir(&here) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            items => items.unwrap(),
        };
        for item in items {
            let item = item.unwrap();
            found.push(item.path());
            if item.file_type().is_ok_and(|kind| kind.is_dir()) {
                todo.push(item.path());
            }
        }
    }
    found
}

/// Everything in a folder, byte for byte. Pipes and sockets are not opened.
pub(crate) fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(here) = todo.pop() {
        for item in fs::read_dir(&here).unwrap() {
            let path = item.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let kind = meta.file_type();
            let mode = meta.permissions().mode() & 0o777;
            let name = path.strip_prefix(dir).unwrap().to_path_buf();
            if kind.is_dir() {
                found.insert(name, ('d', mode, Vec::new()));
                todo.push(path);
            } else if kind.is_symlink() {
                use std::os::unix::ffi::OsStringExt;
                let target = fs::read_link(&path).unwrap().into_os_string().into_vec();
                found.insert(name, ('l', 0, target));
            } else if kind.is_file() {
                // Huge files are compared by their size and stamp.
                let text = if meta.len() > 64 << 20 {
                    format!("{} {}", meta.len(), meta.ino()).into_bytes()
                } else {
                    fs::read(&path).unwrap()
                };
                found.insert(name, ('f', mode, text));
            } else {
                found.insert(name, ('s', mode, Vec::new()));
            }
        }
    }
    found
}

/// `+a ~b -c`: the differences between two snapshots.
pub(crate) fn diff(shadow: &Shadow, a: Id, b: Id) -> String {
    let sign = |c: Change| match c {
        Change::Added => '+',
        Change::Deleted => '-',
        Change::Modified => '~',
        Change::Mode => 'x',
        Change::Type => 't',
        Change::Unknown => '?',
    };
    let all = shadow.compare(a, b).unwrap();
    let all: Vec<String> =
        all.iter().map(|d| format!("{}{}", sign(d.change), d.path.to_string_lossy())).collect();
    all.join(" ")
}

/// A step of the agent between two snapshots.
pub(crate) fn agent(shadow: &mut Shadow, act: impl FnOnce()) -> Step {
    let before = shadow.snapshot().unwrap().id;
    act();
    Step { before, after: shadow.snapshot().unwrap().id }
}

/// Restores everything that has no conflict.
pub(crate) fn restore(shadow: &mut Shadow, to: &Snapshot, steps: &[Step]) -> RestoreResult {
    let plan = shadow.plan(&Goal::back(to.id, steps.to_vec())).unwrap();
    shadow.restore(&plan, &BTreeMap::new()).unwrap()
}

pub(crate) fn undo(shadow: &mut Shadow, restored: &RestoreResult) -> RestoreResult {
    let plan = shadow.plan(&restored.undo()).unwrap();
    shadow.restore(&plan, &BTreeMap::new()).unwrap()
}

impl Shadow {
    /// The same state as a version before ignored files were covered would have stored it: these files at the top only.
    pub(crate) fn as_an_older_version(&self, id: Id, files: &[&str]) -> Id {
        use crate::objects::Batch;
        use crate::objects::id::Sort;
        use crate::objects::object::{self, FolderEntry};
        let lock = self.lock().unwrap();
        let mut batch = Batch::new(&self.objects, true);
        let entry = |name: &&str| FolderEntry {
            name: name.as_bytes().to_vec(),
            entry: self.state(id, Path::new(name)).unwrap().entry().unwrap(),
        };
        let mut names: Vec<FolderEntry> = files.iter().map(entry).collect();
        let tree = batch.put(Sort::Folder, &object::folder(&mut names)).unwrap();
        let older = batch.put(Sort::Snapshot, &object::snapshot(tree, 1, "mode full\n")).unwrap();
        batch.finish().unwrap();
        drop(lock);
        older
    }
}
