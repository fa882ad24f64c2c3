//! What calls would write that wait for an approval: laid over the files that later calls of the same script read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tiller_protocol::lock;

use crate::files::change::commit::Change;
use crate::files::change::ledger;
use crate::files::{patch, write};
use crate::guard::blocking;
use crate::shell::own_folder;
use crate::{CommandRun, ToolCx, ToolError};

/// Files as they would be. Dropping it removes them.
#[derive(Debug)]
pub struct Drafts {
    /// Without links.
    at: PathBuf,
    files: Mutex<Files>,
    _folder: tempfile::TempDir,
}

#[derive(Debug, Default)]
struct Files {
    /// The number of a file's content, by its path (absolute, without links); `None`: it would be gone.
    by_path: BTreeMap<PathBuf, Option<u32>>,
    last: u32,
}

/// What a path would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drafted {
    /// What it is.
    Same,
    /// A file with the content of this one.
    File(PathBuf),
    /// A folder, since a file would lie below it.
    Folder,
    Gone,
}

impl Drafts {
    /// Nothing is different yet.
    ///
    /// # Errors
    /// When there is no room for temporary files.
    pub(crate) fn new() -> std::io::Result<Self> {
        let folder = own_folder::make("code")?;
        let at = folder.path().canonicalize()?;
        Ok(Self { at, files: Mutex::default(), _folder: folder })
    }

    /// What `path` (absolute, without links) would be.
    pub(crate) fn seen(&self, path: &Path) -> Drafted {
        let files = lock(&self.files);
        match files.by_path.get(path) {
            Some(Some(number)) => return Drafted::File(self.at.join(number.to_string())),
            Some(None) => return Drafted::Gone,
            None => {}
        }
        let mut below =
            files.by_path.range(path.to_owned()..).take_while(|(other, _)| other.starts_with(path));
        if below.any(|(_, number)| number.is_some()) { Drafted::Folder } else { Drafted::Same }
    }

    /// Whether nothing would be different.
    pub fn is_empty(&self) -> bool {
        lock(&self.files).by_path.is_empty()
    }

    /// The files that would be below `folder`, in order of names.
    pub(crate) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let files = lock(&self.files);
        let there = files.by_path.iter().filter(|(_, number)| number.is_some());
        there.map(|(path, _)| path.clone()).filter(|path| path.starts_with(folder)).collect()
    }

    /// The content that `path` would have.
    fn put(&self, path: &Path, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let mut files = lock(&self.files);
        files.last += 1;
        let number = files.last;
        let at = self.at.join(number.to_string());
        std::fs::write(&at, bytes)?;
        files.by_path.insert(path.to_owned(), Some(number));
        Ok(at)
    }

    fn remove(&self, path: &Path) {
        lock(&self.files).by_path.insert(path.to_owned(), None);
    }
}

/// Lays what a call of `tool` would write over the files that later calls with these drafts read. Of a call that writes no
/// files by its own arguments nothing is known.
///
/// # Errors
/// Says why it is not known what the call would write.
pub(crate) async fn draft(
    tool: &str,
    args: &Value,
    drafts: Arc<Drafts>,
    cx: &ToolCx,
) -> Result<(), ToolError> {
    let mut cx = cx.clone();
    cx.run = Arc::new(CommandRun::over(Some(Arc::clone(&drafts))));
    let (tool, args) = (tool.to_owned(), args.clone());
    blocking("draft", move || {
        let edits = match tool.as_str() {
            "write_file" => write::planned(&args, &cx)?.into_iter().collect(),
            "patch" => patch::planned(&args, &cx)?,
            _ => Vec::new(),
        };
        for edit in edits {
            match &edit.change {
                Change::Create { bytes, .. } | Change::Replace { bytes, .. } => {
                    let put = drafts.put(&edit.place.named, bytes);
                    let at = put.map_err(|e| ToolError::Tell(format!("{}: {e}", edit.place.name)))?;
                    // The script knows what it has written.
                    ledger::note(&cx.workspace, &at, bytes);
                }
                Change::Remove { .. } => drafts.remove(&edit.place.named),
            }
        }
        Ok(())
    })
    .await
}
