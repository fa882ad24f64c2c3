use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::app::inbox::{Inbox, inbox};

struct Nobody;

impl TerminalOwner for Nobody {
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

/// A window of this size, and what its terminal shows.
struct Window {
    watcher: Observer,
    bytes: Bytes,
    vt: vt100::Parser,
    _heard: Inbox,
}

impl Window {
    fn new(cols: u16, rows: u16) -> Self {
        let (tell, heard) = inbox(8);
        let bytes = Bytes::default();
        let mut watcher = Observer::with_output(Arc::new(Nobody), bytes.clone(), tell).unwrap();
        watcher.buf = Buffer::empty(Rect::new(0, 0, cols, rows));
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        Self { watcher, bytes, vt: vt100::Parser::new(size(rows), size(cols), 0), _heard: heard }
    }

    /// The lines after this frame.
    fn shows(&mut self, frame: &Buffer, cursor: Option<(u16, u16)>) -> Vec<String> {
        self.watcher.show(frame, cursor.map(Position::from));
        assert!(self.watcher.writer.settle(Duration::from_secs(90)));
        self.vt.process(&std::mem::take(&mut *self.bytes.0.lock().unwrap()));
        self.vt.screen().contents().lines().map(str::to_owned).collect()
    }
}

/// Each cell says where it is: letters for columns, and the row at its start.
fn frame(cols: u16, rows: u16) -> Buffer {
    let mut frame = Buffer::empty(Rect::new(0, 0, cols, rows));
    for y in 0..rows {
        let line: String = (0..cols).map(|x| char::from(b'a' + ((x + y) % 26) as u8)).collect();
        frame.set_string(0, y, line, Style::default());
    }
    frame
}

#[test]
fn nothing_wide_stands_half_outside() {
    let mut w = Window::new(6, 2);
    let mut frame = Buffer::empty(Rect::new(0, 0, 20, 5));
    frame.set_string(0, 0, "abcde\u{6f22}xyz", Style::default());
    let lines = w.shows(&frame, None);
    assert_eq!(lines[0], "abcde");
    assert!(w.vt.screen().hide_cursor());
    // From its second half on.
    w.watcher.part.look(Some((6, 0)));
    assert_eq!(w.shows(&frame, None)[0].trim_end(), " xyz");
}

#[test]
fn a_smaller_window_follows_the_cursor_goes_anywhere_and_says_where_it_is() {
    let (big, mut w) = (frame(118, 25), Window::new(80, 20));
    let row = |y: u16, from: u16, n: u16| -> String {
        (from..from + n).map(|x| char::from(b'a' + ((x + y) % 26) as u8)).collect()
    };
    let lines = w.shows(&big, Some((3, 22)));
    // The line of the other's keys is left out; the cursor stands where it is.
    assert_eq!((lines.len(), &lines[18]), (20, &row(23, 0, 80)));
    assert_eq!(w.vt.screen().cursor_position(), (17, 3));
    assert_eq!(lines[19].trim_end(), " 1-80/118 6-24/25  q quits  arrows move  following the cursor");
    // A letter further it stays as it is; far to the right it follows.
    assert_eq!(w.shows(&big, Some((40, 22)))[0], row(5, 0, 80));
    assert_eq!(w.shows(&big, Some((110, 22)))[0], row(5, 38, 80));
    assert_eq!(w.vt.screen().cursor_position(), (17, 72));
    // Gone elsewhere, it stays there; never beyond the edge.
    w.watcher.part.look(Some((-1000, -1000)));
    let lines = w.shows(&big, Some((110, 22)));
    assert_eq!(lines[0], row(0, 0, 80));
    assert!(
        lines[19].contains("columns 1-80 of 118, rows 1-19 of 25") && lines[19].contains("f follow"),
        "{lines:?}"
    );
    assert!(w.vt.screen().hide_cursor(), "the cursor is outside");
    w.watcher.part.look(Some((1000, 1000)));
    let lines = w.shows(&big, Some((3, 3)));
    assert_eq!((&lines[0], &lines[18]), (&row(6, 38, 80), &row(24, 38, 80)), "its last line, too");
    w.watcher.part.look(None);
    assert_eq!(w.shows(&big, Some((3, 3)))[0], row(0, 0, 80));
}

#[test]
fn a_window_with_room_for_all_of_it_shows_all_and_says_how_to_leave() {
    let big = frame(60, 10);
    for (cols, rows) in [(60, 10), (80, 24)] {
        let lines = Window::new(cols, rows).shows(&big, Some((59, 9)));
        assert!(lines[0].starts_with("abcdef") && lines[8].trim_end().len() == 60, "{lines:?}");
        assert_eq!(lines.last().unwrap().trim_end(), " watching  q quits");
    }
    // However narrow, the way out is told.
    let lines = Window::new(12, 3).shows(&big, None);
    assert_eq!(lines[2].trim_end(), " q quits");
    assert_eq!(Window::new(8, 1).shows(&big, None), ["abcdefgh"]);
}
