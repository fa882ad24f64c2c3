//! The screen of a command under a pseudo-terminal: emulated, so that no byte of it reaches ours, and read
//! out as text.

use std::sync::{Arc, Mutex};
use tiller_protocol::lock;

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, Term};
use alacritty_terminal::vte::ansi::Processor;

/// Columns and rows.
pub(crate) const COLS: u16 = 120;
pub(crate) const ROWS: u16 = 40;
/// Lines above the screen that are kept.
const HISTORY: usize = 5000;

struct Size;

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        ROWS.into()
    }
    fn screen_lines(&self) -> usize {
        ROWS.into()
    }
    fn columns(&self) -> usize {
        COLS.into()
    }
}

/// Collects the answers to queries (cursor position, device attributes). Everything else that a program
/// asks of its terminal (title, clipboard, colours) is let drop.
#[derive(Clone, Default)]
struct Replies(Arc<Mutex<Vec<u8>>>);

impl EventListener for Replies {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(text) = event {
            lock(&self.0).extend_from_slice(text.as_bytes());
        }
    }
}

/// An emulated terminal.
pub(crate) struct Screen {
    term: Term<Replies>,
    parser: Processor,
    replies: Replies,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Default for Screen {
    fn default() -> Self {
        let replies = Replies::default();
        let config = Config { scrolling_history: HISTORY, osc52: Osc52::Disabled, ..Config::default() };
        Self { term: Term::new(config, &Size, replies.clone()), parser: Processor::new(), replies }
    }
}

impl Screen {
    /// Takes output; gives what the terminal answers.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.advance(&mut self.term, bytes);
        std::mem::take(&mut *lock(&self.replies.0))
    }

    /// What is on the screen now, without empty lines at the end.
    pub(crate) fn visible(&mut self) -> String {
        self.lines(0)
    }

    /// The lines that scrolled away and the screen.
    pub(crate) fn text(&mut self) -> String {
        let history = self.term.grid().total_lines() - self.term.grid().screen_lines();
        self.lines(history)
    }

    fn lines(&mut self, above: usize) -> String {
        // A frame that the program began and never ended is shown as far as it came.
        self.parser.stop_sync(&mut self.term);
        let grid = self.term.grid();
        let mut out = String::new();
        let first = -i32::try_from(above).unwrap_or(0);
        for at in first..i32::from(ROWS) {
            let row = &grid[Line(at)];
            let mut line = String::new();
            for column in 0..usize::from(COLS) {
                let cell = &row[Column(column)];
                if cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                    continue;
                }
                line.push(if cell.flags.contains(Flags::HIDDEN) { ' ' } else { cell.c });
                line.extend(cell.zerowidth().into_iter().flatten());
            }
            let wrapped = row[Column(usize::from(COLS) - 1)].flags.contains(Flags::WRAPLINE);
            if wrapped {
                out.push_str(&line);
            } else {
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        let len = out.trim_end().len();
        out.truncate(len);
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_a_person_would_see() {
        let mut screen = Screen::default();
        screen.feed(b"50 %\r100 %\r\n\x1b[31mred\x1b[0m \xe6\xbc\xa2!\r\n");
        assert_eq!(screen.text(), "100 %\nred 漢!\n");
        screen.feed(b"\x1b[2J\x1b[Hmenu");
        assert!(screen.visible().starts_with("menu"), "{}", screen.visible());
    }

    #[test]
    fn long_lines_come_back_whole_and_history_is_bounded() {
        let mut screen = Screen::default();
        let long = "x".repeat(300);
        screen.feed(format!("{long}\r\n").as_bytes());
        assert_eq!(screen.text().trim_end(), long);
        for n in 0..HISTORY * 2 {
            screen.feed(format!("{n}\r\n").as_bytes());
        }
        assert!(screen.text().lines().count() <= HISTORY + usize::from(ROWS));
    }

    #[test]
    fn queries_are_answered() {
        let mut screen = Screen::default();
        assert_eq!(screen.feed(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert!(!screen.feed(b"\x1b[c").is_empty());
        // Reading the clipboard is not answered.
        assert!(screen.feed(b"\x1b]52;c;?\x07").is_empty());
    }
}
