//! The terminal of an external agent, emulated, so that none of its bytes reaches the person's terminal. Its queries
//! (position, attributes, colours, size) are answered by the emulation; it has no clipboard.

use std::sync::{Arc, Mutex, PoisonError};

use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, Osc52, Term, TermDamage, TermMode};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Processor, Rgb};
use tiller_protocol::{Grid, GridRun, GridStyle, Hue};

use super::encode::{Modes, Mouse};
use super::keys;
use super::memory_limits::{self, ControlStrings};
use super::other_keys::OtherKeys;

/// Least columns: where a wide character has no room, the emulator would look for it without end.
const FEWEST: u16 = 2;
/// Lines above the screen that are kept.
const HISTORY: usize = 5000;
/// Maximum characters of a title.
const TITLE: usize = 200;
/// Maximum bytes of waiting answers: a program that queries without reading gets no more.
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
struct TerminalEvents {
    answers: Vec<u8>,
    title: Option<String>,
    bell: bool,
    size: (u16, u16),
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<TerminalEvents>>);

impl Listener {
    fn lock(&self) -> std::sync::MutexGuard<'_, TerminalEvents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, answer: &[u8]) {
        let mut heard = self.lock();
        if heard.answers.len() + answer.len() <= ANSWERS {
            heard.answers.extend_from_slice(answer);
        }
    }
}

impl EventListener for Listener {
    fn send_event(&self, event: Event) {
        let mut heard = self.lock();
        let answer = match event {
            Event::PtyWrite(text) => honest(text),
            // Light on dark, independent of the person's terminal.
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
        drop(heard);
        self.answer(answer.as_bytes());
    }
}

/// The content of a piece of output besides text.
#[derive(Debug, Default)]
pub(crate) struct FeedResult {
    pub answers: Vec<u8>,
    pub title: Option<String>,
    pub bell: bool,
}

pub(crate) struct Emulator {
    term: Term<Listener>,
    parser: Processor,
    ears: Listener,
    title: String,
    strings: ControlStrings,
    other_keys: OtherKeys,
    /// The beginning of a character whose other bytes have not come yet.
    incomplete: Vec<u8>,
}

/// Number of bytes at the end that begin a character and do not end it.
fn incomplete(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).zip(1..);
    let lead = last.clone().find(|(byte, _)| **byte < 0x80 || **byte >= 0xc0);
    match lead {
        Some((0xc2..=0xdf, 1) | (0xe0..=0xef, 1..=2) | (0xf0..=0xf4, 1..=3)) => lead.map_or(0, |(_, n)| n),
        _ => 0,
    }
}

/// Restricts an answer about the keyboard to the supported features.
fn honest(text: String) -> String {
    let flags = text.strip_prefix("\x1b[?").and_then(|t| t.strip_suffix('u'));
    match flags.and_then(|f| f.parse::<u8>().ok()) {
        Some(flags) => format!("\x1b[?{}u", flags & keys::HONOURED),
        None => text,
    }
}

impl Emulator {
    pub(crate) fn new(cols: u16, rows: u16) -> Self {
        let ears = Listener::default();
        let (cols, rows) = (cols.max(FEWEST), rows.max(1));
        ears.lock().size = (cols, rows);
        let config = Config {
            scrolling_history: HISTORY,
            osc52: Osc52::Disabled,
            kitty_keyboard: true,
            ..Config::default()
        };
        let term = Term::new(config, &Size(cols, rows), ears.clone());
        let (parser, strings, other_keys) =
            (Processor::new(), ControlStrings::default(), OtherKeys::default());
        Self { term, parser, ears, title: String::new(), strings, other_keys, incomplete: Vec::new() }
    }

    /// Processes output.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> FeedResult {
        let mut waiting = std::mem::take(&mut self.incomplete);
        waiting.extend_from_slice(&self.strings.short(bytes));
        let mut rest = waiting.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(memory_limits::PIECE));
            // The parser draws a control character as text when its bytes come one by one.
            let piece = &piece[..piece.len() - incomplete(piece)];
            if piece.is_empty() && after.is_empty() {
                self.incomplete = rest.to_vec();
                break;
            }
            rest = &rest[piece.len()..];
            self.parser.advance(&mut self.term, piece);
            let mut answers = Vec::new();
            self.other_keys.feed(piece, &mut answers);
            if !answers.is_empty() {
                self.ears.answer(&answers);
            }
            if !piece.is_ascii() {
                memory_limits::marks(&mut self.term);
            }
        }
        let mut heard = self.ears.lock();
        let plain = |t: String| -> String { t.chars().filter(|c| !c.is_control()).take(TITLE).collect() };
        let title = heard.title.take().map(plain);
        if let Some(title) = &title {
            self.title.clone_from(title);
        }
        FeedResult {
            answers: std::mem::take(&mut heard.answers),
            title,
            bell: std::mem::take(&mut heard.bell),
        }
    }

    /// A smaller terminal than the emulator can draw gets the smallest.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        let (cols, rows) = (cols.max(FEWEST), rows.max(1));
        self.ears.lock().size = (cols, rows);
        self.term.resize(Size(cols, rows));
    }

    /// The text of the screen, one line for each row.
    pub(crate) fn visible(&self) -> String {
        self.lines(0).join("\n")
    }

    /// Up to `above` lines that scrolled off, and the screen; without blank lines at the end. Wrapped lines stay
    /// wrapped.
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

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        let grid = self.term.grid();
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        (count(grid.columns()), count(grid.screen_lines()))
    }

    /// The modes that the program requested.
    pub(crate) fn modes(&self) -> Modes {
        let mode = self.term.mode();
        let has = |flag| mode.contains(flag);
        let mouse = match () {
            () if has(TermMode::MOUSE_MOTION) => Mouse::Motion,
            () if has(TermMode::MOUSE_DRAG) => Mouse::Drag,
            () if has(TermMode::MOUSE_REPORT_CLICK) => Mouse::Click,
            () => Mouse::None,
        };
        let kitty = [
            (TermMode::DISAMBIGUATE_ESC_CODES, keys::DISAMBIGUATE),
            (TermMode::REPORT_ALTERNATE_KEYS, keys::ALTERNATE),
            (TermMode::REPORT_ALL_KEYS_AS_ESC, keys::ALL),
            (TermMode::REPORT_ASSOCIATED_TEXT, keys::TEXT),
        ];
        Modes {
            app_cursor: has(TermMode::APP_CURSOR),
            app_pad: has(TermMode::APP_KEYPAD),
            kitty: kitty.into_iter().filter(|(flag, _)| has(*flag)).map(|(_, bit)| bit).sum(),
            other_keys: self.other_keys.level,
            brackets: has(TermMode::BRACKETED_PASTE),
            mouse,
            sgr: has(TermMode::SGR_MOUSE),
            wide: has(TermMode::UTF8_MOUSE),
            wheel_keys: has(TermMode::ALT_SCREEN) && has(TermMode::ALTERNATE_SCROLL),
            focus: has(TermMode::FOCUS_IN_OUT),
        }
    }

    /// Rows that may have changed since the last call; `None`: all of them.
    pub(crate) fn damage(&mut self) -> Option<Vec<usize>> {
        let damaged = match self.term.damage() {
            TermDamage::Full => None,
            TermDamage::Partial(lines) => Some(lines.map(|l| l.line).collect()),
        };
        self.term.reset_damage();
        damaged
    }

    /// Column and row of the cursor; `None`: hidden.
    pub(crate) fn cursor(&self) -> Option<(u16, u16)> {
        let point = self.term.grid().cursor.point;
        let shown = self.term.mode().contains(TermMode::SHOW_CURSOR);
        u16::try_from(point.column.0).ok().zip(u16::try_from(point.line.0).ok()).filter(|_| shown)
    }

    /// One row of the screen as plain cells.
    pub(crate) fn row(&self, at: usize) -> Vec<GridRun> {
        self.runs(Line(i32::try_from(at).unwrap_or(0)))
    }

    /// Up to `above` rows that scrolled off, and the screen.
    pub(crate) fn history(&self, above: usize) -> Vec<Vec<GridRun>> {
        let grid = self.term.grid();
        let first = (grid.total_lines() - grid.screen_lines()).min(above);
        let first = -i32::try_from(first).unwrap_or(0);
        let last = i32::try_from(grid.screen_lines()).unwrap_or(0);
        (first..last).map(|at| self.runs(Line(at))).collect()
    }

    fn runs(&self, line: Line) -> Vec<GridRun> {
        let grid = self.term.grid();
        let row = &grid[line];
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
    }

    /// The screen as plain cells.
    pub(crate) fn grid(&self) -> Grid {
        let (cols, rows) = self.size();
        Grid {
            cols,
            rows: (0..usize::from(rows)).map(|at| self.row(at)).collect(),
            cursor: self.cursor(),
            title: self.title.clone(),
        }
    }
}

/// The visible text of a cell.
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
