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

impl Given {
    /// Copies files to where no command reaches them: their paths, each with its own name. Blocks.
    ///
    /// # Errors
    /// When one may not be or cannot be read.
    pub(super) fn copy(&mut self, paths: &[String], cx: &ToolCx) -> Result<Vec<PathBuf>, ToolError> {
        let mut copies = Vec::new();
        for path in paths {
            let place = resolve(path, cx)?;
            let mut opened = beneath::open_file(&place, cx)?;
            let bytes = beneath::read_whole(&mut opened, &place.name, &cx.cancel)?;
            self.bytes += bytes.len() as u64;
            if self.bytes > MOST {
                return Err(ToolError::Tell(format!(
                    "{} was not given: pages have {} of files already; browser_close with all: true ends that",
                    place.name,
                    human(MOST)
                )));
            }
            let leaf = place.path.file_name().unwrap_or_default().to_string_lossy();
            let copy = self.write(&safe_name(&leaf), &bytes);
            copies
                .push(copy.map_err(|e| ToolError::Tell(format!("{} could not be copied: {e}", place.name)))?);
        }
        Ok(copies)
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
