//! The part of a page that is its text.

use dom_query::{Document, NodeRef};

use super::measure::Measures;
use super::prune::Extent;
use super::{attribute, is, words};

/// Words from which a part is surely the page's text.
const ENOUGH: usize = 40;
/// Words beside a smaller main part from which the text is elsewhere.
const ELSEWHERE: usize = 200;
/// Main parts and articles that are looked at.
const PARTS: usize = 200;
/// Words of ids and classes of what lies around the text.
const AROUND: [&str; 20] = [
    "nav",
    "navbar",
    "navigation",
    "menu",
    "sidebar",
    "footer",
    "header",
    "masthead",
    "topbar",
    "toolbar",
    "breadcrumb",
    "breadcrumbs",
    "related",
    "share",
    "sharing",
    "social",
    "sponsor",
    "sponsored",
    "advert",
    "promo",
];

/// The elements whose content is shown, in their order. The parts around the text in them are removed.
pub(super) fn choose<'a>(document: &'a Document, extent: Extent) -> Vec<NodeRef<'a>> {
    let body = document.select("body, frameset").nodes().first().copied().unwrap_or_else(|| document.root());
    if extent >= Extent::WithBoxes {
        return vec![body];
    }
    let mains = outermost(document, "main, [role=main i]");
    let articles = outermost(document, "article");
    let cores = outermost(document, "main, [role=main i], article");
    for node in beside(&body, !cores.is_empty()) {
        node.remove_from_parent();
    }
    let measures = Measures::of(&body);
    cores.iter().for_each(|core| trim(core, &measures));
    let size = |nodes: &[NodeRef<'_>]| nodes.iter().map(|node| words(node, usize::MAX)).sum::<usize>();
    let whole = words(&body, usize::MAX);
    let main = size(&mains);
    if main > 0 && main < ENOUGH && size(&cores) > main * 2 {
        // A main part with no more than a heading, and its article beside it.
        return cores;
    }
    if main >= ENOUGH || main > 0 && whole - main.min(whole) < ELSEWHERE {
        return mains;
    }
    if size(&articles) * 2 < whole || articles.is_empty() {
        return vec![body];
    }
    if articles.len() == 1 {
        return cores;
    }
    // With what stands between the articles of a list.
    common(&articles).map_or(cores, |node| vec![node])
}

/// The elements of a selector that are in no other one of them, with text.
fn outermost<'a>(document: &'a Document, selector: &str) -> Vec<NodeRef<'a>> {
    let found = document.select(selector);
    let nodes: Vec<NodeRef<'a>> = found.nodes().iter().take(PARTS).copied().collect();
    let ids: std::collections::HashSet<_> = nodes.iter().map(|node| node.id).collect();
    let inner = |node: &NodeRef<'_>| node.ancestors_it(None).any(|around| ids.contains(&around.id));
    nodes.into_iter().filter(|node| !inner(node) && words(node, 1) > 0).collect()
}

/// The innermost element around all of these.
fn common<'a>(nodes: &[NodeRef<'a>]) -> Option<NodeRef<'a>> {
    let (first, rest) = nodes.split_first()?;
    let rest: Vec<std::collections::HashSet<_>> =
        rest.iter().map(|node| node.ancestors_it(None).map(|around| around.id).collect()).collect();
    first.ancestors_it(None).find(|around| rest.iter().all(|ids| ids.contains(&around.id)))
}

/// Removes side parts that are lists of links from a part.
fn trim(part: &NodeRef<'_>, measures: &Measures) {
    let aside = |node: &NodeRef<'_>| is(node, &["aside"]) || attribute(node, "role") == "complementary";
    let asides = part
        .descendants_it()
        .filter(|node| aside(node) && measures.is_links(node) && !measures.holds_core(node));
    for aside in asides.collect::<Vec<_>>() {
        aside.remove_from_parent();
    }
}

/// Headers, footers and side parts beside the text. `marked`: the page marks its text; else a part of a third of all words
/// or more is its text, too.
fn beside<'a>(body: &NodeRef<'a>, marked: bool) -> Vec<NodeRef<'a>> {
    let measures = Measures::of(body);
    let whole = measures.words(body);
    let named = |node: &NodeRef<'_>| {
        let names = [attribute(node, "id"), attribute(node, "class")].join(" ");
        let mut names = names.split(|c: char| c.is_whitespace() || c == '-' || c == '_');
        names.any(|name| AROUND.contains(&name))
    };
    body.descendants_it()
        .filter(|node| {
            let role = attribute(node, "role");
            let element = is(node, &["header", "footer", "aside"])
                || matches!(role.as_str(), "banner" | "contentinfo" | "complementary");
            let block = is(node, &["div", "ul", "ol", "section", "td", "table", "p"]);
            (element || block && named(node) && (measures.is_links(node) || is_foot(node)))
                && !measures.holds_core(node)
                // The header of a section is a part of its text; a box of links in it need not be.
                && !measures.in_core(node, element)
                && (element && marked || measures.words(node) * 3 <= whole)
        })
        .collect()
}

/// True for a footer by its name.
fn is_foot(node: &NodeRef<'_>) -> bool {
    let names = [attribute(node, "id"), attribute(node, "class")].join(" ");
    names.split_whitespace().any(|name| name == "footer" || name == "site-footer")
}
