//! The lock file: which packs are installed, from where, and the hash of each of their files.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Bytes of the file at most.
const LARGEST: u64 = 16 << 20;

/// Where a pack came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// As it is fetched again: a path, an address with `#REF`, or `builtin:` and a name.
    pub source: String,
    /// The commit of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The address of the registry that named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
}

impl Origin {
    /// Whether the pack came with the program.
    pub fn is_built_in(&self) -> bool {
        self.registry.is_none() && self.source.starts_with(super::source::BUILT_IN)
    }
}

/// A file of a pack as it was agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// Below the pack's folder.
    pub path: String,
    /// Of blake3, as hexadecimal digits.
    pub hash: String,
    pub bytes: u64,
    pub executable: bool,
}

/// An installed pack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    pub name: String,
    pub origin: Origin,
    /// Seconds since 1970 when it was agreed to; of a removed one, when it was removed.
    pub time: i64,
    /// The name of its folder.
    pub folder: String,
    /// By path.
    pub files: Vec<PinnedFile>,
}

/// All packs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lock {
    /// Of this form; 1.
    pub(super) version: u32,
    pub(super) packs: Vec<Pack>,
    /// What was removed or replaced, the newest last. Kept for a while.
    #[serde(default)]
    pub(super) removed: Vec<Pack>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: 1, packs: Vec::new(), removed: Vec::new() }
    }
}

impl Lock {
    /// Reads it. No file is no mistake.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: &str| format!("{} cannot be read: {why}", path.display());
        let meta = match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(wrong(&e.to_string())),
        };
        if !meta.is_file() || meta.len() > LARGEST {
            return Err(wrong("it is not a regular file, or too large"));
        }
        let bytes = std::fs::read(path).map_err(|e| wrong(&e.to_string()))?;
        let lock: Self = serde_json::from_slice(&bytes).map_err(|e| wrong(&e.to_string()))?;
        if lock.version != 1 {
            return Err(wrong("a newer version of Tiller has written it"));
        }
        let plain = |pack: &Pack| {
            let name = Path::new(&pack.folder);
            name.file_name().is_some_and(|only| only == name.as_os_str())
        };
        if !lock.packs.iter().chain(&lock.removed).all(plain) {
            return Err(wrong("it names a folder elsewhere"));
        }
        Ok(lock)
    }

    /// Replaces the file in one step.
    pub(super) fn write(&self, path: &Path, step: &dyn Fn()) -> Result<(), String> {
        let fail = |e: std::io::Error| format!("{} cannot be written: {e}", path.display());
        let folder = path.parent().unwrap_or(path);
        let text = serde_json::to_vec_pretty(self).map_err(|e| e.to_string())?;
        let mut file = tempfile::Builder::new().prefix(".packs-").tempfile_in(folder).map_err(fail)?;
        step();
        file.write_all(&text).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        step();
        file.persist(path).map_err(|e| fail(e.error))?;
        step();
        // The name is on the disk, too.
        std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(fail)
    }
}
