//! Rows of agents as a table: each figure has its own column, and the columns have names where there is room.

use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::draw;

/// Columns from which the model is named.
pub(super) const WIDE: usize = 60;

/// Fewest columns in which the current activity is shown.
const LEAST: usize = 8;
/// Columns that the figures leave for the current activity, including the two before it, in a table of [`WIDE`] columns
/// or more.
const ACT: usize = 14;
const FULL: usize = WIDE;
/// Columns of [`NAMES`] that have priority over the current activity; the others are dropped for it.
const FIRST: usize = 3;
/// The figures of a row, the most important first; columns that do not fit are dropped in all rows. `true`:
/// left-aligned text.
const NAMES: [(&str, bool); 9] = [
    ("state", true),
    ("message", true),
    ("goal", true),
    ("cost", false),
    ("tokens", false),
    ("context", false),
    ("limit", false),
    ("files", false),
    ("by", true),
];

/// One row before it is drawn.
pub(super) struct AgentRow {
    pub(super) indent: usize,
    pub(super) name: String,
    /// As [`NAMES`]; empty: nothing to say.
    pub(super) figures: [(String, Role); NAMES.len()],
    pub(super) act: String,
}

/// Which columns are shown, and their widths.
pub(super) struct ColumnLayout {
    columns: usize,
    /// Number and width of each that is shown, from left to right.
    shown: Vec<(usize, usize)>,
    /// Width of the name and the current activity.
    room: usize,
}

impl ColumnLayout {
    pub(super) fn new<'a>(rows: impl Iterator<Item = &'a AgentRow>, columns: usize) -> Self {
        let mut widths = [0; NAMES.len()];
        let (mut name, mut acts) = (0, false);
        for row in rows {
            acts |= !row.act.is_empty();
            name = name.max(row.indent + width(&clean::plain(&row.name)));
            for (most, (text, _)) in widths.iter_mut().zip(&row.figures) {
                *most = width(text).max(*most);
            }
        }
        let mut used = name.min(if columns < WIDE { columns / 3 } else { columns / 2 });
        let mut shown = Vec::new();
        for (at, (own, (title, _))) in widths.into_iter().zip(NAMES).enumerate() {
            let own = if own > 0 && columns >= WIDE { own.max(title.len()) } else { own };
            let kept = if acts && at >= FIRST && columns >= FULL { ACT } else { 0 };
            if own > 0 && used + own + kept < columns {
                used += own + 1;
                shown.push((at, own));
            }
        }
        let tail: usize = shown.iter().map(|(_, own)| own + 1).sum();
        Self { columns, shown, room: columns.saturating_sub(tail) }
    }

    /// The names of the columns.
    pub(super) fn head(&self) -> Option<Line> {
        if self.columns < WIDE || self.shown.is_empty() {
            return None;
        }
        let mut line = Line::new(Wrap::Cut);
        line.push_strict(
            &shorten_end("agent", self.room.saturating_sub(1), draw::ascii()),
            Look::of(Role::Dim),
        );
        line.pad_to(self.room, Look::of(Role::Dim));
        for (at, own) in &self.shown {
            let (title, left) = NAMES[*at];
            line.push_strict(&format!(" {}", aligned(title, *own, left)), Look::of(Role::Dim));
        }
        Some(line)
    }

    /// A row of it.
    pub(super) fn row(&self, row: &AgentRow) -> Line {
        let left = format!("{}{}", " ".repeat(row.indent), clean::plain(&row.name.replace('\n', " ")));
        let mut line = Line::new(Wrap::Cut);
        line.push_strict(
            &shorten_end(&left, self.room.saturating_sub(1), draw::ascii()),
            Look::of(Role::Text),
        );
        let free = self.room.saturating_sub(width(line.text()) + 3);
        if free >= LEAST && !row.act.is_empty() {
            let act = shorten_end(&clean::plain(&row.act.replace('\n', " ")), free, draw::ascii());
            line.push_strict(&format!("  {act}"), Look::of(Role::Dim));
        }
        line.pad_to(self.room, Look::of(Role::Text));
        for (at, own) in &self.shown {
            let (text, role) = &row.figures[*at];
            line.push_strict(&format!(" {}", aligned(text, *own, NAMES[*at].1)), Look::of(*role));
        }
        line
    }
}

fn aligned(text: &str, own: usize, left: bool) -> String {
    let room = " ".repeat(own.saturating_sub(width(text)));
    if left { format!("{text}{room}") } else { format!("{room}{text}") }
}
