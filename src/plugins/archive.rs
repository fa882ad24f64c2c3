//! Archives of plugins: `.tar`, `.tar.gz` and `.zip`.

use std::path::{Path, PathBuf};

use tiller_fs::archive::{Limits, root};

/// What a plugin may have at most.
pub(crate) const LIMITS: Limits = Limits { entries: 600, bytes: 20 << 20, depth: 8 };

/// Unpacks an archive into an empty folder. Returns the folder that holds the plugin: `into`, or the only folder in it.
///
/// # Errors
/// A sentence.
pub fn unpack(archive: &Path, into: &Path) -> Result<PathBuf, String> {
    tiller_fs::archive::unpack(archive, into, LIMITS)?;
    Ok(root(into, crate::MANIFEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_archive_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let (archive, into) = (tmp.path().join("a.tar"), tmp.path().join("into"));
        std::fs::create_dir(&into).unwrap();
        std::fs::write(&archive, "name = \"mine\"\n").unwrap();
        assert!(unpack(&archive, &into).unwrap_err().contains("neither a .tar"));
    }
}
