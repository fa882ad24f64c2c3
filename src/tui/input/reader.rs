//! Reads the terminal for the loop, which waits for its bytes: see [`crate::app::inbox`]. It is dropped while another
//! program uses the terminal, so that an editor receives every key.
//!
//! The loop may be busy while keys come, and would read at once what was typed one after the other. A thread notes when
//! bytes came; it reads none of them.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tiller_protocol::Clock;

use super::{Decoder, DecoderWait, Input};

/// How long the rest of a sequence is waited for before it is given up.
const REST: Duration = Duration::from_millis(1000);

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// Time between two looks at bytes that the loop has not read yet.
const LOOK: Duration = Duration::from_millis(5);

/// Notes about bytes that are kept while the loop is busy.
const NOTES: usize = 4096;

/// Signal number that stands for "the terminal is gone".
pub(crate) const HANGUP: i32 = 1;

/// Inputs whose bytes came together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// The earliest time at which they may have come, and the latest (monotonic).
    pub(crate) since: Duration,
    pub(crate) at: Duration,
    pub(crate) inputs: Vec<Input>,
}

/// Up to which byte the terminal had sent at a time.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Bytes since the reader began.
    end: u64,
    since: Duration,
    at: Duration,
}

/// Shared by the reader and the thread that notes when bytes come.
struct Shared {
    file: std::fs::File,
    clock: Arc<dyn Clock>,
    notes: Mutex<Notes>,
}

/// When bytes came.
#[derive(Default)]
struct Notes {
    /// Bytes that were read.
    read: u64,
    /// In the order of the bytes, of those that were not read.
    of: VecDeque<Note>,
    /// When the thread saw last how much there was.
    looked: Duration,
}

impl Notes {
    /// There were `unread` bytes at `now`, and more than at the last look came not before `since`.
    fn look(&mut self, unread: u64, since: Duration, now: Duration) {
        let end = self.read + unread;
        self.looked = now;
        if self.of.back().map_or(self.read, |last| last.end) >= end {
            return;
        }
        if self.of.len() < NOTES {
            self.of.push_back(Note { end, since, at: now });
        } else if let Some(last) = self.of.back_mut() {
            (last.end, last.at) = (end, now);
        }
    }

    /// The next bytes were read, `count` of them at `now`, not before `since`: the parts that came together, each with
    /// the length of its bytes.
    fn take(&mut self, count: usize, since: Duration, now: Duration) -> Vec<(usize, Duration, Duration)> {
        let all = self.read + count as u64;
        let mut parts = Vec::new();
        while self.read < all {
            let next = self.of.front().copied().filter(|note| note.end > self.read);
            let (end, since, at) = match next {
                Some(note) => (note.end.min(all), note.since, note.at),
                None => (all, since.max(self.looked), now),
            };
            parts.push(((end - self.read) as usize, since, at));
            self.read = end;
            while self.of.front().is_some_and(|note| note.end <= end) {
                self.of.pop_front();
            }
        }
        parts
    }
}

impl Shared {
    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes when bytes come, until the other end of `stop` is dropped, or the terminal is gone.
    fn watch(&self, stop: &PipeReader) {
        let mut since = None;
        loop {
            // What has come and was not read would end each wait: it is looked at again in a moment.
            let waits = since.is_none().then(|| PollFd::new(&self.file, PollFlags::IN));
            let mut fds: Vec<PollFd<'_>> =
                [PollFd::new(stop, PollFlags::IN)].into_iter().chain(waits).collect();
            let moment = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
            if poll(&mut fds, since.map(|_| &moment)).is_err() {
                continue;
            }
            let [stopped, ready] = [0, 1].map(|n| fds.get(n).map_or(PollFlags::empty(), PollFd::revents));
            if !stopped.is_empty() || (!ready.is_empty() && !ready.contains(PollFlags::IN)) {
                return;
            }
            let mut notes = self.notes();
            let now = self.clock.mono();
            // Not all that is read can be counted.
            let Ok(unread) = rustix::io::ioctl_fionread(&self.file) else { return };
            notes.look(unread, since.unwrap_or(now), now);
            since = (unread > 0 || since.is_none()).then_some(now);
        }
    }
}

/// Reads and decodes the terminal's input.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    _stop: Option<PipeWriter>,
    decoder: Decoder,
    /// How long a lone Escape is looked at.
    escape: Duration,
    /// When what the decoder waits for is given up (monotonic).
    end: Option<Duration>,
    bytes: Vec<u8>,
}

impl Reader {
    /// Reads `input`.
    pub(crate) fn new(input: OwnedFd, escape: Duration, clock: Arc<dyn Clock>) -> Self {
        let notes = Mutex::new(Notes { looked: clock.mono(), ..Notes::default() });
        let shared = Arc::new(Shared { file: std::fs::File::from(input), clock, notes });
        // Without a pipe or a thread all that is read at once has come at once.
        let stop = std::io::pipe().ok().and_then(|(stopped, stop)| {
            let theirs = Arc::clone(&shared);
            let made = std::thread::Builder::new().name("tiller-keys".into());
            made.spawn(move || theirs.watch(&stopped)).ok().map(|_| stop)
        });
        let decoder = Decoder::default();
        Self { shared, _stop: stop, decoder, escape, end: None, bytes: vec![0; CHUNK] }
    }

    /// The descriptor to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// How long the rest of something is still waited for; `None`: nothing is.
    pub(crate) fn rest(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(self.shared.clock.mono()))
    }

    /// Reads and decodes the waiting bytes, which came not before `since`. Call it when there are some (`ready`), or
    /// when [`Reader::rest`] is over.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn read(&mut self, ready: bool, since: Duration) -> io::Result<Vec<Arrived>> {
        if !ready {
            let at = self.shared.clock.mono();
            return Ok(vec![self.give_up(at)]);
        }
        let mut notes = self.shared.notes();
        let count = match (&self.shared.file).read(&mut self.bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(e),
        };
        let parts = notes.take(count, since, self.shared.clock.mono());
        drop(notes);
        let (mut all, mut begin) = (Vec::new(), 0);
        for (length, since, at) in parts {
            // What came later than the rest was waited for is not the rest.
            while let Some(end) = self.end.filter(|end| *end <= since) {
                all.push(self.give_up(end));
            }
            let mut inputs = Vec::new();
            self.decoder.feed(&self.bytes[begin..begin + length], &mut inputs);
            begin += length;
            all.push(Arrived { since, at, inputs });
            self.wait_from(at);
        }
        Ok(all)
    }

    /// Resolves what the decoder has waited for.
    fn give_up(&mut self, at: Duration) -> Arrived {
        let mut inputs = Vec::new();
        self.decoder.flush(&mut inputs);
        self.wait_from(at);
        Arrived { since: at, at, inputs }
    }

    fn wait_from(&mut self, at: Duration) {
        let wait = match self.decoder.waiting() {
            DecoderWait::Nothing => None,
            DecoderWait::Escape => Some(self.escape),
            DecoderWait::Rest => Some(REST),
        };
        self.end = wait.map(|wait| at + wait);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crossterm::event::{KeyCode, KeyEvent};
    use tiller_protocol::{ManualClock, SystemClock, Time};

    use super::*;

    fn inputs(arrived: io::Result<Vec<Arrived>>) -> Vec<Input> {
        arrived.unwrap().into_iter().flat_map(|a| a.inputs).collect()
    }

    fn key(code: KeyCode) -> Input {
        Input::Key(KeyEvent::from(code))
    }

    #[test]
    fn a_lone_escape_is_a_key_when_nothing_follows_and_an_end_is_told() {
        let (read, mut write) = io::pipe().unwrap();
        let clock = Arc::new(SystemClock::default());
        let mut r = Reader::new(OwnedFd::from(read), Duration::from_secs(3600), clock);
        let read = |r: &mut Reader, ready| r.read(ready, Duration::ZERO);
        assert_eq!(r.rest(), None);
        write.write_all(b"a\x1b").unwrap();
        assert_eq!(inputs(read(&mut r, true)), [key(KeyCode::Char('a'))]);
        assert!(r.rest().is_some_and(|t| t > Duration::from_secs(3000)), "what follows is waited for");
        assert_eq!(inputs(read(&mut r, false)), [key(KeyCode::Esc)]);
        write.write_all(b"\x1b[A").unwrap();
        assert_eq!(inputs(read(&mut r, true)), [key(KeyCode::Up)]);
        drop(write);
        assert!(read(&mut r, true).is_err());
    }

    fn until(what: &str, done: impl Fn() -> bool) {
        let limit = std::time::Instant::now() + Duration::from_secs(60);
        while !done() {
            assert!(std::time::Instant::now() < limit, "waited until {what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_came_apart_while_the_loop_was_busy_is_read_apart() {
        let (read, mut write) = io::pipe().unwrap();
        let clock = Arc::new(ManualClock::new(Time(0)));
        let mut r = Reader::new(OwnedFd::from(read), Duration::from_millis(25), clock.clone());
        let mut sent = 0;
        for words in ["hello", "\r", "next ", "words", "\x1b", "b"] {
            clock.advance(Duration::from_millis(100));
            let looks = || sent == 0 || r.shared.notes().looked == clock.mono();
            until("the thread looks", looks);
            write.write_all(words.as_bytes()).unwrap();
            sent += words.len() as u64;
            until("it notes the bytes", || r.shared.notes().of.back().is_some_and(|note| note.end == sent));
        }
        clock.advance(Duration::from_millis(900));
        let all = r.read(true, Duration::ZERO).unwrap();
        let told: Vec<(u64, usize)> = all.iter().map(|a| (a.at.as_millis() as u64, a.inputs.len())).collect();
        // The Escape had its time before the next letter came.
        assert_eq!(told, [(100, 5), (200, 1), (300, 5), (400, 5), (500, 0), (525, 1), (600, 1)]);
        let last: Vec<&Input> = all.iter().flat_map(|a| &a.inputs).rev().take(2).collect();
        assert_eq!(last, [&key(KeyCode::Char('b')), &key(KeyCode::Esc)]);
        assert!(r.shared.notes().of.is_empty());
        // What is read before the thread has seen it came just now.
        assert_eq!(r.shared.notes().take(2, Duration::from_secs(9), Duration::from_secs(10)).len(), 1);
    }

    #[test]
    fn a_note_covers_a_part_of_what_is_read() {
        let at = Duration::from_millis;
        let mut notes = Notes::default();
        notes.look(10, at(1), at(1));
        notes.look(10, at(1), at(6));
        notes.look(12, at(6), at(11));
        assert_eq!(notes.take(4, at(0), at(20)), [(4, at(1), at(1))]);
        assert_eq!(
            notes.take(9, at(0), at(20)),
            [(6, at(1), at(1)), (2, at(6), at(11)), (1, at(11), at(20))]
        );
        // Too many are not kept: what came then came together.
        for n in 1..=NOTES as u64 + 3 {
            notes.look(n, at(n), at(n));
        }
        assert_eq!(notes.of.len(), NOTES);
        let parts = notes.take(NOTES + 3, at(0), at(9999));
        assert_eq!(parts.last(), Some(&(4, at(NOTES as u64), at(NOTES as u64 + 3))));
    }

    #[test]
    fn the_thread_ends_with_its_reader_and_with_the_terminal() {
        for gone in [true, false] {
            let (read, write) = io::pipe().unwrap();
            let clock = Arc::new(SystemClock::default());
            let r = Reader::new(OwnedFd::from(read), Duration::from_millis(25), clock);
            let shared = Arc::downgrade(&r.shared);
            let (reader, write) = if gone {
                drop(write);
                (Some(r), None)
            } else {
                drop(r);
                (None, Some(write))
            };
            let alone = usize::from(gone);
            until("the thread ends", || shared.strong_count() <= alone);
            drop((reader, write));
        }
    }
}
