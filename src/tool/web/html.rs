//! Text of HTML that may be nested a million deep.

use dom_query::{Document, NodeRef};

use crate::text::one_line;

/// Open tags at one time, before the text is taken without a parser.
const OPEN_MAX: usize = 20_000;
/// Real depth, before the text is taken without recursion.
const DEPTH_MAX: usize = 200;

/// Elements without content that end a drawing or a formula around them.
const BREAKING: [&str; 5] = ["br", "hr", "img", "meta", "embed"];
/// Others without content.
const VOID: [&str; 7] = ["input", "wbr", "link", "source", "track", "area", "col"];

/// True when text begins with a word, in letters of any size.
fn starts_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// True for a page that is nested so deeply that its tree should not be walked.
pub(crate) fn is_too_deep(html: &str) -> bool {
    open_tags(html) > OPEN_MAX || is_deep(&Document::from(html).root())
}

/// The text of a short piece of HTML.
pub(crate) fn inline(html: &str) -> String {
    if is_too_deep(html) {
        return strip(html);
    }
    Document::from(html).select("body").text().to_string()
}

/// Roughly how many tags are open at once at most; never less than the truth for plain nesting.
fn open_tags(html: &str) -> usize {
    // Drawings and formulas may hold elements of these names that do nest.
    let foreign = ["svg", "math"]
        .iter()
        .any(|name| html.match_indices('<').any(|(at, _)| starts_with(&html[at + 1..], name)));
    let is_void = |rest: &str| {
        BREAKING.iter().chain(VOID.iter().filter(|_| !foreign)).any(|name| {
            starts_with(rest, name)
                && !rest[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    let (mut open, mut most) = (0usize, 0usize);
    for (at, _) in html.match_indices('<') {
        match html.as_bytes().get(at + 1) {
            Some(b'/') => open = open.saturating_sub(1),
            Some(c) if c.is_ascii_alphabetic() && !is_void(&html[at + 1..]) => {
                open += 1;
                most = most.max(open);
            }
            _ => {}
        }
    }
    most
}

/// True when the tree is nested deeper than recursion should go. Walks without recursion.
fn is_deep(root: &NodeRef<'_>) -> bool {
    let mut open = vec![root.first_child()];
    while let Some(next) = open.last_mut() {
        let Some(node) = next.take() else {
            open.pop();
            continue;
        };
        *next = node.next_sibling();
        if open.len() > DEPTH_MAX {
            return true;
        }
        open.push(node.first_child());
    }
    false
}

/// Text between tags, without scripts and styles. For pages that no parser should see.
pub(crate) fn strip(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let hidden = ["script", "style"]
            .into_iter()
            .find(|name| rest.get(1..=name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name)));
        if let Some(name) = hidden {
            let close = format!("</{name}");
            let end = rest
                .char_indices()
                .map(|(n, _)| n)
                .find(|n| rest.get(*n..n + close.len()).is_some_and(|s| s.eq_ignore_ascii_case(&close)));
            rest = end.map_or("", |n| &rest[n..]);
        }
        rest = rest.find('>').map_or("", |end| &rest[end + 1..]);
        if !out.ends_with(['\n', ' ']) {
            out.push(' ');
        }
    }
    out.push_str(rest);
    let plain = out
        .replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    let lines = plain.lines().map(one_line);
    lines.filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strip_leaves_text() {
        assert_eq!(strip("a<b>c</b><script>x<y</script>d &lt;e <style>"), "a c d <e");
    }
}
