//! A memory file taken apart: dated entries, and any other text of the user's, which is kept byte for byte.
//!
//! An entry is an item of a list at the first column, `- 2026-11-26: text`, with indented lines that continue it. The date
//! may be missing. The section `## Archive` holds entries that models do not see. Items within a code block are no entries; a
//! mark that no other one closes opens none, so that no rule behind it loses its power.

use std::ops::Range;

/// The heading of the section for entries that models do not see.
const ARCHIVE: &str = "Archive";

/// A memory file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    pieces: Vec<Piece>,
    /// New lines end as most of the file's do.
    crlf: bool,
    bom: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// One line that is no part of an entry, with its end. `archive`: it is in the section of this name.
    Line {
        raw: String,
        archive: bool,
    },
    Entry {
        raw: String,
        entry: Entry,
    },
}

/// One entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// `2026-11-26`; empty: there is none.
    pub date: String,
    /// Without the date. Further lines are separated by `\n` and not indented.
    pub text: String,
    pub archived: bool,
}

impl Entry {
    /// An entry of this day. Empty lines are left out, since they would end it.
    pub fn new(date: &str, text: &str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Self { date: date.to_owned(), text: lines.join("\n"), archived: false }
    }

    /// `2026-11-26: text`, as it is in the file.
    pub fn line(&self) -> String {
        if self.date.is_empty() { self.text.clone() } else { format!("{}: {}", self.date, self.text) }
    }

    /// [`Self::line`] as the record of a change stores it: a blank before it says that the entry is in the archive. The text
    /// of an entry never begins with one.
    pub fn recorded(&self) -> String {
        format!("{}{}", if self.archived { " " } else { "" }, self.line())
    }

    /// The opposite of [`Self::line`] and of [`Self::recorded`].
    pub fn of_line(line: &str) -> Self {
        let (archived, line) = line.strip_prefix(' ').map_or((false, line), |line| (true, line));
        let (date, text) = split_date(line);
        Self { date: date.to_owned(), text: text.to_owned(), archived }
    }

    /// The two forms in which the record of a change may have it: live, and in the archive.
    pub(super) fn forms(&self) -> [String; 2] {
        let form = |archived| Self { archived, ..self.clone() }.recorded();
        [form(false), form(true)]
    }

    /// Whether this is the entry of a record, which may have been in the archive.
    pub(super) fn is_in(&self, recorded: &Option<String>) -> bool {
        recorded.as_deref().is_some_and(|own| Self::of_line(own).line() == self.line())
    }

    fn raw(&self, end: &str) -> String {
        format!("- {}{end}", self.line().replace('\n', &format!("{end}  ")))
    }
}

/// Why an entry is not found by a part of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindError {
    Nothing,
    /// Several contain it.
    Several(usize),
}

/// A part of a file that models see by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Entry(&'a Entry),
    /// A line that is no part of an entry, as it is in the file.
    Line(&'a str),
}

/// How a part stands in the text that models see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Whole,
    /// With the mark of its origin at its end.
    Marked(&'static str),
    LeftOut,
}

impl Part<'_> {
    /// What the record of a change knows it by: [`Entry::line`], which a line outside of an entry has as well.
    pub(super) fn line(self) -> String {
        match self {
            Self::Entry(entry) => entry.line(),
            Self::Line(raw) => Entry::of_line(raw.trim()).line(),
        }
    }

    /// Whether it says something: empty lines, rules and the marks of code blocks do not.
    pub(super) fn says(self) -> bool {
        match self {
            Self::Entry(_) => true,
            Self::Line(raw) => raw.chars().any(|c| c.is_alphanumeric() || !c.is_ascii()),
        }
    }
}

impl Document {
    /// Takes a file apart. Every text is a document.
    pub fn parse(text: &str) -> Self {
        let (bom, text) = text.strip_prefix('\u{feff}').map_or((false, text), |rest| (true, rest));
        let crlf = text.matches("\r\n").count() * 2 > text.matches('\n').count();
        let mut pieces = Vec::new();
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let code = code_lines(&all);
        // The depth of the heading of the archive that these lines are below.
        let mut archive: Option<usize> = None;
        let mut lines = all.into_iter().zip(code).peekable();
        while let Some((line, code)) = lines.next() {
            let bare = line.trim_end_matches(['\n', '\r']);
            if let Some((depth, title)) = heading(bare).filter(|_| !code) {
                if title.eq_ignore_ascii_case(ARCHIVE) && depth == 2 {
                    archive = Some(depth);
                } else if archive.is_some_and(|open| depth <= open) {
                    archive = None;
                }
            }
            let Some(first) = item(bare).filter(|_| !code) else {
                pieces.push(Piece::Line { raw: line.to_owned(), archive: archive.is_some() });
                continue;
            };
            let (mut raw, mut text) = (line.to_owned(), first.trim().to_owned());
            while let Some((next, _)) = lines.next_if(|(next, _)| continues(next)) {
                raw.push_str(next);
                text.push('\n');
                text.push_str(next.trim());
            }
            let entry = Entry { archived: archive.is_some(), ..Entry::of_line(&text) };
            pieces.push(Piece::Entry { raw, entry });
        }
        Self { pieces, crlf, bom }
    }

    /// The file, byte for byte where nothing was changed.
    pub fn render(&self) -> String {
        let mut out = String::from(if self.bom { "\u{feff}" } else { "" });
        self.pieces.iter().for_each(|piece| out.push_str(piece.raw()));
        out
    }

    /// What models see: everything but the archive, without empty ends.
    pub fn live_text(&self) -> String {
        self.live_text_as(&|_| Shown::Whole)
    }

    /// As [`Self::live_text`], with each part as `shown` says.
    pub(super) fn live_text_as(&self, shown: &dyn Fn(Part<'_>) -> Shown) -> String {
        let mut text = String::new();
        for piece in self.pieces.iter().filter(|piece| !piece.archived()) {
            match shown(piece.part()) {
                Shown::Whole => text.push_str(piece.raw()),
                Shown::Marked(mark) => {
                    text.push_str(piece.raw().trim_end());
                    text.push_str(mark);
                    text.push('\n');
                }
                Shown::LeftOut => {}
            }
        }
        text.replace("\r\n", "\n").trim().to_owned()
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Entry { entry, .. } => Some(entry),
            Piece::Line { .. } => None,
        })
    }

    /// All that says something: entries, those of the archive too, and the lines outside of it that are no part of one.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let pieces = self.pieces.iter().filter(|piece| !matches!(piece, Piece::Line { archive: true, .. }));
        pieces.map(Piece::part).filter(|part| part.says())
    }

    /// All that says something, each as the record of a change knows it.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.parts().map(Part::line)
    }

    /// The lines that models see and that are no part of an entry, without those that say nothing.
    pub(super) fn live_lines(&self) -> impl Iterator<Item = Part<'_>> {
        let live = self.pieces.iter().filter(|piece| !piece.archived()).map(Piece::part);
        live.filter(|part| part.says() && matches!(part, Part::Line(_)))
    }

    /// Lines outside of the archive that are no part of an entry, without headings, empty lines and marks of code blocks.
    pub fn other_lines(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Line { raw, archive: false } => {
                let line = raw.trim();
                let bare = line.chars().any(char::is_alphanumeric) && !line.starts_with(['#', '`', '~']);
                bare.then_some(line)
            }
            _ => None,
        })
    }

    /// Whether this entry is in the file, in the archive or outside of it as it says.
    pub fn contains(&self, entry: &Entry) -> bool {
        self.entries().any(|own| own == entry)
    }

    /// Whether an entry with the same text is in the same part of the file, whatever its date: in the archive or outside of it.
    pub fn has_text_of(&self, entry: &Entry) -> bool {
        self.entries().any(|own| own.archived == entry.archived && own.text == entry.text)
    }

    /// The entry with this text, or the only one that contains it. Entries outside of the archive come first.
    ///
    /// # Errors
    /// When there is none, or several contain it.
    pub fn find(&self, text: &str) -> Result<Entry, FindError> {
        let wanted = Entry::new("", text).text;
        if wanted.is_empty() {
            return Err(FindError::Nothing);
        }
        let low = wanted.to_lowercase();
        for archived in [false, true] {
            let among = || self.entries().filter(move |e| e.archived == archived);
            if let Some(exact) = among().find(|e| e.text == wanted || e.line() == wanted) {
                return Ok(exact.clone());
            }
            let mut parts = among().filter(|e| e.line().to_lowercase().contains(&low));
            if let Some(first) = parts.next() {
                return match parts.count() {
                    0 => Ok(first.clone()),
                    more => Err(FindError::Several(more + 1)),
                };
            }
        }
        Err(FindError::Nothing)
    }

    /// Adds an entry behind the last one of its section, or behind `after`.
    pub fn add(&mut self, entry: &Entry, after: Option<&Entry>) {
        let place = after.and_then(|after| self.place(after)).or_else(|| {
            self.pieces
                .iter()
                .rposition(|p| matches!(p, Piece::Entry { entry: own, .. } if own.archived == entry.archived))
        });
        let raw = entry.raw(self.end());
        let piece = Piece::Entry { raw, entry: entry.clone() };
        if let Some(at) = place {
            self.close_line(at);
            self.pieces.insert(at + 1, piece);
            return;
        }
        let range = self.section(entry.archived);
        // Empty lines at the end of the section stay behind the entry.
        let mut at = range.end;
        while at > range.start && self.pieces[at - 1].raw().trim().is_empty() {
            at -= 1;
        }
        if at > 0 {
            self.close_line(at - 1);
            if at == self.pieces.len() || !self.pieces[at].raw().trim().is_empty() {
                self.pieces.insert(at, self.empty_line(entry.archived));
            }
            at += 1;
        }
        self.pieces.insert(at, piece);
        if self.pieces.get(at + 1).is_some_and(|next| !next.raw().trim().is_empty()) {
            self.pieces.insert(at + 1, self.empty_line(entry.archived));
        }
    }

    /// Takes an entry out. False: it is not there.
    pub fn remove(&mut self, entry: &Entry) -> bool {
        let Some(at) = self.place(entry) else { return false };
        self.pieces.remove(at);
        true
    }

    /// Puts an entry in the place of another one; where its text is there already, the other one only goes. False: the other
    /// one is not there.
    pub fn replace(&mut self, old: &Entry, new: &Entry) -> bool {
        let Some(at) = self.place(old) else { return false };
        let new = Entry { archived: old.archived, ..new.clone() };
        self.pieces.remove(at);
        if !self.has_text_of(&new) {
            self.pieces.insert(at, Piece::Entry { raw: new.raw(self.end()), entry: new });
        }
        true
    }

    /// Moves an entry into the archive, or out of it; where its text is there already, it only goes. False: it is not there.
    pub fn archive(&mut self, entry: &Entry, archived: bool) -> bool {
        if !self.remove(entry) {
            return false;
        }
        let moved = Entry { archived, ..entry.clone() };
        if !self.has_text_of(&moved) {
            self.add(&moved, None);
        }
        true
    }

    fn place(&self, entry: &Entry) -> Option<usize> {
        self.pieces.iter().position(|p| matches!(p, Piece::Entry { entry: own, .. } if own == entry))
    }

    /// The lines of the section that an entry belongs to; the archive is made where it is missing.
    fn section(&mut self, archived: bool) -> Range<usize> {
        let first = self.pieces.iter().position(Piece::archived);
        match (first, archived) {
            (None, false) => 0..self.pieces.len(),
            (Some(first), false) => 0..first,
            (Some(first), true) => {
                let length = self.pieces[first..].iter().take_while(|p| p.archived()).count();
                first + 1..first + length
            }
            (None, true) => {
                if let Some(last) = self.pieces.len().checked_sub(1) {
                    self.close_line(last);
                    if !self.pieces[last].raw().trim().is_empty() {
                        self.pieces.push(self.empty_line(false));
                    }
                }
                let raw = format!("## {ARCHIVE}{}", self.end());
                self.pieces.push(Piece::Line { raw, archive: true });
                self.pieces.len()..self.pieces.len()
            }
        }
    }

    /// A file may end without the end of a line.
    fn close_line(&mut self, at: usize) {
        let end = self.end();
        let (Piece::Line { raw, .. } | Piece::Entry { raw, .. }) = &mut self.pieces[at];
        if !raw.ends_with('\n') {
            raw.push_str(end);
        }
    }

    fn empty_line(&self, archive: bool) -> Piece {
        Piece::Line { raw: self.end().to_owned(), archive }
    }

    fn end(&self) -> &'static str {
        if self.crlf { "\r\n" } else { "\n" }
    }
}

impl Piece {
    fn raw(&self) -> &str {
        match self {
            Self::Line { raw, .. } | Self::Entry { raw, .. } => raw,
        }
    }

    fn part(&self) -> Part<'_> {
        match self {
            Self::Line { raw, .. } => Part::Line(raw),
            Self::Entry { entry, .. } => Part::Entry(entry),
        }
    }

    fn archived(&self) -> bool {
        match self {
            Self::Line { archive, .. } => *archive,
            Self::Entry { entry, .. } => entry.archived,
        }
    }
}

/// Which lines are of a code block, its marks among them. A block below an item ends with the item.
fn code_lines(lines: &[&str]) -> Vec<bool> {
    let mut code = vec![false; lines.len()];
    // Whether the line stands below an item, whose lines are indented.
    let (mut at, mut below) = (0, false);
    // Of each mark: up to this line none of at least this length closes a block.
    let mut unclosed = [(0, 0); 2];
    while let Some(line) = lines.get(at) {
        let bare = line.trim_end();
        below = item(bare).is_some() || (below && (bare.is_empty() || continues(line)));
        let open = fence(bare).filter(|open| {
            let (end, least) = unclosed[usize::from(open.mark == '~')];
            at >= end || open.length < least
        });
        if let Some(open) = open {
            let mut end = at + 1;
            let inside = |line: &str| !below || line.trim().is_empty() || continues(line);
            while lines.get(end).is_some_and(|line| inside(line) && !open.is_closed_by(line)) {
                end += 1;
            }
            if lines.get(end).is_some_and(|line| inside(line)) {
                code[at..=end].fill(true);
                at = end;
            } else {
                unclosed[usize::from(open.mark == '~')] = (end, open.length);
            }
        }
        at += 1;
    }
    code
}

/// A mark of a code block.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// Whether a line ends the block that this mark begins.
    fn is_closed_by(self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }
}

/// The mark of a code block at the beginning of a line.
fn fence(line: &str) -> Option<Fence> {
    let text = line.trim();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    // Text in backquotes that ends in the same line is no block.
    let opens = length >= 3 && !(mark == '`' && text[length..].contains('`'));
    opens.then_some(Fence { mark, length })
}

/// Depth and title of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.bytes().take_while(|b| *b == b'#').count();
    let title = line[depth..].strip_prefix([' ', '\t'])?;
    (1..=6).contains(&depth).then(|| (depth, title.trim().trim_end_matches('#').trim_end()))
}

/// The text of an item of a list that begins in this line.
fn item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
    // A horizontal rule.
    let is_rule = rest.chars().all(|c| matches!(c, '-' | '*' | ' '));
    (!is_rule).then_some(rest)
}

fn continues(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// The date at the start of an entry, and the rest.
fn split_date(text: &str) -> (&str, &str) {
    let is_date = |date: &str| {
        date.bytes().enumerate().all(|(i, b)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
    };
    match text.split_at_checked(10) {
        Some((date, rest)) if is_date(date) && rest.starts_with(':') => (date, rest[1..].trim_start()),
        _ => ("", text),
    }
}
