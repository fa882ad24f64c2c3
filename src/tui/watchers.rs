//! Whoever looks on from another terminal: the same frames, cut to its size, and no keys.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr;

use crate::inbox::Post;
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::seat::Seat;

/// One of them.
pub(crate) struct Watcher {
    seat: Arc<dyn Seat>,
    /// Its terminal, for its size. `None` in tests.
    terminal: Option<OwnedFd>,
    writer: Writer,
    encoder: Encoder,
    buf: Buffer,
    /// It could not be drawn on when something changed.
    behind: bool,
}

impl Watcher {
    /// # Errors
    /// When its terminal cannot be written.
    pub(crate) fn new(seat: Arc<dyn Seat>, terminal: OwnedFd, tell: Post) -> std::io::Result<Self> {
        let out = std::fs::File::from(terminal.try_clone()?);
        let mut made = Self::with_output(seat, out, tell)?;
        made.terminal = Some(terminal);
        made.resized();
        Ok(made)
    }

    fn with_output(
        seat: Arc<dyn Seat>,
        out: impl Write + Send + 'static,
        tell: Post,
    ) -> std::io::Result<Self> {
        let writer = Writer::start(out, tell)?;
        let buf = Buffer::empty(Rect::new(0, 0, 80, 24));
        Ok(Self { seat, terminal: None, writer, encoder: Encoder::default(), buf, behind: true })
    }

    /// Its window has another size, perhaps.
    fn resized(&mut self) {
        if let Some(Ok(size)) = self.terminal.as_ref().map(tcgetwinsize) {
            let area = Rect::new(0, 0, size.ws_col.clamp(1, 4096), size.ws_row.clamp(1, 4096));
            self.buf = Buffer::empty(area);
            self.encoder.repaint();
        }
    }

    /// Shows what the others see, as far as there is room.
    fn show(&mut self, frame: &Buffer, cursor: Option<Position>) {
        self.behind = !self.writer.ready();
        if self.behind {
            return;
        }
        let area = self.buf.area;
        self.buf.reset();
        for y in 0..area.height.min(frame.area.height) {
            for x in 0..area.width.min(frame.area.width) {
                let (Some(from), Some(to)) = (frame.cell((x, y)), self.buf.cell_mut((x, y))) else {
                    continue;
                };
                to.clone_from(from);
                // Something wide would stand half outside.
                if x + 1 == area.width && to.symbol().width() > 1 {
                    to.set_symbol(" ");
                }
            }
        }
        let mut out = self.writer.spare();
        let cursor = cursor.filter(|c| area.contains(*c));
        self.encoder.frame(&self.buf, &[area], cursor, &mut out);
        self.writer.write(out);
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Watchers(Vec<Watcher>);

impl Watchers {
    pub(crate) fn add(&mut self, watcher: Watcher) {
        self.0.push(watcher);
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.iter().any(|w| w.seat.id() == id)
    }

    pub(crate) fn resized(&mut self, id: u64) {
        self.0.iter_mut().filter(|w| w.seat.id() == id).for_each(Watcher::resized);
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.0.retain(|w| w.seat.id() != id);
    }

    /// Sends all away.
    pub(crate) fn dismiss(&mut self, words: &str) {
        self.0.drain(..).for_each(|w| w.seat.leave(words));
    }

    /// Somebody could not be drawn on the last time.
    pub(crate) fn behind(&self) -> bool {
        self.0.iter().any(|w| w.behind)
    }

    pub(crate) fn show(&mut self, frame: &Buffer, cursor: Option<Position>) {
        self.0.iter_mut().for_each(|w| w.show(frame, cursor));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::inbox::inbox;

    struct Nobody;

    impl Seat for Nobody {
        fn id(&self) -> u64 {
            7
        }
        fn stop(&self, _all: bool) {}
        fn dump(&self, _text: &str) {}
        fn leave(&self, _words: &str) {}
    }

    #[derive(Clone, Default)]
    struct Bytes(Arc<Mutex<Vec<u8>>>);

    impl Write for Bytes {
        fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_smaller_window_sees_the_corner_and_nothing_half() {
        let (tell, _heard) = inbox(8);
        let bytes = Bytes::default();
        let mut w = Watcher::with_output(Arc::new(Nobody), bytes.clone(), tell).unwrap();
        w.buf = Buffer::empty(Rect::new(0, 0, 6, 2));
        let mut frame = Buffer::empty(Rect::new(0, 0, 20, 5));
        frame.set_string(0, 0, "abcde\u{6f22}xyz", ratatui::style::Style::default());
        frame.set_string(0, 4, "below", ratatui::style::Style::default());
        w.show(&frame, Some(Position::new(15, 4)));
        assert!(w.writer.settle(Duration::from_secs(5)));
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let mut vt = vt100::Parser::new(size(2), size(6), 0);
        vt.process(&bytes.0.lock().unwrap());
        assert_eq!(vt.screen().contents().trim_end(), "abcde");
        assert!(vt.screen().hide_cursor(), "the cursor is outside");
    }
}
