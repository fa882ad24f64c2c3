//! The model of the folder: names, stamps and contents as of the last scan.

use tiller_fs::Attributes;

use crate::objects::id::Id;
use crate::objects::object::Kind;
use crate::report::Reason;
use crate::scan::disk::Stamp;

/// A folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dir {
    /// Sorted by name.
    pub(crate) nodes: Vec<(Vec<u8>, Node)>,
    pub(crate) stamp: Stamp,
    /// Whether any change of its names must alter the stamp.
    pub(crate) settled: bool,
    /// Names that git ignores and that no node stands for, sorted. Their content is not scanned.
    pub(crate) ignored: Vec<Vec<u8>>,
    /// Whether git ignores it, and it is scanned nevertheless: it holds no build output.
    pub(crate) kept: bool,
    /// Whether some of its ignored files are not looked at because there are too many.
    pub(crate) over: bool,
    /// The id of the rules that were applied to its names.
    pub(crate) rules: Option<Id>,
    /// The stamp of its own ignore file, whether that is settled, and the content.
    pub(crate) ignore: Option<(Stamp, bool, Vec<u8>)>,
    /// Whether it contains a repository of its own.
    pub(crate) repository: bool,
    /// Whether it holds named paths only: it is ignored, or a scan of the whole tree costs too much.
    pub(crate) partial: bool,
    /// Its id in the store, unless something in it changed.
    pub(crate) id: Option<Id>,
    /// Its own attributes; few folders have any.
    pub(crate) attributes: Option<Box<Attributes>>,
}

/// The state of a name.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    Dir(Box<Dir>),
    /// Not covered, and why.
    Skip(Stamp, Reason),
}

impl Node {
    /// Whether git ignores it.
    pub(crate) fn is_ignored(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.ignored,
            Self::Dir(dir) => dir.kept,
            Self::Skip(_, reason) => *reason == Reason::Ignored,
        }
    }
}

/// A file or a link.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) kind: Kind,
    pub(crate) content: Content,
    /// Whether git ignores it.
    pub(crate) ignored: bool,
    /// Attributes other than content and mode; few files have any.
    pub(crate) attributes: Option<Box<Attributes>>,
}

/// The content of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Known(Id),
    /// Not read yet; the index of the job.
    Job(u32),
}

impl Dir {
    pub(crate) fn at(&self, name: &[u8]) -> Result<usize, usize> {
        self.nodes.binary_search_by(|(n, _)| n.as_slice().cmp(name))
    }

    pub(crate) fn take(&mut self, name: &[u8]) -> Option<Node> {
        self.at(name).ok().map(|i| self.nodes.remove(i).1)
    }

    pub(crate) fn set(&mut self, name: &[u8], node: Node) {
        self.id = None;
        match self.at(name) {
            Ok(i) => self.nodes[i].1 = node,
            Err(i) => self.nodes.insert(i, (name.to_vec(), node)),
        }
    }
}
