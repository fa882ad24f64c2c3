//! Removes what is no text of the page.

use dom_query::{Document, NodeRef};

use super::left_out::LeftOut;
use super::measure::Measures;
use super::{attribute, consent, is, plain, words};

/// How much of the page is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// Its text.
    Text,
    /// Also what it has for readers without scripts.
    WithNoscript,
    /// Also dialogs and boxes.
    WithBoxes,
    /// Also what is hidden.
    WithHidden,
}

/// Bytes of text of a box that only its class calls one.
const OVERLAY: usize = 2_000;

/// Removes scripts and the like, and by `extent` hidden parts, dialogs, and boxes for consent and newsletters.
pub(super) fn prune(document: &Document, extent: Extent, left: &mut LeftOut) {
    document.select("script, style, template, link, meta, svg, noframes, datalist").remove();
    if extent == Extent::Text {
        document.select("noscript").remove();
    }
    if extent < Extent::WithHidden {
        let marked = document.select("[hidden], [aria-hidden=true i], [style], dialog:not([open])");
        let measures = Measures::of(&document.root());
        let mut removed = std::collections::HashSet::new();
        for node in marked.nodes().iter().filter(|node| is_hidden(node, &measures)) {
            if !node.ancestors_it(None).any(|around| removed.contains(&around.id)) {
                left.hidden += words(node, usize::MAX);
            }
            removed.insert(node.id);
            node.remove_from_parent();
        }
    }
    if extent >= Extent::WithBoxes {
        return;
    }
    let measures = Measures::of(&document.root());
    let answers = consent::Answers::of(document);
    left.consent += remove(consent::consent_boxes(document, &measures, &answers));
    left.consent += remove(consent::long_boxes(document, &measures, &answers));
    let dialogs = document.select(
        "dialog, [role=dialog i], [role=alertdialog i], [aria-modal=true i], .modal, .popup, .overlay, .lightbox",
    );
    left.dialogs +=
        remove(dialogs.nodes().iter().copied().filter(|node| is_dialog(node, &measures)).collect());
    // Without the headings that were in dialogs.
    let measures = Measures::of(&document.root());
    left.newsletter += remove(consent::newsletter_boxes(document, &measures));
    for node in document.select("nav, [role=navigation i], [role=search i]").nodes().iter() {
        if !measures.holds_core(node) {
            left.navigation += node.descendants_it().filter(|inner| is(inner, &["a"])).count();
            node.remove_from_parent();
        }
    }
}

/// Removes elements, and counts those that were not in one that was removed before.
fn remove(nodes: Vec<NodeRef<'_>>) -> usize {
    let mut count = 0;
    let mut outermost = nodes.clone();
    let ids: std::collections::HashSet<_> = nodes.iter().map(|node| node.id).collect();
    outermost.retain(|node| !node.ancestors_it(None).any(|around| ids.contains(&around.id)));
    let mut seen = std::collections::HashSet::new();
    for node in outermost {
        if seen.insert(node.id) {
            node.remove_from_parent();
            count += 1;
        }
    }
    count
}

/// True for an element that is not drawn, as far as the page itself says. Parts that a tab or a search shows are text.
fn is_hidden(node: &NodeRef<'_>, measures: &Measures) -> bool {
    if is(node, &["html", "body"]) || attribute(node, "role") == "tabpanel" {
        return false;
    }
    let hidden = node.has_attr("hidden") && attribute(node, "hidden") != "until-found";
    let style: String = attribute(node, "style").chars().filter(|c| !c.is_whitespace()).collect();
    let style = style.contains("display:none") || style.contains("visibility:hidden");
    let closed = is(node, &["dialog"]) && !node.has_attr("open");
    // A page behind a dialog is hidden from screen readers only.
    let aria = attribute(node, "aria-hidden") == "true" && !measures.holds_core(node);
    hidden || style || closed || aria
}

/// True for a dialog that lies over the page.
fn is_dialog(node: &NodeRef<'_>, measures: &Measures) -> bool {
    if measures.has_core(node) {
        return false;
    }
    let marked = is(node, &["dialog"])
        || matches!(attribute(node, "role").as_str(), "dialog" | "alertdialog")
        || attribute(node, "aria-modal") == "true";
    if marked {
        return true;
    }
    // A text that lies over its picture, or in the card that it names.
    let class = attribute(node, "class");
    let overlay = class.split_whitespace().any(|name| name == "overlay");
    let caption = is(node, &["figcaption", "figure", "a"])
        || node.ancestors_it(None).any(|around| is(&around, &["figure", "a"]))
        || overlay && !node.descendants_it().any(|inner| is(&inner, &["button", "form", "input"]));
    !caption && !measures.holds_core(node) && plain(node, OVERLAY).len() < OVERLAY
}
