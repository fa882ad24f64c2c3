//! A cell of a table, with its unit, role and mark.

use crate::theme::Role;
use crate::widget::{draw, sign};

/// The content of a column in one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    /// Dimmed, behind the text: `k`, `ms`, `tokens`.
    pub unit: &'static str,
    pub role: Role,
    /// A part of the text that stays in sight where the text is cut: start and end in bytes.
    pub mark: Option<(usize, usize)>,
    /// It is a gauge of this much of that much: drawn anew where it is narrower, never cut.
    pub gauge: Option<(u64, u64)>,
}

impl Default for Cell {
    fn default() -> Self {
        Self::new("", Role::Text)
    }
}

impl Cell {
    /// Text in this role. It may be foreign: it is drawn clean, on one line.
    pub fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), unit: "", role, mark: None, gauge: None }
    }

    /// Less important text.
    pub fn dim(text: impl Into<String>) -> Self {
        Self::new(text, Role::Dim)
    }

    /// A figure with its unit.
    pub fn number(text: impl Into<String>, unit: &'static str) -> Self {
        Self { unit, ..Self::new(text, Role::Text) }
    }

    /// A gauge of at most `cells` columns.
    pub fn gauge(used: u64, limit: u64, cells: usize) -> Self {
        let text = sign::gauge(used, limit, cells, draw::ascii());
        Self { gauge: Some((used, limit)), ..Self::dim(text) }
    }

    /// A number of tokens, calls or the like in at most three digits: `39` `k`.
    pub fn count(n: u64) -> Self {
        match n {
            0..1000 => Self::number(n.to_string(), ""),
            1000..9950 => Self::number(format!("{:.1}", n as f64 / 1000.0), "k"),
            9950..999_500 => Self::number(format!("{:.0}", n as f64 / 1000.0), "k"),
            999_500..9_950_000 => Self::number(format!("{:.1}", n as f64 / 1e6), "M"),
            _ => Self::number(format!("{:.0}", n as f64 / 1e6), "M"),
        }
    }

    /// The same cell in another role.
    #[must_use]
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The same cell with a part of its text marked. What is cut is cut around it, between words.
    #[must_use]
    pub fn marked(self, mark: Option<(usize, usize)>) -> Self {
        Self { mark, ..self }
    }

    /// The text before the marked part, this, and the text behind it, clean; `None`: nothing is marked.
    pub(super) fn pieces(&self) -> Option<(String, String, String)> {
        let (from, to) = self.mark?;
        let piece = |text: Option<&str>| text.map(draw::clean);
        Some((piece(self.text.get(..from))?, piece(self.text.get(from..to))?, piece(self.text.get(to..))?))
    }

    /// The text as it is drawn: clean, on one line.
    pub(super) fn shown(&self) -> String {
        draw::clean(&self.text)
    }

    /// It has neither text nor a unit.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.unit.is_empty()
    }
}
