//! A logical line: clean text with looks, before it is cut to a width.

use crate::clean::{self, Mode};
use crate::role::Role;
use crate::width::width;

/// The look of a piece of text: its meaning and a few modifiers. Colours come from the theme when it is painted, so a
/// change of theme needs no new layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub role: Role,
    bits: u8,
    /// Class of highlighted code: 0 is none, else its number in the highlighter's list, from 1.
    pub class: u8,
}

impl Look {
    const BOLD: u8 = 1;
    const ITALIC: u8 = 2;
    const STRIKE: u8 = 4;
    const UNDERLINE: u8 = 8;

    /// This meaning without modifiers.
    pub const fn of(role: Role) -> Self {
        Self { role, bits: 0, class: 0 }
    }

    #[must_use]
    pub const fn bold(mut self) -> Self {
        self.bits |= Self::BOLD;
        self
    }

    #[must_use]
    pub const fn italic(mut self) -> Self {
        self.bits |= Self::ITALIC;
        self
    }

    #[must_use]
    pub const fn strike(mut self) -> Self {
        self.bits |= Self::STRIKE;
        self
    }

    #[must_use]
    pub const fn underline(mut self) -> Self {
        self.bits |= Self::UNDERLINE;
        self
    }

    /// The same modifiers with another meaning.
    #[must_use]
    pub const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// With a class of highlighting.
    #[must_use]
    pub const fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    /// Bold is set.
    pub const fn is_bold(self) -> bool {
        self.bits & Self::BOLD != 0
    }

    /// Italic is set.
    pub const fn is_italic(self) -> bool {
        self.bits & Self::ITALIC != 0
    }

    /// Struck through is set.
    pub const fn is_struck(self) -> bool {
        self.bits & Self::STRIKE != 0
    }

    /// Underlined is set.
    pub const fn is_underlined(self) -> bool {
        self.bits & Self::UNDERLINE != 0
    }
}

/// What stands left of a row without being part of its text: indentation, quote bars, a state mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gutter {
    pub text: Box<str>,
    pub look: Look,
}

impl Gutter {
    /// An empty gutter.
    pub fn none() -> Self {
        Self { text: "".into(), look: Look::of(Role::Text) }
    }

    /// A gutter with this text, which must be clean.
    pub fn new(text: impl Into<Box<str>>, role: Role) -> Self {
        Self { text: text.into(), look: Look::of(role) }
    }

    /// `n` blanks.
    pub fn blank(n: usize) -> Self {
        Self::new(" ".repeat(n), Role::Text)
    }
}

/// How a line is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// At blanks and between wide characters; words that are too long by grapheme.
    Word,
    /// By grapheme, every blank kept (code, output, diffs).
    Hard,
    /// Never wrapped: the line was made for this width.
    Cut,
}

/// A run of one look up to byte `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub end: u32,
    pub look: Look,
}

/// Clean text with looks. All text enters through [`clean`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    text: String,
    runs: Vec<Run>,
    /// Gutter of the first row, and of the others.
    pub first: Gutter,
    pub rest: Gutter,
    pub wrap: Wrap,
}

impl Default for Line {
    fn default() -> Self {
        Self::new(Wrap::Word)
    }
}

impl Line {
    /// Empty.
    pub fn new(wrap: Wrap) -> Self {
        Self { text: String::new(), runs: Vec::new(), first: Gutter::none(), rest: Gutter::none(), wrap }
    }

    /// Text of one look, cleaned strictly.
    pub fn strict(text: &str, look: Look, wrap: Wrap) -> Self {
        let mut line = Self::new(wrap);
        line.push_strict(text, look);
        line
    }

    /// Sets the gutter of the first row, and blanks of its width for the others.
    #[must_use]
    pub fn gutter(mut self, first: Gutter) -> Self {
        self.rest = Gutter::blank(width(&first.text));
        self.first = first;
        self
    }

    /// The text, free of control characters.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The looks, in order; the last run ends where the text ends.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds foreign prose: harmless look-alikes become blanks, other odd characters become visible marks.
    pub fn push(&mut self, text: &str, look: Look) {
        self.push_mode(text, look, Mode::Prose);
    }

    /// Adds foreign text of which every character matters (paths, commands, code, output).
    pub fn push_strict(&mut self, text: &str, look: Look) {
        self.push_mode(text, look, Mode::Strict);
    }

    /// Adds blanks up to column `column` of the text.
    pub fn pad_to(&mut self, column: usize, look: Look) {
        let have = width(&self.text);
        if have < column {
            self.text.extend(std::iter::repeat_n(' ', column - have));
            self.close(look);
        }
    }

    /// Adds bytes `start..end` of another line with their looks.
    pub fn push_slice(&mut self, other: &Self, start: usize, end: usize) {
        let mut at = start;
        for run in &other.runs {
            let to = (run.end as usize).min(end);
            if to > at {
                self.text.push_str(&other.text[at..to]);
                self.close(run.look);
                at = to;
            }
        }
    }

    fn push_mode(&mut self, text: &str, look: Look, mode: Mode) {
        clean::pieces(text, mode, |piece| match piece {
            clean::Piece::Text(t) => {
                self.text.push_str(t);
                self.close(look);
            }
            clean::Piece::Tab => {
                let column = width(&self.text);
                let n = clean::TAB - column % clean::TAB;
                self.text.extend(std::iter::repeat_n(' ', n));
                self.close(look);
            }
            clean::Piece::Mark(m) => {
                self.text.push_str(m);
                self.close(Look::of(Role::Hostile));
            }
        });
    }

    /// Replaces the runs with those of a line with the same text (from a highlighter).
    pub fn recolour(&mut self, runs: Vec<Run>) {
        if runs.last().is_some_and(|r| r.end as usize == self.text.len()) {
            self.runs = runs;
        }
    }

    fn close(&mut self, look: Look) {
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        match self.runs.last_mut() {
            Some(last) if last.look == look => last.end = end,
            Some(last) if last.end == end => {}
            None if end == 0 => {}
            _ => self.runs.push(Run { end, look }),
        }
    }
}
