//! The standard streams of a program: lines of bounded length from its output, and the end of its error output.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tiller_rpc::LineBuffer;
use tiller_tool::shell::{Host, HostedProgram, Launch};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::job::Limits;

/// Maximum bytes of its error output that are kept, from its end.
const ERRORS: usize = 16 << 10;

/// Time limit for reading the end of its error output.
const LAST: Duration = Duration::from_secs(3);

/// Maximum bytes of one read.
const CHUNK: usize = 64 << 10;

/// A running program.
pub(crate) struct PipedProgram {
    pub hosted: HostedProgram,
    pub stdin: Sender,
    pub lines: Lines,
    pub errors: Errors,
}

/// Starts a program.
///
/// # Errors
/// When the operating system refuses.
pub(crate) fn start(host: &Host, launch: Launch, limits: Limits) -> std::io::Result<PipedProgram> {
    let (stdin, input) = std::io::pipe()?;
    let (out, stdout) = std::io::pipe()?;
    let (err, stderr) = std::io::pipe()?;
    let mut hosted = host.start(launch, Stdio::from(stdin), Stdio::from(stdout), Stdio::from(stderr))?;
    hosted.bound(limits.bounds);
    let stdin = Sender::from_owned_fd(OwnedFd::from(input))?;
    let out = Receiver::from_owned_fd(OwnedFd::from(out))?;
    let lines = Lines::new(out, limits.line, limits.output);
    let errors = Errors::collect(Receiver::from_owned_fd(OwnedFd::from(err))?);
    Ok(PipedProgram { hosted, stdin, lines, errors })
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// A line was too long, and dropped.
    TooLong,
    /// The limit of the total output was exceeded.
    TooMuch,
    End,
}

/// Lines of a pipe, each of bounded length.
#[derive(Debug)]
pub(crate) struct Lines {
    pipe: Receiver,
    chunk: Vec<u8>,
    buffer: LineBuffer,
    /// The pipe has ended, or its limit was reached.
    ended: bool,
    /// Bytes until the limit.
    left: u64,
}

impl Lines {
    fn new(pipe: Receiver, longest: usize, total: u64) -> Self {
        Self { pipe, chunk: vec![0; CHUNK], buffer: LineBuffer::new(longest), ended: false, left: total }
    }

    /// The next line. Cancel-safe: nothing is lost.
    pub(crate) async fn next(&mut self) -> Line {
        loop {
            if let Some(line) = self.ready() {
                return line;
            }
            if self.ended {
                return self.buffer.last_line().map_or(Line::End, text);
            }
            // A cancelled read has read nothing.
            match self.pipe.read(&mut self.chunk).await {
                Ok(0) | Err(_) => self.ended = true,
                Ok(n) => {
                    self.left = self.left.saturating_sub(n as u64);
                    if self.left == 0 {
                        self.ended = true;
                        return Line::TooMuch;
                    }
                    self.buffer.push(&self.chunk[..n]);
                }
            }
        }
    }

    /// A line that was read already.
    pub(crate) fn ready(&mut self) -> Option<Line> {
        self.buffer.next_line().map(text)
    }
}

fn text(line: tiller_rpc::Line) -> Line {
    let tiller_rpc::Line::Text(bytes) = line else { return Line::TooLong };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Line::Text(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// The end of its standard error.
#[derive(Debug)]
pub(crate) struct Errors {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Ends with the pipe.
    task: tokio::task::JoinHandle<()>,
}

impl Errors {
    fn collect(mut pipe: Receiver) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let into = kept.clone();
        let task = tokio::spawn(async move {
            let mut chunk = vec![0; 8 << 10];
            while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
                let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&chunk[..n]);
                let over = kept.len().saturating_sub(ERRORS);
                kept.drain(..over);
            }
        });
        Self { kept, task }
    }

    /// The kept text, cleaned of escape sequences and trimmed; call it after the program has ended.
    pub(crate) async fn text(mut self) -> String {
        if tokio::time::timeout(LAST, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let kept: Vec<u8> =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        tiller_tool::text::clean(&kept).trim().to_owned()
    }
}
