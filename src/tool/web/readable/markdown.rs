//! Writes elements as Markdown. The tree was found to be shallow enough for recursion.

use dom_query::NodeRef;
use reqwest::Url;

use super::left_out::LeftOut;
use super::{ADDRESS, attribute, is, table};
use crate::text::one_line;

/// Levels of lists and quotations that are shown by indentation.
const NESTED: usize = 8;
/// Longest word that names the language of a piece of code.
const LANGUAGE: usize = 20;
/// Bytes that are written of a page: a short one may name a long address again and again.
const OUTPUT: usize = 4 << 20;
/// Elements that are blocks: a button before one of them opens it.
const BLOCKS: [&str; 9] = ["div", "p", "ul", "ol", "dl", "section", "table", "pre", "blockquote"];

/// The content of `parts`, one after another. Relative addresses are made absolute with `base`.
pub(super) fn write(parts: &[NodeRef<'_>], base: &Url, left: &mut LeftOut) -> String {
    let mut writer =
        Writer { base, left, out: String::new(), line: String::new(), prefix: Vec::new(), flat: 0, spent: 0 };
    for part in parts {
        writer.gap();
        writer.children(part);
    }
    writer.flush();
    writer.out.trim().to_owned()
}

/// The begin of the lines of a list item or a quotation.
struct Prefix {
    /// Before its first line; taken when that was written.
    first: Option<String>,
    other: String,
}

pub(super) struct Writer<'a> {
    base: &'a Url,
    left: &'a mut LeftOut,
    out: String,
    /// The line that is written, without its prefix.
    line: String,
    prefix: Vec<Prefix>,
    /// Levels of elements whose content stands in one line.
    flat: usize,
    /// Bytes that were written.
    spent: usize,
}

impl Writer<'_> {
    fn children(&mut self, node: &NodeRef<'_>) {
        for child in node.children_it(false) {
            self.element(&child);
        }
    }

    /// Counts bytes that are written; `false`: there were too many.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        self.spent = self.spent.saturating_add(bytes);
        self.left.cut |= self.spent > OUTPUT;
        !self.left.cut
    }

    /// Writes a node, which may be text.
    pub(super) fn element(&mut self, node: &NodeRef<'_>) {
        if !self.spend(0) {
            return;
        }
        if node.is_text() {
            self.text(&node.text());
            return;
        }
        let Some(name) = node.node_name() else { return };
        match &*name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                self.block(true, |w| {
                    if w.flat > 0 {
                        return w.children(node);
                    }
                    let text = w.in_line(node);
                    if !text.is_empty() {
                        w.line = format!("{} {text}", "#".repeat(level));
                    }
                });
            }
            "p" | "figure" | "details" | "fieldset" | "address" | "hgroup" => {
                self.block(true, |w| w.children(node))
            }
            "summary" | "legend" | "caption" => self.block(true, |w| w.wrapped(node, "**")),
            "br" if self.flat > 0 => self.space(),
            "br" => self.end_line(),
            "hr" => self.block(true, |w| w.line.push_str("---")),
            "pre" | "listing" | "xmp" => self.code_block(node),
            "blockquote" => self.indented("> ".into(), "> ".into(), node, true),
            "ul" | "ol" | "menu" | "dir" => self.list(node, &name),
            "li" => self.indented("- ".into(), "  ".into(), node, false),
            "dl" => self.block(true, |w| w.children(node)),
            "dt" => self.block(false, |w| w.wrapped(node, "**")),
            "dd" => self.indented(": ".into(), "  ".into(), node, false),
            "table" if self.flat == 0 => table::write(self, node),
            "tr" | "td" | "th" => self.block(false, |w| w.children(node)),
            "a" => self.link(node),
            "strong" | "b" => self.wrapped(node, "**"),
            "em" | "i" | "cite" | "dfn" => self.wrapped(node, "*"),
            "del" | "s" | "strike" => self.wrapped(node, "~~"),
            "code" | "kbd" | "samp" | "tt" => self.code(node),
            "sup" => {
                let text = self.in_line(node);
                let power = !text.is_empty() && text.len() < 6 && !text.starts_with('[');
                self.text(&if power { format!("^{text}") } else { text });
            }
            "q" => {
                let text = self.in_line(node);
                self.text(&format!("\"{text}\""));
            }
            "img" | "image" => self.image(node),
            "math" => self.math(node),
            "iframe" | "frame" => self.framed(node),
            "video" | "audio" | "object" | "embed" | "canvas" => self.left.media += 1,
            "form" => {
                self.left.forms += 1;
                self.block(false, |w| w.children(node));
            }
            "input" => self.field(node),
            "select" | "textarea" => self.left.fields += 1,
            // A heading that opens its section is a button, and what opens a part names it; any other is nothing to read.
            "button" => {
                if node
                    .ancestors_it(Some(3))
                    .any(|n| is(&n, &["h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary"]))
                {
                    self.children(node);
                } else if opens(node) {
                    self.block(false, |w| w.children(node));
                }
            }
            "script" | "style" | "template" | "svg" | "head" | "title" | "noframes" => {}
            "div" | "section" | "article" | "main" | "header" | "footer" | "aside" | "nav" | "body"
            | "center" | "figcaption" | "noscript" | "dialog" | "search" | "thead" | "tbody" | "tfoot"
            | "option" | "optgroup" | "frameset" => self.block(false, |w| w.children(node)),
            _ => self.children(node),
        }
    }

    /// Adds text; white space becomes one space.
    pub(super) fn text(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.space();
        }
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            self.line.push_str(word);
            if words.peek().is_some() || text.ends_with(char::is_whitespace) {
                self.line.push(' ');
            }
        }
    }

    fn space(&mut self) {
        if !self.line.is_empty() && !self.line.ends_with(' ') {
            self.line.push(' ');
        }
    }

    /// Writes what `inner` adds as lines of its own; with `apart`, empty lines are around it.
    pub(super) fn block(&mut self, apart: bool, inner: impl FnOnce(&mut Self)) {
        if self.flat > 0 {
            self.space();
            inner(self);
            self.space();
            return;
        }
        self.flush();
        if apart {
            self.gap();
        }
        inner(self);
        self.flush();
        if apart {
            self.gap();
        }
    }

    /// Ends the line that is written, when there is one.
    fn flush(&mut self) {
        if !self.line.trim().is_empty() {
            self.end_line();
        }
        self.line.clear();
    }

    /// Begins a line of this many bytes; `false`: it has no place.
    fn prefixes(&mut self, bytes: usize) -> bool {
        if !self.spend(bytes + 1 + self.prefix.len() * 2) {
            return false;
        }
        for prefix in &mut self.prefix {
            match prefix.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(&prefix.other),
            }
        }
        true
    }

    /// Ends the line, which may be empty.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !self.prefixes(line.len()) {
            return;
        }
        self.out.push_str(line.trim());
        let end = self.out.trim_end_matches(' ').len();
        self.out.truncate(end);
        self.out.push('\n');
    }

    /// An empty line, unless there is one.
    fn gap(&mut self) {
        let fresh = self.prefix.iter().any(|prefix| prefix.first.is_some());
        let after_empty = self.out.is_empty() || self.out.ends_with("\n\n") || self.out.ends_with("\n>\n");
        if self.flat == 0 && !fresh && !after_empty {
            self.end_line();
        }
    }

    /// A line as it is, without losing white space.
    pub(super) fn exact(&mut self, line: &str) {
        if !self.prefixes(line.len()) {
            return;
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Counts a cell of a table that has no column.
    pub(super) fn left_cell(&mut self) {
        self.left.cells += 1;
    }

    /// The content of an element in one line.
    pub(super) fn in_line(&mut self, node: &NodeRef<'_>) -> String {
        let before = std::mem::take(&mut self.line);
        self.flat += 1;
        self.children(node);
        self.flat -= 1;
        let text = std::mem::replace(&mut self.line, before);
        text.trim().to_owned()
    }

    fn wrapped(&mut self, node: &NodeRef<'_>, mark: &str) {
        let (before, after) = edges(node);
        let text = self.in_line(node);
        if before {
            self.space();
        }
        if !text.is_empty() {
            let marked = text.contains(mark) || text.starts_with("```");
            self.line.push_str(&if marked { text } else { format!("{mark}{text}{mark}") });
        }
        if after {
            self.space();
        }
    }

    fn indented(&mut self, first: String, other: String, node: &NodeRef<'_>, apart: bool) {
        let nested = self.prefix.len() < NESTED;
        self.block(apart, |w| {
            if nested && w.flat == 0 {
                w.prefix.push(Prefix { first: Some(first), other });
            }
            w.children(node);
            w.flush();
            if nested && w.flat == 0 {
                while w.out.ends_with("\n>\n") {
                    w.out.truncate(w.out.len() - 2);
                }
                w.prefix.pop();
            }
        });
    }

    fn list(&mut self, node: &NodeRef<'_>, name: &str) {
        let inner = node.ancestors_it(Some(200)).any(|around| is(&around, &["li"]));
        let mut number: i64 = attribute(node, "start").parse().unwrap_or(1);
        self.block(!inner, |w| {
            for child in node.children_it(false) {
                if name == "ol" && is(&child, &["li"]) {
                    number = attribute(&child, "value").parse().unwrap_or(number);
                    w.indented(format!("{number}. "), "   ".into(), &child, false);
                    number = number.saturating_add(1);
                } else {
                    w.element(&child);
                }
            }
        });
    }

    fn code(&mut self, node: &NodeRef<'_>) {
        let text = node.text();
        let text = one_line(&text);
        if !text.is_empty() {
            let mark = match backticks(&text) {
                0 => "`".to_owned(),
                run => "`".repeat(run + 1),
            };
            self.line.push_str(&format!("{mark}{text}{mark}"));
        }
    }

    fn code_block(&mut self, node: &NodeRef<'_>) {
        if self.flat > 0 {
            return self.code(node);
        }
        let mut text = String::new();
        raw(node, &mut text);
        let named = std::iter::once(*node).chain(node.descendants_it().take(3));
        let language = named.filter_map(|n| {
            let class = attribute(&n, "class");
            let mut names = class.split_whitespace();
            names.find_map(|name| {
                let word =
                    ["language-", "lang-", "highlight-source-"].iter().find_map(|p| name.strip_prefix(p))?;
                (word.len() <= LANGUAGE).then(|| word.to_owned())
            })
        });
        let language = language.into_iter().next().unwrap_or_default();
        let text = text.trim_matches('\n').trim_end();
        if text.is_empty() {
            return;
        }
        let fence = "`".repeat(backticks(text).max(2) + 1);
        self.block(true, |w| {
            w.exact(&format!("{fence}{language}"));
            text.lines().for_each(|line| w.exact(line));
            w.exact(&fence);
        });
    }

    fn link(&mut self, node: &NodeRef<'_>) {
        let (before, after) = edges(node);
        let mut text = self.in_line(node);
        if text.is_empty() {
            let named = ["aria-label", "title"].iter().find_map(|name| node.attr(name));
            text = named.map(|name| one_line(&name)).unwrap_or_default();
        }
        // Signs beside headings, which lead to these.
        if text.is_empty() || matches!(text.as_str(), "#" | "¶" | "§" | "🔗") {
            return;
        }
        if before {
            self.space();
        }
        let address = node.attr("href").and_then(|href| self.address(&href));
        self.line.push_str(&match address {
            Some(address) if address == text => address,
            Some(address) => linked(&text, &address),
            None => text,
        });
        if after {
            self.space();
        }
    }

    /// An address of a page, a mail box or a telephone, absolute; `None`: it leads to this page, or nowhere, or is too long.
    fn address(&mut self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let known = matches!(url.scheme(), "http" | "https" | "mailto" | "tel" | "ftp");
        (known && url.as_str().len() <= ADDRESS && self.spend(url.as_str().len())).then(|| url.into())
    }

    fn image(&mut self, node: &NodeRef<'_>) {
        let alt = node.attr("alt").unwrap_or_default();
        let alt = one_line(&alt);
        if alt.is_empty() {
            self.left.images += 1;
            return;
        }
        let sources = ["src", "data-src", "data-original"].iter().filter_map(|name| node.attr(name));
        let address = sources.filter_map(|source| self.address(&source)).next();
        self.line.push_str(&match address {
            Some(address) => format!("!{}", linked(&alt, &address)),
            None => format!("![{alt}]"),
        });
    }

    fn math(&mut self, node: &NodeRef<'_>) {
        let source = node
            .descendants_it()
            .find(|n| is(n, &["annotation"]) && attribute(n, "encoding").contains("tex"));
        match source {
            Some(source) => self.text(&format!("${}$", source.text().trim())),
            None => self.text(&node.text()),
        }
    }

    /// A frame, by its address.
    fn framed(&mut self, node: &NodeRef<'_>) {
        let Some(address) = node.attr("src").and_then(|src| self.address(&src)) else {
            self.left.media += 1;
            return;
        };
        self.left.frames += 1;
        let title =
            ["title", "name"].iter().filter_map(|name| node.attr(name)).find(|t| !t.trim().is_empty());
        let title = title.map(|t| format!(" {}", one_line(&t)));
        self.block(false, |w| {
            w.line.push_str(&linked(&format!("frame{}", title.unwrap_or_default()), &address));
        });
    }

    /// A field of a form. Boxes of a list of tasks are shown.
    fn field(&mut self, node: &NodeRef<'_>) {
        let kind = attribute(node, "type");
        let task = kind == "checkbox" && node.ancestors_it(Some(3)).any(|n| is(&n, &["li"]));
        match kind.as_str() {
            "checkbox" if task => self.line.push_str(if node.has_attr("checked") { "[x] " } else { "[ ] " }),
            "hidden" | "submit" | "button" | "reset" | "image" => {}
            _ => self.left.fields += 1,
        }
    }
}

/// A link of Markdown.
fn linked(text: &str, address: &str) -> String {
    let open = address.matches('(').count();
    match open == address.matches(')').count() {
        true => format!("[{text}]({address})"),
        false => format!("[{text}](<{address}>)"),
    }
}

/// The longest run of backticks.
fn backticks(text: &str) -> usize {
    text.split(|c: char| c != '`').map(str::len).max().unwrap_or(0)
}

/// True for a button that opens a part of the page, or stands before one.
fn opens(node: &NodeRef<'_>) -> bool {
    let next = || node.next_element_sibling().is_some_and(|next| is(&next, &BLOCKS));
    node.has_attr("aria-expanded") || node.has_attr("aria-controls") || next()
}

/// True where the text of an element begins and ends with white space, which stands outside of its marks.
fn edges(node: &NodeRef<'_>) -> (bool, bool) {
    let starts = |n: Option<NodeRef<'_>>, f: fn(&str) -> bool| {
        n.filter(NodeRef::is_text).is_some_and(|n| f(&n.text()))
    };
    (
        starts(node.first_child(), |text| text.starts_with(char::is_whitespace)),
        starts(node.last_child(), |text| text.ends_with(char::is_whitespace)),
    )
}

/// The text of code as it is written.
fn raw(node: &NodeRef<'_>, text: &mut String) {
    for child in node.children_it(false) {
        if child.is_text() {
            text.push_str(&child.text());
        } else if is(&child, &["br"]) {
            text.push('\n');
        } else {
            // Lines that are elements of their own.
            let line = is(&child, &["div", "p", "tr", "li"]);
            if line && !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            raw(&child, text);
            if line && !text.ends_with('\n') {
                text.push('\n');
            }
        }
    }
}
