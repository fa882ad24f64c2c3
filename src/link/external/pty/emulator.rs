//! The terminal of an external agent: emulated, so that no byte of it reaches the person's. Its questions (position,
//! attributes, colours, size) are answered here, from what this terminal is; its clipboard does not exist.

use std::sync::{Arc, Mutex, PoisonError};

use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Processor, Rgb};
use tiller_protocol::{Grid, GridRun, GridStyle, Hue};

use super::bounds::{self, Strings};

/// Lines above the screen that are kept.
const HISTORY: usize = 5000;
/// Characters of a title.
const TITLE: usize = 200;
/// Bytes of answers that wait: one who asks and does not read gets no more.
const ANSWERS: usize = 16 << 10;

#[derive(Clone, Copy)]
struct Size(u16, u16);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.1.into()
    }
    fn screen_lines(&self) -> usize {
        self.1.into()
    }
    fn columns(&self) -> usize {
        self.0.into()
    }
}

#[derive(Default)]
struct Heard {
    answers: Vec<u8>,
    title: Option<String>,
    bell: bool,
    size: (u16, u16),
}

#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Heard>>);

impl Ears {
    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventListener for Ears {
    fn send_event(&self, event: Event) {
        let mut heard = self.lock();
        let answer = match event {
            Event::PtyWrite(text) => text,
            // Light on dark: what we are, whatever the person's terminal is.
            Event::ColorRequest(index, format) => {
                let dark = index == NamedColor::Background as usize;
                let level = if dark { 0x10 } else { 0xd8 };
                format(Rgb { r: level, g: level, b: level })
            }
            Event::TextAreaSizeRequest(format) => {
                let (num_cols, num_lines) = heard.size;
                format(WindowSize { num_cols, num_lines, cell_width: 8, cell_height: 16 })
            }
            Event::Title(title) => {
                heard.title = Some(title);
                return;
            }
            Event::ResetTitle => {
                heard.title = Some(String::new());
                return;
            }
            Event::Bell => {
                heard.bell = true;
                return;
            }
            _ => return,
        };
        if heard.answers.len() + answer.len() <= ANSWERS {
            heard.answers.extend_from_slice(answer.as_bytes());
        }
    }
}

/// What one piece of output brought besides pictures.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    pub answers: Vec<u8>,
    pub title: Option<String>,
    pub bell: bool,
}

pub(crate) struct Emulator {
    term: Term<Ears>,
    parser: Processor,
    ears: Ears,
    title: String,
    strings: Strings,
}

impl Emulator {
    pub(crate) fn new(cols: u16, rows: u16) -> Self {
        let ears = Ears::default();
        ears.lock().size = (cols, rows);
        let config = Config { scrolling_history: HISTORY, osc52: Osc52::Disabled, ..Config::default() };
        let term = Term::new(config, &Size(cols, rows), ears.clone());
        Self { term, parser: Processor::new(), ears, title: String::new(), strings: Strings::default() }
    }

    /// Takes output.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Fed {
        for piece in self.strings.short(bytes).chunks(bounds::PIECE) {
            self.parser.advance(&mut self.term, piece);
            if !piece.is_ascii() {
                bounds::marks(&mut self.term);
            }
        }
        let mut heard = self.ears.lock();
        let plain = |t: String| -> String { t.chars().filter(|c| !c.is_control()).take(TITLE).collect() };
        let title = heard.title.take().map(plain);
        if let Some(title) = &title {
            self.title.clone_from(title);
        }
        Fed { answers: std::mem::take(&mut heard.answers), title, bell: std::mem::take(&mut heard.bell) }
    }

    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.ears.lock().size = (cols, rows);
        self.term.resize(Size(cols, rows));
    }

    /// Whether pasted text is to be bracketed.
    pub(crate) fn brackets(&self) -> bool {
        self.term.mode().contains(TermMode::BRACKETED_PASTE)
    }

    /// The text of the screen, one line a row.
    pub(crate) fn visible(&self) -> String {
        self.lines(0).join("\n")
    }

    /// Up to `above` lines that scrolled away, and the screen; without blank lines at the end. Lines that were
    /// wrapped stay so.
    pub(crate) fn lines(&self, above: usize) -> Vec<String> {
        let grid = self.term.grid();
        let history = (grid.total_lines() - grid.screen_lines()).min(above);
        let first = -i32::try_from(history).unwrap_or(0);
        let last = i32::try_from(grid.screen_lines()).unwrap_or(0);
        let mut out: Vec<String> = (first..last)
            .map(|at| {
                let row = &grid[Line(at)];
                let mut line = String::new();
                for column in 0..grid.columns() {
                    text(&row[Column(column)], &mut line);
                }
                line.truncate(line.trim_end().len());
                line
            })
            .collect();
        while out.last().is_some_and(String::is_empty) {
            out.pop();
        }
        out
    }

    /// The screen as plain cells.
    pub(crate) fn grid(&self) -> Grid {
        let grid = self.term.grid();
        let rows = (0..grid.screen_lines()).map(|at| {
            let row = &grid[Line(i32::try_from(at).unwrap_or(0))];
            let mut runs: Vec<GridRun> = Vec::new();
            for column in 0..grid.columns() {
                let cell = &row[Column(column)];
                let style = style(cell);
                match runs.last_mut() {
                    Some(run) if run.style == style => text(cell, &mut run.text),
                    _ => {
                        let mut run = GridRun { text: String::new(), style };
                        text(cell, &mut run.text);
                        runs.push(run);
                    }
                }
            }
            if let Some(last) = runs.last_mut().filter(|r| r.style == GridStyle::default()) {
                last.text.truncate(last.text.trim_end().len());
                if last.text.is_empty() {
                    runs.pop();
                }
            }
            runs
        });
        let point = grid.cursor.point;
        let shown = self.term.mode().contains(TermMode::SHOW_CURSOR);
        let cursor = u16::try_from(point.column.0).ok().zip(u16::try_from(point.line.0).ok());
        Grid {
            cols: u16::try_from(grid.columns()).unwrap_or(u16::MAX),
            rows: rows.collect(),
            cursor: cursor.filter(|_| shown),
            title: self.title.clone(),
        }
    }
}

/// What a person sees in a cell.
fn text(cell: &Cell, out: &mut String) {
    if cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
        return;
    }
    let hidden = cell.flags.contains(Flags::HIDDEN) || cell.c.is_control();
    out.push(if hidden { ' ' } else { cell.c });
    out.extend(cell.zerowidth().into_iter().flatten().filter(|c| !c.is_control()));
}

fn style(cell: &Cell) -> GridStyle {
    let has = |flag| cell.flags.contains(flag);
    GridStyle {
        fg: hue(cell.fg),
        bg: hue(cell.bg),
        bold: has(Flags::BOLD),
        dim: has(Flags::DIM),
        italic: has(Flags::ITALIC),
        underline: cell.flags.intersects(Flags::ALL_UNDERLINES),
        reverse: has(Flags::INVERSE),
        strike: has(Flags::STRIKEOUT),
    }
}

fn hue(color: Color) -> Hue {
    match color {
        Color::Spec(Rgb { r, g, b }) => Hue::Rgb(r, g, b),
        Color::Indexed(n) => Hue::Index(n),
        Color::Named(name) => {
            u8::try_from(name as usize).ok().filter(|n| *n < 16).map_or(Hue::Default, Hue::Index)
        }
    }
}

#[cfg(test)]
#[path = "emulator_tests.rs"]
mod tests;
