//! Layout of one block of the conversation, one file per kind. A cell is laid out once per change and width; drawing
//! takes rows from the layout.

mod cause;
pub(crate) mod describe;
mod end;
mod finished;
mod note;
mod notice;
pub mod plain;
mod reply;
mod shell;
mod summary;
mod thinking;
mod tool;
mod user;

use jiff::tz::TimeZone;
use tiller_protocol::Time;

use crate::model::conversation::{Body, Cell, ToolCell};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::markdown::Doc;
use crate::text::sheet::{CodeSpan, Sheet, Stack};
use crate::theme::Role;
use crate::widget::sign;

pub use describe::describe;
pub(crate) use summary::thousands;
pub use tool::{inner_sign, seconds};
pub(crate) use tool::{is_todo, joins, named, row_words};

/// Columns left of every block's text.
pub const INDENT: usize = 2;

/// The facts that a layout depends on, besides its cell.
#[derive(Clone, Debug)]
pub struct CellCx<'a> {
    /// Columns of the whole block.
    pub columns: usize,
    /// Columns of running text at most.
    pub measure: usize,
    pub ascii: bool,
    pub unfolded: bool,
    /// A blank row comes first.
    pub gap: bool,
    /// The cell ends the last turn.
    pub last_turn: bool,
    pub now: Time,
    pub zone: &'a TimeZone,
    /// Keys as text: unfold, open the viewer, open the review.
    pub keys: [&'a str; 3],
    /// Folders that paths in rows are named without.
    pub folders: &'a [String],
}

impl CellCx<'_> {
    /// Columns of running text and of rows that are aligned at both ends.
    fn prose(&self) -> usize {
        self.columns.min(self.measure.max(1))
    }

    /// The key that unfolds.
    fn unfold_key(&self) -> &str {
        self.keys[0]
    }

    /// The key that opens the viewer.
    fn viewer_key(&self) -> &str {
        self.keys[1]
    }

    /// The key that opens the review; empty when there is none.
    fn review_key(&self) -> &str {
        self.keys[2]
    }

    /// Blank columns behind what stands at the right end of a band over the whole block, so that times and measures stand
    /// in one column.
    fn right_blank(&self) -> usize {
        1 + self.columns - self.prose()
    }
}

/// A laid-out cell.
#[derive(Clone, Debug)]
pub struct CellLayout {
    inner: CellRows,
    /// A sign of one column, two columns left of the first row's text. See [`CellLayout::spins`].
    pub mark: Option<(&'static str, Role)>,
    /// Columns of `mark` and blanks left of all rows.
    pub indent: usize,
    /// Blank rows on top.
    pub gap: usize,
}

#[derive(Clone, Debug)]
enum CellRows {
    Stack(Stack),
    Doc(Box<Doc>),
}

impl CellLayout {
    fn of(lines: Vec<Line>, cx: &CellCx<'_>, indent: usize) -> Self {
        Self::wide(lines, cx, indent, cx.prose())
    }

    /// The same with another width.
    fn wide(lines: Vec<Line>, cx: &CellCx<'_>, indent: usize, columns: usize) -> Self {
        Self::coded(lines, Vec::new(), cx, indent, columns)
    }

    /// The same with lines that are code.
    fn coded(lines: Vec<Line>, codes: Vec<CodeSpan>, cx: &CellCx<'_>, indent: usize, columns: usize) -> Self {
        let mut sheet = Sheet::new(lines, columns.saturating_sub(indent).max(1));
        sheet.codes = codes;
        Self { inner: CellRows::Stack(Stack::of(sheet)), mark: None, indent, gap: usize::from(cx.gap) }
    }

    /// No rows at all.
    pub fn nothing(cx: &CellCx<'_>) -> Self {
        Self { gap: 0, ..Self::of(Vec::new(), cx, INDENT) }
    }

    /// Adds lines over the whole width below.
    fn add(&mut self, lines: Vec<Line>, cx: &CellCx<'_>) {
        if let CellRows::Stack(stack) = &mut self.inner {
            stack.push(Sheet::new(lines, cx.columns.saturating_sub(self.indent).max(1)));
        }
    }

    fn doc(doc: Doc, cx: &CellCx<'_>) -> Self {
        let inner = CellRows::Doc(Box::new(doc));
        Self { inner, mark: None, indent: INDENT, gap: usize::from(cx.gap) }
    }

    /// The sign stands for what runs: where signs may move, a spinner is drawn in its place.
    pub fn spins(&self) -> bool {
        matches!(self.mark, Some((_, Role::Running)))
    }

    /// Rows and lines, without the gap.
    pub fn stack(&self) -> &Stack {
        match &self.inner {
            CellRows::Stack(s) => s,
            CellRows::Doc(d) => d.stack(),
        }
    }

    /// The same, to colour code.
    pub fn stack_mut(&mut self) -> &mut Stack {
        match &mut self.inner {
            CellRows::Stack(s) => s,
            CellRows::Doc(d) => d.stack_mut(),
        }
    }

    /// Rows on top, the gap included, that stay as they are when the cell only grows.
    pub fn settled(&self) -> usize {
        match &self.inner {
            CellRows::Stack(_) => 0,
            CellRows::Doc(d) => self.gap + d.settled_rows(),
        }
    }

    /// Rows, the gap included.
    pub fn height(&self) -> usize {
        self.gap + self.stack().rows()
    }
}

/// Lays `cell` out. `sharing`: the calls above it that share its row. `old` is the layout of an earlier revision for the same width and fold: a reply that
/// only grew takes it up again.
pub fn lay(cell: &Cell, sharing: &[&Cell], cx: &CellCx<'_>, old: Option<CellLayout>) -> CellLayout {
    match &cell.body {
        Body::User { text, origin, learnings, sent } => {
            let mut laid = user::lay((text, *origin), learnings, cell.time, cx);
            if let Some(sent) = sent {
                laid.add(user::sent(sent, cx), cx);
            }
            laid
        }
        Body::Reply { text } => reply::lay(text, cell.open, cx, old),
        Body::Thinking { text, seconds } => thinking::lay(text, *seconds, cell.open, cx),
        Body::Tool(t) => {
            let mut above: Vec<&ToolCell> = Vec::with_capacity(sharing.len());
            for cell in sharing {
                if let Body::Tool(t) = &cell.body {
                    above.push(t);
                }
            }
            tool::lay(t, &above, cx)
        }
        Body::Summary { summary, focus, tokens } => summary::lay(summary, focus.as_deref(), *tokens, cx),
        Body::Checkpoint { name } => note::checkpoint(name, cx),
        Body::Note { text } => note::lay(text, cx),
        Body::NotLoaded { entries } => note::lay(&note::not_loaded(*entries), cx),
        Body::Shell { line, output, exit, shared, run } => {
            shell::lay(line, output, *exit, *shared, run.as_ref(), cx)
        }
        Body::Notice(n) => notice::lay(n, cx),
        Body::Demo => note::demo(cx),
        Body::End(end) => end::lay(end, cx),
        Body::Finished(sum) => finished::lay(sum, cx),
    }
}

/// True when unfolding shows more.
pub fn folds(cell: &Cell) -> bool {
    match &cell.body {
        Body::Thinking { text, .. } => !text.is_empty(),
        Body::Tool(_) | Body::Shell { .. } | Body::Summary { .. } => true,
        Body::User { origin, sent, .. } => {
            sent.is_some()
                || matches!(origin, tiller_protocol::Origin::Engine | tiller_protocol::Origin::Shell)
        }
        _ => false,
    }
}

/// True when a blank row stands between two cells.
pub fn gap(before: Option<&Cell>, cell: &Cell) -> bool {
    let Some(before) = before else { return false };
    let small = |b: &Body| matches!(b, Body::Tool(_) | Body::Thinking { .. } | Body::Demo);
    match &cell.body {
        Body::Tool(_) | Body::Thinking { .. } => {
            !(small(&before.body) || matches!(before.body, Body::Reply { .. }))
        }
        Body::Reply { .. } => !matches!(before.body, Body::Demo | Body::Thinking { .. }),
        Body::End(_) => is_band(&before.body),
        Body::Finished(_) => {
            matches!(before.body, Body::Reply { .. } | Body::Notice(_)) || is_band(&before.body)
        }
        _ => true,
    }
}

/// A message of the person, or a shell line: a blank row always follows its band.
fn is_band(body: &Body) -> bool {
    matches!(body, Body::User { .. } | Body::Shell { .. })
}

/// Returns what `y` copies: the source.
pub fn source(cell: &Cell) -> String {
    match &cell.body {
        Body::User { text, .. }
        | Body::Reply { text }
        | Body::Thinking { text, .. }
        | Body::Note { text } => text.clone(),
        Body::Tool(t) => match &t.display {
            Some(tiller_protocol::tool::Display::Diff { files }) => {
                files.iter().map(|f| f.diff.as_str()).collect::<Vec<_>>().join("")
            }
            _ if !t.output.is_empty() => t.output.text().to_owned(),
            _ => tool::whole(t).1,
        },
        Body::Summary { summary, .. } => summary.clone(),
        Body::Checkpoint { name } => name.clone(),
        Body::Shell { line, output, .. } => format!("$ {line}\n{}", output.text()),
        Body::Notice(n) => n.message.clone(),
        Body::NotLoaded { .. } | Body::Demo | Body::End(_) | Body::Finished(_) => String::new(),
    }
}

/// Returns what it is, for toasts: `reply`.
pub fn kind(cell: &Cell) -> &'static str {
    match &cell.body {
        Body::User { .. } => "message",
        Body::Reply { .. } => "reply",
        Body::Thinking { .. } => "thinking",
        Body::Tool(t) if matches!(t.display, Some(tiller_protocol::tool::Display::Diff { .. })) => {
            "difference"
        }
        Body::Tool(_) => "tool output",
        Body::Summary { .. } => "summary",
        Body::Shell { .. } => "shell output",
        _ => "line",
    }
}

/// The text that a search looks through: everything that the unfolded cell shows.
pub fn search_text(cell: &Cell) -> String {
    match &cell.body {
        Body::Tool(t) => {
            let (verb, target) = tool::whole(t);
            format!("{verb} {target}\n{}", t.output.text())
        }
        Body::User { text, sent: Some(sent), .. } => format!("{text}\n{sent}"),
        Body::End(e) => end::words(e),
        _ => source(cell),
    }
}

/// Output of something, line by line, with a bar at its left.
fn output_lines(text: &str, role: Role, cx: &CellCx<'_>) -> Vec<Line> {
    let bar = Gutter::new(format!("{} ", sign::QUOTE.text(cx.ascii)), Role::Border);
    crate::text::clean::lines(text)
        .map(|l| {
            let mut line = Line::strict(l, Look::of(role), Wrap::Hard);
            line.first = bar.clone();
            line.rest = bar.clone();
            line
        })
        .collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
