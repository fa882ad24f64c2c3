//! Finds pages whose text is made by scripts.

use dom_query::{Document, NodeRef};

use super::{is, plain};

/// Bytes of text from which a page is worth reading without its scripts.
const READABLE: usize = 500;
/// Bytes of text that a page of scripts may have: a title, "Loading...", a footer.
const EMPTY: usize = 120;
/// Elements that scripts fill, by the usual names.
const ROOTS: &str = "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #main-app, app-root, [data-reactroot], [ng-app], \
                     [data-server-rendered], #app-root, #application";

/// How sure it is that scripts make the text of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum ByScripts {
    Surely,
    /// It has scripts and little text.
    Perhaps,
}

/// The signs of a page that scripts make its text.
pub(super) struct Signs {
    /// There are scripts that run.
    scripts: bool,
    /// An element for scripts to fill is empty.
    empty_root: bool,
    /// The page asks for scripts where they do not run.
    asks: bool,
}

impl Signs {
    pub(super) fn of(document: &Document) -> Self {
        let scripts = document.select("script");
        let runs = |node: &NodeRef<'_>| {
            let kind = super::attribute(node, "type");
            kind.is_empty() || kind == "module" || kind.contains("javascript")
        };
        let roots = document.select(ROOTS);
        let noscript = document.select("noscript");
        let asks = |node: &NodeRef<'_>| asks_for_scripts(&plain(node, 2_000));
        Self {
            scripts: scripts.nodes().iter().any(runs),
            empty_root: roots.nodes().iter().take(20).any(is_empty),
            asks: noscript.nodes().iter().take(50).any(asks),
        }
    }

    /// `None`: the text that was found is the page's.
    pub(super) fn made_by_scripts(&self, text: &str) -> Option<ByScripts> {
        let size = text.trim().len();
        let asks = self.asks || asks_for_scripts(&text.to_lowercase());
        if size >= READABLE {
            None
        } else if asks || self.scripts && (self.empty_root || size == 0) {
            Some(ByScripts::Surely)
        } else {
            (self.scripts && size < EMPTY).then_some(ByScripts::Perhaps)
        }
    }
}

/// True for an element without text but that of scripts, titles of drawings, and notes for readers without scripts.
fn is_empty(node: &NodeRef<'_>) -> bool {
    const SKIPPED: [&str; 5] = ["script", "style", "noscript", "template", "title"];
    let (mut inner, mut words) = (node.first_child(), 0);
    // A walk that does not enter what is skipped: it may stand within its own kind.
    while let Some(at) = inner {
        if at.is_text() {
            words += at.text().split_whitespace().count();
        }
        if words >= 4 {
            return false;
        }
        let entered = if is(&at, &SKIPPED) { None } else { at.first_child() };
        inner = entered.or_else(|| {
            let mut outer = std::iter::once(at).chain(at.ancestors_it(None)).take_while(|n| n.id != node.id);
            outer.find_map(|n| n.next_sibling())
        });
    }
    true
}

/// True for a short text, in small letters, that asks to turn scripts on.
pub(super) fn asks_for_scripts(text: &str) -> bool {
    let text = text.to_lowercase();
    text.len() < READABLE
        && (text.contains("javascript") || text.contains("java script"))
        && [
            "enable",
            "turn on",
            "activate",
            "require",
            "need",
            "disabled",
            "without",
            "aktivieren",
            "activer",
            "activar",
            "doesn't work",
            "support",
            "must",
        ]
        .iter()
        .any(|word| text.contains(word))
}
