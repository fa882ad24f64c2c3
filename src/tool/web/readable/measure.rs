//! Measures of all elements of a page, taken in two passes over it: elements stand within each other, so a walk through what is
//! in each would take many times as long as the page.

use std::collections::HashMap;

use dom_query::{NodeId, NodeRef};

use super::{NODES, attribute, is, is_core};

/// The measures of one element.
#[derive(Clone, Copy, Default)]
struct Measure {
    /// Nodes in it.
    nodes: usize,
    /// Words in it.
    words: usize,
    /// Those of them in links in it.
    linked: usize,
    /// There are links in it.
    links: bool,
    /// It is a part that holds the page's text, or there is one in it.
    core: bool,
    /// There is a heading of the page in it.
    heading: bool,
    /// It is in a main part or an article.
    in_main: bool,
    /// It is in a section.
    in_section: bool,
}

/// The measures of all elements of a page, as it was when they were taken.
pub(super) struct Measures(HashMap<NodeId, Measure>);

impl Measures {
    /// Takes them of an element and all that is in it.
    pub(super) fn of(root: &NodeRef<'_>) -> Self {
        let nodes: Vec<NodeRef<'_>> = std::iter::once(*root).chain(root.descendants_it()).collect();
        let mut all: HashMap<NodeId, Measure> = HashMap::with_capacity(nodes.len());
        // From the outer to the inner ones: where each stands.
        for node in &nodes {
            let parent = node.parent();
            let outer = parent.and_then(|parent| all.get(&parent.id)).copied().unwrap_or_default();
            let within = |names: &[&str]| parent.is_some_and(|parent| is(&parent, names));
            let main = || {
                within(&["main", "article"])
                    || parent.is_some_and(|parent| attribute(&parent, "role") == "main")
            };
            let words = match node.is_text() && !within(&["title"]) {
                true => node.text().split_whitespace().count(),
                false => 0,
            };
            let own = Measure {
                words,
                core: is_core(node),
                in_main: outer.in_main || main(),
                in_section: outer.in_section || within(&["section"]),
                ..Measure::default()
            };
            all.insert(node.id, own);
        }
        // From the inner to the outer ones: what is in each.
        for node in nodes.iter().skip(1).rev() {
            let inner = all.get(&node.id).copied().unwrap_or_default();
            let link = is(node, &["a"]);
            let Some(outer) = node.parent().and_then(|parent| all.get_mut(&parent.id)) else { continue };
            outer.nodes += inner.nodes + 1;
            outer.words += inner.words;
            outer.linked += if link { inner.words } else { inner.linked };
            outer.links |= link || inner.links;
            outer.core |= inner.core;
            outer.heading |= inner.heading || is(node, &["h1"]);
        }
        Self(all)
    }

    fn get(&self, node: &NodeRef<'_>) -> Measure {
        self.0.get(&node.id).copied().unwrap_or_default()
    }

    /// The number of words in an element.
    pub(super) fn words(&self, node: &NodeRef<'_>) -> usize {
        self.get(node).words
    }

    /// True for an element that is a part which holds the page's text, and for one around it.
    pub(super) fn has_core(&self, node: &NodeRef<'_>) -> bool {
        self.get(node).core
    }

    /// True when a main part, an article or the page's heading is in a node, or so much that it is no box.
    pub(super) fn holds_core(&self, node: &NodeRef<'_>) -> bool {
        let of = self.get(node);
        of.core || of.heading || of.nodes > NODES
    }

    /// True for an element in a main part or an article; with `section`, also for one in a section.
    pub(super) fn in_core(&self, node: &NodeRef<'_>, section: bool) -> bool {
        let of = self.get(node);
        of.in_main || section && of.in_section
    }

    /// True when most of an element's text is that of links.
    pub(super) fn is_links(&self, node: &NodeRef<'_>) -> bool {
        let of = self.get(node);
        of.links && of.linked * 2 >= of.words
    }
}
