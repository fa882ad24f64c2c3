//! Rows in columns: text at the left, figures at the right with their units dimmed, each as wide as its widest cell.
//!
//! ```text
//! let widths = Widths::of(rows.iter().map(|r| r.cells.as_slice()));   // when the rows change
//! let fit = widths.fit(&COLUMNS, area.width);                         // when they are drawn
//! let line = fit.row(&cells);                                         // a `Line`, exactly as wide as the area
//! ```
//! Columns that do not fit are left out in all rows, those with the highest [`Column::rank`] first.

mod cell;
mod fit;
mod widths;

pub use cell::Cell;
pub use fit::Fit;
pub use widths::Widths;

/// Columns between two columns.
const GAP: usize = 2;
/// Fewest columns for a text that is cut.
const LEAST: usize = 12;

/// The content of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Text from the left, cut at its end.
    #[default]
    Text,
    /// A path from the left, cut in its middle.
    Path,
    /// Text that ends at the right, cut at its end.
    Right,
    /// A figure, which ends at the right and is never cut.
    Number,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column {
    title: &'static str,
    kind: Kind,
    /// Left out in this order where there is no room, the highest first; 0: never.
    rank: u8,
    /// It gets the room that the others leave.
    grows: bool,
    /// Columns below which its text is not cut.
    least: usize,
}

impl Column {
    const fn of(title: &'static str, kind: Kind) -> Self {
        Self { title, kind, rank: 0, grows: false, least: LEAST }
    }

    /// Text that starts at the left.
    pub const fn text(title: &'static str) -> Self {
        Self::of(title, Kind::Text)
    }

    /// A path, which is cut in the middle.
    pub const fn path(title: &'static str) -> Self {
        Self::of(title, Kind::Path)
    }

    /// Text that ends at the right: keys, times.
    pub const fn right(title: &'static str) -> Self {
        Self::of(title, Kind::Right)
    }

    /// Keys, which end at the right and are never cut.
    pub const fn key(title: &'static str) -> Self {
        Self::of(title, Kind::Number)
    }

    /// Figures, aligned at the right. They are never cut.
    pub const fn number(title: &'static str) -> Self {
        Self::of(title, Kind::Number)
    }

    /// It has a title.
    pub fn is_named(&self) -> bool {
        !self.title.is_empty()
    }

    /// Left out where the room is short, before columns with a lower rank; 0: never.
    #[must_use]
    pub const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// Its text is not cut below this many columns: for names that are to be typed.
    #[must_use]
    pub const fn keeps(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// It gets the room that the others leave. Without such a column the first one gets it.
    #[must_use]
    pub const fn grows(self) -> Self {
        Self { grows: true, ..self }
    }
}

#[cfg(test)]
mod tests;
