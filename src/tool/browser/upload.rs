//! Files that the agent gives to pages: private copies of what was judged, for as long as a page may read them.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use tempfile::TempDir;

use super::download::safe_name;
use crate::files::path::beneath;
use crate::files::path::resolve;
use crate::output::human;
use crate::shell::own_folder;
use crate::{ToolCx, ToolError};

/// Bytes that one agent may have given to pages at the same time.
const MOST: u64 = 256 << 20;

/// Private copies. The browser reads a file when its form is sent, so they are kept until the tabs are closed.
#[derive(Default)]
pub(super) struct Given {
    folder: Option<TempDir>,
    count: u32,
    bytes: u64,
}

/// The private copies of one call. Those that no page got, since it failed or was stopped, go with it.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) paths: Vec<PathBuf>,
    bytes: u64,
    /// A page has them.
    kept: bool,
}

impl Drop for Copies {
    fn drop(&mut self) {
        for path in self.paths.iter().filter(|_| !self.kept) {
            // The folder goes with the tabs in any case.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Given {
    /// Copies files to where no command reaches them: their paths, each with its own name. They count once they are
    /// [kept](Self::keep). Blocks.
    ///
    /// # Errors
    /// When one may not be or cannot be read. None is copied then.
    pub(super) fn copy(&mut self, paths: &[String], cx: &ToolCx) -> Result<Copies, ToolError> {
        let mut copies = Copies::default();
        self.copy_into(&mut copies, paths, cx)?;
        Ok(copies)
    }

    /// Keeps copies that a page got, and counts them.
    pub(super) fn keep(&mut self, mut copies: Copies) {
        copies.kept = true;
        self.bytes += copies.bytes;
    }

    fn copy_into(&mut self, copies: &mut Copies, paths: &[String], cx: &ToolCx) -> Result<(), ToolError> {
        for path in paths {
            let place = resolve(path, cx)?;
            let mut opened = beneath::open_file(&place, cx)?;
            if u64::try_from(opened.stat.st_size).is_ok_and(|size| size > beneath::WHOLE_MAX) {
                return Err(ToolError::Tell(format!(
                    "{} is too large to be given to a page (above {})",
                    place.name,
                    human(beneath::WHOLE_MAX)
                )));
            }
            let bytes = beneath::read_whole(&mut opened, &place.name, &cx.cancel)?;
            copies.bytes += bytes.len() as u64;
            if self.bytes + copies.bytes > MOST {
                return Err(ToolError::Tell(format!(
                    "{} was not given: pages have {} of files already; browser_close with all: true ends that",
                    place.name,
                    human(MOST)
                )));
            }
            let leaf = place.path.file_name().unwrap_or_default().to_string_lossy();
            let copy = self.write(&safe_name(&leaf), &bytes);
            let copy =
                copy.map_err(|e| ToolError::Tell(format!("{} could not be copied: {e}", place.name)))?;
            copies.paths.push(copy);
        }
        Ok(())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let folder = match &self.folder {
            Some(folder) => folder.path().to_owned(),
            None => self.folder.insert(own_folder::make("upload")?).path().to_owned(),
        };
        self.count += 1;
        let folder = folder.join(self.count.to_string());
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join(name);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn only_files_that_a_page_got_count_and_stay() {
        let bench = Bench::new();
        bench.file("a.txt", "four");
        let large = std::fs::File::create(bench.root.join("large.bin")).unwrap();
        large.set_len(beneath::WHOLE_MAX + 1).unwrap();
        let mut given = Given::default();
        let copy = |given: &mut Given, names: &[&str]| {
            given.copy(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), &bench.cx)
        };
        let copies = copy(&mut given, &["a.txt"]).unwrap();
        let path = copies.paths[0].clone();
        assert!(path.exists());
        drop(copies);
        assert!(!path.exists() && given.bytes == 0, "the page did not get it");
        for name in ["large.bin", "none.txt"] {
            let Err(ToolError::Tell(why)) = copy(&mut given, &["a.txt", name]) else { panic!("{name}") };
            assert!(why.contains(name) && !why.contains("edit"), "{why}");
            assert_eq!(given.bytes, 0, "{name}");
        }
        let copies = copy(&mut given, &["a.txt", "a.txt"]).unwrap();
        let paths = copies.paths.clone();
        given.keep(copies);
        assert!(paths.iter().all(|path| path.exists()) && given.bytes == 8);
        given.bytes = MOST - 3;
        let Err(ToolError::Tell(why)) = copy(&mut given, &["a.txt"]) else { panic!("too many") };
        assert!(why.contains("browser_close"), "{why}");
        assert_eq!(given.bytes, MOST - 3);
    }
}
