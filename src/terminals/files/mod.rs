//! Files here and there: mounted, or brought to the other side before a command and fetched after it.
//!
//! | module | holds |
//! | --- | --- |
//! | `known` | what both sides were like when they were last the same |
//! | `tree` | the files here: which there are, reading, writing and removing them without following links |
//! | `archive` | several files as one tar archive, in both directions |
//! | `git` | git's own files, which are copied there where the setting says so |
//! | `sync` | what changed on which side, and what is done about it |

mod archive;
pub(crate) mod git;
mod known;
mod sync;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::schema::{Terminal, TerminalFiles};
use tiller_tool::Workspace;
use tiller_tool::shell::ShellError;
use tokio::sync::Mutex;

use crate::place::Way;
use sync::Sync;

/// The files of one folder at one terminal.
#[derive(Debug)]
pub(crate) struct Files {
    /// `None`: both sides have the same ones.
    sync: Option<Mutex<Sync>>,
    /// Git's own files are copied there, too.
    git: bool,
}

impl Files {
    /// `state`: the folder for what is known between runs.
    pub(crate) fn new(way: Arc<Way>, setting: &Terminal, state: &Path) -> Self {
        let mounted = way.kind.mounted() && setting.files != Some(TerminalFiles::Sync);
        let file = file_name(&way);
        let git = setting.git;
        Self { sync: (!mounted).then(|| Mutex::new(Sync::new(way, state.join(file), git))), git }
    }

    /// How files get there, as a sentence for the model.
    pub(crate) fn describe(&self) -> &'static str {
        match self.sync {
            None => "It has the same files as this machine.",
            Some(_) if self.git => {
                "Changed files are copied there before each command and back after it; ignored files are not copied. Git \
                 works there, without hooks and remotes; commits are not copied back: make them on this machine."
            }
            Some(_) => {
                "Changed files are copied there before each command and back after it; ignored files and .git are not \
                 copied."
            }
        }
    }

    pub(crate) async fn send(&self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        let Some(sync) = &self.sync else { return Ok(None) };
        sync.lock().await.send(workspace).await
    }

    pub(crate) async fn fetch(&self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        let Some(sync) = &self.sync else { return Ok(None) };
        sync.lock().await.fetch(workspace).await
    }

    pub(crate) async fn close(&self) {
        if let Some(sync) = &self.sync
            && let Ok(mut sync) = sync.try_lock()
        {
            sync.close().await;
        }
    }
}

/// The file of what is known: one for each terminal and folder.
fn file_name(way: &Way) -> PathBuf {
    let clean = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    };
    // The folder's own name is for people; what tells two folders apart is the number.
    let whole = format!("{}\n{}\n{}", way.name, way.root.display(), way.kind.folder());
    let number = whole
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let folder = way.root.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{}-{number:016x}.json", clean(&way.name), clean(&folder)).into()
}
