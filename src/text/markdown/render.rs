//! Lays out the parser's events of one block as lines.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::table::Table;
use super::units::{Ordinal, Unit, ordinal_at, tight};
use super::{Lines, Opts};
use crate::clean::lines;
use crate::line::{Gutter, Line, Look, Wrap};
use crate::role::Role;
use crate::sheet::CodeSpan;
use crate::sign;
use crate::width::width;

/// Lines of one block. `gap`: add a blank line first.
pub(super) fn unit(source: &str, unit: &Unit<'_>, ordinal: Option<Ordinal>, gap: bool, opts: Opts) -> Lines {
    let mut r = Render::new(source, ordinal, opts);
    if gap {
        r.lines.push(Line::default());
    }
    if let Some(silent) = &unit.silent {
        for line in lines(&source[silent.clone()]) {
            r.lines.push(Line::strict(line, Look::of(Role::Dim), Wrap::Word));
        }
    }
    for (event, range) in &unit.events {
        r.event(event, range);
    }
    r.flush();
    (r.lines, r.codes)
}

/// A line of a code block, with `left` left of it: on a band, marked where it wraps.
pub(super) fn code_line(text: &str, left: &str, ascii: bool) -> Line {
    let mut line = Line::strict(text, Look::of(Role::Code), Wrap::Hard);
    line.first = Gutter::new(format!("{left}  "), Role::Quote);
    line.rest = Gutter::new(left, Role::Quote).then(sign::WRAPPED.text(ascii), Role::Dim).then_blank();
    line.band = Some(Role::Band);
    line
}

/// Puts the language at the right end of the first line of a block. Where that line leaves no room, the language gets a
/// row of its own above it.
pub(super) fn name_language(first: &mut Line, language: &str, columns: usize) -> Option<Line> {
    if language.is_empty() {
        return None;
    }
    let name = Line::strict(language, Look::of(Role::Dim), Wrap::Cut);
    let right = Some(Box::new(Gutter::new(format!("{} ", name.text()), Role::Dim)));
    if width(&first.first.text) + width(first.text()) + width(name.text()) + 2 < columns {
        first.right = right;
        return None;
    }
    let mut head = Line::new(Wrap::Cut);
    head.band = first.band;
    head.right = right;
    Some(head)
}

fn is_reference(link: LinkType) -> bool {
    !matches!(link, LinkType::Inline | LinkType::Autolink | LinkType::Email)
}

enum Container {
    Quote,
    /// A list item; its marker is kept until it is drawn.
    Item {
        marker: Option<String>,
        columns: usize,
    },
}

struct Link {
    url: String,
    /// Where its text begins in the current line.
    from: usize,
    image: bool,
}

/// Open headings, emphasis and links. Emphasis counts its nesting.
#[derive(Default)]
struct Inline {
    /// Level of the heading, 0 outside of one.
    heading: u8,
    bold: u8,
    italic: u8,
    strike: u8,
    links: Vec<Link>,
}

impl Inline {
    /// The look of text here.
    fn look(&self, quoted: bool) -> Look {
        let mut look = Look::of(if quoted { Role::Quote } else { Role::Text });
        if self.heading > 0 {
            look = Look::of(Role::Heading).bold();
        }
        match self.links.last() {
            Some(link) if link.image => look = look.role(Role::Dim),
            Some(_) => look = look.role(Role::Link).underline(),
            None => {}
        }
        if self.bold > 0 {
            look = look.bold();
        }
        if self.italic > 0 {
            look = look.italic();
        }
        if self.strike > 0 { look.strike() } else { look }
    }
}

struct Render<'a> {
    source: &'a str,
    opts: Opts,
    ordinal: Option<Ordinal>,
    lines: Vec<Line>,
    codes: Vec<CodeSpan>,
    cur: Option<Line>,
    containers: Vec<Container>,
    /// Whether the innermost container has drawn something.
    begun: bool,
    inline: Inline,
    /// Depth within an element that was drawn already.
    skip: usize,
    code: Option<(String, String)>,
    html: bool,
    table: Option<Table>,
}

impl<'a> Render<'a> {
    fn new(source: &'a str, ordinal: Option<Ordinal>, opts: Opts) -> Self {
        Self {
            source,
            opts,
            ordinal,
            lines: Vec::new(),
            codes: Vec::new(),
            cur: None,
            containers: Vec::new(),
            begun: false,
            inline: Inline::default(),
            skip: 0,
            code: None,
            html: false,
            table: None,
        }
    }

    fn event(&mut self, event: &Event<'_>, range: &Range<usize>) {
        if self.skip > 0 {
            match event {
                Event::Start(_) => self.skip += 1,
                Event::End(_) => self.skip -= 1,
                _ => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(text),
                None => self.text(text),
            },
            Event::Code(text) => {
                let look = self.look().role(Role::Raised);
                self.line().push_strict(text, look);
            }
            Event::Html(text) if self.html => {
                for line in lines(text) {
                    self.flush();
                    self.line().push_strict(line, Look::of(Role::Dim));
                }
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (n, line) in lines(text).enumerate() {
                    if n > 0 {
                        self.soft_break();
                    }
                    self.line().push_strict(line, Look::of(Role::Dim));
                }
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.line().push_strict(text, Look::of(Role::Raised));
            }
            Event::SoftBreak | Event::HardBreak => self.soft_break(),
            Event::Rule => {
                self.block(range);
                let mut line = self.line_here();
                let room = self.opts.columns.saturating_sub(width(line.text()) + width(&line.first.text));
                let dash = sign::RULE.text(self.opts.ascii);
                line.push(&dash.repeat(room.clamp(3, 200)), Look::of(Role::Border));
                line.wrap = Wrap::Cut;
                self.lines.push(line);
            }
            Event::TaskListMarker(done) => {
                self.line().push(if *done { "[x] " } else { "[ ] " }, Look::of(Role::Dim));
            }
            Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => self.block(range),
            Tag::Heading { level, .. } => {
                self.block(range);
                self.inline.heading = *level as u8;
            }
            Tag::BlockQuote(_) => {
                self.block(range);
                self.containers.push(Container::Quote);
                self.begun = false;
            }
            Tag::CodeBlock(kind) => {
                self.block(range);
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split_whitespace().next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::HtmlBlock => {
                self.block(range);
                self.html = true;
            }
            Tag::List(_) => self.block(range),
            Tag::Item => self.item(range),
            Tag::Table(align) => {
                self.block(range);
                self.table = Some(Table::new(align.clone()));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(t) = &mut self.table {
                    t.row();
                }
                self.inline.bold += u8::from(*tag == Tag::TableHead);
            }
            Tag::TableCell => self.cur = Some(Line::default()),
            Tag::Emphasis => self.inline.italic += 1,
            Tag::Strong => self.inline.bold += 1,
            Tag::Strikethrough => self.inline.strike += 1,
            // The definition may stand in another block, which is not searched: shown as text.
            Tag::Link { link_type, .. } | Tag::Image { link_type, .. } if is_reference(*link_type) => {
                for (n, text) in lines(&self.source[range.clone()]).enumerate() {
                    if n > 0 {
                        self.soft_break();
                    }
                    self.text(text.trim_start_matches([' ', '\t', '>']));
                }
                self.skip = 1;
            }
            Tag::Link { link_type, dest_url, .. } => {
                let from = self.line().text().len();
                // An autolink is its own address, so it is not shown twice.
                let own = matches!(link_type, LinkType::Autolink | LinkType::Email);
                let url = if own { String::new() } else { dest_url.to_string() };
                self.inline.links.push(Link { url, from, image: false });
            }
            Tag::Image { dest_url, .. } => {
                let look = Look::of(Role::Dim);
                self.line().push("[image: ", look);
                let from = self.line().text().len();
                self.inline.links.push(Link { url: dest_url.to_string(), from, image: true });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => {
                self.flush();
                self.inline.heading = 0;
            }
            TagEnd::HtmlBlock => {
                self.flush();
                self.html = false;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.begun = true;
            }
            TagEnd::Item => {
                if matches!(self.containers.last(), Some(Container::Item { marker: Some(_), .. })) {
                    self.line();
                }
                self.flush();
                self.containers.pop();
                self.begun = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::TableHead => self.inline.bold = self.inline.bold.saturating_sub(1),
            TagEnd::TableCell => {
                if let (Some(t), Some(cell)) = (&mut self.table, self.cur.take()) {
                    t.cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let (bars, lead) = self.left();
                    let room = self.opts.columns.saturating_sub(width(&bars) + width(&lead));
                    for mut line in table.lay(room, self.opts) {
                        let gutter = Gutter::new(format!("{bars}{lead}"), Role::Quote);
                        line.rest = Gutter::new(format!("{}{}", gutter.text, line.rest.text), Role::Quote);
                        line.first = gutter;
                        self.lines.push(line);
                    }
                }
            }
            TagEnd::Emphasis => self.inline.italic = self.inline.italic.saturating_sub(1),
            TagEnd::Strong => self.inline.bold = self.inline.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.inline.strike = self.inline.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Shows the target of a link.
    fn end_link(&mut self) {
        let Some(link) = self.inline.links.pop() else { return };
        let line = self.line();
        let said = line.text().get(link.from..).unwrap_or_default();
        let same = said == link.url || link.url.strip_prefix("mailto:") == Some(said);
        let dim = Look::of(Role::Dim);
        if link.image {
            line.push("]", dim);
        }
        if !link.url.is_empty() && !same {
            line.push(" (", dim);
            line.push_strict(&link.url, dim);
            line.push(")", dim);
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let (bars, lead) = self.left();
        let mut from = self.lines.len();
        if !code.is_empty() {
            for (n, text) in lines(&code).enumerate() {
                let mut line = code_line(text, &format!("{bars}{lead}"), self.opts.ascii);
                if n == 0
                    && let Some(head) = name_language(&mut line, &language, self.opts.columns)
                {
                    self.lines.push(head);
                    from += 1;
                }
                self.lines.push(line);
            }
        }
        if !language.is_empty() && self.lines.len() > from {
            self.codes.push(CodeSpan { language: language.into(), from, to: self.lines.len() });
        }
    }

    fn item(&mut self, range: &Range<usize>) {
        self.flush();
        let nested = self.containers.iter().any(|c| matches!(c, Container::Item { .. }));
        if self.begun && !tight(self.source, range.start) {
            self.blank();
        }
        let own = ordinal_at(&self.source[range.start..]);
        let ordinal = if nested { own } else { self.ordinal.or(own) };
        let marker = match ordinal {
            Some(o) => format!("{}{} ", o.n, char::from(o.delimiter)),
            None => "- ".into(),
        };
        self.enter(marker);
    }

    fn enter(&mut self, marker: String) {
        let columns = width(&marker);
        self.containers.push(Container::Item { marker: Some(marker), columns });
        self.begun = false;
    }

    /// Begins a block: ends the line before, leaves a gap where the source has one.
    fn block(&mut self, range: &Range<usize>) {
        self.flush();
        if self.begun && !(self.in_item() && tight(self.source, range.start)) {
            self.blank();
        }
    }

    fn in_item(&self) -> bool {
        matches!(self.containers.last(), Some(Container::Item { .. }))
    }

    fn blank(&mut self) {
        let (bars, _) = self.bars();
        let mut line = Line::default();
        line.first = Gutter::new(bars.trim_end(), Role::Quote);
        self.lines.push(line);
        self.begun = false;
    }

    fn text(&mut self, text: &str) {
        let look = self.look();
        self.line().push(text, look);
    }

    fn soft_break(&mut self) {
        if self.table.is_some() || self.inline.heading > 0 {
            let look = self.look();
            self.line().push(" ", look);
        } else {
            self.flush();
            self.line();
        }
    }

    fn look(&self) -> Look {
        self.inline.look(self.containers.iter().any(|c| matches!(c, Container::Quote)))
    }

    /// The line in progress.
    fn line(&mut self) -> &mut Line {
        if self.cur.is_none() {
            self.cur = Some(self.line_here());
        }
        self.cur.get_or_insert_default()
    }

    /// The gutter of a line here: bars up to the last quote, and the indentation after it. Takes the markers that were
    /// not drawn yet.
    fn left(&mut self) -> (String, String) {
        let (bars, lead) = self.bars();
        for c in &mut self.containers {
            if let Container::Item { marker, .. } = c {
                *marker = None;
            }
        }
        self.begun = true;
        (bars, lead)
    }

    fn bars(&self) -> (String, String) {
        let (mut bars, mut lead) = (String::new(), String::new());
        let bar = format!("{} ", sign::COLUMN.text(self.opts.ascii));
        for c in &self.containers {
            match c {
                Container::Quote => {
                    bars.push_str(&std::mem::take(&mut lead));
                    bars.push_str(&bar);
                }
                Container::Item { marker: Some(m), .. } => lead.push_str(m),
                Container::Item { columns, .. } => lead.extend(std::iter::repeat_n(' ', *columns)),
            }
            if width(&bars) + width(&lead) > self.opts.columns / 2 {
                break; // Too deeply nested: the rest is not shown.
            }
        }
        (bars, lead)
    }

    fn line_here(&mut self) -> Line {
        let (bars, lead) = self.left();
        let mut line = Line::default();
        line.push(&lead, Look::of(Role::Dim));
        line.rest = Gutter::new(format!("{bars}{}", " ".repeat(width(&lead))), Role::Quote);
        line.first = Gutter::new(bars, Role::Quote);
        line
    }

    fn flush(&mut self) {
        if self.table.is_none()
            && let Some(line) = self.cur.take()
        {
            self.lines.push(line);
        }
    }
}
