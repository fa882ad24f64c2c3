//! The packs that come with the program: those of `skills/packs` in the repository.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::load::BuiltInFolder;

/// The packs, by name, with their files.
static PACKS: &[BuiltInFolder] = include!(concat!(env!("OUT_DIR"), "/built_in_packs.rs"));

/// The names of the built-in packs.
pub fn built_in_packs() -> impl Iterator<Item = &'static str> {
    PACKS.iter().map(|(name, _)| *name)
}

/// What to say of a name that no built-in pack has.
pub(super) fn no_such(name: &str) -> String {
    let name: String = name.chars().take(200).collect();
    let names: Vec<&str> = built_in_packs().collect();
    format!("there is no built-in pack {}; available: {}", name.escape_debug(), names.join(", "))
}

/// Writes the files of a built-in pack into an empty folder that exists. Scripts can be run, as in the repository. Blocks.
///
/// # Errors
/// A sentence without a full stop: there is no such pack, or a file cannot be written.
pub fn write_built_in(name: &str, into: &Path) -> Result<(), String> {
    let (_, files) = PACKS.iter().find(|(pack, _)| *pack == name).ok_or_else(|| no_such(name))?;
    for (path, bytes) in *files {
        write(&into.join(path), bytes).map_err(|e| format!("{path} cannot be written: {e}"))?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mode = if bytes.starts_with(b"#!") { 0o700 } else { 0o600 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}
