//! Images of a draft. Each is written once to a separate file beside the draft, so that a key does not write megabytes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tiller_protocol::{Attachment, Message};

use crate::app::saver::write_private;

/// A smaller picture stays in the draft's own file, in bytes of base64.
const SMALL: usize = 16 << 10;
/// The mark in the draft in the place of a picture: this, then the name of the file. No base64 has a colon.
const MARK: &str = "file:";
const ENDING: &str = "picture";

/// Writes the pictures of `messages` beside the draft `path`, and puts their names in their place.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn store<'a>(path: &Path, messages: impl Iterator<Item = &'a mut Message>) -> io::Result<()> {
    // Also where the draft has no picture any more: what is known of the last one keeps its memory.
    drop(hashes());
    for data in messages.flat_map(pictures).filter(|data| data.len() > SMALL) {
        let name = name(path, data);
        let file = path.with_file_name(&name);
        // The name says what it holds, but not that it was written to its end.
        if std::fs::metadata(&file).map_or(0, |m| m.len()) != data.len() as u64 {
            let new = file.with_extension("new");
            write_private(&new, data.as_bytes())?;
            std::fs::rename(&new, &file)?;
        }
        *data = format!("{MARK}{name}").into();
    }
    Ok(())
}

/// Reads the images back. An image whose file is lost stays as its name.
pub(super) fn load<'a>(path: &Path, messages: impl Iterator<Item = &'a mut Message>) {
    for data in messages.flat_map(pictures) {
        if let Some(name) = data.strip_prefix(MARK).filter(|name| ours(path, Path::new(name)))
            && let Ok(text) = std::fs::read_to_string(path.with_file_name(name))
        {
            *data = text.into();
        }
    }
}

/// Removes the pictures of the draft `path` that are not among those of `messages`.
pub(super) fn sweep<'a>(path: &Path, messages: impl Iterator<Item = &'a mut Message>) {
    let used: BTreeSet<String> =
        messages.flat_map(pictures).filter(|data| data.len() > SMALL).map(|data| name(path, data)).collect();
    for file in stored(path) {
        if file.file_name().and_then(|n| n.to_str()).is_none_or(|n| !used.contains(n)) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The files with pictures of the draft `path`.
pub(super) fn stored(path: &Path) -> Vec<PathBuf> {
    let files = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    files.into_iter().flatten().flatten().map(|e| e.path()).filter(|p| ours(path, p)).collect()
}

/// `DRAFT-LENGTH-HASH.picture`.
fn name(path: &Path, data: &Arc<str>) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}-{}-{:016x}.{ENDING}", data.len(), hash(data))
}

/// The hashes of pictures that are in use: a draft is saved after each pause in the typing, and its pictures stay the
/// same. A place in memory is not used again as long as it has an entry here.
static HASHES: Mutex<Vec<(Weak<str>, u64)>> = Mutex::new(Vec::new());

#[cfg(test)]
thread_local! {
    /// How many pictures this thread has read for their hash.
    pub(super) static HASHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn hash(data: &Arc<str>) -> u64 {
    let place = Arc::downgrade(data);
    let known = |all: &[(Weak<str>, u64)]| all.iter().find(|(p, _)| p.ptr_eq(&place)).map(|(_, hash)| *hash);
    if let Some(hash) = known(&hashes()) {
        return hash;
    }
    #[cfg(test)]
    HASHED.set(HASHED.get() + 1);
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let hash = hasher.finish();
    hashes().push((place, hash));
    hash
}

/// The table, without pictures that are gone.
fn hashes() -> MutexGuard<'static, Vec<(Weak<str>, u64)>> {
    let mut all = HASHES.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(place, _)| place.strong_count() > 0);
    all
}

/// True when a name is that of a picture of the draft `path`, and no way out of its folder.
fn ours(path: &Path, file: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let plain = file.is_absolute() || file.as_os_str() == name;
    plain
        && name.strip_suffix(&format!(".{ENDING}")).is_some_and(|name| name.starts_with(&format!("{stem}-")))
}

fn pictures(message: &mut Message) -> impl Iterator<Item = &mut Arc<str>> {
    message.attachments.iter_mut().filter_map(|a| match a {
        Attachment::Image { data, .. } => Some(data),
        _ => None,
    })
}
