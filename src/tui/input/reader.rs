//! Reads the terminal for the loop, which waits for its bytes: see [`crate::app::inbox`]. It is dropped while another
//! program uses the terminal, so that an editor receives every key.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{Decoder, DecoderWait, Input};

/// How long the rest of a sequence is waited for before it is given up.
const REST: Duration = Duration::from_millis(1000);

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// Signal number that stands for "the terminal is gone".
pub(crate) const HANGUP: i32 = 1;

/// Reads and decodes the terminal's input.
pub(crate) struct Reader {
    file: std::fs::File,
    decoder: Decoder,
    /// How long a lone Escape is looked at.
    escape: Duration,
    /// When what the decoder waits for is given up.
    end: Option<Instant>,
    bytes: Vec<u8>,
}

impl Reader {
    /// Reads `input`.
    pub(crate) fn new(input: OwnedFd, escape: Duration) -> Self {
        let decoder = Decoder::default();
        Self { file: std::fs::File::from(input), decoder, escape, end: None, bytes: vec![0; CHUNK] }
    }

    /// The descriptor to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// How long the rest of something is still waited for; `None`: nothing is.
    pub(crate) fn rest(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Reads and decodes the waiting bytes. Call it when there are some, or when [`Reader::rest`] is over.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn read(&mut self, ready: bool) -> io::Result<Vec<Input>> {
        let mut out = Vec::new();
        if ready {
            match self.file.read(&mut self.bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.decoder.feed(&self.bytes[..n], &mut out),
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                    return Ok(out);
                }
                Err(e) => return Err(e),
            }
        } else {
            self.decoder.flush(&mut out);
        }
        let wait = match self.decoder.waiting() {
            DecoderWait::Nothing => None,
            DecoderWait::Escape => Some(self.escape),
            DecoderWait::Rest => Some(REST),
        };
        self.end = wait.map(|w| Instant::now() + w);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crossterm::event::{KeyCode, KeyEvent};

    use super::*;

    #[test]
    fn a_lone_escape_is_a_key_when_nothing_follows_and_an_end_is_told() {
        let (read, mut write) = io::pipe().unwrap();
        let mut r = Reader::new(OwnedFd::from(read), Duration::from_secs(3600));
        assert_eq!(r.rest(), None);
        write.write_all(b"a\x1b").unwrap();
        assert_eq!(r.read(true).unwrap(), [Input::Key(KeyEvent::from(KeyCode::Char('a')))]);
        assert!(r.rest().is_some_and(|t| t > Duration::from_secs(3000)), "what follows is waited for");
        assert_eq!(r.read(false).unwrap(), [Input::Key(KeyEvent::from(KeyCode::Esc))]);
        assert_eq!(r.rest(), None);
        write.write_all(b"\x1b[A").unwrap();
        assert_eq!(r.read(true).unwrap(), [Input::Key(KeyEvent::from(KeyCode::Up))]);
        drop(write);
        assert!(r.read(true).is_err());
    }
}
