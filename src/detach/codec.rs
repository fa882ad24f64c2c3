//! Lines of JSON over a Unix stream, with file descriptors beside the first byte where needed.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum bytes of a line, since a printed conversation is one line.
const LONGEST: usize = 64 << 20;
/// Maximum bytes of the first line: a request, and the variables of a terminal.
const FIRST: usize = 256 << 10;

/// Received descriptors are close-on-exec from the start, where the system supports that.
#[cfg(target_os = "linux")]
const FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: RecvFlags = RecvFlags::empty();

fn text(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Sends a message.
pub(super) fn send(mut to: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&text(message)?)
}

/// Sends a message, and descriptors with its first byte.
pub(super) fn send_with(
    to: &UnixStream,
    message: &impl Serialize,
    fds: [BorrowedFd<'_>; 2],
) -> io::Result<()> {
    let line = text(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(to, &[IoSlice::new(&line)], &mut beside, SendFlags::empty())?;
    let mut to = to;
    to.write_all(line.get(sent..).unwrap_or_default())
}

/// Received data that was not read yet.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Bytes of lines that were read.
    read: usize,
    /// Bytes without a line end after those.
    searched: usize,
    /// Received descriptors.
    pub(super) fds: Vec<OwnedFd>,
}

impl Lines {
    /// The next complete line, if there is one.
    ///
    /// # Errors
    /// When it is not a valid message.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let rest = self.bytes.get(self.read..).unwrap_or_default();
        let Some(end) = rest.iter().skip(self.searched).position(|b| *b == b'\n') else {
            // What was read goes in large pieces, so that each byte moves a bounded number of times.
            self.searched = rest.len();
            if self.read > self.searched {
                self.bytes.drain(..self.read);
                self.read = 0;
            }
            return Ok(None);
        };
        let end = self.searched + end;
        let message = serde_json::from_slice(rest.get(..end).unwrap_or_default());
        (self.read, self.searched) = (self.read + end + 1, 0);
        Ok(Some(message?))
    }

    /// Waits for data and receives it. `false`: the stream has ended.
    ///
    /// # Errors
    /// When the connection is broken, or a line is too long.
    pub(super) fn take(&mut self, from: &UnixStream) -> io::Result<bool> {
        let mut piece = [0u8; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            match recvmsg(from, &mut [IoSliceMut::new(&mut piece)], &mut beside, FLAGS) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other?,
            }
        };
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                for fd in fds {
                    // Where the flag is not supported: child processes must not inherit it.
                    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
                    self.fds.push(fd);
                }
            }
        }
        self.bytes.extend_from_slice(piece.get(..got.bytes).unwrap_or_default());
        if self.bytes.len().saturating_sub(self.read) > LONGEST || self.fds.len() > 2 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(got.bytes > 0)
    }

    /// Waits for the first line of a peer that is not known yet: within this time in all, and no longer than [`FIRST`] bytes.
    ///
    /// # Errors
    /// As [`Lines::wait`], and when the time is over.
    pub(super) fn first<T: DeserializeOwned>(
        &mut self,
        from: &UnixStream,
        within: Duration,
    ) -> io::Result<Option<T>> {
        let until = Instant::now() + within;
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            if self.bytes.len() > FIRST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            from.set_read_timeout(Some(left))?;
            if !self.take(from)? {
                return Ok(None);
            }
        }
    }

    /// Waits for the next complete line; `None`: the stream has ended.
    ///
    /// # Errors
    /// As [`Lines::take`] and [`Lines::next`].
    pub(super) fn wait<T: DeserializeOwned>(&mut self, from: &UnixStream) -> io::Result<Option<T>> {
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            if !self.take(from)? {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn lines_arrive_whole_and_descriptors_beside_the_first() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        let long = "x".repeat(100_000);
        let sent = long.clone();
        let sender = std::thread::spawn(move || {
            send_with(&a, &sent, [file.as_fd(), a.as_fd()]).unwrap();
            send(&a, &"next").unwrap();
        });
        let mut lines = Lines::default();
        assert_eq!(lines.wait::<String>(&b).unwrap().unwrap(), long);
        assert_eq!(lines.fds.len(), 2);
        for fd in &lines.fds {
            assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        }
        assert_eq!(lines.wait::<String>(&b).unwrap().unwrap(), "next");
        sender.join().unwrap();
        lines.fds.clear();
        assert_eq!(lines.wait::<String>(&b).unwrap(), None);
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let texts: Vec<String> = (0..400).map(|n| "x".repeat(n * 37 % 3_001)).collect();
        let all: Vec<u8> = texts.iter().flat_map(|line| text(line).unwrap()).collect();
        for piece in [1, 7, 4_096, 50_000, all.len()] {
            let mut lines = Lines::default();
            let mut got: Vec<String> = Vec::new();
            for bytes in all.chunks(piece) {
                lines.bytes.extend_from_slice(bytes);
                while let Some(line) = lines.next().unwrap() {
                    got.push(line);
                }
            }
            assert!(got == texts && lines.bytes.len() <= 2 * piece.max(3_001), "{piece}");
        }
    }

    #[test]
    fn a_peer_that_is_not_known_may_neither_wait_nor_send_without_end() {
        let (a, b) = UnixStream::pair().unwrap();
        let within = Duration::from_millis(100);
        assert!(Lines::default().first::<String>(&b, within).is_err(), "it is silent");
        // Each byte comes in time; the line never ends.
        let drips = std::thread::spawn(move || while (&a).write_all(b"x").is_ok() {});
        assert!(Lines::default().first::<String>(&b, Duration::from_secs(600)).is_err(), "too long");
        drop(b);
        drips.join().unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        let drips = std::thread::spawn(move || {
            while (&a).write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        });
        assert!(Lines::default().first::<String>(&b, within).is_err(), "too slow");
        drop(b);
        drips.join().unwrap();
    }

    #[test]
    fn what_is_no_message_ends_the_line() {
        let (a, b) = UnixStream::pair().unwrap();
        (&a).write_all(b"{nonsense\n").unwrap();
        assert!(Lines::default().wait::<super::super::messages::FromClient>(&b).is_err());
        // More descriptors than any message has.
        let mut lines = Lines::default();
        for _ in 0..2 {
            send_with(&a, &1, [a.as_fd(), a.as_fd()]).unwrap();
        }
        // The system hands over the descriptors of one message at a time.
        assert_eq!(lines.wait::<u32>(&b).unwrap(), Some(1));
        assert!(lines.wait::<u32>(&b).is_err());
    }
}
