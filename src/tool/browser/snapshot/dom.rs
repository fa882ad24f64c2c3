//! Elements that react to a click, from `DOMSnapshot.captureSnapshot`. The accessibility tree leaves out those that are
//! no controls by their role.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Attributes that tell one element without a name from another.
const ATTRIBUTES: [&str; 12] = [
    "id",
    "class",
    "title",
    "alt",
    "fill",
    "stroke",
    "data-color",
    "data-index",
    "data-value",
    "data-result",
    "style",
    "href",
];
/// Bytes of an attribute that are shown.
const ATTRIBUTE: usize = 40;

/// What the accessibility tree does not say of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DomNode {
    /// Reacts to a click by a listener, or has the pointer of things that do.
    pub(super) clickable: bool,
    /// Element name in small letters.
    pub(super) tag: String,
    /// Attributes as `name=value`.
    pub(super) attributes: Vec<String>,
    /// The element around it, by backend id.
    pub(super) parent: Option<i64>,
}

/// The elements of a session's documents, by backend id.
#[derive(Debug, Default)]
pub(super) struct DomNodes(HashMap<i64, DomNode>);

impl DomNodes {
    pub(super) fn get(&self, backend: i64) -> Option<&DomNode> {
        self.0.get(&backend)
    }

    /// Clickable elements that are not among `known`, each with the nearest element around it that is.
    pub(super) fn unknown(&self, known: &HashSet<i64>) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = Vec::new();
        for (backend, node) in self.0.iter().filter(|(id, node)| node.clickable && !known.contains(id)) {
            let mut around = node.parent;
            while let Some(parent) = around {
                if known.contains(&parent) {
                    found.push((parent, *backend));
                    break;
                }
                around = self.0.get(&parent).and_then(|n| n.parent);
            }
        }
        found.sort_unstable();
        found
    }

    /// Reads the reply, which holds arrays beside each other and one table of strings.
    pub(super) fn read(reply: &Value) -> Self {
        let mut nodes = HashMap::new();
        let strings = Strings(&reply["strings"]);
        for document in reply["documents"].as_array().into_iter().flatten() {
            read_document(document, &strings, &mut nodes);
        }
        Self(nodes)
    }
}

struct Strings<'a>(&'a Value);

impl<'a> Strings<'a> {
    fn get(&self, index: &Value) -> &'a str {
        index
            .as_u64()
            .and_then(|i| self.0.get(usize::try_from(i).ok()?))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|i| usize::try_from(i).ok())
}

fn read_document(document: &Value, strings: &Strings<'_>, all: &mut HashMap<i64, DomNode>) {
    let nodes = &document["nodes"];
    let ids: Vec<i64> =
        nodes["backendNodeId"].as_array().into_iter().flatten().map(|v| v.as_i64().unwrap_or(0)).collect();
    let parents: Vec<Option<usize>> =
        nodes["parentIndex"].as_array().into_iter().flatten().map(index).collect();
    let mut clickable: HashSet<usize> =
        nodes["isClickable"]["index"].as_array().into_iter().flatten().filter_map(index).collect();
    // What the page draws a pointer over. The pointer is inherited, so the outermost element counts.
    let layout = &document["layout"];
    let mut pointed = HashSet::new();
    for (at, node) in layout["nodeIndex"].as_array().into_iter().flatten().enumerate() {
        let Some(node) = index(node) else { continue };
        if strings.get(&layout["styles"][at][0]) == "pointer" {
            pointed.insert(node);
        }
    }
    clickable.extend(pointed.iter().filter(|n| {
        let above = parents.get(**n).copied().flatten();
        above.is_none_or(|p| !pointed.contains(&p))
    }));
    for (at, backend) in ids.iter().enumerate() {
        let tag = strings.get(&nodes["nodeName"][at]).to_ascii_lowercase();
        if tag.starts_with('#') || matches!(tag.as_str(), "html" | "body") {
            clickable.remove(&at);
        }
        let is_clickable = clickable.contains(&at);
        let attributes =
            if is_clickable { attributes(&nodes["attributes"][at], strings) } else { Vec::new() };
        let parent = parents.get(at).copied().flatten().and_then(|p| ids.get(p)).copied();
        all.insert(*backend, DomNode { clickable: is_clickable, tag, attributes, parent });
    }
}

fn attributes(list: &Value, strings: &Strings<'_>) -> Vec<String> {
    let list: Vec<&str> = list.as_array().into_iter().flatten().map(|i| strings.get(i)).collect();
    let pairs = list.chunks_exact(2).filter(|pair| ATTRIBUTES.contains(&pair[0]) && !pair[1].is_empty());
    pairs
        .take(4)
        .map(|pair| format!("{}={}", pair[0], &pair[1][..pair[1].floor_char_boundary(ATTRIBUTE)]))
        .collect()
}
