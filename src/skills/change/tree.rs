//! A skill's folder as a whole: which files, folders and links it has, by which two states of it are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::apply::{ENTRIES, LARGEST};
use super::leftovers::is_inside;
use super::plan::FileChange;
use crate::files::read_inside;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File {
        mode: u32,
        size: u64,
        hash: blake3::Hash,
    },
    Link(PathBuf),
    /// A pipe or a socket, which no version keeps.
    Other,
}

/// All that is in a folder, by path below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(BTreeMap<PathBuf, Node>);

impl Tree {
    /// Reads a folder; one that is not there is empty.
    ///
    /// # Errors
    /// When it cannot be read, or has more than a version can keep.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        if fs::symlink_metadata(folder).is_ok() {
            tree.walk(folder, Path::new(""))?;
        }
        Ok(tree)
    }

    /// Whether a copy has the same files, folders and links. Anything else is not copied.
    pub(super) fn is_copied(&self, copy: &Self) -> bool {
        let copied = self.0.iter().filter(|(_, node)| **node != Node::Other);
        copied.eq(copy.0.iter())
    }

    /// The first path that is not as the user agreed to it. `agreed`: of BLAKE3 as hexadecimal digits, by path.
    pub(super) fn not_agreed(&self, agreed: &BTreeMap<String, String>) -> Option<String> {
        let differs = |(path, node): &(&PathBuf, &Node)| match node {
            Node::Folder => false,
            Node::File { hash, .. } => {
                path.to_str().and_then(|path| agreed.get(path)).is_none_or(|of| *of != hash.to_hex().as_str())
            }
            Node::Link(_) | Node::Other => true,
        };
        let other = self.0.iter().find(differs).map(|(path, _)| path.to_string_lossy().into_owned());
        other.or_else(|| agreed.keys().find(|path| !self.0.contains_key(Path::new(path))).cloned())
    }

    fn walk(&mut self, folder: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if is_inside(&entry.file_name()) {
                continue;
            }
            let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
            if self.0.len() >= ENTRIES {
                return Err(io::Error::other("the skill has too many files"));
            }
            let node = if kind.is_dir() {
                Node::Folder
            } else if kind.is_symlink() {
                Node::Link(fs::read_link(entry.path())?)
            } else if kind.is_file() {
                let meta = entry.metadata()?;
                if meta.len() > LARGEST {
                    return Err(io::Error::other(format!("{} is larger than 16 MiB", path.display())));
                }
                let hash = blake3::hash(&fs::read(entry.path())?);
                Node::File { mode: meta.permissions().mode() & 0o777, size: meta.len(), hash }
            } else {
                Node::Other
            };
            self.0.insert(path.clone(), node);
            if kind.is_dir() {
                self.walk(&entry.path(), &path)?;
            }
        }
        Ok(())
    }

    /// The way from this state, which is in one folder, to another one, which is in another: the files whose text can be
    /// shown, and a line for each other difference.
    pub(super) fn changes(&self, folder: &Path, then: &Self, other: &Path) -> (Vec<FileChange>, Vec<String>) {
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(then.0.keys()).collect();
        let (mut files, mut unshown) = (Vec::new(), Vec::new());
        for path in paths {
            let (old, new) = (self.0.get(path), then.0.get(path));
            if old == new || matches!((old, new), (Some(Node::Folder), None) | (None, Some(Node::Folder))) {
                continue;
            }
            let name = path.to_string_lossy();
            let text = |root: &Path, node: Option<&Node>| match node {
                None => Some(None),
                Some(Node::File { .. }) => read_inside(root, &name).ok().map(Some),
                Some(_) => None,
            };
            let texts = text(folder, old).zip(text(other, new)).filter(|(old, new)| old != new);
            if texts.is_none() || mode(old).zip(mode(new)).is_some_and(|(old, new)| old != new) {
                unshown.push(format!("{name}: {} -> {}", said(old), said(new)));
            }
            if let Some((old, new)) = texts {
                files.push(FileChange { path: name.into_owned(), old, new });
            }
        }
        files.sort_by_key(|f| (f.path != crate::skill::FILE, f.path.clone()));
        (files, unshown)
    }
}

fn mode(node: Option<&Node>) -> Option<u32> {
    match node {
        Some(Node::File { mode, .. }) => Some(*mode),
        _ => None,
    }
}

/// What stands there, in some words.
fn said(node: Option<&Node>) -> String {
    match node {
        None => "nothing".into(),
        Some(Node::Folder) => "a folder".into(),
        Some(Node::File { mode, size, .. }) => format!("a file of {size} bytes, mode {mode:o}"),
        Some(Node::Link(to)) => format!("a link to {}", to.display()),
        Some(Node::Other) => "neither file, folder nor link".into(),
    }
}
