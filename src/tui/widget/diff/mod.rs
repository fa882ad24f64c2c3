//! The one drawing of a diff: line numbers with signs, bands over the full width, changed words that stand out, and the
//! colours of the language. Unified, or old and new side by side where there is room.
//!
//! Colours come from the caller's highlighter. What is not coloured yet is named in [`DiffText::codes`], so that a sheet
//! can colour it later; side by side, the caller lays the diff out again.

mod colours;
mod split;
mod words;

use tiller_protocol::ChangeKind;
use tiller_protocol::tool::FileDiff;

use crate::text::clean;
use crate::text::diff::{Hunk, LineKind, Patch};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::sheet::{Answer, CodeSpan, Highlight};
use crate::text::shorten::shorten_middle;
use crate::text::width::width;
use crate::theme::Role;
use crate::widget::sign;
pub use colours::{DiffColours, DiffScroll};

/// From this width on, old and new stand side by side.
pub const SIDE_BY_SIDE: usize = 140;
/// How a diff is laid out.
#[derive(Clone, Copy, Debug)]
pub struct DiffLayout {
    /// Columns of a row, line numbers included.
    pub columns: usize,
    /// Old at the left, new at the right.
    pub side_by_side: bool,
    /// Long lines are cut with a mark; otherwise they wrap.
    pub cut: bool,
    pub ascii: bool,
}

impl DiffLayout {
    /// Wrapped lines, side by side where there is room.
    pub fn new(columns: usize, ascii: bool) -> Self {
        Self { columns, side_by_side: columns >= SIDE_BY_SIDE, cut: false, ascii }
    }

    /// One below the other, whatever the width.
    #[must_use]
    pub fn unified(self) -> Self {
        Self { side_by_side: false, ..self }
    }

    /// With long lines cut.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { cut: true, ..self }
    }
}

/// Lines of a diff.
#[derive(Clone, Debug, Default)]
pub struct DiffText {
    pub lines: Vec<Line>,
    /// For each line of a single hunk, the index of the hunk's line that it shows.
    pub origins: Vec<usize>,
    /// Lines that have no colours yet.
    pub codes: Vec<CodeSpan>,
    /// Colours are being worked out that only another layout can show.
    pub pending: bool,
}

impl DiffText {
    /// Adds a line that is no code.
    pub fn push(&mut self, line: Line) {
        self.lines.push(line);
        self.origins.push(0);
    }

    /// Adds the lines of `other`.
    pub fn append(&mut self, other: Self) {
        let at = self.lines.len();
        self.lines.extend(other.lines);
        self.origins.extend(other.origins);
        self.codes.extend(other.codes.into_iter().map(|c| CodeSpan {
            from: c.from + at,
            to: c.to + at,
            ..c
        }));
        self.pending |= other.pending;
    }
}

/// A highlighter that colours nothing: code is coloured later, from [`DiffText::codes`].
pub struct Uncoloured;

impl Highlight for Uncoloured {
    fn want(&mut self, _language: &str, _lines: &[Line]) -> Answer {
        Answer::Later
    }
}

/// A whole file: its header and its hunks.
pub fn file(f: &FileDiff, o: DiffLayout, colours: &mut impl Highlight) -> DiffText {
    let mut all = DiffText::default();
    all.push(header(f, o));
    all.append(body(f, o, colours));
    all
}

/// The hunks of a file, with a row between two of them.
pub fn body(f: &FileDiff, o: DiffLayout, colours: &mut impl Highlight) -> DiffText {
    let mut all = DiffText::default();
    let patch = Patch::read(&f.diff);
    if patch.hunks.is_empty() {
        all.push(Line::strict("  no text to show", Look::of(Role::Dim), Wrap::Word));
    }
    for (n, h) in patch.hunks.iter().enumerate() {
        if n > 0 {
            all.push(between(h, o.ascii));
        }
        all.append(hunk(h, &f.path, o, colours));
    }
    all
}

/// The first `most` changed lines of a file, and how many more there are.
pub fn first_changes(
    f: &FileDiff,
    most: usize,
    o: DiffLayout,
    colours: &mut impl Highlight,
) -> (DiffText, usize) {
    let mut text = DiffText::default();
    let mut all = 0;
    for mut h in Patch::read(&f.diff).hunks {
        h.lines.retain(|l| matches!(l.kind, LineKind::Added | LineKind::Removed));
        all += h.lines.len();
        // Blank lines say nothing here.
        h.lines.retain(|l| !l.text.trim().is_empty());
        h.lines.truncate(most.saturating_sub(text.lines.len()));
        if !h.lines.is_empty() {
            text.append(hunk(&h, &f.path, o, colours));
        }
    }
    let left = all.saturating_sub(text.lines.len());
    (text, left)
}

/// `src/client.py   +12 −0`, with a word for a file that came, went or moved.
pub fn header(f: &FileDiff, o: DiffLayout) -> Line {
    let word = match f.kind {
        ChangeKind::Added => "  new",
        ChangeKind::Deleted => "  deleted",
        ChangeKind::Renamed => "  renamed",
        ChangeKind::Modified | ChangeKind::Storm | ChangeKind::Git => "",
    };
    let counts = counts(f.added, f.removed, o.ascii);
    let mut line = Line::new(Wrap::Cut);
    let room = o.columns.saturating_sub(width(word) + width(counts.text()) + 3);
    line.push_strict(&shorten_middle(&clean::plain(&f.path), room, o.ascii), Look::of(Role::Strong));
    line.push(word, Look::of(Role::Dim));
    line.push("   ", Look::of(Role::Text));
    line.push_slice(&counts, 0, counts.text().len());
    line
}

/// `+12 −0`: a count of nothing is dim.
pub fn counts(added: u32, removed: u32, ascii: bool) -> Line {
    let mut line = Line::new(Wrap::Cut);
    let role = |n: u32, role| Look::of(if n == 0 { Role::Dim } else { role });
    line.push(&format!("+{added}"), role(added, Role::Added));
    line.push(" ", Look::of(Role::Text));
    line.push(&format!("{}{removed}", minus(ascii)), role(removed, Role::Removed));
    line
}

/// Digits of the largest counts among files.
pub fn digits_of(counts: impl Iterator<Item = (u32, u32)>) -> (usize, usize) {
    let digits = |n: u32| n.to_string().len();
    counts.fold((1, 1), |most, c| (most.0.max(digits(c.0)), most.1.max(digits(c.1))))
}

/// `+12  −0` in two columns, with so many digits for each count.
pub fn columns(added: u32, removed: u32, digits: (usize, usize), ascii: bool) -> Line {
    let mut line = Line::new(Wrap::Cut);
    for (sign, n, w, role) in
        [("+", added, digits.0, Role::Added), (minus(ascii), removed, digits.1, Role::Removed)]
    {
        let text = format!("{sign}{n}");
        let role = if n == 0 { Role::Dim } else { role };
        line.push(&format!("{text:>w$} ", w = w + 1), Look::of(role));
    }
    line
}

/// One letter for what happened to a file.
pub fn letter(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
        ChangeKind::Renamed => "R",
        ChangeKind::Storm => "*",
        ChangeKind::Git => "G",
    }
}

/// The sign of a removed line.
pub fn minus(ascii: bool) -> &'static str {
    sign::MINUS.text(ascii)
}

/// The row above a hunk: unchanged lines are left out here, and the hunk lies in this function.
pub fn between(h: &Hunk, ascii: bool) -> Line {
    title(h, false, ascii)
}

/// The same for a hunk that can be chosen.
pub fn title(h: &Hunk, chosen: bool, ascii: bool) -> Line {
    let (mark, role) = match chosen {
        true => (sign::CLOSED.text(ascii), Role::Accent),
        false if h.old_start <= 1 => ("", Role::Dim),
        false => (sign::LEFT_OUT.text(ascii), Role::Dim),
    };
    let mut line = Line::new(Wrap::Cut);
    line.push(&format!("{mark:>w$}", w = digits(h)), Look::of(role));
    if chosen {
        let (from, to) = span(h);
        let dash = sign::RANGE.text(ascii);
        let lines =
            if from == to { format!("    line {from}") } else { format!("    lines {from}{dash}{to}") };
        line.push(&lines, Look::of(Role::Dim));
    }
    if let Some(section) = section(h) {
        line.push("    ", Look::of(Role::Dim));
        line.push_strict(section, Look::of(Role::Dim));
    }
    line
}

/// First and last line of a hunk in the new file, or in the old one where nothing is left of it.
fn span(h: &Hunk) -> (u32, u32) {
    let new = |l: &crate::text::diff::DiffLine| l.new;
    let numbers = || h.lines.iter().filter_map(new);
    let old = || h.lines.iter().filter_map(|l| l.old);
    let ends = |n: Vec<u32>| Some((*n.first()?, *n.last()?));
    ends(numbers().collect()).or_else(|| ends(old().collect())).unwrap_or((h.new_start, h.new_start))
}

/// Returns what stands behind the ranges of the hunk's header: the function that it lies in.
pub fn section(h: &Hunk) -> Option<&str> {
    let (_, section) = h.header.strip_prefix("@@")?.split_once("@@")?;
    Some(section.trim()).filter(|s| !s.is_empty())
}

/// The language of a file, as the highlighter knows it: the ending of its name, or the name.
pub fn language(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, ending)| ending)
}

/// The lines of a hunk of the file `path`.
pub fn hunk(h: &Hunk, path: &str, o: DiffLayout, colours: &mut impl Highlight) -> DiffText {
    let language = language(path);
    let mut code = words::lines(h);
    let later = match colours.want(language, &code) {
        Answer::Ready(runs) => {
            code.iter_mut().zip(runs.iter()).for_each(|(line, runs)| line.recolour(runs));
            false
        }
        Answer::Later => true,
        Answer::Plain => false,
    };
    let mut text = if o.side_by_side { split::lines(h, &code, o) } else { unified(h, code, o) };
    if later && o.side_by_side {
        text.pending = true;
    } else if later {
        text.codes.push(CodeSpan { language: language.into(), from: 0, to: text.lines.len() });
    }
    text
}

fn unified(h: &Hunk, code: Vec<Line>, o: DiffLayout) -> DiffText {
    let digits = digits(h);
    let mut all = DiffText::default();
    for (n, (l, mut line)) in h.lines.iter().zip(code).enumerate() {
        let look = LineLook::of(l.kind, o.ascii);
        let number = l.new.filter(|_| l.kind != LineKind::Removed).or(l.old);
        let number = number.map_or_else(String::new, |n| n.to_string());
        line.first = Gutter::new(format!("{number:>digits$} "), look.number).then(&look.gutter(), look.mark);
        line.rest = Gutter::new(format!("{:>digits$} ", ""), Role::Dim).then(&wrapped(o.ascii), Role::Dim);
        line.band = look.band;
        if o.cut {
            line.shorten(o.columns.saturating_sub(width(&line.first.text)), o.ascii);
            line.wrap = Wrap::Cut;
        }
        all.lines.push(line);
        all.origins.push(n);
    }
    all
}

/// Before a row that goes on: three columns.
fn wrapped(ascii: bool) -> String {
    format!("{}  ", sign::WRAPPED.text(ascii))
}

/// Columns of the line numbers.
fn digits(h: &Hunk) -> usize {
    let last = h.lines.iter().filter_map(|l| l.old.max(l.new)).max().unwrap_or(0);
    last.to_string().len().max(4)
}

/// Sign and roles of a line.
struct LineLook {
    sign: &'static str,
    mark: Role,
    number: Role,
    band: Option<Role>,
}

impl LineLook {
    fn of(kind: LineKind, ascii: bool) -> Self {
        let (sign, mark, number, band) = match kind {
            LineKind::Context => (" ", Role::Dim, Role::Dim, None),
            LineKind::Added => ("+", Role::Added, Role::Text, Some(Role::AddedBand)),
            LineKind::Removed => (minus(ascii), Role::Removed, Role::Text, Some(Role::RemovedBand)),
            LineKind::Remark => ("\\", Role::Dim, Role::Dim, None),
        };
        Self { sign, mark, number, band }
    }

    /// The sign with blanks: three columns.
    fn gutter(&self) -> String {
        format!("{}  ", self.sign)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
