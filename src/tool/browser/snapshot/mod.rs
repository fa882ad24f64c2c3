//! A page as lines of text: its accessibility tree, with a reference for each element that can be acted on.
//!
//! | file | its job |
//! | --- | --- |
//! | `ax` | the browser's accessibility nodes, read |
//! | `dom` | what the accessibility tree does not say: which elements react to a click, and how they look |
//! | `collect` | asks the browser for both, for all frames |
//! | `role` | kinds of elements |
//! | `tree` | joins them to the elements that are shown |
//! | `join` | joins texts, and leaves out what is said twice |
//! | `lines` | writes them as lines within a budget |
//! | `difference` | what changed since the last snapshot of the same page |

mod ax;
mod collect;
mod difference;
mod dom;
mod join;
mod lines;
mod role;
mod tree;

pub(crate) use collect::collect;
pub(crate) use difference::difference;
pub(crate) use lines::within;
pub(crate) use role::Role;
pub(crate) use tree::{RefElement, Refs};

/// A snapshot: the lines of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageText {
    pub(crate) url: String,
    pub(crate) title: String,
    /// Number of the document in its tab: what is compared are snapshots of one document.
    pub(crate) document: u64,
    /// The lines of its elements, each of which can be read alone. Without line ends; cleaned.
    pub(crate) lines: Vec<String>,
    /// The same as it is shown: what the line around an element says is not repeated.
    pub(crate) shown: Vec<String>,
}
