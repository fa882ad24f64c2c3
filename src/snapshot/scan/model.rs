//! What we know of the folder: names, stamps and contents as they were at the last look.

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
    /// Whether a change of its names must show in the stamp.
    pub(crate) settled: bool,
    /// Names that git ignores, sorted. What they hold is not looked at.
    pub(crate) ignored: Vec<Vec<u8>>,
    /// The rules that its names were judged by.
    pub(crate) rules: Option<Id>,
    /// The stamp of its own ignore file, whether that is settled, and what it says.
    pub(crate) ignore: Option<(Stamp, bool, Vec<u8>)>,
    /// Holds a repository of its own.
    pub(crate) repository: bool,
    /// Holds named paths only: it is ignored, or the whole tree is too dear to look at.
    pub(crate) partial: bool,
    /// Its name in the store, unless something in it changed.
    pub(crate) id: Option<Id>,
}

/// What stands under a name.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    Dir(Dir),
    /// Not covered, and why.
    Skip(Stamp, Reason),
}

/// A file or a link.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) kind: Kind,
    pub(crate) content: Content,
    /// What its owner gave it beside content and mode; few files have any.
    pub(crate) attributes: Option<Box<Attributes>>,
}

/// The content of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Known(Id),
    /// To be read; the number of the job.
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
