//! A folder.

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Limits;
use super::intake::{Intake, name_of, special};

/// Copies what is in the folder `from` into the empty folder `into`. Links are refused, `.git` is left out.
///
/// # Errors
/// A sentence that names the entry. The folder may hold some entries then.
pub fn copy(from: &Path, into: &Path, limits: Limits) -> Result<(), String> {
    let mut intake = Intake::new(into, limits);
    folder(from, Path::new(""), &mut intake)
}

fn folder(root: &Path, inside: &Path, intake: &mut Intake<'_>) -> Result<(), String> {
    let at = root.join(inside);
    let fail = |e: std::io::Error| format!("{} cannot be read: {e}", at.display());
    let mut entries: Vec<_> =
        std::fs::read_dir(&at).map_err(fail)?.collect::<Result<_, _>>().map_err(fail)?;
    // In one order, so that a mistake is always the same one.
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_name() == ".git" {
            continue;
        }
        let path = inside.join(entry.file_name());
        let name = name_of(&path)?;
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            intake.folder(&name)?;
            folder(root, &path, intake)?;
        } else if kind.is_file() {
            // A file that became a link or a pipe meanwhile is not opened.
            let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
            let source = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(root.join(&path));
            let mut source = source.map_err(|e| format!("{} cannot be read: {e}", name.escape_debug()))?;
            let meta = source.metadata().map_err(fail)?;
            if !meta.is_file() {
                return Err(special(&name));
            }
            intake.file(&name, meta.permissions().mode() & 0o100 != 0, &mut source)?;
        } else {
            return Err(special(&name));
        }
    }
    Ok(())
}
