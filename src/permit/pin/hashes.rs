//! Hashes of files, kept as long as nothing about the file changes.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest file of which the content is hashed; of a larger one its place, its size and its times are.
const LARGEST: u64 = 64 << 20;
/// Hashes that are kept; beyond it all are made anew.
const MOST: usize = 50_000;
/// A file that changed less than this ago may change again without another time.
const SETTLED: Duration = Duration::from_secs(2);

/// Device, inode, size, and the times of the last change of content and of anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    file: (u64, u64),
    size: u64,
    content: (i64, i64),
    any: (i64, i64),
}

impl Stamp {
    /// Of a file; `None`: it cannot be looked at.
    pub(super) fn at(real: &Path) -> Option<Self> {
        real.symlink_metadata().ok().map(|meta| Self::of(&meta))
    }

    fn of(meta: &Metadata) -> Self {
        Self {
            file: (meta.dev(), meta.ino()),
            size: meta.len(),
            content: (meta.mtime(), meta.mtime_nsec()),
            any: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// True when a later change of the file changes its times, too.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(self.any.0).unwrap_or(u64::MAX);
        Duration::from_secs(changed).checked_add(SETTLED).is_some_and(|settled| settled < now)
    }
}

static KNOWN: Mutex<Option<HashMap<Stamp, String>>> = Mutex::new(None);

/// The BLAKE3 of a file, hex. `real`: its path without links. A file that cannot be read has a hash of that.
pub(super) fn of(real: &Path) -> String {
    match read(real) {
        Ok(hash) => hash,
        Err(error) => blake3::hash(format!("unreadable {:?}", error.kind()).as_bytes()).to_hex().to_string(),
    }
}

fn read(real: &Path) -> std::io::Result<String> {
    let mut file = tiller_fs::beneath::file(real)?;
    let stamp = Stamp::of(&file.metadata()?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(hash) = known.get(&stamp) {
        return Ok(hash.clone());
    }
    let mut hasher = blake3::Hasher::new();
    if stamp.size > LARGEST {
        hasher.update(format!("{stamp:?}").as_bytes());
    } else {
        std::io::copy(&mut file, &mut hasher)?;
    }
    let hash = hasher.finalize().to_hex().to_string();
    if stamp.is_settled() && Stamp::of(&file.metadata()?) == stamp {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(stamp, hash.clone());
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_same_size_and_time_is_another_hash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("x");
        std::fs::write(&path, "one").unwrap();
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        let before = of(&path);
        assert_eq!(before, blake3::hash(b"one").to_hex().to_string());
        std::fs::write(&path, "two").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_ne!(of(&path), before);
    }

    #[test]
    fn what_cannot_be_read_is_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("x");
        let missing = of(&path);
        std::fs::write(&path, "").unwrap();
        assert_ne!(of(&path), missing);
    }
}
