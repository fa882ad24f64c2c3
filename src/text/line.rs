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
    /// Role whose background lies below the text; `None`: the background of the row.
    pub ground: Option<Role>,
}

impl Look {
    const BOLD: u8 = 1;
    const ITALIC: u8 = 2;
    const STRIKE: u8 = 4;
    const UNDERLINE: u8 = 8;

    /// This meaning without modifiers.
    pub const fn of(role: Role) -> Self {
        Self { role, bits: 0, class: 0, ground: None }
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

    /// On the background of another role.
    #[must_use]
    pub const fn on(mut self, ground: Role) -> Self {
        self.ground = Some(ground);
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
    /// From this byte of `text` on, the look is another one.
    pub then: Option<(u32, Look)>,
}

impl Gutter {
    /// An empty gutter.
    pub fn none() -> Self {
        Self { text: "".into(), look: Look::of(Role::Text), then: None }
    }

    /// A gutter with this text, which must be clean.
    pub fn new(text: impl Into<Box<str>>, role: Role) -> Self {
        Self { text: text.into(), look: Look::of(role), then: None }
    }

    /// The same with more text of another role. `text` must be clean.
    #[must_use]
    pub fn then(self, text: &str, role: Role) -> Self {
        let from = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        Self { text: format!("{}{text}", self.text).into(), then: Some((from, Look::of(role))), ..self }
    }

    /// The same with a blank at its end.
    #[must_use]
    pub fn then_blank(self) -> Self {
        Self { text: format!("{} ", self.text).into(), ..self }
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
    /// Every blank kept (code, output, diffs): between words in the second half of a row, else by grapheme.
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
    /// Role whose background fills its rows over their whole width.
    pub band: Option<Role>,
    /// Stands at the right end of the first row where there is room for it; no part of the text.
    pub right: Option<Box<Gutter>>,
}

impl Default for Line {
    fn default() -> Self {
        Self::new(Wrap::Word)
    }
}

impl Line {
    /// Empty.
    pub fn new(wrap: Wrap) -> Self {
        Self {
            text: String::new(),
            runs: Vec::new(),
            first: Gutter::none(),
            rest: Gutter::none(),
            wrap,
            band: None,
            right: None,
        }
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

    /// Gives back the memory that was set aside for more text.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.runs.shrink_to_fit();
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
        self.push_slice_on(other, start..end, None);
    }

    /// The same on the background of `ground`, except for text that has a ground of its own.
    pub fn push_slice_on(&mut self, other: &Self, part: std::ops::Range<usize>, ground: Option<Role>) {
        let mut at = part.start;
        for run in &other.runs {
            let to = (run.end as usize).min(part.end);
            if to > at {
                self.text.push_str(&other.text[at..to]);
                self.close(Look { ground: run.look.ground.or(ground), ..run.look });
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

    /// Takes the classes of code from the runs of a line with the same text (from a highlighter). Roles, modifiers and
    /// grounds stay; characters that were made visible stay without a class.
    pub fn recolour(&mut self, runs: &[Run]) {
        if runs.last().is_none_or(|r| r.end as usize != self.text.len()) {
            return;
        }
        let old = std::mem::take(&mut self.runs);
        let (mut a, mut b) = (old.iter().peekable(), runs.iter().peekable());
        while let (Some(mine), Some(new)) = (a.peek().copied(), b.peek().copied()) {
            let end = mine.end.min(new.end);
            let look = match mine.look.role {
                Role::Hostile => mine.look,
                _ => mine.look.class(new.look.class),
            };
            match self.runs.last_mut() {
                Some(last) if last.look == look => last.end = end,
                _ => self.runs.push(Run { end, look }),
            }
            if mine.end == end {
                a.next();
            }
            if new.end == end {
                b.next();
            }
        }
        self.runs.shrink_to_fit();
    }

    /// Cuts the text to `columns` columns and marks the cut.
    pub fn shorten(&mut self, columns: usize, ascii: bool) {
        if width(&self.text) <= columns {
            return;
        }
        let mark = crate::shorten::ellipsis(ascii);
        let kept = crate::shorten::head(&self.text, columns.saturating_sub(width(mark))).len();
        self.text.truncate(kept);
        let runs = std::mem::take(&mut self.runs);
        let mut from = 0;
        for run in runs {
            if from < kept as u32 {
                self.runs.push(Run { end: run.end.min(kept as u32), ..run });
            }
            from = run.end;
        }
        self.text.push_str(crate::shorten::head(mark, columns));
        self.close(Look::of(Role::Dim));
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
