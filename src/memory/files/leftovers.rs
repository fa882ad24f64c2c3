//! What a killed process leaves beside a memory file.
//!
//! A file is replaced by an exchange of names, so the temporary name has the new text before it, and afterwards what was in
//! the file at that moment: the old text, or a version that an editor saved an instant before. That version is nowhere else.
//! The names tell them apart: `.MEMORY.md.PID-N.part` is being written, `.MEMORY.md.PID-N.OLD.NEW.new` has the hashes of
//! the old and the new text. A version of an editor that was caught by the exchange is `.MEMORY.md.PID-N.OLD.NEW.MERGED.caught`
//! from the moment on in which a text that it is part of is about to be put in place.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::MemoryError;

/// A file of a process that was killed between writing it and removing it.
pub(super) struct Leftover {
    pub path: PathBuf,
    old: String,
    new: String,
    /// Hash of the text that it was merged into.
    merged: Option<String>,
}

/// The names of a temporary file of this process: while it is written, and then. `number` differs for each.
pub(super) fn names(path: &Path, number: u64, old: Option<&str>, new: &str) -> [PathBuf; 2] {
    let begin = format!("{}{}-{number}", prefix(path), std::process::id());
    let folder = path.parent().unwrap_or(Path::new("."));
    let whole = format!("{begin}.{}.{}.new", old.map_or_else(|| "none".into(), hash), hash(new));
    [folder.join(format!("{begin}.part")), folder.join(whole)]
}

/// The name of a file with the name `temp` from [`names`], or from this, once `merged` is about to be put in place.
pub(super) fn name_merged(temp: &Path, merged: &str) -> PathBuf {
    let name = temp.file_name().unwrap_or_default().to_string_lossy();
    let begin = name
        .strip_suffix(".new")
        .or_else(|| name.strip_suffix(".caught")?.rsplit_once('.').map(|(begin, _)| begin));
    temp.with_file_name(format!("{}.{}.caught", begin.unwrap_or(&name), hash(merged)))
}

/// The leftovers beside a memory file. Those that were not written to their end are removed, and those of earlier versions. The file's lock is held: no living
/// process of Tiller writes here.
pub(super) fn of(path: &Path) -> Vec<Leftover> {
    let (prefix, mut found) = (prefix(path), Vec::new());
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
        match rest.split('.').collect::<Vec<_>>()[..] {
            [_, "part" | "new"] => drop(fs::remove_file(entry.path())),
            [_, old, new, "new"] => {
                found.push(Leftover { path: entry.path(), old: old.into(), new: new.into(), merged: None });
            }
            [_, old, new, merged, "caught"] => {
                let merged = Some(merged.into());
                found.push(Leftover { path: entry.path(), old: old.into(), new: new.into(), merged });
            }
            _ => {}
        }
    }
    found
}

impl Leftover {
    /// Whether this text is that of the process itself: what it wrote, or what it had read.
    pub(super) fn is_own(&self, text: &str) -> bool {
        [&self.old, &self.new].contains(&&hash(text))
    }

    /// Whether this text is the one that the process wrote.
    pub(super) fn is_new(&self, text: &str) -> bool {
        self.new == hash(text)
    }

    /// Whether `text` is the merged text that contains this version.
    pub(super) fn is_merged_in(&self, text: &str) -> bool {
        self.merged.as_ref().is_some_and(|merged| *merged == hash(text))
    }

    pub(super) fn remove(self) -> Result<(), MemoryError> {
        fs::remove_file(&self.path).map_err(|e| self.fault(&e))
    }

    /// As [`keep`].
    pub(super) fn keep(self, path: &Path) -> Result<(), MemoryError> {
        keep(&self.path, path).map(drop).map_err(|e| self.fault(&e))
    }

    fn fault(&self, error: &std::io::Error) -> MemoryError {
        MemoryError::File(format!("{}: {error}", self.path.display()))
    }
}

/// Gives a file the name `MEMORY.md.saved-N` beside the memory file `path`, so that the user finds it. Returns the new path.
pub(super) fn keep(file: &Path, path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut free = (1..).map(|n: u32| path.with_file_name(format!("{name}.saved-{n}")));
    let free = free.find(|p| !p.exists()).ok_or(std::io::ErrorKind::AlreadyExists)?;
    fs::rename(file, &free)?;
    Ok(free)
}

fn prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}
