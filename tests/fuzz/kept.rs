//! Inputs that were kept: `corpus/TARGET/NAME`. A name is the input's hash; that of a failure begins with `fail-`.

use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

/// The folder of all targets.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The kept inputs of a target, by name.
///
/// # Errors
/// When they cannot be read.
pub fn read(target: &Target) -> io::Result<Vec<(String, Vec<u8>)>> {
    let folder = folder().join(target.name);
    let mut all = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(all),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        all.push((name, std::fs::read(&path)?));
    }
    all.sort();
    Ok(all)
}

/// All inputs to begin with: the target's own, and the kept ones.
///
/// # Errors
/// When the kept ones cannot be read.
pub fn begin(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut all = (target.seeds)();
    all.extend(read(target)?.into_iter().map(|(_, input)| input));
    Ok(all)
}

/// Keeps an input; returns its file.
///
/// # Errors
/// When it cannot be written.
pub fn write(target: &Target, input: &[u8], failure: bool) -> io::Result<PathBuf> {
    let folder = folder().join(target.name);
    std::fs::create_dir_all(&folder)?;
    let hash = blake3::hash(input).to_hex();
    let path = folder.join(format!("{}{}", if failure { "fail-" } else { "" }, &hash[..16]));
    std::fs::write(&path, input)?;
    Ok(path)
}

/// Removes all kept inputs but the failures.
///
/// # Errors
/// When one cannot be removed.
pub fn clear(target: &Target) -> io::Result<()> {
    for (name, _) in read(target)?.iter().filter(|(name, _)| !name.starts_with("fail-")) {
        std::fs::remove_file(folder().join(target.name).join(name))?;
    }
    Ok(())
}
