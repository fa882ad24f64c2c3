//! What both sides were like when they were last the same.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A file here, as far as a change of it can be seen without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i128,
    pub(super) changed: i128,
    pub(super) mode: u32,
}

/// Paths below the folder, with `/`, and what each file was like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) here: BTreeMap<String, Stamp>,
    /// In the words of the other side's `stat`.
    pub(super) there: BTreeMap<String, String>,
    /// Git's own files here, as they were when they were last sent.
    #[serde(default)]
    pub(super) git: BTreeMap<String, Stamp>,
}

impl Known {
    /// As it was stored; `None`: it was not, or cannot be read.
    pub(super) fn load(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    pub(super) fn store(&self, file: &Path) -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut new, self)?;
        new.persist(file).map_err(|e| e.error)?;
        Ok(())
    }
}

/// The listing of the other side: mode, size, times and path of each file, with tabs between them.
pub(super) fn listing(bytes: &[u8]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for line in bytes.split(|b| *b == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let mut parts = line.rsplitn(2, '\t');
        let (Some(path), Some(stamp)) = (parts.next(), parts.next()) else { continue };
        let Some(path) = path.strip_prefix("./").filter(|p| below(p)) else { continue };
        all.insert(path.to_owned(), stamp.to_owned());
    }
    all
}

/// What is not copied of the other side, and why. `stamp`: of its listing.
pub(super) fn left_out(stamp: &str, largest: u64) -> Option<String> {
    let mut parts = stamp.split('\t');
    if parts.next() == Some("special") {
        return Some("a pipe, socket or device".into());
    }
    let size = parts.next().and_then(|size| size.parse::<u64>().ok())?;
    (size > largest).then(|| format!("above {} MiB", largest >> 20))
}

/// Whether a path of the other side stays below the folder and outside of git's own folder.
pub(super) fn below(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\0', '\n', '\t'])
        && path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_folder_are_taken_from_a_listing() {
        let all = listing(b"644\t3\t2026 1\t./a b/c\n755\t0\tx\t./run\n644\t1\tx\t/etc/passwd\n644\t1\tx\t./../up\n\
            644\t1\tx\t./a/../../up\n644\t1\tx\t./.git/hooks/pre-commit\n644\t1\tx\t./sub/.GIT/config\nrubbish\n\n644\t1\tx\t./\xff\n");
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(names, ["a b/c", "run"]);
        assert_eq!(all["a b/c"], "644\t3\t2026 1");
    }

    #[test]
    fn what_is_no_file_or_too_large_is_left_out() {
        assert_eq!(left_out("644\t3\t2026 1", 1 << 20), None);
        assert_eq!(left_out("special\t0\t-", 1 << 20).as_deref(), Some("a pipe, socket or device"));
        assert_eq!(left_out("644\t1048577\tx", 1 << 20).as_deref(), Some("above 1 MiB"));
        assert_eq!(left_out("rubbish", 1 << 20), None);
    }
}
