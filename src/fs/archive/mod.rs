//! Folders and archives (`.tar`, `.tar.gz`, `.zip`) of strangers, taken into a folder of this program: regular files and folders
//! only, below that folder, within limits of count, size and depth. Nothing of them is run.
//!
//! | file | contents |
//! | --- | --- |
//! | `intake` | the checks that all three ways share: names, limits, one entry of a name |
//! | `tar`, `zip` | the formats |
//! | `copy` | a folder |

mod copy;
mod intake;
mod tar;
mod zip;

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

pub use copy::copy;
use intake::Intake;

/// What is taken at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders.
    pub entries: usize,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
    /// Folders within folders.
    pub depth: usize,
}

/// Unpacks an archive into an empty folder that exists.
///
/// # Errors
/// A sentence that names the entry. The folder may hold some entries then.
pub fn unpack(archive: &Path, into: &Path, limits: Limits) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{} cannot be read: {e}", archive.display());
    let file = std::fs::File::open(archive).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(format!("{} is not a regular file", archive.display()));
    }
    let mut bytes = Vec::new();
    // An archive is larger than its content only by its headers.
    let most = packed_limit(limits);
    file.take(most + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > most {
        return Err(format!("{} is larger than {} MB", archive.display(), most >> 20));
    }
    unpack_bytes(&bytes, into, limits)
}

/// Bytes of a packed archive at most.
pub fn packed_limit(limits: Limits) -> u64 {
    limits.bytes.saturating_add(limits.entries as u64 * 2048)
}

/// Unpacks an archive that is in memory. The beginning tells the format.
///
/// # Errors
/// As [`unpack`].
pub fn unpack_bytes(bytes: &[u8], into: &Path, limits: Limits) -> Result<(), String> {
    let mut intake = Intake::new(into, limits);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        // The reader ends at the limit, however well it was compressed.
        tar::entries(&mut flate2::read::GzDecoder::new(bytes).take(packed_limit(limits)), &mut intake)
    } else if bytes.starts_with(b"PK") {
        zip::entries(bytes, &mut intake)
    } else {
        tar::entries(&mut Cursor::new(bytes), &mut intake)
    }
}

/// The folder that an archive was made from: `into`, or the only folder in it where `into` itself has no file `marker`.
pub fn root(into: &Path, marker: &str) -> PathBuf {
    let mut inside = std::fs::read_dir(into).into_iter().flatten().flatten();
    let one = inside.next().filter(|e| e.path().is_dir() && !into.join(marker).exists());
    match (one, inside.next()) {
        (Some(only), None) => only.path(),
        _ => into.to_owned(),
    }
}

#[cfg(test)]
mod tests;
