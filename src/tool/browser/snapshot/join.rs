//! Nodes that belong together: texts that are one, and what is said twice.

use super::role::Role;
use super::tree::{FIELDS, Node};

impl Node {
    /// True when it holds nothing to act on.
    pub(super) fn is_text_only(&self) -> bool {
        self.reference.is_none() && self.children.iter().all(Self::is_text_only)
    }

    /// True when this text goes on in the next node.
    fn joins(&self, next: &Self) -> bool {
        let text = |node: &Self| node.role == Role::Text;
        text(self) && text(next) && !self.ends && !next.begins
    }

    pub(super) fn all_text(&self) -> String {
        if self.name.is_empty() { texts(&self.children) } else { self.name.clone() }
    }
}

/// The only element to act on among nodes, when the texts around it say no more than its name: a label with its field, a
/// box with its button. It is one thing for a person.
pub(super) fn one_thing(nodes: &[Node]) -> Option<&Node> {
    let mut elements = nodes.iter().filter(|node| node.role != Role::Text);
    let (Some(inner), None) = (elements.next(), elements.next()) else { return None };
    let said = |node: &Node| node.role != Role::Text || inner.name.contains(&node.name);
    (inner.reference.is_some() && nodes.iter().all(said)).then_some(inner)
}

/// The texts of nodes, one after another.
pub(super) fn texts(nodes: &[Node]) -> String {
    let words: Vec<String> = nodes.iter().map(Node::all_text).filter(|t| !t.is_empty()).collect();
    words.join(" ")
}

/// The nodes of a paragraph or of another block: they do not run into those around it.
pub(super) fn on_own_lines(mut nodes: Vec<Node>) -> Vec<Node> {
    if let Some(first) = nodes.first_mut() {
        first.begins = true;
    }
    if let Some(last) = nodes.last_mut() {
        last.ends = true;
    }
    nodes
}

/// Texts that follow each other are one.
pub(super) fn joined(nodes: Vec<Node>) -> Vec<Node> {
    let mut all: Vec<Node> = Vec::with_capacity(nodes.len());
    for node in nodes {
        match all.last_mut() {
            Some(last) if last.joins(&node) => {
                glue(&mut last.name, &node.name);
                last.ends = node.ends;
            }
            _ => all.push(node),
        }
    }
    all
}

/// Adds what goes on behind a text in its line. The browser gives texts without the spaces between them, so that the marks of a
/// sentence say where there is none.
pub(super) fn glue(text: &mut String, next: &str) {
    // A number or a name may begin with a point.
    let word =
        next.starts_with(['.', ':', '!', '?']) && next.chars().nth(1).is_some_and(char::is_alphanumeric);
    let closes =
        next.starts_with([',', '.', ';', ':', '!', '?', ')', ']', '}', '\u{201d}', '\u{2019}', '\u{bb}']);
    let opens = text.ends_with([' ', '(', '[', '{', '\u{201c}', '\u{ab}']);
    if !text.is_empty() && !next.is_empty() && !opens && (word || !closes) {
        text.push(' ');
    }
    text.push_str(next);
}

/// Nodes without the text of a label that the field beside it has in its name.
pub(super) fn without_labels(nodes: Vec<Node>) -> Vec<Node> {
    let says = |field: Option<&Node>, label: &Node| {
        field.is_some_and(|field| {
            matches!(&field.role, Role::Other(role) if FIELDS.contains(&role.as_str()))
                && field.reference.is_some()
                && label.name.chars().count() > 2
                && has_words(&field.name, &label.name)
        })
    };
    let label = |at: usize| {
        let beside = [at.checked_sub(1).and_then(|n| nodes.get(n)), nodes.get(at + 1)];
        nodes[at].role == Role::Text && beside.into_iter().any(|field| says(field, &nodes[at]))
    };
    let labels: Vec<bool> = (0..nodes.len()).map(label).collect();
    nodes.into_iter().zip(labels).filter(|(_, label)| !label).map(|(node, _)| node).collect()
}

/// True when a text has all of another, not as a part of a longer word.
fn has_words(text: &str, words: &str) -> bool {
    let ends = |at: usize, end: usize| {
        !text[..at].ends_with(char::is_alphanumeric) && !text[end..].starts_with(char::is_alphanumeric)
    };
    text == words || text.match_indices(words).any(|(at, _)| ends(at, at + words.len()))
}

/// The children of a node without texts that its name or value says already.
pub(super) fn without_repeats(node: &Node, children: Vec<Node>) -> Vec<Node> {
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let name = squeeze(&node.name);
    let value = squeeze(node.value.as_deref().unwrap_or_default());
    let said = |child: &Node| {
        child.is_text_only() && {
            let text = squeeze(&child.all_text());
            text.is_empty() || name.contains(&text) || value.contains(&text)
        }
    };
    children.into_iter().filter(|child| !said(child)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_goes_only_where_its_field_says_its_words() {
        for (label, field, goes) in [
            ("Name", "Name", true),
            ("Name", "Name (required)", true),
            ("Name", "Full Name", true),
            ("Rate", "Operate", false),
            ("Rate", "Rates", false),
            ("Name", "Names, Name", true),
        ] {
            let text = Node { name: label.into(), ..Node::default() };
            let role = Role::Other("textbox".into());
            let field = Node { reference: Some(1), role, name: field.into(), ..Node::default() };
            assert_eq!(without_labels(vec![text, field.clone()]).len() == 1, goes, "{label} {field:?}");
        }
    }

    #[test]
    fn texts_are_joined_as_they_are_written() {
        for (parts, whole) in [
            (&["up to", "half a metre", "; high pressure"][..], "up to half a metre; high pressure"),
            (&["By", "Ann", ", 3 May"], "By Ann, 3 May"),
            (&["see (", "here", ")."], "see (here)."),
            (&["costs", ".50"], "costs .50"),
            (&["in", ".gitignore"], "in .gitignore"),
            (&["", "a", "", "b"], "a b"),
        ] {
            let mut text = String::new();
            parts.iter().for_each(|part| glue(&mut text, part));
            assert_eq!(text, whole);
        }
    }
}
