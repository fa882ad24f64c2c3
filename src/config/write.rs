//! Writing whole files: atomically, readable by the user alone. Files that several processes change are changed while a
//! lock is held.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_fs::lock::{LockError, LockFile};

use crate::problem::ConfigError;
use crate::text;

/// How long another process may hold the lock of a file.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a change begins again because an editor wrote the file at the same time.
const ROUNDS: u32 = 20;
/// Age from which on a text that was written beside a file belongs to no running process.
const LEFT: Duration = Duration::from_secs(3600);

/// Replaces the file with `text`: written beside it (0600), synchronised, and renamed over it. A link is
/// followed, so that a file kept in another folder stays there.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ConfigError> {
    replace_when(path, text, || Ok(true)).map(drop)
}

/// As [`replace`], if `unchanged` is true once the new text is on the disk. False: the file was left as it was.
pub(crate) fn replace_when(
    path: &Path,
    text: &str,
    unchanged: impl FnOnce() -> Result<bool, ConfigError>,
) -> Result<bool, ConfigError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = folder_of(path)?;
    let name = path.file_name().unwrap_or_default();
    remove_leftovers(&dir, name);
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = dir.join(beside);
    let written = (|| {
        // An earlier process with this number can have left one behind.
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })();
    let io = |e: std::io::Error| ConfigError::io(path, &e);
    let done = written.map_err(io).and_then(|()| {
        let unchanged = unchanged()?;
        if unchanged {
            fs::rename(&beside, path).and_then(|()| File::open(&dir)?.sync_all()).map_err(io)?;
        }
        Ok(unchanged)
    });
    if !matches!(done, Ok(true)) {
        drop(fs::remove_file(&beside));
    }
    done
}

/// Removes new texts of a file that processes left which were killed while they wrote. A younger one may be in use.
fn remove_leftovers(dir: &Path, name: &OsStr) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let beside = entry.file_name();
        let rest = beside.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
        let pid = rest.and_then(|rest| rest.strip_suffix(b".new"));
        let ours = pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if ours && age().is_some_and(|age| age > LEFT) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// The folder of a file. It is made (0700) where there is none.
fn folder_of(path: &Path) -> Result<PathBuf, ConfigError> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    if !dir.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|e| ConfigError::io(&dir, &e))?;
    }
    Ok(dir)
}

/// Holds the lock of the file at `path` until it is dropped, or the process ends. The lock is a hidden file beside the
/// file; it stays there. A thread that holds it must not take it again.
///
/// # Errors
/// When another process or thread holds it for more than ten seconds, or the file of the lock cannot be made.
pub(crate) fn lock(path: &Path) -> Result<LockFile, ConfigError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".lock");
    LockFile::acquire(&folder_of(path)?.join(name), TIMEOUT).map_err(|error| {
        let detail = match error {
            LockError::Held => "is being written by another process; try again".into(),
            LockError::Io(e) => format!("cannot be locked: {e}"),
        };
        ConfigError::Io { path: path.clone(), detail }
    })
}

/// Changes a file of the person's that other processes change too. `change` gets its text (empty where there is no file)
/// and returns the new one; `None` leaves the file as it is. Reading, changing and replacing are done while the lock of
/// the file is held; when an editor, which takes no lock, wrote the file meanwhile, `change` runs again. The file is
/// replaced as a whole (0600, old or new, never half).
///
/// # Errors
/// Those of `change`, or when the file cannot be locked, read or written; the file is then as it was.
pub fn change_private(
    path: &Path,
    mut change: impl FnMut(&str) -> Result<Option<String>, ConfigError>,
) -> Result<(), ConfigError> {
    let read = || text::read(path).map_err(|problem| ConfigError::Wrong { problems: vec![problem] });
    let _lock = lock(path)?;
    for _ in 0..ROUNDS {
        let old = read()?;
        let Some(new) = change(old.as_deref().unwrap_or_default())? else { return Ok(()) };
        if replace_when(path, &new, || Ok(read()? == old))? {
            return Ok(());
        }
    }
    let detail = "is changed all the time by another program".into();
    Err(ConfigError::Io { path: path.to_owned(), detail })
}

/// Takes others' rights away from a file that has them.
pub(crate) fn tighten(path: &Path) -> Result<(), ConfigError> {
    let io = |e: std::io::Error| ConfigError::io(path, &e);
    let mode = fs::metadata(path).map_err(io)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(io)
}

/// Replaces a file of the person's whole (0600, old or new, never half). For a file that several processes change, see
/// [`change_private`].
///
/// # Errors
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), ConfigError> {
    replace(path, text)
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
