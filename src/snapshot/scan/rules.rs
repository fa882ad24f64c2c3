//! Git's ignore rules, evaluated without git: no git runs and no setting of a repository applies.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tiller_protocol::names::MADE_AGAIN;

use crate::names;
use crate::objects::id::{Id, Sort};

/// Maximum bytes of an ignore file that are read.
const MOST: u64 = 1 << 20;

/// Ignore files from the weakest to this one. Their patterns are compiled on first use.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Self>>,
    /// The folder that the patterns are relative to, as an absolute path.
    base: PathBuf,
    text: Vec<u8>,
    compiled: OnceLock<Gitignore>,
    /// Hash of all texts and their folders: rules with equal keys give equal answers.
    pub(crate) key: Id,
}

impl Rules {
    /// No rules.
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self {
            above: None,
            base: PathBuf::new(),
            text: Vec::new(),
            compiled: OnceLock::new(),
            key: Id([0; 32]),
        })
    }

    /// These rules, followed by those of an ignore file in `base`, which take precedence.
    pub(crate) fn and(self: &Arc<Self>, base: &Path, text: Vec<u8>) -> Arc<Self> {
        let mut all = self.key.0.to_vec();
        all.extend_from_slice(base.as_os_str().as_bytes());
        all.push(0);
        all.extend_from_slice(&text);
        let key = Id::of(Sort::Content, &all);
        Arc::new(Self {
            above: Some(self.clone()),
            base: base.to_owned(),
            text,
            compiled: OnceLock::new(),
            key,
        })
    }

    fn compiled(&self) -> &Gitignore {
        self.compiled.get_or_init(|| {
            let mut builder = GitignoreBuilder::new(&self.base);
            let text = self.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.text);
            for line in text.split(|b| *b == b'\n') {
                // A line that is not a pattern is skipped, as git does.
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let _ = builder.add_line(None, &String::from_utf8_lossy(line));
            }
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        })
    }

    /// Whether a name in a folder that is not ignored is ignored. `path` is absolute.
    pub(crate) fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        let mut here = Some(self);
        while let Some(rules) = here {
            if !rules.text.is_empty() {
                let found = rules.compiled().matched(path, is_dir);
                if !found.is_none() {
                    return found.is_ignore();
                }
            }
            here = rules.above.as_deref();
        }
        false
    }
}

/// Reads an ignore file; a file that cannot be read has no rules.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    if path.symlink_metadata().is_ok_and(|m| m.is_file())
        && let Ok(file) = std::fs::File::open(path)
    {
        let _ = file.take(MOST).read_to_end(&mut text);
    }
    text
}

/// The person's own rules, and those of the repository around the workspace down to the folder above it.
pub(crate) fn outer(workspace: &Path, global: Option<&Path>) -> Arc<Rules> {
    let mut rules = person(workspace, global);
    let Some(top) = workspace.ancestors().find(|a| a.join(".git").symlink_metadata().is_ok()) else {
        return rules;
    };
    rules = excluded(&rules, top, &top.join(".git"));
    let mut between: Vec<&Path> = workspace.ancestors().skip(1).take_while(|a| a.starts_with(top)).collect();
    between.reverse();
    for folder in between {
        let text = read(&folder.join(".gitignore"));
        if !text.is_empty() {
            rules = rules.and(folder, text);
        }
    }
    rules
}

/// The person's own rules, which apply to every repository. The weakest of all are those of folders that programs make again:
/// any other rule may take them back, and a file there that git tracks is covered by its name.
pub(crate) fn person(workspace: &Path, global: Option<&Path>) -> Arc<Rules> {
    let made: String = MADE_AGAIN.iter().map(|name| format!("{name}/\n")).collect();
    let text = global.map(read).unwrap_or_default();
    let made = Rules::none().and(workspace, made.into_bytes());
    if text.is_empty() { made } else { made.and(workspace, text) }
}

/// Adds the rules in the repository's own git folder.
pub(crate) fn excluded(rules: &Arc<Rules>, work: &Path, git: &Path) -> Arc<Rules> {
    let (_, common) = crate::scan::index::folders(work, git);
    let text = read(&common.join("info/exclude"));
    if text.is_empty() { rules.clone() } else { rules.and(work, text) }
}

/// Absolute, for patterns.
pub(crate) fn absolute(workspace: &Path, path: &[u8]) -> PathBuf {
    workspace.join(names::path(path))
}
