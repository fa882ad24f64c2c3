//! A session as one self-contained page: no script, no external resource, and a content security policy that enforces
//! this. Turns, calls and side branches can be folded.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tiller_protocol::{Entry, EntryBody, Origin};
use tiller_store::BranchRow;
use tiller_text::clean::Mode;

use super::bits::{Fragment, cleaned, one_line, rendered};
use super::book::{SessionContent, called};
use super::order::{Order, Step};
use super::prose::{self, text};

const STYLE: &str = include_str!("page.css");

/// Types of images that are shown: none of them can contain a script.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Writes the whole tree.
pub(super) fn write(book: &SessionContent) -> String {
    let style = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes()));
    let title = words(&book.row.summary.title);
    let title = if title.is_empty() { "Session".into() } else { title };
    let mut page = Page { book, out: String::new(), turns: vec![false] };
    let _ = write!(
        page.out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    page.facts();
    page.out.push_str("</header>\n<main>\n");
    for step in Order::new(book).all() {
        match step {
            Step::Entry(at) => page.entry(&book.entries[at]),
            Step::Open(at) => page.open(at),
            Step::Agent(n) => page.agent(n),
            Step::Close => page.close(),
        }
    }
    page.end_turn();
    page.out.push_str("</main>\n</body>\n</html>\n");
    page.out
}

/// Untrusted words in one line, for text and attributes.
fn words(foreign: &str) -> String {
    text(&one_line(foreign))
}

fn minute(time: tiller_protocol::Time) -> String {
    time.to_rfc3339()[..16].replace('T', " ")
}

struct Page<'a> {
    book: &'a SessionContent,
    out: String,
    /// For each open branch, whether it has an open turn.
    turns: Vec<bool>,
}

impl Page<'_> {
    fn facts(&mut self) {
        let book = self.book;
        let s = &book.row.summary;
        let (usage, cost) = book.totals(false);
        let fact = |out: &mut String, name: &str, value: &str| {
            let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
        };
        self.out.push_str("<dl>\n");
        fact(&mut self.out, "Session", &format!("<code>{}</code>", s.id));
        fact(&mut self.out, "Folder", &words(&s.project));
        fact(&mut self.out, "Time", &format!("{} to {} UTC", minute(s.created), minute(s.used)));
        fact(&mut self.out, "Entries", &book.own().count().to_string());
        fact(&mut self.out, "Tokens", &format!("{} in, {} out", usage.context(), usage.output));
        fact(&mut self.out, "Cost", &cost.map_or("unknown".into(), |c| format!("${:.4}", c.usd())));
        let branches: Vec<String> = book.branches.iter().map(|b| self.branch(b)).collect();
        fact(&mut self.out, "Branches", &branches.join(", "));
        if !book.tags.is_empty() {
            let tags: Vec<String> = book
                .tags
                .iter()
                .map(|t| format!("<a href=\"#e-{}\">{}</a>", t.entry, words(&t.name)))
                .collect();
            fact(&mut self.out, "Tags", &tags.join(", "));
        }
        if !book.agents.is_empty() {
            fact(&mut self.out, "Agents", &text(&book.agents_in_short()));
        }
        self.out.push_str("</dl>\n");
    }

    /// Its name, as a link to its end.
    fn branch(&self, branch: &BranchRow) -> String {
        let name = words(called(branch));
        let name = match branch.entry {
            Some(end) => format!("<a href=\"#e-{end}\">{name}</a>"),
            None => name,
        };
        let current = if branch.name == self.book.row.head { " (current)" } else { "" };
        let away = if branch.archived { " (archived)" } else { "" };
        format!("{name}{current}{away}")
    }

    fn open(&mut self, at: usize) {
        let entry = &self.book.entries[at];
        let (first, when) = (words(self.book.first_words(at)), minute(entry.time));
        let _ = writeln!(
            self.out,
            "<details class=\"branch\"><summary>Branch: {first} <span class=\"when\">{when}</span></summary>"
        );
        self.turns.push(false);
    }

    fn agent(&mut self, n: usize) {
        let agent = &self.book.agents[n];
        let (line, when) = (words(&agent.line()), minute(agent.row.summary.created));
        let _ = writeln!(
            self.out,
            "<details class=\"agent\"><summary>{line} <span class=\"when\">{when}</span></summary>"
        );
        self.turns.push(false);
    }

    fn close(&mut self) {
        self.end_turn();
        self.turns.pop();
        self.out.push_str("</details>\n");
    }

    fn end_turn(&mut self) {
        if let Some(open) = self.turns.last_mut()
            && std::mem::take(open)
        {
            self.out.push_str("</details>\n");
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let Some(rendered) = rendered(self.book, entry) else { return };
        if let EntryBody::User { message, origin: Origin::Prompt | Origin::Task | Origin::Shell, .. } =
            &entry.body
        {
            self.end_turn();
            let first = words(message.text.lines().next().unwrap_or(""));
            let _ = writeln!(
                self.out,
                "<details class=\"turn\" open><summary><span class=\"first\">{first}</span> \
                 <span class=\"when\">{}</span></summary>",
                minute(entry.time)
            );
            if let Some(open) = self.turns.last_mut() {
                *open = true;
            }
        }
        let _ = writeln!(self.out, "<article class=\"{}\" id=\"e-{}\">", rendered.class, entry.id);
        let mut chips = String::new();
        for branch in self.book.heads_at(entry.id) {
            let _ = write!(chips, " <span class=\"chip\">end of {}</span>", words(called(branch)));
        }
        for tag in self.book.tags_at(entry.id) {
            let _ = write!(chips, " <span class=\"chip\">{}</span>", words(&tag.name));
        }
        if !rendered.who.is_empty() {
            let mut facts = vec![entry.time.to_rfc3339()[11..19].to_owned()];
            facts.extend(rendered.facts.iter().map(|f| words(f)));
            let _ =
                writeln!(self.out, "<h3><b>{}</b> {}{chips}</h3>", words(&rendered.who), facts.join(" · "));
        } else if !chips.is_empty() {
            let _ = writeln!(self.out, "<h3>{chips}</h3>");
        }
        for bit in &rendered.bits {
            self.bit(bit);
        }
        self.out.push_str("</article>\n");
    }

    fn bit(&mut self, bit: &Fragment) {
        match bit {
            Fragment::Prose(markdown) => self.out.push_str(&prose::html(markdown)),
            Fragment::Plain(foreign) => {
                let _ =
                    writeln!(self.out, "<div class=\"plain\">{}</div>", text(&cleaned(foreign, Mode::Prose)));
            }
            Fragment::Code { text: foreign, .. } => {
                // A line feed directly after the tag would be ignored.
                let _ = writeln!(self.out, "<pre>\n{}</pre>", text(&cleaned(foreign, Mode::Strict)));
            }
            Fragment::Image { media_type, data } => {
                let sound =
                    data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
                let _ = match PICTURES.iter().find(|kind| *kind == media_type) {
                    Some(kind) if sound => {
                        writeln!(self.out, "<p><img alt=\"\" src=\"data:{kind};base64,{data}\"></p>")
                    }
                    _ => writeln!(self.out, "<p>(picture, {})</p>", words(media_type)),
                };
            }
            Fragment::Fold { line, bits } => {
                let _ = writeln!(self.out, "<details class=\"fold\"><summary>{}</summary>", words(line));
                for bit in bits {
                    self.bit(bit);
                }
                self.out.push_str("</details>\n");
            }
        }
    }
}
