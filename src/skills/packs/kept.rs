//! The contents of the files of packs as they were agreed to, by their hashes: a file that is edited in its place can be compared
//! with what it was.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::changes::{Change, compare};
use super::contents::{content, pin};
use super::home::Packs;
use super::lock::{Lock, Pack, PinnedFile};

/// Bytes of a file that is kept at most.
const LARGEST: u64 = 256 << 10;

impl Packs {
    /// What differs between a pack as the user agreed to it and its files now. Blocks.
    ///
    /// # Errors
    /// A sentence, when its files cannot be read.
    pub fn changes_since_consent(&self, pack: &Pack) -> Result<Vec<Change>, String> {
        let folder = self.folder(pack);
        let now = pin(&folder)?;
        let same = |file: &PinnedFile| now.contains(file);
        let before = |file: &PinnedFile| match same(file) {
            true => Some(content(&folder, &file.path)),
            false => matching(&self.kept(), &file.hash, file),
        };
        let after = |file: &PinnedFile| Some(content(&folder, &file.path));
        Ok(compare(&pack.files, &before, &now, &after))
    }

    /// The folder of the contents, beside the lock file.
    fn kept(&self) -> PathBuf {
        self.lock.with_extension("files")
    }

    /// Keeps the contents of the packs of the lock file, and removes all others. What cannot be kept is not shown later: no
    /// reason to fail.
    pub(super) fn keep(&self, lock: &Lock) {
        let folder = self.kept();
        if fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).is_err() {
            return;
        }
        for pack in &lock.packs {
            let at = self.folder(pack);
            for file in pack.files.iter().filter(|file| file.bytes <= LARGEST) {
                let kept = folder.join(&file.hash);
                // One that was cut off by a loss of power is written again.
                let whole =
                    fs::symlink_metadata(&kept).is_ok_and(|kept| kept.is_file() && kept.len() == file.bytes);
                if !whole && let Some(bytes) = matching(&at, &file.path, file) {
                    let _ = write(&folder, &kept, &bytes);
                }
            }
        }
        let named: BTreeSet<&str> =
            lock.packs.iter().flat_map(|pack| &pack.files).map(|file| file.hash.as_str()).collect();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_none_or(|name| !named.contains(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The content of the file at `path` in a folder, where it is that of `file`.
fn matching(folder: &Path, path: &str, file: &PinnedFile) -> Option<Vec<u8>> {
    let plain = file.hash.bytes().all(|b| b.is_ascii_hexdigit());
    let bytes = plain.then(|| content(folder, path))?;
    (blake3::hash(&bytes).to_hex().as_str() == file.hash).then_some(bytes)
}

/// Writes a file in one step.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
