//! The elements that a snapshot shows, from the accessibility tree and the DOM.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::ax::{AxNode, AxTree};
use super::dom::{DomNode, DomNodes};
use super::join::{joined, on_own_lines, one_thing, texts, without_labels, without_repeats};
use super::lines::word;
use super::role::Role;

/// Bytes of a word that tells an element without a name from others.
const LOOKS: usize = 40;
/// Depth of a tree that is followed.
const DEPTH: usize = 400;

/// Roles of elements that an agent acts on.
const ACTIVE: [&str; 21] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "tab",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "treeitem",
    "listbox",
    "Date",
    "DateTime",
    "InputTime",
    "ColorWell",
];
/// Roles that say nothing: their content is shown in their place.
const PLAIN: [&str; 23] = [
    "generic",
    "none",
    "presentation",
    "RootWebArea",
    "paragraph",
    "LayoutTable",
    "LayoutTableRow",
    "LayoutTableCell",
    "group",
    "Section",
    "LabelText",
    "rowgroup",
    "Legend",
    "strong",
    "MenuListPopup",
    "emphasis",
    "code",
    "mark",
    "insertion",
    "deletion",
    "subscript",
    "superscript",
    "time",
];
/// Fields whose parts say no more than their value: they are set as a whole.
const WHOLE: [&str; 4] = ["Date", "DateTime", "InputTime", "ColorWell"];
/// Roles of what lies in a list or a table. When the list reacts to clicks, it does so for each of them.
const ITEMS: [&str; 4] = ["listitem", "row", "cell", "gridcell"];
/// Roles whose colour and size say nothing.
pub(super) const FIELDS: [&str; 12] = [
    "textbox",
    "searchbox",
    "combobox",
    "spinbutton",
    "listbox",
    "checkbox",
    "radio",
    "switch",
    "option",
    "Date",
    "DateTime",
    "InputTime",
];
/// Roles of what holds items. When it reacts to clicks, it does so for its items.
const HOLDERS: [&str; 11] = [
    "list",
    "listitem",
    "tablist",
    "menu",
    "menubar",
    "table",
    "grid",
    "row",
    "tree",
    "toolbar",
    "navigation",
];
/// Roles whose content is not shown at all.
const SILENT: [&str; 4] = ["InlineTextBox", "LineBreak", "ListMarker", "Ignored"];

/// An element or a text of a page. Its texts are as the page has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) reference: Option<u32>,
    pub(super) role: Role,
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) states: Vec<String>,
    /// Begins a line of its own, as the first thing of a paragraph does.
    pub(super) begins: bool,
    /// Ends its line.
    pub(super) ends: bool,
    pub(super) children: Vec<Self>,
}

/// An element: the session of its frame (`None`: the tab's own), and its backend id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ElementId {
    pub(crate) session: Option<String>,
    pub(crate) backend: i64,
}

/// The references of a tab's elements. The tabs of an agent count together and use no number twice, so an old reference never
/// means another element, nor one of another tab.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    numbers: HashMap<ElementId, u32>,
    elements: HashMap<u32, RefElement>,
    /// The newest number of all tabs.
    last: Arc<AtomicU32>,
}

/// The element of a reference.
#[derive(Clone, Debug)]
pub(crate) struct RefElement {
    pub(crate) id: ElementId,
    pub(crate) role: Role,
    pub(crate) name: String,
}

/// Elements of a tab that are remembered. A snapshot begins anew when half of them are taken; those beyond get no reference,
/// so that none that a snapshot shows is forgotten.
const REFS: usize = 400_000;

impl Refs {
    /// None yet. `last`: the newest number of all tabs of the agent.
    pub(crate) fn new(last: Arc<AtomicU32>) -> Self {
        Self { last, ..Self::default() }
    }

    /// The number of an element; `None`: there are too many.
    fn number(&mut self, id: ElementId, role: Role, name: &str) -> Option<u32> {
        if self.elements.len() >= REFS && !self.numbers.contains_key(&id) {
            return None;
        }
        let last = &self.last;
        let next = || last.fetch_add(1, Ordering::Relaxed) + 1;
        let number = *self.numbers.entry(id.clone()).or_insert_with(next);
        self.elements.insert(number, RefElement { id, role, name: name.into() });
        Some(number)
    }

    /// Makes room for a snapshot.
    pub(super) fn make_room(&mut self) {
        if self.elements.len() >= REFS / 2 {
            self.forget();
        }
    }

    /// Gives an element the name that the snapshot shows; one without a name keeps the browser's.
    fn rename(&mut self, number: u32, name: &str) {
        if let Some(element) = self.elements.get_mut(&number).filter(|_| !name.is_empty()) {
            name.clone_into(&mut element.name);
        }
    }

    /// The element of a reference; `None`: there is none, or its document is gone.
    pub(crate) fn get(&self, number: u32) -> Option<&RefElement> {
        self.elements.get(&number)
    }

    /// Forgets all elements, for a new document.
    pub(crate) fn forget(&mut self) {
        self.numbers.clear();
        self.elements.clear();
    }
}

/// One frame of a page.
pub(super) struct Frame {
    pub(super) session: Option<String>,
    pub(super) tree: AxTree,
    /// The element that holds it, and the session of that element; `None`: the main frame.
    pub(super) owner: Option<ElementId>,
}

/// A page to be made into nodes.
pub(super) struct Source<'a> {
    pub(super) frames: &'a [Frame],
    /// By session.
    pub(super) dom: &'a HashMap<Option<String>, DomNodes>,
}

impl Source<'_> {
    /// The nodes of the page.
    pub(super) fn nodes(&self, refs: &mut Refs) -> Vec<Node> {
        let Some(main) = self.frames.iter().find(|f| f.owner.is_none()) else { return Vec::new() };
        self.frame(main, refs, 0)
    }

    fn frame(&self, frame: &Frame, refs: &mut Refs, depth: usize) -> Vec<Node> {
        let Some(root) = frame.tree.root() else { return Vec::new() };
        let known: HashSet<i64> = frame.tree.nodes().filter_map(|n| n.backend).collect();
        let mut hidden: HashMap<i64, Vec<i64>> = HashMap::new();
        if let Some(dom) = self.dom.get(&frame.session) {
            for (around, element) in dom.unknown(&known) {
                hidden.entry(around).or_default().push(element);
            }
        }
        let builder = Builder { source: self, frame, hidden: &hidden };
        builder.node(root, refs, depth, Around::default())
    }
}

struct Builder<'a> {
    source: &'a Source<'a>,
    frame: &'a Frame,
    /// Clickable elements that the accessibility tree does not have, by the element around them.
    hidden: &'a HashMap<i64, Vec<i64>>,
}

/// The surroundings of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    /// An element that an agent acts on.
    active: bool,
    /// A button, a link or another control.
    control: bool,
    /// A list or a table that reacts to clicks on what is in it.
    list: bool,
}

impl Builder<'_> {
    fn dom(&self, backend: Option<i64>) -> Option<&DomNode> {
        self.source.dom.get(&self.frame.session)?.get(backend?)
    }

    fn element(&self, backend: i64) -> ElementId {
        ElementId { session: self.frame.session.clone(), backend }
    }

    /// A node with what is in it; several, when it says nothing itself.
    fn node(&self, ax: &AxNode, refs: &mut Refs, depth: usize, around: Around) -> Vec<Node> {
        let nodes = self.unplaced(ax, refs, depth, around);
        let block = ax.role() != "StaticText" && self.dom(ax.backend).is_some_and(|n| n.block);
        if block { on_own_lines(nodes) } else { nodes }
    }

    /// As [`Self::node`], without the lines that blocks have of their own.
    fn unplaced(&self, ax: &AxNode, refs: &mut Refs, depth: usize, around: Around) -> Vec<Node> {
        let role = ax.role();
        if depth > DEPTH || SILENT.contains(&role) {
            return Vec::new();
        }
        if role == "StaticText" && !ax.ignored {
            let name = ax.name();
            return if name.is_empty() {
                Vec::new()
            } else {
                vec![Node { name: name.into(), ..Node::default() }]
            };
        }
        let dom = self.dom(ax.backend);
        let clickable = dom.is_some_and(|n| n.clickable);
        let shape = dom.is_some_and(|n| n.shape);
        let plain = ax.ignored || PLAIN.contains(&role) && (role != "group" || ax.name().is_empty());
        let acts = !plain
            && (ACTIVE.contains(&role) || ax.is("focusable") && role != "Iframe" && role != "scrollable")
            || clickable
                && !around.control
                && dom.is_some_and(|n| n.visible && (n.listens || !around.active))
            || shape
            || around.list && ITEMS.contains(&role);
        let reference = ax.backend.filter(|_| acts).and_then(|backend| {
            let role = match plain {
                true if shape && !clickable => Role::Shape,
                true => Role::Clickable,
                false => Role::parse(role, None),
            };
            refs.number(self.element(backend), role, ax.name())
        });
        let inside = Around {
            active: around.active || reference.is_some(),
            control: around.control || !plain && ACTIVE.contains(&role),
            list: clickable && !plain && !ITEMS.contains(&role) || around.list && plain,
        };
        let mut children: Vec<Node> = Vec::new();
        for id in ax.child_ids.iter().filter(|_| !WHOLE.contains(&role)) {
            if let Some(child) = self.frame.tree.get(id) {
                children.extend(self.node(child, refs, depth + 1, inside));
            }
        }
        if let Some(backend) = ax.backend {
            let owned = Some(self.element(backend));
            for frame in self.source.frames.iter().filter(|f| f.owner == owned) {
                children.extend(self.source.frame(frame, refs, depth + 1));
            }
            for element in self.hidden.get(&backend).into_iter().flatten() {
                children.extend(self.hidden_element(*element, refs));
            }
        }
        let children = without_labels(joined(children));
        if plain && reference.is_none() {
            if role == "LabelText"
                && let Some(inner) = one_thing(&children)
            {
                return vec![inner.clone()];
            }
            return children;
        }
        let mut node = Node { reference, value: ax.value(), states: states(ax), ..Node::default() };
        if plain {
            node.role = if shape && !clickable { Role::Shape } else { Role::Clickable };
            node.name = texts(&children);
            if let Some(inner) = one_thing(&children) {
                return vec![inner.clone()];
            }
            if !shape && !dom.is_some_and(|n| n.listens) && children.iter().any(|c| c.reference.is_some()) {
                // The parts are what is clicked.
                return children;
            }
            if node.name.is_empty() || shape {
                node.states = self.looks(ax.backend, true);
            }
            node.children =
                children.into_iter().filter(|c| c.role != Role::Text && !c.is_text_only()).collect();
        } else {
            node.role = Role::parse(role, ax.property("level").as_u64());
            node.name =
                [ax.name(), ax.description()].into_iter().find(|t| !t.is_empty()).unwrap_or_default().into();
            node.children = without_repeats(&node, children);
            if let [inner] = node.children.as_slice()
                && inner.reference.is_some()
                && (node.name.is_empty() || node.name == inner.name)
            {
                if matches!(node.role, Role::ListItem | Role::Cell) && !ax.is("focusable") {
                    return node.children;
                }
                // A heading that is a link, in one line.
                if let Role::Heading(_) = node.role
                    && node.reference.is_none()
                    && node.name == inner.name
                    && node.states.is_empty()
                    && inner.children.is_empty()
                {
                    let mut inner = inner.clone();
                    inner.states.push(node.role.shown().into_owned());
                    return vec![inner];
                }
                // The link of a tab or of a menu's entry.
                if ACTIVE.contains(&role) && node.name == inner.name && inner.role.word() == "link" {
                    node.children.clear();
                }
            }
            if HOLDERS.contains(&role)
                && !ax.is("focusable")
                && node.children.iter().any(|c| c.reference.is_some())
            {
                // Its items are what is clicked.
                node.reference = None;
            }
            let said = !node.name.is_empty() || role != "SvgRoot" && !texts(&node.children).is_empty();
            if !said && node.reference.is_some() {
                node.states.extend(self.looks(ax.backend, !FIELDS.contains(&role)));
            }
            if node.role == Role::Row && node.name.is_empty() && node.children.iter().all(Node::is_text_only)
            {
                let cells: Vec<String> = node.children.iter().map(Node::all_text).collect();
                node.name = cells.join(" | ");
                node.children.clear();
            }
        }
        if node.reference.is_none()
            && node.name.is_empty()
            && node.children.len() == 1
            && node.value.is_none()
        {
            // A list, an article or a figure around one thing says no more than this thing.
            if !matches!(node.role, Role::ListItem | Role::Row | Role::Cell) {
                return node.children;
            }
        }
        if node.reference.is_none()
            && node.name.is_empty()
            && node.children.is_empty()
            && node.value.is_none()
        {
            return Vec::new();
        }
        if matches!(node.role, Role::ListItem | Role::Cell)
            && node.name.is_empty()
            && node.children.iter().all(|c| c.role == Role::Text)
        {
            node.name = texts(&node.children);
            node.children.clear();
        }
        if let Some(number) = node.reference {
            refs.rename(number, &node.name);
        }
        vec![node]
    }

    fn hidden_element(&self, backend: i64, refs: &mut Refs) -> Option<Node> {
        let dom = self.dom(Some(backend))?;
        let role = if dom.clickable { Role::Clickable } else { Role::Shape };
        let number = refs.number(self.element(backend), role.clone(), &dom.tag)?;
        Some(Node {
            reference: Some(number),
            role,
            states: self.looks(Some(backend), true),
            ..Node::default()
        })
    }

    /// The words that tell an element without a name from others: its tag, attributes, and with `drawn` its colour and size.
    fn looks(&self, backend: Option<i64>, drawn: bool) -> Vec<String> {
        let Some(dom) = self.dom(backend) else { return Vec::new() };
        let mut words = vec![word(&dom.tag, LOOKS)];
        words.extend(dom.attributes.iter().map(|(name, value)| format!("{name}={}", word(value, LOOKS))));
        if !drawn {
            return if words.len() > 1 { vec![format!("<{}>", words.join(" "))] } else { Vec::new() };
        }
        words.extend(dom.color.clone().filter(|_| !dom.attributes.iter().any(|(name, _)| *name == "fill")));
        vec![format!("<{}> {}", words.join(" "), dom.place)]
    }
}

fn states(ax: &AxNode) -> Vec<String> {
    let mut states: Vec<String> = Vec::new();
    match ax.property("checked") {
        serde_json::Value::String(s) if s == "mixed" => states.push("partly checked".into()),
        _ if ax.is("checked") => states.push("checked".into()),
        _ => {}
    }
    for (property, word) in [
        ("pressed", "pressed"),
        ("selected", "selected"),
        ("focused", "focused"),
        ("disabled", "disabled"),
        ("readonly", "read only"),
        ("required", "required"),
        ("multiline", "multiline"),
        ("modal", "modal"),
        ("busy", "busy"),
    ] {
        if ax.is(property) {
            states.push(word.into());
        }
    }
    match ax.property("expanded").as_bool() {
        Some(true) => states.push("expanded".into()),
        Some(false) => states.push("collapsed".into()),
        None => {}
    }
    if ax.is("invalid") {
        states.push("invalid".into());
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reference_of_a_snapshot_is_forgotten_within_it() {
        let mut refs = Refs::default();
        let id = |backend| ElementId { session: None, backend };
        for backend in 0..REFS as i64 + 10 {
            let number = refs.number(id(backend), Role::Clickable, "");
            assert_eq!(number.is_some(), (backend as usize) < REFS);
        }
        assert_eq!(refs.number(id(0), Role::Clickable, ""), Some(1));
        assert_eq!(refs.get(1).map(|element| element.id.backend), Some(0));
        refs.make_room();
        assert_eq!(refs.number(id(0), Role::Clickable, ""), Some(REFS as u32 + 1));
    }

    #[test]
    fn a_large_page_keeps_the_references_of_its_begin() {
        let mut refs = Refs::default();
        for backend in 0..60_000 {
            refs.number(ElementId { session: None, backend }, Role::Clickable, "");
        }
        assert_eq!(refs.get(1).map(|element| element.id.backend), Some(0));
    }

    #[test]
    fn a_reference_of_one_tab_means_nothing_in_another() {
        let last = Arc::default();
        let [mut one, mut two] = [Refs::new(Arc::clone(&last)), Refs::new(last)];
        let id = |backend| ElementId { session: None, backend };
        let numbers = [1, 2, 1]
            .map(|n| [one.number(id(n), Role::Clickable, ""), two.number(id(n), Role::Clickable, "")]);
        let numbers = numbers.map(|pair| pair.map(Option::unwrap_or_default));
        assert_eq!(numbers, [[1, 2], [3, 4], [1, 2]], "and a known element keeps its own");
        assert!(one.get(2).is_none() && two.get(3).is_none());
    }
}
