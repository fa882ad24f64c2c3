//! Web pages as readable Markdown. The page is hostile: it may be nested a million deep.

use dom_query::{Document, NodeRef};
use dom_smoothie::{CandidateSelectMode, Config, Readability, TextMode};

/// Open tags at one time, before the text is taken without a parser; and real depth, before it is taken
/// without recursion.
const OPEN_MAX: usize = 20_000;
const DEPTH_MAX: usize = 200;
const ELEMENTS_MAX: usize = 60_000;

/// The readable part of `html` as Markdown; the whole page when no part stands out.
pub(crate) fn markdown(html: &str, url: &str) -> String {
    if open_tags(html) > OPEN_MAX {
        return strip(html);
    }
    let document = Document::from(html);
    if is_deep(&document.root()) {
        return strip(html);
    }
    let config = Config {
        keep_classes: true,
        text_mode: TextMode::Markdown,
        max_elements_to_parse: ELEMENTS_MAX,
        candidate_select_mode: CandidateSelectMode::Readability,
        ..Config::default()
    };
    let whole = body(&document);
    let article = Readability::with_document(document, Some(url), Some(config)).and_then(|mut r| r.parse());
    match article {
        Ok(article)
            if article.text_content.trim().len() * 12 >= whole.len()
                && !article.text_content.trim().is_empty() =>
        {
            let title = article.title.trim();
            let text = article.text_content.trim();
            let doubled = title.is_empty() || text.trim_start_matches('#').trim_start().starts_with(title);
            if doubled { text.to_owned() } else { format!("# {title}\n\n{text}") }
        }
        _ => whole,
    }
}

/// Whether a page is nested so deeply that its tree should not be walked.
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

fn body(document: &Document) -> String {
    let skip = ["script", "style", "nav", "noscript", "template", "svg", "iframe"];
    let body = document.select("body");
    let text = body.nodes().first().map(|b| b.md(Some(&skip)).trim().to_owned()).unwrap_or_default();
    let title = document.select("title").text();
    let title = title.trim();
    if title.is_empty() || text.contains(title) { text } else { format!("# {title}\n\n{text}") }
}

/// Roughly how many tags are open at once at most; never less than the truth for plain nesting.
fn open_tags(html: &str) -> usize {
    let (mut open, mut most) = (0usize, 0usize);
    for (at, _) in html.match_indices('<') {
        match html.as_bytes().get(at + 1) {
            Some(b'/') => open = open.saturating_sub(1),
            Some(c) if c.is_ascii_alphabetic() => {
                open += 1;
                most = most.max(open);
            }
            _ => {}
        }
    }
    most
}

/// Whether the tree is nested deeper than recursion should go. Walks without recursion.
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
    let lines = plain.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_markdown() {
        let text =
            "Long enough to count as the main part of the page, with <b>bold</b> words, commas, and sense. "
                .repeat(6);
        let html = format!(
            "<html><head><title>The Page</title><style>p{{}}</style></head><body><nav><a href=/x>Menu</a></nav>\
             <article><h1>The Page</h1><p>{text}</p><pre><code class=\"language-rust\">fn main() {{}}\n</code></pre>\
             <p>See <a href=\"/more\">more</a>.</p></article><script>alert(1)</script></body></html>"
        );
        let md = markdown(&html, "https://example.org/a/");
        assert!(md.contains("**bold**"), "{md}");
        assert!(md.contains("fn main() {}") && md.contains("```"), "{md}");
        assert!(md.contains("(https://example.org/more)"), "{md}");
        assert!(!md.contains("alert") && !md.contains("Menu"), "{md}");
    }

    #[test]
    fn a_page_without_a_main_part_is_shown_whole() {
        let md = markdown("<title>T</title><body><ul><li>one<li>two</ul>", "https://example.org/");
        assert!(md.contains("# T") && md.contains("one") && md.contains("two"), "{md}");
        assert_eq!(markdown("", "https://example.org/"), "");
    }

    #[test]
    fn x10_a_page_nested_without_end_is_survived() {
        for (open, n) in
            [("<div>", 1_000_000), ("<b>", 15_000), ("<table><tr><td>", 5_000), ("<blockquote>", 300)]
        {
            let html = format!("<body>{}deep text", open.repeat(n));
            assert!(markdown(&html, "https://example.org/").contains("deep text"), "{open}");
        }
    }

    #[test]
    fn strip_leaves_text() {
        assert_eq!(strip("a<b>c</b><script>x<y</script>d &lt;e <style>"), "a c d <e");
    }
}
