//! Output that goes on after its command: a background process still holds the pipe.

use std::time::Duration;

use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

/// How long a command's pipe may stay open after its end before the turn goes on without it. Covers
/// process substitutions that still flush.
pub(crate) const LINGER: Duration = Duration::from_millis(100);

/// Read at once.
pub(crate) const CHUNK: usize = 256 << 10;

/// A pipe whose writers outlive their command.
#[derive(Debug)]
pub struct Leftover {
    pub(crate) pipe: Receiver,
    /// Its path, also when it was removed: a process that has it open can still write.
    pub(crate) name: Option<std::path::PathBuf>,
}

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipeRead {
    Bytes(usize),
    /// Nothing now; writers are there.
    Nothing,
    /// No writer is left.
    End,
}

/// Reads what is there, asking the system rather than the runtime's idea of readiness: after a command's
/// end this gives everything that it wrote.
pub(crate) fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> PipeRead {
    loop {
        return match rustix::io::read(pipe, &mut *buffer) {
            Ok(0) => PipeRead::End,
            Ok(n) => PipeRead::Bytes(n),
            Err(Errno::AGAIN) => PipeRead::Nothing,
            Err(Errno::INTR) => continue,
            Err(_) => PipeRead::End,
        };
    }
}

/// Reads after `readable()`: a miss clears the runtime's readiness.
pub(crate) fn read_ready(pipe: &Receiver, buffer: &mut [u8]) -> PipeRead {
    match pipe.try_read(buffer) {
        Ok(0) => PipeRead::End,
        Ok(n) => PipeRead::Bytes(n),
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => PipeRead::Nothing,
        Err(_) => PipeRead::End,
    }
}
