//! Elements that react to a click, from `DOMSnapshot.captureSnapshot`. The accessibility tree leaves out those that are
//! no controls by their role.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Attributes that tell one element without a name from another, the clearest first.
const ATTRIBUTES: [&str; 12] = [
    "id",
    "name",
    "title",
    "alt",
    "class",
    "fill",
    "points",
    "data-color",
    "data-index",
    "data-value",
    "data-result",
    "href",
];
/// Attributes of an element that are shown.
const SHOWN: usize = 4;
/// Bytes of an attribute that are shown.
const ATTRIBUTE: usize = 40;
/// Styles that are asked for, in this order.
pub(super) const STYLES: [&str; 5] = ["cursor", "display", "visibility", "background-color", "fill"];
/// Least side in pixels of a drawing whose shapes are shown. Smaller ones are icons.
const DRAWING: f64 = 48.0;
/// Shapes of a drawing that are shown.
const SHAPES: usize = 100;
/// Elements of a drawing that draw something.
const DRAWS: [&str; 9] =
    ["circle", "ellipse", "rect", "polygon", "polyline", "path", "line", "text", "image"];

/// The facts about an element that the accessibility tree does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DomNode {
    /// Reacts to a click by a listener, or has the pointer of things that do.
    pub(super) clickable: bool,
    /// Reacts by a listener of its own.
    pub(super) listens: bool,
    /// Is a shape of a drawing.
    pub(super) shape: bool,
    /// Begins a line of its own, as paragraphs do.
    pub(super) block: bool,
    /// Is drawn on the page.
    pub(super) visible: bool,
    /// Element name in small letters.
    pub(super) tag: String,
    /// Attributes with their values.
    pub(super) attributes: Vec<(&'static str, String)>,
    /// Colour as `#rrggbb`: of the inside of a shape, of the ground of any other.
    pub(super) color: Option<String>,
    /// Size in pixels, as `20x10`; of a shape also where it is in its drawing: `20x10 at 5,7`.
    pub(super) place: String,
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

    /// Visible elements to act on that are not among `known`, each with the nearest element around it that is.
    pub(super) fn unknown(&self, known: &HashSet<i64>) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = Vec::new();
        let mut places: HashMap<i64, Option<i64>> = HashMap::new();
        for (backend, node) in self
            .0
            .iter()
            .filter(|(id, node)| (node.clickable || node.shape) && node.visible && !known.contains(id))
        {
            let (mut around, mut passed) = (node.parent, Vec::new());
            let place = loop {
                let Some(parent) = around else { break None };
                if known.contains(&parent) {
                    break Some(parent);
                }
                // An element that was passed before leads to the same place; one in itself leads nowhere.
                if let Some(place) = places.get(&parent) {
                    break *place;
                }
                places.insert(parent, None);
                passed.push(parent);
                around = self.0.get(&parent).and_then(|n| n.parent);
            };
            places.extend(passed.into_iter().map(|parent| (parent, place)));
            found.extend(place.map(|place| (place, *backend)));
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

/// Where and how the elements of a document are drawn, by their place in its list.
#[derive(Default)]
struct Drawn<'a> {
    boxes: HashMap<usize, [f64; 4]>,
    /// Values of [`STYLES`].
    styles: HashMap<usize, Vec<&'a str>>,
}

impl<'a> Drawn<'a> {
    fn read(layout: &Value, strings: &Strings<'a>) -> Self {
        let mut drawn = Self::default();
        for (at, node) in layout["nodeIndex"].as_array().into_iter().flatten().enumerate() {
            let Some(node) = index(node) else { continue };
            let bounds = &layout["bounds"][at];
            let number = |n: usize| bounds[n].as_f64().unwrap_or(0.0);
            drawn.boxes.entry(node).or_insert([number(0), number(1), number(2), number(3)]);
            let styles = layout["styles"][at].as_array().into_iter().flatten();
            drawn.styles.entry(node).or_insert_with(|| styles.map(|s| strings.get(s)).collect());
        }
        drawn
    }

    /// A value of [`STYLES`]; empty: the element is not drawn.
    fn style(&self, node: usize, name: &str) -> &'a str {
        let at = STYLES.iter().position(|s| *s == name);
        at.and_then(|at| self.styles.get(&node)?.get(at)).copied().unwrap_or_default()
    }

    fn visible(&self, node: usize) -> bool {
        let area = self.boxes.get(&node).is_some_and(|[_, _, w, h]| *w >= 1.0 || *h >= 1.0);
        area && self.style(node, "visibility") != "hidden"
    }

    fn block(&self, node: usize) -> bool {
        let display = self.style(node, "display");
        !display.is_empty() && display != "contents" && !display.starts_with("inline")
    }

    /// Size, and the place in the drawing around it.
    fn place(&self, node: usize, drawing: Option<usize>) -> String {
        let Some([x, y, w, h]) = self.boxes.get(&node) else { return String::new() };
        let size = format!("{w:.0}x{h:.0}");
        match drawing.and_then(|d| self.boxes.get(&d)) {
            Some([left, top, ..]) => format!("{size} at {:.0},{:.0}", x - left, y - top),
            None => size,
        }
    }
}

/// The drawing around each shape.
fn shapes(tags: &[String], parents: &[Option<usize>], drawn: &Drawn<'_>) -> HashMap<usize, usize> {
    let mut shapes = HashMap::new();
    let mut count: HashMap<usize, usize> = HashMap::new();
    let mut around_all: Vec<Option<usize>> = Vec::with_capacity(tags.len());
    for (node, tag) in tags.iter().enumerate() {
        // Parents stand before what is in them.
        let parent = parents.get(node).copied().flatten();
        let around = parent.and_then(|p| if tags[p] == "svg" { Some(p) } else { *around_all.get(p)? });
        around_all.push(around);
        if !DRAWS.contains(&tag.as_str()) || !drawn.visible(node) {
            continue;
        }
        let large = |[_, _, w, h]: &[f64; 4]| *w >= DRAWING && *h >= DRAWING;
        let Some(drawing) = around.filter(|a| drawn.boxes.get(a).is_some_and(large)) else { continue };
        let count = count.entry(drawing).or_default();
        *count += 1;
        if *count <= SHAPES {
            shapes.insert(node, drawing);
        }
    }
    shapes
}

fn read_document(document: &Value, strings: &Strings<'_>, all: &mut HashMap<i64, DomNode>) {
    let nodes = &document["nodes"];
    let ids: Vec<i64> =
        nodes["backendNodeId"].as_array().into_iter().flatten().map(|v| v.as_i64().unwrap_or(0)).collect();
    let names = nodes["nodeName"].as_array().into_iter().flatten();
    let mut tags: Vec<String> = names.map(|n| strings.get(n).to_ascii_lowercase()).collect();
    tags.resize(ids.len(), String::new());
    // Parents stand before what is in them, so that the way up has an end.
    let above = |(at, node): (usize, &Value)| index(node).filter(|parent| *parent < at);
    let parents: Vec<Option<usize>> =
        nodes["parentIndex"].as_array().into_iter().flatten().enumerate().map(above).collect();
    let listens: HashSet<usize> =
        nodes["isClickable"]["index"].as_array().into_iter().flatten().filter_map(index).collect();
    let drawn = Drawn::read(&document["layout"], strings);
    // Elements over which the page draws a pointer. The pointer is inherited, so the outermost element counts.
    let points = |node: usize| {
        let cursor = drawn.style(node, "cursor");
        matches!(cursor, "pointer" | "grab" | "move") || cursor.ends_with("-resize")
    };
    let outermost = |node: usize| points(node) && !parents.get(node).copied().flatten().is_some_and(points);
    let shapes = shapes(&tags, &parents, &drawn);
    for (at, backend) in ids.iter().enumerate() {
        let tag = tags[at].clone();
        let element = !tag.starts_with('#') && !matches!(tag.as_str(), "html" | "body");
        let drawing = shapes.get(&at).copied();
        let ground = if drawing.is_some() { "fill" } else { "background-color" };
        let node = DomNode {
            clickable: element && (listens.contains(&at) || outermost(at)),
            listens: element && listens.contains(&at),
            shape: drawing.is_some(),
            block: drawn.block(at),
            visible: drawn.visible(at),
            attributes: if element { attributes(&nodes["attributes"][at], strings) } else { Vec::new() },
            color: color(drawn.style(at, ground)),
            place: drawn.place(at, drawing),
            parent: parents.get(at).copied().flatten().and_then(|p| ids.get(p)).copied(),
            tag,
        };
        all.insert(*backend, node);
    }
}

/// `rgb(0, 128, 255)` as `#0080ff`; `None`: nothing is seen of it, or it is no plain colour.
fn color(css: &str) -> Option<String> {
    let inner = css.strip_prefix("rgba(").or_else(|| css.strip_prefix("rgb("))?.strip_suffix(')')?;
    let parts: Vec<f64> = inner.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    let [red, green, blue] = [*parts.first()?, *parts.get(1)?, *parts.get(2)?];
    let clear = parts.get(3).is_some_and(|alpha| *alpha == 0.0);
    let byte = |n: f64| format!("{:02x}", n.round().clamp(0.0, 255.0) as u8);
    (!clear).then(|| format!("#{}{}{}", byte(red), byte(green), byte(blue)))
}

fn attributes(list: &Value, strings: &Strings<'_>) -> Vec<(&'static str, String)> {
    let list: Vec<&str> = list.as_array().into_iter().flatten().map(|i| strings.get(i)).collect();
    let value = |name: &str| {
        list.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].trim()).filter(|v| !v.is_empty())
    };
    let pairs = ATTRIBUTES.iter().filter_map(|name| Some((*name, value(name)?)));
    pairs
        .take(SHOWN)
        .map(|(name, value)| (name, value[..value.floor_char_boundary(ATTRIBUTE)].to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_elements_find_what_is_around_them_however_deep_they_are() {
        let count = 100_000_i64;
        let node = |parent| DomNode { clickable: true, visible: true, parent, ..DomNode::default() };
        // Each in the one before it; one in itself, two in each other, and one in nothing.
        let mut nodes: HashMap<i64, DomNode> = (1..=count).map(|n| (n, node(Some(n - 1)))).collect();
        nodes.insert(-1, node(Some(-1)));
        nodes.insert(-2, node(Some(-3)));
        nodes.insert(-3, node(Some(-2)));
        nodes.insert(-4, node(None));
        let found = DomNodes(nodes).unknown(&HashSet::from([0, 50_000]));
        let wanted: Vec<(i64, i64)> =
            (1..50_000).map(|n| (0, n)).chain((50_001..=count).map(|n| (50_000, n))).collect();
        assert!(found == wanted, "{} of {}", found.len(), wanted.len());
    }

    #[test]
    fn a_document_of_odd_parents_is_read() {
        let document = json!({"strings": ["DIV", "svg", "rect"], "documents": [{
            "nodes": {"backendNodeId": [1, 2, 3], "nodeName": [1, 0, 2], "parentIndex": [2, 1, 1], "attributes": []},
            "layout": {"nodeIndex": [0, 1, 2], "bounds": [[0, 0, 99, 99], [0, 0, 99, 99], [0, 0, 9, 9]]},
        }]});
        let nodes = DomNodes::read(&document);
        assert_eq!([1, 2, 3].map(|id| nodes.get(id).unwrap().parent), [None, None, Some(2)]);
    }

    #[test]
    fn colors_are_short_and_what_is_clear_has_none() {
        assert_eq!(color("rgb(0, 128, 255)").as_deref(), Some("#0080ff"));
        assert_eq!(color("rgba(0, 128, 255, 0.5)").as_deref(), Some("#0080ff"));
        for none in ["rgba(0, 0, 0, 0)", "none", "url(#a)", "", "rgb(1)"] {
            assert_eq!(color(none), None, "{none}");
        }
    }
}
