//! Writing whole files: atomically, readable by the user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::problem::ConfigError;

/// Replaces the file with `text`: written beside it (0600), synchronised, and renamed over it. A link is
/// followed, so that a file kept in another folder stays there.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ConfigError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    if !dir.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|e| ConfigError::io(&dir, &e))?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = dir.join(name);
    let written = (|| {
        // A crash can have left one behind.
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(&dir)?.sync_all()
    })();
    written.map_err(|e| {
        drop(fs::remove_file(&beside));
        ConfigError::io(path, &e)
    })
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

/// Replaces a file of the person's whole (0600, old or new, never half).
///
/// # Errors
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), ConfigError> {
    replace(path, text)
}
