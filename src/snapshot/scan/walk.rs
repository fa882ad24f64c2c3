//! The walk through a folder: the names that are there, and those that are not any more.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::fs::FileType;
use tiller_fs::attributes;
use tiller_protocol::names::is_temporary;

use crate::names;
use crate::objects::object::is_git;
use crate::report::{CostReason, Reason};
use crate::scan::disk::{self, Stamp};
use crate::scan::model::{Dir, Node};
use crate::scan::rules::{self, Rules};
use crate::scan::{Scan, ignored};

/// Maximum depth of a scan; deeper folders count as unreadable.
const DEEPEST: usize = 200;

/// The names of a folder in any order; `None`: those of the last scan.
type Names = Option<Vec<Vec<u8>>>;

/// A folder while its names are scanned.
struct OpenFolder<'f> {
    fd: BorrowedFd<'f>,
    path: &'f [u8],
    rules: Arc<Rules>,
    same_rules: bool,
    new: Dir,
    /// Whether its content is unchanged; folders below are compared when they are written.
    same: bool,
}

impl Scan<'_> {
    /// Scans a folder and everything below. `kept`: git ignores it, so its small files are kept and the others watched.
    pub(crate) fn walk(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        mut old: Dir,
        above: &Arc<Rules>,
        kept: bool,
    ) -> Result<Node, CostReason> {
        match self.begin(fd, path, &mut old, above, kept) {
            Ok((folder, None)) => self.known_names(folder, old),
            Ok((folder, Some(names))) => self.listed_names(folder, old, names),
            Err((stamp, reason)) => Ok(Node::Skip(stamp, reason)),
        }
    }

    /// Lists a folder if it changed, and reads its rules. Fails when it is not covered.
    fn begin<'f>(
        &mut self,
        fd: BorrowedFd<'f>,
        path: &'f [u8],
        old: &mut Dir,
        above: &Arc<Rules>,
        kept: bool,
    ) -> Result<(OpenFolder<'f>, Names), (Stamp, Reason)> {
        let before = disk::now();
        let stat = rustix::fs::fstat(fd).map_err(|_| (Stamp::default(), Reason::Unreadable))?;
        let stamp = Stamp::of(&stat);
        if disk::device(&stat) != self.dev {
            self.mounts.watch(self.clock, fd, path);
            return Err((stamp, Reason::OtherDisk));
        }
        let unreadable = (stamp, Reason::Unreadable);
        if names::parts(path).count() > DEEPEST {
            return Err(unreadable);
        }
        let mut list = None;
        let (mut repository, mut has_rules) = (old.repository, old.ignore.is_some());
        if !old.settled || old.partial || old.stamp != stamp {
            let most = if kept { ignored::FOLDER } else { usize::MAX };
            let names = disk::list_some(fd, most).ok().flatten().ok_or(unreadable)?;
            repository = names.iter().any(|n| is_git(n)) && !path.is_empty();
            has_rules = names.iter().any(|n| n == b".gitignore");
            let bare = [b"HEAD".as_slice(), b"objects", b"refs"];
            if !path.is_empty() && !repository && bare.iter().all(|b| names.iter().any(|n| n == b)) {
                return Err((stamp, Reason::BareRepository));
            }
            // An ignored repository keeps its own history.
            if kept && repository {
                return Err((stamp, Reason::Ignored));
            }
            list = Some(names);
        }
        let (rules, ignore) = self.inside(fd, path, repository, has_rules.then_some(&old.ignore), above);
        let same_rules = old.rules == Some(rules.key) && old.kept == kept;
        self.other_rules |= !same_rules;
        if list.is_none() && !same_rules {
            list = Some(disk::list(fd).map_err(|_| unreadable)?);
        }
        // A change of attributes changes the stamp.
        let attributes = match old.settled && old.stamp == stamp {
            true => old.attributes.take(),
            false => Some(attributes::read(fd).of_the_owner()).filter(|a| !a.is_empty()).map(Box::new),
        };
        let new = Dir {
            nodes: Vec::with_capacity(old.nodes.len()),
            stamp,
            settled: stamp.settled(before),
            ignored: Vec::new(),
            kept,
            over: old.over && list.is_none(),
            rules: Some(rules.key),
            ignore,
            repository,
            partial: false,
            id: None,
            attributes,
        };
        Ok((OpenFolder { fd, path, rules, same_rules, new, same: old.id.is_some() }, list))
    }

    /// Scans the names of the last scan: the folder has no others.
    fn known_names(&mut self, mut folder: OpenFolder<'_>, old: Dir) -> Result<Node, CostReason> {
        for (name, node) in old.nodes {
            self.name(&mut folder, name, Some(node))?;
        }
        folder.new.ignored.extend(old.ignored);
        folder.new.ignored.sort_unstable();
        Ok(folder.end(old.id))
    }

    /// Scans the names of a listed folder.
    fn listed_names(
        &mut self,
        mut folder: OpenFolder<'_>,
        old: Dir,
        mut names: Vec<Vec<u8>>,
    ) -> Result<Node, CostReason> {
        let path = folder.path;
        let staging = |n: &[u8]| path.is_empty() && n.starts_with(names::STAGING);
        names.retain(|n| !is_git(n) && !staging(n) && !is_temporary(n));
        names.sort_unstable();
        let gone = |n: &&Vec<u8>| names.binary_search(n).is_err();
        self.vanished.extend(old.ignored.iter().filter(gone).map(|n| names::join(path, n)));
        let mut known = old.nodes.into_iter().peekable();
        for name in names {
            while let Some((name, node)) = known.next_if(|(n, _)| *n < name) {
                folder.same = false;
                ignored_below(&node, names::join(path, &name), &mut self.vanished);
            }
            let prev = known.next_if(|(n, _)| *n == name).map(|(_, node)| node);
            self.name(&mut folder, name, prev)?;
        }
        for (name, node) in known {
            folder.same = false;
            ignored_below(&node, names::join(path, &name), &mut self.vanished);
        }
        Ok(folder.end(old.id))
    }

    /// Scans one name.
    fn name(
        &mut self,
        folder: &mut OpenFolder<'_>,
        name: Vec<u8>,
        prev: Option<Node>,
    ) -> Result<(), CostReason> {
        let found = disk::look(folder.fd, &name);
        let Ok(Some(stamp)) = found else {
            folder.same &= prev.is_none();
            if found.is_err() {
                folder.new.nodes.push((name, Node::Skip(Stamp::default(), Reason::Unreadable)));
            }
            return Ok(());
        };
        let was = prev.as_ref().map(std::mem::discriminant);
        let (here, kept) = ((folder.path, name.as_slice()), folder.new.kept);
        let node = if folder.ignores(self, &name, stamp, prev.as_ref()) {
            self.ignored(folder.fd, here, stamp, prev, (&folder.rules, kept), &mut folder.same)?
        } else if stamp.file_type() == FileType::Directory {
            Some(self.folder(folder, &name, stamp, prev)?)
        } else {
            let most = (self.limits.file_bytes, false);
            Some(self.leaf(here, stamp, prev, &mut folder.same, most)?)
        };
        match node {
            Some(node) => {
                folder.same &= was == Some(std::mem::discriminant(&node));
                folder.new.nodes.push((name, node));
            }
            None => {
                folder.same &= was.is_none();
                folder.new.over |= !ignored::is_output(&name);
                folder.new.ignored.push(name);
            }
        }
        Ok(())
    }

    /// Scans a folder in a folder.
    fn folder(
        &mut self,
        folder: &mut OpenFolder<'_>,
        name: &[u8],
        stamp: Stamp,
        prev: Option<Node>,
    ) -> Result<Node, CostReason> {
        let inner = inner(prev, stamp, &mut folder.same);
        match disk::open_dir(folder.fd, name) {
            Ok(child) => {
                self.walk(child.as_fd(), &names::join(folder.path, name), inner, &folder.rules, false)
            }
            Err(_) => Ok(Node::Skip(stamp, Reason::Unreadable)),
        }
    }

    /// Scans a name that git ignores; `None`: it is build output, or there are too many. `kept`: its folder is ignored too. Sets `same` to false as [`Scan::leaf`] does.
    fn ignored(
        &mut self,
        fd: BorrowedFd<'_>,
        (folder, name): (&[u8], &[u8]),
        stamp: Stamp,
        prev: Option<Node>,
        (rules, kept): (&Arc<Rules>, bool),
        same: &mut bool,
    ) -> Result<Option<Node>, CostReason> {
        if ignored::is_output(name) || !self.budget.one(kept) {
            return Ok(None);
        }
        let watched = Node::Skip(stamp, Reason::Ignored);
        let node = match stamp.file_type() {
            FileType::Directory => {
                return self.ignored_folder(fd, (folder, name), stamp, prev, (rules, kept), same);
            }
            FileType::RegularFile | FileType::Symlink
                if !ignored::is_log(name) && self.budget.keep(stamp.size) =>
            {
                // A file that is also covered by name is not read twice.
                let known = || self.known.get(&names::join(folder, name)).cloned().map(Node::Leaf);
                let prev = prev.or_else(known);
                match self.leaf((folder, name), stamp, prev, same, (self.limits.file_bytes, true))? {
                    Node::Skip(..) => watched,
                    node => node,
                }
            }
            _ => watched,
        };
        Ok(Some(node))
    }

    /// Scans an ignored folder, unless it has too many names.
    fn ignored_folder(
        &mut self,
        fd: BorrowedFd<'_>,
        (folder, name): (&[u8], &[u8]),
        stamp: Stamp,
        prev: Option<Node>,
        (rules, kept): (&Arc<Rules>, bool),
        same: &mut bool,
    ) -> Result<Option<Node>, CostReason> {
        let left_out = Some(Node::Skip(stamp, Reason::Ignored));
        // It was left out, and is not listed again until its names change.
        if matches!(&prev, Some(Node::Skip(known, Reason::Ignored)) if *known == stamp) {
            return Ok(left_out);
        }
        let Ok(child) = disk::open_dir(fd, name) else { return Ok(left_out) };
        let inner = inner(prev, stamp, same);
        let (jobs, files, bytes) = (self.jobs.len(), self.files, self.bytes);
        let kept_bytes = if kept { 0 } else { self.budget.enter() };
        let node = self.walk(child.as_fd(), &names::join(folder, name), inner, rules, true)?;
        if !kept && self.budget.exceeded() {
            self.jobs.truncate(jobs);
            (self.files, self.bytes) = (files, bytes);
            self.budget.leave_out(kept_bytes);
            return Ok(left_out);
        }
        Ok(match node {
            Node::Dir(_) | Node::Skip(_, Reason::OtherDisk) => Some(node),
            _ => left_out,
        })
    }
}

impl OpenFolder<'_> {
    /// Whether git ignores a name.
    fn ignores(&self, scan: &Scan<'_>, name: &[u8], stamp: Stamp, prev: Option<&Node>) -> bool {
        let is_dir = stamp.file_type() == FileType::Directory;
        let was_dir = |prev: &Node| match prev {
            Node::Dir(_) => true,
            Node::Leaf(_) => false,
            Node::Skip(stamp, _) => stamp.file_type() == FileType::Directory,
        };
        // Most names are unchanged: the path is only built where it is needed.
        let by_rules = || {
            let path = names::join(self.path, name);
            self.rules.ignores(&rules::absolute(scan.workspace, &path), is_dir)
        };
        self.new.kept
            || match prev {
                // A mount is looked at though git ignores it; what stands there without one, as the rules say.
                Some(Node::Skip(_, Reason::OtherDisk)) | None => by_rules(),
                Some(prev) if self.same_rules && was_dir(prev) == is_dir => prev.is_ignored(),
                Some(_) => by_rules(),
            }
    }

    /// The folder with all its names. `id`: as of the last scan.
    fn end(mut self, id: Option<crate::objects::id::Id>) -> Node {
        self.new.id = id.filter(|_| self.same);
        Node::Dir(Box::new(self.new))
    }
}

/// A folder as of the last scan, for scanning it again.
fn inner(prev: Option<Node>, stamp: Stamp, same: &mut bool) -> Dir {
    let inner = match prev {
        Some(Node::Dir(dir)) => *dir,
        _ => Dir::default(),
    };
    *same &= inner.stamp.perms() == stamp.perms();
    inner
}

/// The ignored paths of a deleted name that were not kept, and those below.
fn ignored_below(node: &Node, path: Vec<u8>, out: &mut Vec<Vec<u8>>) {
    match node {
        Node::Dir(dir) => {
            out.extend(dir.ignored.iter().map(|name| names::join(&path, name)));
            for (name, inner) in &dir.nodes {
                ignored_below(inner, names::join(&path, name), out);
            }
        }
        Node::Skip(_, Reason::Ignored) => out.push(path),
        Node::Leaf(_) | Node::Skip(..) => {}
    }
}
