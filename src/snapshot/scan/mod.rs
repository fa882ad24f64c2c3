//! Scans the folder. A file with an unchanged stamp is not read, a folder with an unchanged stamp is not listed; the
//! files to read are returned as jobs.

pub(crate) mod beside;
pub(crate) mod cache;
pub(crate) mod disk;
pub(crate) mod fill;
pub(crate) mod fold;
pub(crate) mod ignored;
pub(crate) mod index;
pub(crate) mod model;
pub(crate) mod mounts;
pub(crate) mod notes;
pub(crate) mod rules;
pub(crate) mod tracked;
mod walk;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FileType;
use tiller_protocol::Clock;

use crate::names;
use crate::objects::object::Kind;
use crate::report::{CostReason, Limits, Reason};
use crate::scan::disk::Stamp;
use crate::scan::ignored::IgnoredBudget;
use crate::scan::model::{Content, Dir, Leaf, Node};
use crate::scan::mounts::Mounts;
use crate::scan::rules::Rules;

/// One scan of the folder, or of parts of it.
pub(crate) struct Scan<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) limits: &'a Limits,
    pub(crate) clock: &'a dyn Clock,
    /// When to give up, in monotonic time of the clock.
    pub(crate) end: Duration,
    /// The device of the workspace.
    pub(crate) dev: u64,
    /// The person's own rules; the rules of a nested repository begin with them.
    pub(crate) person: Arc<Rules>,
    /// Files and links to read.
    pub(crate) jobs: Vec<Job>,
    /// Files that were covered by name at the last scan.
    pub(crate) known: HashMap<Vec<u8>, Leaf>,
    /// Rules of a folder changed since the last scan.
    pub(crate) other_rules: bool,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Ignored paths that were not kept, existed at the last scan and do not any more.
    pub(crate) vanished: Vec<Vec<u8>>,
    /// Ignored names so far.
    pub(crate) budget: IgnoredBudget,
    /// The files of other file systems below the workspace.
    pub(crate) mounts: Mounts,
}

/// A file or link to read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) path: Vec<u8>,
    /// Maximum size in bytes; a larger file is not covered.
    pub(crate) most: u64,
}

/// The rules within a folder, and its ignore file.
type Inside = (Arc<Rules>, Option<(Stamp, bool, Vec<u8>)>);

impl Scan<'_> {
    /// The rules within a folder. `ignore` is the known ignore file, when it has one.
    fn inside(
        &self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        repository: bool,
        ignore: Option<&Option<(Stamp, bool, Vec<u8>)>>,
        above: &Arc<Rules>,
    ) -> Inside {
        let here = rules::absolute(self.workspace, path);
        let base =
            if repository { rules::excluded(&self.person, &here, &here.join(".git")) } else { above.clone() };
        let Some(known) = ignore else { return (base, None) };
        let now = disk::look(fd, b".gitignore").ok().flatten().unwrap_or_default();
        let read = match known {
            Some((stamp, true, text)) if *stamp == now => (now, true, text.clone()),
            _ => match disk::read(fd, b".gitignore", 1 << 20) {
                Ok(got) if got.entry.kind == Kind::File => (got.stamp, got.settled, got.data),
                _ => (now, false, Vec::new()),
            },
        };
        let rules = if read.2.is_empty() { base } else { base.and(&here, read.2.clone()) };
        (rules, Some(read))
    }

    /// Scans a name that is not a folder. Sets `same` to false unless its content is known and unchanged. `most`: maximum
    /// size of a covered file in bytes.
    fn leaf(
        &mut self,
        (folder, name): (&[u8], &[u8]),
        stamp: Stamp,
        prev: Option<Node>,
        same: &mut bool,
        (most, ignored): (u64, bool),
    ) -> Result<Node, CostReason> {
        self.count(stamp.size)?;
        let kind = match stamp.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            _ => {
                *same &= matches!(prev, Some(Node::Skip(..)));
                return Ok(Node::Skip(stamp, Reason::Special));
            }
        };
        if stamp.size > most {
            *same &= matches!(prev, Some(Node::Skip(..)));
            return Ok(Node::Skip(stamp, Reason::TooLarge));
        }
        match prev {
            Some(Node::Leaf(leaf)) if leaf.settled && leaf.stamp == stamp => {
                Ok(Node::Leaf(Leaf { ignored, ..leaf }))
            }
            _ => {
                *same = false;
                let job = u32::try_from(self.jobs.len()).map_err(|_| CostReason::Files(self.jobs.len()))?;
                self.jobs.push(Job { path: names::join(folder, name), most });
                Ok(Node::Leaf(Leaf {
                    stamp,
                    settled: false,
                    kind,
                    content: Content::Job(job),
                    ignored,
                    attributes: None,
                }))
            }
        }
    }

    fn count(&mut self, size: u64) -> Result<(), CostReason> {
        self.files += 1;
        if self.files > self.limits.files {
            return Err(CostReason::Files(self.limits.files));
        }
        if size <= self.limits.file_bytes {
            self.bytes += size;
        }
        if self.bytes > self.limits.tree_bytes {
            return Err(CostReason::Bytes(self.limits.tree_bytes));
        }
        if self.files.is_multiple_of(256) && self.clock.mono() > self.end {
            return Err(CostReason::Slow(self.limits.scan.as_secs()));
        }
        Ok(())
    }

    /// Scans one named path only. With `full`, a new folder is scanned completely. Returns whether a complete scan
    /// would skip the path: git would ignore it, or it is too large.
    pub(crate) fn touch(
        &mut self,
        fd: BorrowedFd<'_>,
        dir: &mut Dir,
        (here, rest): (&[u8], &[u8]),
        above: &Arc<Rules>,
        full: bool,
    ) -> Result<bool, CostReason> {
        let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
        let (name, tail) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let path = names::join(here, name);
        let has_rules = matches!(disk::look(fd, b".gitignore"), Ok(Some(_)));
        let (rules, _) = self.inside(fd, here, dir.repository, has_rules.then_some(&dir.ignore), above);
        dir.id = None;
        let Ok(Some(stamp)) = disk::look(fd, name) else {
            dir.take(name);
            return Ok(rules.ignores(&rules::absolute(self.workspace, &path), false));
        };
        let is_dir = stamp.file_type() == FileType::Directory;
        let ignored = rules.ignores(&rules::absolute(self.workspace, &path), is_dir);
        let prev = dir.take(name);
        if !is_dir {
            let prev = match prev {
                Some(Node::Leaf(leaf)) => Some(leaf),
                _ => self.known.remove(&path),
            };
            let most = self.limits.named_bytes();
            let node = self.leaf((here, name), stamp, prev.map(Node::Leaf), &mut false, (most, ignored))?;
            dir.set(name, node);
            // From now on it is covered by name.
            return Ok(ignored || stamp.size > self.limits.file_bytes);
        }
        let Ok(child) = disk::open_dir(fd, name) else {
            dir.set(name, Node::Skip(stamp, Reason::Unreadable));
            return Ok(ignored);
        };
        let (mut inner, fresh) = match prev {
            Some(Node::Dir(inner)) => {
                let replaced = inner.stamp.ino != stamp.ino;
                (*inner, replaced)
            }
            Some(other @ Node::Skip(_, Reason::BareRepository | Reason::OtherDisk)) => {
                dir.set(name, other);
                return Ok(ignored);
            }
            _ => (Dir { partial: true, ..Dir::default() }, true),
        };
        // Completely: a folder that is new or was named itself. If only named files are covered: an ignored folder.
        if (full && !ignored && (fresh || tail.is_empty())) || (!full && tail.is_empty()) {
            let node = self.walk(child.as_fd(), &path, inner, &rules, false)?;
            dir.set(name, node);
            return Ok(ignored);
        }
        if tail.is_empty() {
            return Ok(ignored);
        }
        if inner.partial {
            inner.repository = matches!(disk::look(child.as_fd(), b".git"), Ok(Some(_)));
            inner.stamp = stamp;
        }
        let below = self.touch(child.as_fd(), &mut inner, (&path, tail), &rules, full && !ignored)?;
        if !(inner.partial && inner.nodes.is_empty()) {
            dir.set(name, Node::Dir(Box::new(inner)));
        }
        Ok(ignored || below)
    }
}

/// The known state of a file that was covered by name.
pub(crate) fn leaf_of(dir: &Dir, path: &[u8]) -> Option<Leaf> {
    let (folder, name) = names::split(path);
    let dir = names::parts(folder).try_fold(dir, |dir, part| match &dir.nodes[dir.at(part).ok()?].1 {
        Node::Dir(inner) => Some(inner.as_ref()),
        _ => None,
    })?;
    match &dir.nodes[dir.at(name).ok()?].1 {
        Node::Leaf(leaf) => Some(leaf.clone()),
        _ => None,
    }
}

/// Removes a named path that git would ignore from the model, so that a complete scan does not find it known.
pub(crate) fn untouch(dir: &mut Dir, rest: &[u8]) {
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let (name, tail) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    match dir.at(name).map(|i| &mut dir.nodes[i].1) {
        Ok(Node::Dir(inner)) if !inner.partial => {
            if !tail.is_empty() {
                untouch(inner, tail);
                inner.id = None;
            }
        }
        Ok(_) => {
            dir.take(name);
        }
        Err(_) => return,
    }
    dir.id = None;
}
