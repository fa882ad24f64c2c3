//! Secret files under another name, by hard links.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tiller_fs::links::{FileId, Files, linked_file};

/// Entries of the folders of secret files that are looked at.
const ENTRIES: usize = 5_000;
/// For this time the secret files that have another name are remembered.
const FRESH: Duration = Duration::from_secs(2);

/// The secret files that have another name as well.
#[derive(Debug)]
pub(super) struct LinkedSecrets {
    paths: Vec<PathBuf>,
    /// When they were read, and each file with its secret path.
    known: Mutex<Option<(Instant, HashMap<FileId, PathBuf>)>>,
}

impl LinkedSecrets {
    /// `paths`: files and folders, which are read at the first use.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, known: Mutex::new(None) }
    }

    /// The secret path of the file at `path`. One look at the file, unless it has several names.
    pub(super) fn find(&self, path: &Path) -> Option<PathBuf> {
        let file = linked_file(path)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(read, _)| read.elapsed() > FRESH) {
            let all = Files::below(self.paths.iter().cloned(), ENTRIES).linked();
            *known = Some((Instant::now(), all));
        }
        known.as_ref().and_then(|(_, files)| files.get(&file)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use crate::paths::Roots;

    #[test]
    fn a_secret_file_is_known_under_its_other_name() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["home/.ssh", "work"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        for (file, link) in [("home/.ssh/id", "work/notes"), ("home/plain", "work/other")] {
            std::fs::write(top.join(file), "x").unwrap();
            std::fs::hard_link(top.join(file), top.join(link)).unwrap();
        }
        std::os::unix::fs::symlink("notes", top.join("work/link")).unwrap();
        let roots = Roots::new(top.join("work"), Some(top.join("home")), Vec::new());
        let entry = |name: &str| roots.secret(&top.join("work").join(name));
        assert_eq!(entry("notes").as_deref(), Some("~/.ssh"));
        assert_eq!(entry("link").as_deref(), Some("~/.ssh"));
        assert_eq!(roots.secret_real(&top.join("work/notes")).as_deref(), Some("~/.ssh"));
        assert_eq!(entry("other"), None);
        assert_eq!(entry("none"), None);
    }
}
