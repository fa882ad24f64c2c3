//! Colours of a diff in a dialog: asked for while it is laid out, which happens again when they are there.

use std::time::Duration;

use super::DiffText;
use crate::text::highlight::Highlighter;
use crate::text::line::Line;
use crate::text::sheet::{Answer, Highlight};
use crate::widget::scroll::Scroll;

/// Layouts of the same content at most; code without colours after that stays plain.
const ROUNDS: u8 = 8;
/// Time until finished colours are looked for.
const WAKE: Duration = Duration::from_millis(30);

/// A highlighter, and whether the layout waits for it.
#[derive(Default)]
pub struct DiffColours {
    highlighter: Highlighter,
    waiting: bool,
    rounds: u8,
}

impl DiffColours {
    /// Other content is laid out.
    pub fn begin(&mut self) {
        self.rounds = 0;
        self.waiting = false;
    }

    /// Notes what the layout could not colour yet.
    pub fn note(&mut self, text: &DiffText) {
        self.waiting |= text.pending || !text.codes.is_empty();
    }

    /// Takes in finished colours. True when the same content must be laid out again to show them.
    pub fn again(&mut self) -> bool {
        self.highlighter.poll();
        if !self.waiting || self.highlighter.busy() {
            return false;
        }
        self.waiting = false;
        self.rounds = self.rounds.saturating_add(1);
        self.rounds <= ROUNDS
    }

    /// When to draw again although nothing happens.
    pub fn wake(&self) -> Option<Duration> {
        (self.waiting && self.rounds < ROUNDS).then_some(WAKE)
    }
}

impl Highlight for DiffColours {
    fn want(&mut self, language: &str, lines: &[Line]) -> Answer {
        self.highlighter.want(language, lines)
    }
}

/// A scrolled diff with its colours.
#[derive(Default)]
pub struct DiffScroll {
    pub scroll: Scroll,
    pub colours: DiffColours,
}
