//! Writes the folders of a snapshot, from the deepest up; unchanged ones are skipped.

use rustix::fs::FileType;
use tiller_fs::Attributes;

use crate::error::Result;
use crate::names;
use crate::objects::Batch;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{self, Entry, FolderEntry, Kind};
use crate::report::Reason;
use crate::scan::fill::Done;
use crate::scan::model::{Content, Dir, Leaf, Node};
use crate::scan::notes::Watched;

/// Collects uncovered paths on the way.
pub(crate) struct Fold<'a, 'b> {
    pub(crate) batch: &'a mut Batch<'b>,
    pub(crate) done: Vec<Done>,
    pub(crate) uncovered: Vec<(Vec<u8>, Reason)>,
    /// Of files that have any, in the order of the walk.
    pub(crate) attributes: Vec<(Vec<u8>, Attributes)>,
    /// The ignored files, and the stamps of files that are not covered.
    pub(crate) seen: Watched,
}

impl Fold<'_, '_> {
    /// Writes a folder; returns its id, and whether that changed.
    pub(crate) fn dir(&mut self, dir: &mut Dir, path: &[u8]) -> Result<(Id, bool)> {
        if dir.repository {
            self.uncovered.push((path.to_vec(), Reason::Repository));
        }
        self.seen.over |= dir.over;
        if let Some(attributes) = dir.attributes.as_ref().filter(|_| !path.is_empty()) {
            self.attributes.push((path.to_vec(), Attributes::clone(attributes)));
        }
        let mut same = true;
        let mut gone = Vec::new();
        for (name, node) in &mut dir.nodes {
            match node {
                Node::Dir(inner) => {
                    if inner.kept && !dir.kept {
                        self.seen.folders.push(names::join(path, name));
                    }
                    same &= !self.dir(inner, &names::join(path, name))?.1;
                }
                Node::Skip(stamp, reason) => {
                    let path = names::join(path, name);
                    if stamp.file_type() == FileType::RegularFile {
                        self.seen.stamps.insert(path.clone(), stamp.word());
                    }
                    self.uncovered.push((path, *reason));
                }
                Node::Leaf(leaf) => {
                    let Content::Job(job) = leaf.content else {
                        self.attributes_of(leaf, path, name);
                        continue;
                    };
                    same = false;
                    match std::mem::replace(&mut self.done[job as usize], Done::Gone) {
                        Done::Read { stamp, settled, kind, id, attributes } => {
                            let content = Content::Known(id);
                            *leaf = Leaf { stamp, settled, kind, content, attributes, ignored: leaf.ignored };
                            self.attributes_of(leaf, path, name);
                        }
                        Done::Gone => gone.push(name.clone()),
                        Done::Skip(reason) => {
                            let reason = if leaf.ignored { Reason::Ignored } else { reason };
                            self.uncovered.push((names::join(path, name), reason));
                            // An unknown stamp makes the next scan examine it again.
                            *node = Node::Skip(crate::scan::disk::Stamp::default(), reason);
                        }
                    }
                }
            }
        }
        for name in gone {
            dir.take(&name);
        }
        match dir.id {
            Some(id) if same => Ok((id, false)),
            _ => {
                let data = object::folder(&mut entries(dir));
                let id = self.batch.put(Sort::Folder, &data)?;
                dir.id = Some(id);
                Ok((id, true))
            }
        }
    }
}

impl Fold<'_, '_> {
    fn attributes_of(&mut self, leaf: &Leaf, folder: &[u8], name: &[u8]) {
        if let Some(attributes) = &leaf.attributes {
            self.attributes.push((names::join(folder, name), Attributes::clone(attributes)));
        }
    }
}

fn entries(dir: &Dir) -> Vec<FolderEntry> {
    let entry = |node: &Node| match node {
        Node::Leaf(leaf) => match leaf.content {
            Content::Known(id) => {
                let mode = if leaf.kind == Kind::File { leaf.stamp.perms() } else { 0 };
                Some(Entry { kind: leaf.kind, mode, id })
            }
            Content::Job(_) => None,
        },
        Node::Dir(inner) => inner.id.map(|id| Entry { kind: Kind::Folder, mode: inner.stamp.perms(), id }),
        Node::Skip(..) => None,
    };
    dir.nodes
        .iter()
        .filter_map(|(name, node)| Some(FolderEntry { name: name.clone(), entry: entry(node)? }))
        .collect()
}
