//! The thread that reads the terminal. It blocks in `poll` with no time limit unless the decoder waits for
//! the rest of something, and can be stopped, so that an editor gets every key.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Decoder, Input, Waiting};
use crate::msg::Msg;

/// How long the rest of a sequence is waited for before it is given up.
const REST: Duration = Duration::from_millis(1000);

/// Signal number that stands for "the terminal is gone".
pub(crate) const HANGUP: i32 = 1;

/// The running thread. Dropping it stops the thread.
pub struct Reader {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts reading `input`. `escape`: how long a lone Escape is looked at. The thread holds the sender;
    /// it ends when the loop is gone.
    ///
    /// # Errors
    /// When no pipe or thread can be made.
    pub fn start(input: OwnedFd, escape: Duration, bursts: bool, to: SyncSender<Msg>) -> io::Result<Self> {
        // Closed on exec: a child that kept the other end would keep the thread, and so our end.
        let (hear, stop) = std::io::pipe()?;
        let (hear, stop) = (OwnedFd::from(hear), OwnedFd::from(stop));
        let thread = std::thread::Builder::new().name("tiller-input".into()).spawn(move || {
            let mut decoder = Decoder { bursts, ..Decoder::default() };
            if let Err(e) = read(input, &hear, escape, &mut decoder, &to) {
                tracing::debug!(error = %e, "the terminal cannot be read any more");
                let _ = to.send(Msg::Lost);
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Closing our end wakes the poll.
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

/// Reads until it is told to stop (`Ok`) or the terminal is gone (`Err`).
fn read(
    input: OwnedFd,
    stop: &OwnedFd,
    escape: Duration,
    decoder: &mut Decoder,
    to: &SyncSender<Msg>,
) -> io::Result<()> {
    let mut file = std::fs::File::from(input);
    let mut bytes = vec![0u8; 64 << 10];
    let mut out: Vec<Input> = Vec::new();
    loop {
        let wait = match decoder.waiting() {
            Waiting::Nothing => None,
            Waiting::Escape => Some(escape),
            Waiting::Rest => Some(REST),
        };
        let limit =
            wait.map(|w| Timespec { tv_sec: w.as_secs() as i64, tv_nsec: i64::from(w.subsec_nanos()) });
        let mut fds =
            [PollFd::new(&file, PollFlags::IN), PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        let ready = match poll(&mut fds, limit.as_ref()) {
            Ok(n) => n,
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        };
        if !fds[1].revents().is_empty() {
            return Ok(());
        }
        if ready == 0 {
            decoder.flush(&mut out);
        } else {
            match file.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => decoder.feed(&bytes[..n], &mut out),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        for i in out.drain(..) {
            if to.send(i.into()).is_err() {
                return Ok(());
            }
        }
    }
}
