//! The files of a skill as they were when the trial began: every run gets these, whatever becomes of the folder meanwhile.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tiller_skills::SkillFiles;

/// A copy of a skill's folder, which is removed at the end.
pub(super) struct FrozenSkill {
    _tmp: TempDir,
    folder: PathBuf,
}

impl FrozenSkill {
    /// An empty folder of this name.
    fn new(name: &str) -> Result<Self, String> {
        let tmp = tiller_tool::shell::own_folder::make("skill");
        let tmp = tmp.map_err(|e| format!("there is no room for temporary files: {e}"))?;
        let folder = tmp.path().join(name);
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { _tmp: tmp, folder })
    }

    /// The folder as it is now.
    ///
    /// # Errors
    /// A sentence without a full stop.
    pub(super) fn of_folder(name: &str, folder: &Path) -> Result<Self, String> {
        let frozen = Self::new(name)?;
        tiller_fs::archive::copy(folder, &frozen.folder, tiller_skills::packs::LIMITS)?;
        Ok(frozen)
    }

    /// The files as the user trusted them. `folder`: their folder, which decides which of them are programs.
    ///
    /// # Errors
    /// As [`Self::of_folder`].
    pub(super) fn of_files(name: &str, files: &SkillFiles, folder: &Path) -> Result<Self, String> {
        let frozen = Self::new(name)?;
        for file in files.list() {
            let bytes = files.read(&file.path)?;
            let runs = folder.join(&file.path).symlink_metadata();
            let runs = runs.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o100 != 0);
            write(&frozen.folder.join(&file.path), &bytes, if runs { 0o700 } else { 0o600 })
                .map_err(|e| format!("{}: {e}", file.path.escape_debug()))?;
        }
        Ok(frozen)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Writes a new file, and the folders above it.
fn write(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_runs_get_the_files_as_they_were_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("scripts")).unwrap();
        write(&at("scripts/run.sh"), b"#!/bin/sh\nother\n", 0o700).unwrap();
        write(&at("added.md"), b"Added.", 0o600).unwrap();
        let trusted = [("SKILL.md", "Trusted."), ("scripts/run.sh", "#!/bin/sh\n")]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let frozen =
            FrozenSkill::of_files("notes", &SkillFiles::InMemory(Arc::new(trusted.to_vec())), folder.path())
                .unwrap();
        let read =
            |frozen: &FrozenSkill, name: &str| std::fs::read_to_string(frozen.folder().join(name)).ok();
        assert_eq!(frozen.folder().file_name().unwrap(), "notes");
        assert_eq!(read(&frozen, "SKILL.md").as_deref(), Some("Trusted."));
        assert_eq!(read(&frozen, "scripts/run.sh").as_deref(), Some("#!/bin/sh\n"));
        assert_eq!(read(&frozen, "added.md"), None);
        let mode = std::fs::metadata(frozen.folder().join("scripts/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        // One that is not in use yet is read once.
        let frozen = FrozenSkill::of_folder("notes", folder.path()).unwrap();
        std::fs::write(at("added.md"), "Changed.").unwrap();
        assert_eq!(read(&frozen, "added.md").as_deref(), Some("Added."));
    }
}
