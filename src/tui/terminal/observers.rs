//! Observers from another terminal: the same frames, no keys. A smaller window shows the part with the cursor, or the
//! part that the observer moved to; its last line says which part, in place of the footer's keys.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr;

use crate::app::inbox::Post;
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::terminal::terminal_owner::TerminalOwner;

/// One of them.
pub(crate) struct Observer {
    /// Dropped first: its pending output is written before the other side receives the end.
    writer: Writer,
    seat: Arc<dyn TerminalOwner>,
    /// Its terminal, for its size. `None` in tests.
    terminal: Option<OwnedFd>,
    encoder: Encoder,
    buf: Buffer,
    part: Viewport,
    /// It could not be drawn on when something changed.
    behind: bool,
}

impl Observer {
    /// # Errors
    /// When its terminal cannot be written.
    pub(crate) fn new(seat: Arc<dyn TerminalOwner>, terminal: OwnedFd, tell: Post) -> std::io::Result<Self> {
        let out = std::fs::File::from(terminal.try_clone()?);
        let mut made = Self::with_output(seat, out, tell)?;
        made.terminal = Some(terminal);
        made.resized();
        Ok(made)
    }

    fn with_output(
        seat: Arc<dyn TerminalOwner>,
        out: impl Write + Send + 'static,
        tell: Post,
    ) -> std::io::Result<Self> {
        let writer = Writer::start(out, tell)?;
        let buf = Buffer::empty(Rect::new(0, 0, 80, 24));
        let (encoder, part) = (Encoder::default(), Viewport::default());
        Ok(Self { seat, terminal: None, writer, encoder, buf, part, behind: true })
    }

    /// Its window has another size, perhaps.
    fn resized(&mut self) {
        if let Some(Ok(size)) = self.terminal.as_ref().map(tcgetwinsize) {
            let area = Rect::new(0, 0, size.ws_col.clamp(1, 4096), size.ws_row.clamp(1, 4096));
            self.buf = Buffer::empty(area);
            self.encoder.repaint();
        }
    }

    /// Shows what the others see: all of it, or a part.
    fn show(&mut self, frame: &Buffer, cursor: Option<Position>) {
        self.behind = !self.writer.ready();
        if self.behind {
            return;
        }
        let area = self.buf.area;
        // A window of one line has no room for words about it.
        let told = u16::from(area.height > 1);
        let room = (area.width, area.height - told);
        self.part.place(room, frame.area, cursor);
        let (left, top) = (self.part.left, self.part.top);
        self.buf.reset();
        for y in 0..room.1.min(frame.area.height.saturating_sub(top)) {
            for x in 0..room.0.min(frame.area.width.saturating_sub(left)) {
                let (Some(from), Some(to)) = (frame.cell((x + left, y + top)), self.buf.cell_mut((x, y)))
                else {
                    continue;
                };
                to.clone_from(from);
                // Something wide would stand half outside.
                if x + 1 == area.width && to.symbol().width() > 1 {
                    to.set_symbol(" ");
                }
            }
        }
        if told > 0 {
            let words = self.part.words(room, frame.area);
            let style = Style::default().add_modifier(Modifier::REVERSED);
            self.buf.set_style(Rect { y: room.1, height: 1, ..area }, style);
            self.buf.set_stringn(0, room.1, words, usize::from(area.width), style);
        }
        let mut out = self.writer.spare();
        let seen = |c: &Position| c.x >= left && c.y >= top && c.x - left < room.0 && c.y - top < room.1;
        let cursor = cursor.filter(seen).map(|c| Position::new(c.x - left, c.y - top));
        self.encoder.frame(&self.buf, &[area], cursor, &mut out);
        self.writer.write(out);
    }
}

/// The part of the screen that an observer sees.
#[derive(Default)]
struct Viewport {
    left: u16,
    top: u16,
    /// The observer moved it: it does not follow the cursor.
    pinned: bool,
}

/// Cells that stay between the cursor and the edge.
const MARGIN: u16 = 2;

impl Viewport {
    /// Positions the viewport for a window of this size.
    fn place(&mut self, room: (u16, u16), frame: Rect, cursor: Option<Position>) {
        if let Some(c) = cursor.filter(|_| !self.pinned) {
            self.left = near(self.left, room.0, c.x);
            self.top = near(self.top, room.1, c.y);
        }
        self.left = self.left.min(frame.width.saturating_sub(room.0));
        // The last line tells the other's keys: it is gone to, not followed into.
        let last = if self.pinned { frame.height } else { frame.height.saturating_sub(1) };
        self.top = self.top.min(last.saturating_sub(room.1));
    }

    /// Other columns and rows; `None`: it follows again.
    fn look(&mut self, by: Option<(i32, i32)>) {
        self.pinned = by.is_some();
        if let Some((columns, rows)) = by {
            let add = |at: u16, n: i32| {
                u16::try_from((i32::from(at).saturating_add(n)).clamp(0, 4096)).unwrap_or_default()
            };
            (self.left, self.top) = (add(self.left, columns), add(self.top, rows));
        }
    }

    /// The longest line that fits.
    fn words(&self, room: (u16, u16), frame: Rect) -> String {
        if frame.width <= room.0 && frame.height <= room.1 + 1 && self.top == 0 {
            return " watching  q quits".into();
        }
        let to = |from: u16, n: u16, all: u16| (from + 1, (from + n).min(all), all);
        let (c, r) = (to(self.left, room.0, frame.width), to(self.top, room.1, frame.height));
        let follow = if self.pinned { "f follow cursor" } else { "following the cursor" };
        let long = format!("columns {}-{} of {}, rows {}-{} of {}", c.0, c.1, c.2, r.0, r.1, r.2);
        let short = format!("{}-{}/{} {}-{}/{}", c.0, c.1, c.2, r.0, r.1, r.2);
        let keys = "q quits  arrows move";
        let all = [
            format!(" watching: {long}  {keys}  {follow}"),
            format!(" {long}  {keys}  {follow}"),
            format!(" {short}  {keys}  {follow}"),
            format!(" {short}  {keys}  {}", if self.pinned { "f follow" } else { "following" }),
            format!(" {short}  {keys}"),
            format!(" {keys}"),
        ];
        all.into_iter().find(|t| t.len() <= usize::from(room.0)).unwrap_or_else(|| " q quits".into())
    }
}

/// The first cell of `room` cells in which `at` is, with as little change as can be.
fn near(first: u16, room: u16, at: u16) -> u16 {
    let margin = MARGIN.min(room.saturating_sub(1) / 2);
    if at < first + margin {
        // A good piece further, so that the picture does not move with every letter.
        at.saturating_sub(room / 4)
    } else if at + margin >= first + room {
        (at + 1 + margin.max(room / 4)).saturating_sub(room)
    } else {
        first
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Observers(Vec<Observer>);

impl Observers {
    pub(crate) fn add(&mut self, watcher: Observer) {
        self.0.push(watcher);
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.iter().any(|w| w.seat.id() == id)
    }

    pub(crate) fn resized(&mut self, id: u64) {
        self.0.iter_mut().filter(|w| w.seat.id() == id).for_each(Observer::resized);
    }

    /// Moves an observer's viewport; `None`: it follows the cursor.
    pub(crate) fn look(&mut self, id: u64, by: Option<(i32, i32)>) {
        self.0.iter_mut().filter(|w| w.seat.id() == id).for_each(|w| w.part.look(by));
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.0.retain(|w| w.seat.id() != id);
    }

    /// Disconnects all observers with this message.
    pub(crate) fn dismiss(&mut self, words: &str) {
        self.0.drain(..).for_each(|w| w.seat.leave(words));
    }

    /// An observer's terminal could not take the last frame.
    pub(crate) fn behind(&self) -> bool {
        self.0.iter().any(|w| w.behind)
    }

    pub(crate) fn show(&mut self, frame: &Buffer, cursor: Option<Position>) {
        self.0.iter_mut().for_each(|w| w.show(frame, cursor));
    }
}

#[cfg(test)]
#[path = "observers_tests.rs"]
mod tests;
