//! A session as Markdown. No content can break out of its place: texts are quoted line by line, output is in fences
//! that are longer than any fence in it, and HTML in texts is escaped.

use std::collections::HashSet;
use std::fmt::Write as _;

use tiller_protocol::EntryBody;
use tiller_text::clean::Mode;

use super::bits::{Fragment, cleaned, one_line, rendered};
use super::book::{SessionContent, called};
use super::order::{Order, Step};
use super::prose::{OPTIONS, harmless};

/// The current branch; with `all` every branch, each from its fork on.
pub(super) fn write(book: &SessionContent, all: bool) -> String {
    let mut out = String::new();
    head(book, &mut out);
    let (mut said, mut order) = (HashSet::new(), Order::new(book));
    let ends = book.ends();
    let mut left = 0;
    for (n, (branch, end)) in ends.iter().enumerate() {
        let path = book.path(Some(*end));
        let new: Vec<usize> = path.into_iter().filter(|at| !said.contains(at)).collect();
        // The first is the current one.
        if n > 0 && !all {
            left += usize::from(!new.is_empty());
            said.extend(new);
            continue;
        }
        let Some(first) = new.first() else { continue };
        if n > 0 {
            let from =
                match book.path(book.entries[*first].parent).iter().rev().find(|at| is_message(book, **at)) {
                    Some(at) => format!("from: {}", escape(&one_line(book.first_words(*at)))),
                    None => "from the start".into(),
                };
            let name = branch.map_or("unnamed".into(), |b| escape(&one_line(called(b))));
            let _ = write!(out, "\n---\n\n## Branch {name}\n\n{from}\n");
        }
        for at in new {
            said.insert(at);
            entry(book, at, &mut out);
            folded(book, order.agents_of(at), &mut out);
        }
    }
    let loose = order.loose(|n| all || book.agents[n].row.spawned_by.is_none());
    folded(book, loose, &mut out);
    if left > 0 {
        let _ = write!(out, "\n---\n\n{left} more branch(es) are not shown; `--all` includes them.\n");
    }
    out
}

/// The entries of agents, each after a line of its own.
fn folded(book: &SessionContent, steps: Vec<Step>, out: &mut String) {
    let fold = |line: &str, out: &mut String| {
        let _ = write!(out, "\n<details><summary>{}</summary>\n", super::prose::text(&one_line(line)));
    };
    for step in steps {
        match step {
            Step::Entry(at) => entry(book, at, out),
            Step::Agent(n) => fold(&book.agents[n].line(), out),
            Step::Open(at) => fold(&format!("Branch: {}", book.first_words(at)), out),
            Step::Close => out.push_str("\n</details>\n"),
        }
    }
}

fn is_message(book: &SessionContent, at: usize) -> bool {
    matches!(book.entries[at].body, EntryBody::User { .. } | EntryBody::Checkpoint { .. })
}

fn head(book: &SessionContent, out: &mut String) {
    let s = &book.row.summary;
    let (usage, cost) = book.totals(false);
    let title = if s.title.is_empty() { "Session".into() } else { escape(&one_line(&s.title)) };
    let _ = write!(out, "# {title}\n\n");
    let _ = writeln!(out, "- session `{}`", s.id);
    let _ = writeln!(out, "- folder {}", code(&one_line(&s.project)));
    let _ = writeln!(out, "- from {} to {} UTC", minute(s.created), minute(s.used));
    let money = cost.map_or("cost unknown".into(), |c| format!("${:.4}", c.usd()));
    let _ = writeln!(
        out,
        "- {} entries, {} tokens in, {} out, {money}",
        book.own().count(),
        usage.context(),
        usage.output
    );
    if !book.agents.is_empty() {
        let _ = writeln!(out, "- agents: {}", book.agents_in_short());
    }
    if book.branches.len() > 1 {
        let names: Vec<String> = book
            .branches
            .iter()
            .map(|b| {
                let mark = if b.name == book.row.head { " (current)" } else { "" };
                format!("{}{mark}", code(&one_line(called(b))))
            })
            .collect();
        let _ = writeln!(out, "- branches: {}", names.join(", "));
    }
}

fn minute(time: tiller_protocol::Time) -> String {
    time.to_rfc3339()[..16].replace('T', " ")
}

fn entry(book: &SessionContent, at: usize, out: &mut String) {
    let entry = &book.entries[at];
    let Some(rendered) = rendered(book, entry) else { return };
    if !rendered.who.is_empty() {
        let mut facts = vec![entry.time.to_rfc3339()[..19].replace('T', " ")];
        facts.extend(rendered.facts.iter().map(|f| escape(&one_line(f))));
        facts.extend(book.tags_at(entry.id).map(|t| format!("tag {}", code(&one_line(&t.name)))));
        let _ = write!(out, "\n### {} · {}\n", escape(&one_line(&rendered.who)), facts.join(" · "));
    }
    for bit in &rendered.bits {
        put(bit, out);
    }
}

fn put(bit: &Fragment, out: &mut String) {
    match bit {
        Fragment::Prose(text) => quote(&tamed(&untabbed(&cleaned(text, Mode::Prose))), out),
        Fragment::Plain(text) => {
            // Two trailing blanks keep the lines apart.
            let lines: Vec<String> = cleaned(text, Mode::Prose).lines().map(escape).collect();
            quote(&lines.join("  \n"), out);
        }
        Fragment::Code { lang, text } => {
            let text = cleaned(text, Mode::Strict);
            let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
            let _ = write!(out, "\n{fence}{lang}\n{text}\n{fence}\n");
        }
        Fragment::Image { media_type, data } => {
            let kind = one_line(media_type);
            let _ = write!(out, "\n> (image, {}, {} KiB)\n", escape(&kind), data.len() * 3 / 4 / 1024 + 1);
        }
        Fragment::Fold { line, bits } => {
            let _ = write!(out, "\n<details><summary>{}</summary>\n", super::prose::text(&one_line(line)));
            for bit in bits {
                put(bit, out);
            }
            out.push_str("\n</details>\n");
        }
    }
}

/// Prefixes every line with a quotation mark.
fn quote(text: &str, out: &mut String) {
    out.push('\n');
    for line in text.lines() {
        let _ = writeln!(out, "> {line}");
    }
}

/// Replaces tabs by blanks: after a quotation mark a tab is narrower, so indented code would not be code.
fn untabbed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let wide = 4 - column % 4;
                out.extend(std::iter::repeat_n(' ', wide));
                column += wide;
                continue;
            }
            '\n' => column = 0,
            _ => column += 1,
        }
        out.push(c);
    }
    out
}

/// Maximum passes of [`tamed`]: text in an escaped comment may become active.
const ROUNDS: usize = 8;

/// A model's Markdown with HTML, images and unusual links as text: a viewer must fetch nothing.
fn tamed(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS {
        let wild = wild(&text);
        if wild.is_empty() {
            return text;
        }
        let mut out = String::with_capacity(text.len() + wild.len());
        let mut from = 0;
        for at in wild {
            out.push_str(&text[from..at]);
            out.push('\\');
            from = at;
        }
        out.push_str(&text[from..]);
        text = out;
    }
    text.lines().map(escape).collect::<Vec<_>>().join("  \n")
}

/// Positions of characters to escape. Every `<` outside of code, HTML or not, since programs differ in what they accept
/// as HTML.
fn wild(text: &str) -> Vec<usize> {
    use pulldown_cmark::{Event, Parser, Tag, TagEnd};
    let (mut at, mut code) = (Vec::new(), false);
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Html(_) | Event::InlineHtml(_) | Event::Text(_) if !code => {
                let signs = text[range.clone()].match_indices('<').map(|(n, _)| range.start + n);
                at.extend(signs.filter(|n| {
                    let before = text[..*n].bytes().rev().take_while(|b| *b == b'\\').count();
                    before % 2 == 0
                }));
            }
            Event::Start(Tag::Image { .. }) => at.push(range.start),
            Event::Start(Tag::Link { dest_url, .. }) if !harmless(&dest_url) => at.push(range.start),
            _ => {}
        }
    }
    at.sort_unstable();
    at.dedup();
    at
}

/// Plain text: no character of it is Markdown.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let indent = text.len() - text.trim_start().len();
    // Deep indentation would be code; non-breaking blanks keep it.
    out.extend(text[..indent].chars().map(|_| '\u{a0}'));
    let text = &text[indent..];
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.len() - numbered.len();
    let list = if number > 0 && numbered.starts_with(['.', ')']) { Some(number) } else { None };
    for (n, c) in text.char_indices() {
        let sign = match c {
            // Within a word it has no meaning.
            '_' => {
                let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !(letter(text[..n].chars().next_back()) && letter(text[n + 1..].chars().next()))
            }
            '\\' | '`' | '*' | '[' | ']' | '<' | '&' | '~' | '|' => true,
            '#' | '>' | '-' | '+' | '=' => n == 0,
            _ => Some(n) == list,
        };
        if sign {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// As a span of code.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let pad = if text.contains('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str, of: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
