//! A web page as readable Markdown. The page is hostile: it may be nested a million deep.
//!
//! | file | its job |
//! | --- | --- |
//! | `prune` | removes what lies around and over the text: scripts, hidden parts, dialogs, consent and newsletter boxes |
//! | `consent` | finds those boxes |
//! | `part` | chooses the part of the page that is its text |
//! | `scripts` | finds pages whose text is made by scripts |
//! | `markdown` | writes the part |
//! | `table` | writes tables |
//! | `measure` | measures all elements in two passes |
//! | `left_out` | counts what is not in the text |

mod consent;
mod left_out;
mod markdown;
mod measure;
mod part;
mod prune;
mod scripts;
mod table;
#[cfg(test)]
mod tests;

use dom_query::{Document, NodeRef};
use reqwest::Url;

use super::html::{is_too_deep, strip};
use crate::text::one_line;
use left_out::LeftOut;
use prune::Extent;
pub(super) use scripts::ByScripts;

/// Bytes of text below which a page is looked at again with less removed.
const LITTLE: usize = 200;
/// Bytes of an address that is shown, and of one that others are relative to.
const ADDRESS: usize = 2_000;
/// Nodes of the largest part that is taken for a box.
const NODES: usize = 20_000;

/// The text of a page, and what is not in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    pub text: String,
    /// Sentences about what was left out, without a full stop.
    pub notes: Vec<String>,
    /// Its text is made by scripts, which did not run.
    pub scripts: Option<ByScripts>,
}

/// The readable part of `html`, which is at `url`.
pub(super) fn read(html: &str, url: &Url) -> Readable {
    if is_too_deep(html) {
        let note = "its parts are nested too deeply: this is its plain text, without links".to_owned();
        return Readable { text: strip(html), notes: vec![note], scripts: None };
    }
    let scripts = scripts::Signs::of(&Document::from(html));
    let mut best = attempt(html, url, Extent::Text);
    if best.0.len() < LITTLE && html.contains("<noscript") {
        // What the page has for readers without scripts, unless it only asks for them.
        let (text, left) = attempt(html, url, Extent::WithNoscript);
        if text.len() > best.0.len() && !scripts::asks_for_scripts(&text) {
            best = (text, left);
        }
    }
    if best.0.is_empty() {
        // Nothing but a dialog, or nothing that is shown before a script shows it.
        best = attempt(html, url, Extent::WithBoxes);
    }
    if best.0.is_empty() {
        best = attempt(html, url, Extent::WithHidden);
    }
    let (text, left) = best;
    Readable { scripts: scripts.made_by_scripts(&text), notes: left.sentences(), text }
}

/// The text with so much of the page, and what is not in it.
fn attempt(html: &str, url: &Url, extent: Extent) -> (String, LeftOut) {
    let document = Document::from(html);
    let base = base(&document, url);
    let title = title(&document);
    let mut left = LeftOut::default();
    prune::prune(&document, extent, &mut left);
    let whole = words(&document.root(), usize::MAX);
    let parts = part::choose(&document, extent);
    left.around = whole.saturating_sub(parts.iter().map(|part| words(part, usize::MAX)).sum());
    let text = markdown::write(&parts, &base, &mut left);
    let known = title.is_empty() || text.is_empty() || text.starts_with("# ") || text.contains("\n# ");
    let text = if known || text.starts_with(&title) { text } else { format!("# {title}\n\n{text}") };
    (text, left)
}

/// The address that relative ones are relative to.
fn base(document: &Document, url: &Url) -> Url {
    let named = document.select("base[href]").nodes().first().and_then(|node| node.attr("href"));
    let named = named.and_then(|href| url.join(href.trim()).ok());
    let usable = |base: &Url| matches!(base.scheme(), "http" | "https") && base.as_str().len() <= ADDRESS;
    named.filter(usable).unwrap_or_else(|| url.clone())
}

/// The title of the document, in one line.
fn title(document: &Document) -> String {
    let text = document.select("head title").nodes().first().map(NodeRef::text).unwrap_or_default();
    one_line(&text)
}

/// The number of words below a node, at most about `most`.
fn words(node: &NodeRef<'_>, most: usize) -> usize {
    let mut count = 0;
    for inner in node.descendants_it().filter(NodeRef::is_text) {
        if !inner.parent().is_some_and(|parent| is(&parent, &["title"])) {
            count += inner.text().split_whitespace().count();
        }
        if count >= most {
            break;
        }
    }
    count
}

/// The text below a node in small letters with single spaces, cut after `most` bytes.
fn plain(node: &NodeRef<'_>, most: usize) -> String {
    plain_of(node, most, NODES)
}

/// As [`plain`], of this many nodes at most.
fn plain_of(node: &NodeRef<'_>, most: usize, nodes: usize) -> String {
    let mut text = String::new();
    for inner in node.descendants_it().take(nodes).filter(NodeRef::is_text) {
        for word in inner.text().split_whitespace() {
            text.push_str(&word.to_lowercase());
            text.push(' ');
        }
        if text.len() >= most {
            break;
        }
    }
    text
}

/// True for an element of one of these names.
fn is(node: &NodeRef<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| node.has_name(name))
}

/// An attribute in small letters, trimmed; empty when it is absent.
fn attribute(node: &NodeRef<'_>, name: &str) -> String {
    node.attr(name).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default()
}

/// True for an element that holds the text of a page: nothing that contains one is removed.
fn is_core(node: &NodeRef<'_>) -> bool {
    is(node, &["html", "body", "main", "article"]) || attribute(node, "role") == "main"
}
