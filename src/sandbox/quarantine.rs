//! Protected files where the kernel cannot protect them: their state before a command, compared after it.
//!
//! Landlock cannot deny beneath an allowed folder, and bubblewrap cannot protect what does not exist yet. So each
//! protected path is read before, and what differs afterwards is copied into a quarantine folder and put back. It is a
//! repair, not a barrier: until the command ends, what it wrote is in place.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tiller_fs::links::{FileId, linked_file};

/// All protected files together, in bytes.
const BYTES: usize = 32 << 20;
/// All protected files and folders together.
const ENTRIES: usize = 10_000;

/// One path as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Missing,
    /// Content and mode.
    File(Vec<u8>, u32),
    Link(PathBuf),
    /// Entries by name, and mode.
    Folder(BTreeMap<std::ffi::OsString, Self>, u32),
    /// A pipe, socket or device.
    Other,
}

/// A protected path that a command has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub path: PathBuf,
    /// Where what the command wrote lies now; `None`: it had removed the path.
    pub kept: Option<PathBuf>,
    /// Why the former state could not be restored.
    pub failed: Option<String>,
    /// What does not stay: `KEY was set` of a file of git's configuration.
    pub setting: Option<String>,
    /// It is new, and stays without that.
    pub stripped: bool,
}

impl Violation {
    /// One line for people and models, without a full stop.
    pub fn words(&self) -> String {
        let path = self.path.display();
        let kept = self.kept.as_ref().map(|kept| format!("; the changed one is in {}", kept.display()));
        let setting = self.setting.as_ref().map(|setting| format!(" ({setting})")).unwrap_or_default();
        match &self.failed {
            Some(why) => {
                format!("{path} is protected and was changed{setting}; it could not be restored: {why}")
            }
            None if self.stripped => {
                format!(
                    "{path} is protected; what would run was taken out{setting}{}",
                    kept.unwrap_or_default()
                )
            }
            None => {
                format!(
                    "{path} is protected; its former state was restored{setting}{}",
                    kept.unwrap_or_default()
                )
            }
        }
    }
}

/// Lines about protected files that one command has changed.
const LINES: usize = 20;

impl Violation {
    /// Returns a line for each, as far as they are not too many. Those that could not be put back come first. `quarantine`: where
    /// the changed ones are.
    pub fn lines(mut found: Vec<Self>, quarantine: &Path) -> Vec<String> {
        found.sort_by_key(|violation| violation.failed.is_none());
        let more = found.len().saturating_sub(LINES);
        let mut lines: Vec<String> = found.iter().take(LINES).map(Self::words).collect();
        if more > 0 {
            let place = quarantine.display();
            lines.push(format!("{more} more protected paths were changed; the changed ones are in {place}"));
        }
        lines
    }
}

/// The protected paths before a command.
#[derive(Debug)]
pub struct Guard {
    states: Vec<(PathBuf, State)>,
    /// The paths that are files with another name: put back by writing into the file, which that name shows too.
    linked: HashMap<PathBuf, FileId>,
    /// Folders above the protected paths that must stay folders.
    above: Vec<PathBuf>,
    /// Those of the paths that are configurations of git: what they set decides whether a change stays.
    settings: Vec<PathBuf>,
}

impl Guard {
    /// Reads the paths.
    ///
    /// # Errors
    /// When one cannot be read, or all together are too large.
    pub fn record(paths: &[PathBuf]) -> io::Result<Self> {
        let mut budget = Budget { bytes: BYTES, entries: ENTRIES };
        let (mut states, mut linked, mut above) = (Vec::new(), HashMap::new(), Vec::new());
        for path in paths {
            states.push((path.clone(), budget.read(path)?));
            linked.extend(linked_file(path).map(|id| (path.clone(), id)));
            above.extend(path.parent().filter(|parent| is_folder(parent)).map(Path::to_path_buf));
        }
        above.sort();
        above.dedup();
        Ok(Self { states, linked, above, settings: Vec::new() })
    }

    /// A change of these files of git's configuration stays if it sets nothing by which git runs a program.
    #[must_use]
    pub fn judging(mut self, settings: Vec<PathBuf>) -> Self {
        self.settings = settings;
        self
    }

    /// Reads the paths; those that cannot be read, or are too large, are left out.
    pub fn record_small(paths: &[PathBuf]) -> Self {
        let (mut states, mut linked, mut above) = (Vec::new(), HashMap::new(), Vec::new());
        for path in paths {
            if let Ok(mut one) = Self::record(std::slice::from_ref(path)) {
                states.append(&mut one.states);
                linked.extend(one.linked);
                above.append(&mut one.above);
            }
        }
        above.sort();
        above.dedup();
        Self { states, linked, above, settings: Vec::new() }
    }

    /// Puts back what differs, and keeps what was there in a new folder of `place`. Call it when the command and
    /// everything that it started has ended.
    pub fn restore(&self, place: &Path) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut keep = Keep::new(place);
        // A link in the way would lead the repair elsewhere.
        for path in self.above.iter().filter(|path| !is_folder(path)) {
            let kept = keep.take(path);
            let failed = kept.as_ref().err().map(ToString::to_string);
            let made = std::fs::create_dir_all(path).err().map(|e| e.to_string());
            found.push(Violation {
                path: path.clone(),
                kept: kept.ok().flatten(),
                failed: failed.or(made),
                setting: None,
                stripped: false,
            });
        }
        for (path, before) in &self.states {
            let mut budget = Budget { bytes: 4 * BYTES, entries: 4 * ENTRIES };
            let now = budget.read(path);
            let mut setting = None;
            match now {
                Ok(now) if now == *before => continue,
                Ok(now) if self.settings.contains(path) => match check_settings(before, &now) {
                    Ok(()) => continue,
                    Err(why) => setting = why.map(|key| format!("{key} was set")),
                },
                _ => {}
            }
            let violation = match (before, self.linked.get(path)) {
                (State::File(bytes, mode), Some(id)) if linked_file(path) == Some(*id) => {
                    keep.rewrite(path, *id, bytes, *mode)
                }
                _ => keep.replace(path, before),
            };
            found.push(Violation { setting, ..violation });
        }
        found
    }
}

/// Whether this change of a file of git's configuration may stay.
///
/// # Errors
/// The setting for which it does not, as far as it is one.
fn check_settings(before: &State, now: &State) -> Result<(), Option<String>> {
    let before = match before {
        State::Missing => &[][..],
        State::File(bytes, _) => bytes,
        _ => return Err(None),
    };
    match now {
        State::File(bytes, _) => tiller_shell::check_git_change(before, bytes).map_err(Some),
        _ => Err(None),
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_dir())
}

/// Lets the owner read, change and enter a folder, which is no link.
#[cfg(target_os = "linux")]
pub(crate) fn make_accessible(path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, fstat, open};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode) | Mode::RWXU;
    let here = format!("/proc/self/fd/{}", folder.as_raw_fd());
    Ok(chmodat(CWD, here, mode, AtFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn make_accessible(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What may still be read.
pub(crate) struct Budget {
    bytes: usize,
    entries: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize, entries: usize) -> Self {
        Self { bytes, entries }
    }

    /// The state of this path.
    pub(crate) fn read(&mut self, path: &Path) -> io::Result<State> {
        let too_large = || io::Error::other(format!("{} is too large to protect", path.display()));
        self.entries = self.entries.checked_sub(1).ok_or_else(too_large)?;
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(State::Missing);
            }
            Err(e) => return Err(e),
        };
        let mode = meta.permissions().mode() & 0o7777;
        if meta.is_symlink() {
            return Ok(State::Link(std::fs::read_link(path)?));
        }
        if meta.is_file() {
            let size = usize::try_from(meta.len()).unwrap_or(usize::MAX);
            self.bytes = self.bytes.checked_sub(size).ok_or_else(too_large)?;
            return Ok(State::File(std::fs::read(path)?, mode));
        }
        if !meta.is_dir() {
            return Ok(State::Other);
        }
        let mut entries = BTreeMap::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            entries.insert(entry.file_name(), self.read(&entry.path())?);
        }
        Ok(State::Folder(entries, mode))
    }
}

impl State {
    /// Makes this state at a path where nothing is.
    fn write(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Missing => Ok(()),
            Self::File(bytes, mode) => write_new(path, bytes, *mode),
            Self::Link(target) => symlink(target, path),
            Self::Folder(entries, mode) => {
                std::fs::create_dir(path)?;
                for (name, state) in entries {
                    state.write(&path.join(name))?;
                }
                std::fs::set_permissions(path, PermissionsExt::from_mode(*mode))
            }
            Self::Other => Err(io::Error::other("it was no file")),
        }
    }
}

fn violation(path: &Path, kept: io::Result<Option<PathBuf>>, failed: Option<String>) -> Violation {
    Violation { path: path.to_owned(), kept: kept.ok().flatten(), failed, setting: None, stripped: false }
}

/// Makes a file. A link that a process which still runs has put there is not followed.
fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(PermissionsExt::from_mode(mode))
}

/// Opens a file, and no link to one.
fn open_itself(path: &Path, write: bool) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).write(write).custom_flags(flags.bits().cast_signed()).open(path)
}

fn copy(file: &mut File, to: &Path) -> io::Result<()> {
    io::copy(file, &mut OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?).map(drop)
}

/// Moves a file to another file system. One that has no room there is renamed beside its place: it never stays in it.
fn move_file(path: &Path, to: PathBuf) -> io::Result<PathBuf> {
    if copy(&mut open_itself(path, false)?, &to).is_ok() {
        std::fs::remove_file(path)?;
        return Ok(to);
    }
    let _ = std::fs::remove_file(&to);
    let mut name = std::ffi::OsString::from(".quarantined-");
    name.push(to.file_name().unwrap_or_default());
    let beside = path.with_file_name(name);
    std::fs::rename(path, &beside)?;
    open_itself(&beside, false)?.set_permissions(PermissionsExt::from_mode(0o600))?;
    Ok(beside)
}

/// Where changed files are kept.
pub(crate) struct Keep {
    place: PathBuf,
    folder: Option<PathBuf>,
    count: u32,
}

impl Keep {
    /// In a new folder of `place`, made when something is kept.
    pub(crate) fn new(place: &Path) -> Self {
        Self { place: place.to_owned(), folder: None, count: 0 }
    }

    /// Moves the path away and makes this state in its place.
    pub(crate) fn replace(&mut self, path: &Path, state: &State) -> Violation {
        let kept = self.take(path);
        let failed = kept.as_ref().err().map(ToString::to_string);
        let failed = failed.or_else(|| state.write(path).err().map(|e| e.to_string()));
        violation(path, kept, failed)
    }

    /// Copies the file with this number and writes this content into it, for all of its names.
    pub(crate) fn rewrite(&mut self, path: &Path, id: FileId, bytes: &[u8], mode: u32) -> Violation {
        let mut kept = None;
        let mut rewrite = || {
            let mut file = open_itself(path, true)?;
            let meta = file.metadata()?;
            if (meta.dev(), meta.ino()) != (id.device, id.inode) {
                return Err(io::Error::other("another file is in its place"));
            }
            let to = self.name(path)?;
            copy(&mut file, &to)?;
            kept = Some(to);
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(bytes)?;
            file.set_permissions(PermissionsExt::from_mode(mode))
        };
        let failed = rewrite().err().map(|e| e.to_string());
        violation(path, Ok(kept), failed)
    }

    /// A free name for what is at this path.
    fn name(&mut self, path: &Path) -> io::Result<PathBuf> {
        if self.folder.is_none() {
            std::fs::create_dir_all(&self.place)?;
            let folder = tempfile::Builder::new().prefix("quarantine-").tempdir_in(&self.place)?;
            self.folder = Some(folder.keep());
        }
        let folder = self.folder.as_deref().unwrap_or(&self.place);
        self.count += 1;
        let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned());
        Ok(folder.join(format!("{}-{name}", self.count)))
    }

    /// Moves the path away; `None` when nothing was there.
    fn take(&mut self, path: &Path) -> io::Result<Option<PathBuf>> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let to = self.name(path)?;
        // A command may have locked the folder.
        let locked = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
        let unlock = || path.parent().is_some_and(|folder| make_accessible(folder).is_ok());
        let moved = std::fs::rename(path, &to);
        let moved =
            moved.or_else(|e| if locked(&e) && unlock() { std::fs::rename(path, &to) } else { Err(e) });
        if moved.is_err() {
            // Another file system.
            if path.symlink_metadata()?.is_file() {
                return move_file(path, to).map(Some);
            }
            Budget { bytes: 4 * BYTES, entries: 4 * ENTRIES }.read(path)?.write(&to)?;
            if is_folder(path) { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        // What was written must not run from here by accident.
        if to.symlink_metadata().is_ok_and(|m| m.is_file()) {
            std::fs::set_permissions(&to, PermissionsExt::from_mode(0o600))?;
        }
        Ok(Some(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Repository {
        _tmp: tempfile::TempDir,
        top: PathBuf,
    }

    impl Repository {
        fn new() -> Self {
            let tmp = tempfile::tempdir().unwrap();
            let top = tmp.path().canonicalize().unwrap();
            std::fs::create_dir_all(top.join("w/.git/hooks")).unwrap();
            std::fs::write(top.join("w/.git/config"), "[core]\n").unwrap();
            std::fs::write(top.join("w/.git/hooks/old"), "old").unwrap();
            Self { _tmp: tmp, top }
        }

        fn guard(&self) -> Guard {
            let paths = [".git/config", ".git/hooks", ".envrc"].map(|name| self.top.join("w").join(name));
            Guard::record(&paths).unwrap()
        }

        fn check(&self) {
            assert_eq!(std::fs::read_to_string(self.top.join("w/.git/config")).unwrap(), "[core]\n");
            assert_eq!(std::fs::read_to_string(self.top.join("w/.git/hooks/old")).unwrap(), "old");
            assert_eq!(std::fs::read_dir(self.top.join("w/.git/hooks")).unwrap().count(), 1);
            assert!(!self.top.join("w/.envrc").exists());
        }
    }

    #[test]
    fn what_was_written_is_kept_elsewhere_and_the_former_state_is_back() {
        let repo = Repository::new();
        let guard = repo.guard();
        assert!(guard.restore(&repo.top.join("kept")).is_empty(), "nothing was changed");
        std::fs::write(repo.top.join("w/.git/hooks/pre-commit"), "evil").unwrap();
        std::fs::write(repo.top.join("w/.git/config"), "[core]\nfsmonitor = evil\n").unwrap();
        std::fs::write(repo.top.join("w/.envrc"), "evil").unwrap();
        let found = guard.restore(&repo.top.join("kept"));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|v| v.failed.is_none()), "{found:?}");
        let kept = found.iter().find(|v| v.path.ends_with(".envrc")).unwrap().kept.clone().unwrap();
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "evil");
        repo.check();
    }

    #[test]
    fn a_link_in_place_of_the_folder_above_does_not_lead_the_repair_elsewhere() {
        let repo = Repository::new();
        let guard = repo.guard();
        let victim = repo.top.join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("config"), "mine").unwrap();
        std::fs::remove_dir_all(repo.top.join("w/.git")).unwrap();
        symlink(&victim, repo.top.join("w/.git")).unwrap();
        let found = guard.restore(&repo.top.join("kept"));
        assert!(!found.is_empty());
        assert_eq!(std::fs::read_to_string(victim.join("config")).unwrap(), "mine");
        repo.check();
    }

    #[test]
    fn a_file_with_another_name_is_put_back_in_both() {
        let repo = Repository::new();
        let (rc, name) = (repo.top.join("bashrc"), repo.top.join("w/.envrc"));
        std::fs::write(&rc, "mine").unwrap();
        std::fs::hard_link(&rc, &name).unwrap();
        let guard = repo.guard();
        std::fs::write(&name, "evil").unwrap();
        let found = guard.restore(&repo.top.join("kept"));
        assert_eq!(std::fs::read_to_string(found[0].kept.as_ref().unwrap()).unwrap(), "evil");
        assert_eq!(std::fs::read_to_string(&rc).unwrap(), "mine");
        assert_eq!(linked_file(&rc), linked_file(&name), "they are one file");
        // A link to another file in its place: that file is not written.
        std::fs::write(repo.top.join("w/other"), "other").unwrap();
        std::fs::remove_file(&name).unwrap();
        std::fs::hard_link(repo.top.join("w/other"), &name).unwrap();
        assert_eq!(guard.restore(&repo.top.join("kept")).len(), 1);
        assert_eq!(std::fs::read_to_string(repo.top.join("w/other")).unwrap(), "other");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "mine");
    }

    #[test]
    fn a_removed_file_comes_back() {
        let repo = Repository::new();
        let guard = repo.guard();
        std::fs::remove_file(repo.top.join("w/.git/config")).unwrap();
        let found = guard.restore(&repo.top.join("kept"));
        assert_eq!(
            found,
            [Violation {
                path: repo.top.join("w/.git/config"),
                kept: None,
                failed: None,
                setting: None,
                stripped: false
            }]
        );
        repo.check();
    }
}
