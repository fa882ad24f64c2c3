//! The checks of each entry, whatever brings it.

use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::Limits;

/// Longest name of an entry, in bytes, and of one of its parts.
const PATH: usize = 1024;
const PART: usize = 200;

/// Takes entries into a folder.
pub(super) struct Intake<'a> {
    into: &'a Path,
    limits: Limits,
    entries: usize,
    bytes: u64,
    /// What is there, in lower case, with the name as it was written and whether it is a file.
    seen: HashMap<String, (String, bool)>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(into: &'a Path, limits: Limits) -> Self {
        Self { into, limits, entries: 0, bytes: 0, seen: HashMap::new() }
    }

    /// Makes a folder and those above it.
    pub(super) fn folder(&mut self, name: &str) -> Result<(), String> {
        let Some(parts) = self.parts(name)? else { return Ok(()) };
        self.folders(&parts)
    }

    /// Writes a file. Reads `from` to its end.
    pub(super) fn file(&mut self, name: &str, executable: bool, from: &mut dyn Read) -> Result<(), String> {
        let Some(parts) = self.parts(name)? else { return Ok(()) };
        let Some((_, above)) = parts.split_last() else { return Err(outside(name)) };
        self.folders(above)?;
        self.claim(&parts.join("/"), true)?;
        let path = parts.iter().fold(self.into.to_owned(), |path, part| path.join(part));
        let fail = |e: std::io::Error| format!("{} cannot be stored: {e}", name.escape_debug());
        let mode = if executable { 0o700 } else { 0o600 };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).map_err(fail)?;
        let left = self.limits.bytes - self.bytes;
        let mut piece = vec![0; 64 << 10];
        let mut written = 0;
        loop {
            let n = from
                .read(&mut piece)
                .map_err(|e| format!("the archive is broken: {}: {e}", name.escape_debug()))?;
            if n == 0 {
                break;
            }
            written += n as u64;
            if written > left {
                return Err(self.too_large());
            }
            file.write_all(&piece[..n]).map_err(fail)?;
        }
        self.bytes += written;
        Ok(())
    }

    pub(super) fn too_large(&self) -> String {
        format!("it has more than {} MB", self.limits.bytes >> 20)
    }

    fn folders(&mut self, parts: &[&str]) -> Result<(), String> {
        let (mut path, mut name) = (self.into.to_owned(), String::new());
        for part in parts {
            path.push(part);
            name = if name.is_empty() { (*part).to_owned() } else { format!("{name}/{part}") };
            if self.claim(&name, false)? {
                DirBuilder::new()
                    .mode(0o700)
                    .create(&path)
                    .map_err(|e| format!("{} cannot be stored: {e}", name.escape_debug()))?;
            }
        }
        Ok(())
    }

    /// Notes a name. False: the folder is there already. A file is there once, and no name stands for two things on a
    /// file system that ignores case.
    fn claim(&mut self, name: &str, file: bool) -> Result<bool, String> {
        if let Some((other, was_file)) = self.seen.get(&name.to_lowercase()) {
            return match (other == name, file || *was_file) {
                (true, false) => Ok(false),
                (true, true) => Err(format!("{} is there twice", name.escape_debug())),
                (false, _) => Err(format!(
                    "{} and {} are one file where case does not count",
                    other.escape_debug(),
                    name.escape_debug()
                )),
            };
        }
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(format!("it has more than {} files and folders", self.limits.entries));
        }
        self.seen.insert(name.to_lowercase(), (name.to_owned(), file));
        Ok(true)
    }

    /// The parts of a name. `None`: it is left out, as git's own folder is.
    fn parts<'n>(&self, name: &'n str) -> Result<Option<Vec<&'n str>>, String> {
        if name.len() > PATH || name.starts_with('/') {
            return Err(outside(name));
        }
        if let Some(c) = name.chars().find(|c| unprintable(*c)) {
            return Err(format!(
                "the name {} has a character that cannot be shown (U+{:04X})",
                name.escape_debug(),
                u32::from(c)
            ));
        }
        let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.iter().any(|part| *part == ".." || part.len() > PART || part.contains('\\')) {
            return Err(outside(name));
        }
        if parts.len() > self.limits.depth {
            return Err(format!("{} is nested too deep", name.escape_debug()));
        }
        if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Ok(None);
        }
        Ok(Some(parts))
    }
}

/// Control characters, and those that hide or turn around what stands beside them.
fn unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}')
}

fn outside(name: &str) -> String {
    let short: String = name.chars().take(120).collect();
    format!("{} leads out of its folder", short.escape_debug())
}

/// What is said of a link or a device.
pub(super) fn special(name: &str) -> String {
    format!("{} is a link or a special file; only regular files and folders are taken", name.escape_debug())
}

/// A path as the name of an entry.
pub(super) fn name_of(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("the name {path:?} is not UTF-8"))?;
    Ok(text.to_owned())
}
