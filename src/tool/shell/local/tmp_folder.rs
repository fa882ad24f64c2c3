//! The `/tmp` of a session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::own_folder;

/// The folder of temporary files of one session, for its user alone. Its commands see it as `/tmp` where the sandbox can mount,
/// else by `TMPDIR`. It is made when it is first needed, and removed with the last handle.
#[derive(Clone, Debug, Default)]
pub struct TmpFolder(Arc<OnceLock<Option<Made>>>);

#[derive(Debug)]
struct Made {
    /// Without links.
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl TmpFolder {
    /// Its path. `None`: it cannot be made.
    pub fn path(&self) -> Option<&Path> {
        let make = || {
            let folder = own_folder::make("tmp").ok()?;
            Some(Made { path: folder.path().canonicalize().ok()?, _folder: folder })
        };
        self.0.get_or_init(make).as_ref().map(|made| made.path.as_path())
    }

    /// Its path, if it was needed before.
    pub fn made(&self) -> Option<&Path> {
        self.0.get()?.as_ref().map(|made| made.path.as_path())
    }
}

/// Says which paths of the machine's own `/tmp` commands see as they are, for a workspace and an environment. `None`: they see
/// all of it.
pub type ShownInTmp = Arc<dyn Fn(&Path, &[(String, String)]) -> Option<Vec<PathBuf>> + Send + Sync>;

/// The `/tmp` of a session, as its commands see it.
#[derive(Clone)]
pub struct SessionTmp {
    pub folder: TmpFolder,
    pub shown: ShownInTmp,
}

/// The place that the session's folder takes.
const TMP: &str = "/tmp";

/// What commands see below `/tmp` now.
#[derive(Clone, Debug)]
pub(crate) struct SeenTmp {
    /// In its place.
    pub folder: PathBuf,
    /// Paths that are seen as they are.
    pub shown: Vec<PathBuf>,
}

impl SeenTmp {
    /// Whether it matters for this path.
    pub(crate) fn concerns(path: &Path) -> bool {
        path.starts_with(TMP)
    }

    /// Where a path lies. `None`: where it says.
    pub(crate) fn lies(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(TMP).ok()?;
        if self.shown.iter().any(|shown| path.starts_with(shown)) || path.starts_with(&self.folder) {
            return None;
        }
        Some(if below.as_os_str().is_empty() { self.folder.clone() } else { self.folder.join(below) })
    }

    /// Whether it leads to something that is seen as it is.
    pub(crate) fn is_above_shown(&self, path: &Path) -> bool {
        self.shown.iter().any(|shown| shown.starts_with(path))
    }
}

impl SessionTmp {
    /// What the commands of a workspace see.
    pub(crate) fn seen(&self, workspace: &Path, env: &[(String, String)]) -> Option<SeenTmp> {
        let shown = (self.shown)(workspace, env)?;
        Some(SeenTmp { folder: self.folder.path()?.to_owned(), shown })
    }

    /// The path by which commands know a file in the session's folder. `None` where the folder is not mounted: they know it
    /// by its own path.
    pub(crate) fn named(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(self.folder.made()?).ok()?;
        // The same for each workspace; this one is looked through at once.
        (self.shown)(Path::new("/"), &[])?;
        Some(if below.as_os_str().is_empty() { TMP.into() } else { Path::new(TMP).join(below) })
    }
}

impl std::fmt::Debug for SessionTmp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionTmp").field("folder", &self.folder).finish_non_exhaustive()
    }
}
