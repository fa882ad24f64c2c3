//! Converts Markdown to HTML with Tiller's own tags only: text is escaped, HTML in it is shown as text, images are
//! named instead of fetched, and links lead to web pages or nowhere.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use tiller_text::clean::Mode;

use super::bits::cleaned;

/// Extensions of Markdown that are parsed.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Escapes text for HTML, in text and in attributes.
pub(super) fn text(words: &str) -> String {
    let mut out = String::with_capacity(words.len() + words.len() / 8);
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Whether following the link can only show something: a web page, a mail to write, a place in the page.
pub(super) fn harmless(url: &str) -> bool {
    // Browsers ignore blanks and control characters within a scheme.
    let bare: String = url.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    let lower = bare.to_lowercase();
    let scheme = lower.split(['/', '?', '#']).next().and_then(|s| s.split_once(':'));
    matches!(scheme, None | Some(("http" | "https" | "mailto", _)))
}

/// The whole text as HTML.
pub(super) fn html(markdown: &str) -> String {
    let source = cleaned(markdown, Mode::Prose);
    let mut out = String::with_capacity(source.len() * 5 / 4);
    let mut page = Page { out: &mut out, columns: Vec::new(), column: 0, header: false, links: Vec::new() };
    for event in Parser::new_ext(&source, OPTIONS) {
        page.event(event);
    }
    out
}

struct Page<'a> {
    out: &'a mut String,
    columns: Vec<Alignment>,
    column: usize,
    header: bool,
    /// For each open link or image, its closing text.
    links: Vec<String>,
}

impl Page<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(t) | Event::Html(t) | Event::InlineHtml(t) => self.out.push_str(&text(&t)),
            Event::Code(t) => {
                self.out.push_str("<code>");
                self.out.push_str(&text(&t));
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "\u{2611} " } else { "\u{2610} " }),
            Event::FootnoteReference(t) | Event::InlineMath(t) | Event::DisplayMath(t) => {
                self.out.push_str(&text(&t));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let open = match tag {
            Tag::Paragraph => "<p>",
            Tag::Heading { level, .. } => heading(level, true),
            Tag::BlockQuote(_) => "<blockquote>",
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => "<pre><code>",
            Tag::HtmlBlock => "<pre>",
            Tag::List(Some(1)) => "<ol>",
            Tag::List(Some(n)) => return self.out.push_str(&format!("<ol start=\"{n}\">")),
            Tag::List(None) => "<ul>",
            Tag::Item => "<li>",
            Tag::Table(columns) => {
                self.columns = columns;
                "<table>"
            }
            Tag::TableHead => {
                (self.column, self.header) = (0, true);
                "<thead><tr>"
            }
            Tag::TableRow => {
                self.column = 0;
                "<tr>"
            }
            Tag::TableCell => {
                let class = match self.columns.get(self.column) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    _ => "",
                };
                self.column += 1;
                let tag = if self.header { "th" } else { "td" };
                return self.out.push_str(&format!("<{tag}{class}>"));
            }
            Tag::Emphasis => "<em>",
            Tag::Strong => "<strong>",
            Tag::Strikethrough => "<s>",
            Tag::Link { dest_url, .. } => return self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.links.push(format!(" ({})]", text(&dest_url)));
                "[picture: "
            }
            _ => "",
        };
        self.out.push_str(open);
    }

    fn link(&mut self, url: &str) {
        if harmless(url) {
            self.out.push_str(&format!("<a href=\"{}\" rel=\"noopener noreferrer nofollow\">", text(url)));
            self.links.push("</a>".into());
        } else {
            self.links.push(format!(" ({})", text(url)));
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let close = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::Heading(level) => heading(level, false),
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => "</code></pre>\n",
            TagEnd::HtmlBlock => "</pre>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</table>\n",
            TagEnd::TableHead => {
                self.header = false;
                "</tr></thead>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell => {
                if self.header {
                    "</th>"
                } else {
                    "</td>"
                }
            }
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</s>",
            TagEnd::Link | TagEnd::Image => {
                let close = self.links.pop().unwrap_or_default();
                return self.out.push_str(&close);
            }
            _ => "",
        };
        self.out.push_str(close);
    }
}

/// Below the headings of the page itself.
fn heading(level: HeadingLevel, open: bool) -> &'static str {
    match (level, open) {
        (HeadingLevel::H1, true) => "<h4>",
        (HeadingLevel::H1, false) => "</h4>\n",
        (HeadingLevel::H2, true) => "<h5>",
        (HeadingLevel::H2, false) => "</h5>\n",
        (_, true) => "<h6>",
        (_, false) => "</h6>\n",
    }
}
