//! The emulated terminal without a program, for tests of other rooms.

use tiller_protocol::{Grid, ScreenView};
use tokio::sync::watch;

use super::screen::Screen;
use super::screen::marks::Marks;
use crate::control::View as _;

/// A terminal that a test writes to.
pub struct Pane {
    screen: Screen,
    marks: Marks,
    /// Held so that the receiver of the screen stays open.
    _drawn: watch::Sender<u64>,
}

impl Pane {
    /// An empty one.
    pub fn new(columns: u16, rows: u16) -> Self {
        let (drawn, receiver) = watch::channel(0);
        Self { screen: Screen::new(columns, rows, receiver), marks: Marks::default(), _drawn: drawn }
    }

    /// Draws output; returns the answers to its queries.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.screen.feed(bytes, &mut self.marks)
    }

    /// Changes its size.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.screen.lock().resize(columns, rows);
    }

    /// What is drawn.
    pub fn grid(&self) -> Grid {
        self.screen.grid()
    }

    /// Its rows and those that scrolled off, as text.
    pub fn lines(&self, above: usize) -> Vec<String> {
        self.screen.scrollback(above)
    }

    /// What changed since a state.
    pub fn since(&self, since: u64) -> Option<ScreenView> {
        self.screen.since(since)
    }

    /// The title that the program set since the last call.
    pub fn title(&self) -> Option<String> {
        self.screen.signals().title
    }
}
