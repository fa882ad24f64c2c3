//! One connection to the helper at the other side (`there/helper.sh`, which lists requests and frames).

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::lock;
use tiller_tool::shell::{Launch, retry_while_busy};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

const HELPER: &str = include_str!("there/helper.sh");
/// What the other side's shell is given as an argument: it reads the helper from its input. No character in it means
/// something else to another login shell.
pub(crate) const BOOT: &str = r#"read n; s=$(dd bs=1 count=$n 2>/dev/null); eval "$s""#;
/// Until the other side has ended what it had, at the end of the session.
pub(crate) const LEAVE: Duration = Duration::from_secs(4);
/// Until the first answer.
pub(crate) const CONNECT: Duration = Duration::from_secs(30);
/// The longest header of a frame, and the largest frame, in bytes.
const HEADER: usize = 256;
const FRAME: usize = 1 << 30;
/// What is kept of the program's error output, in bytes.
const ERRORS: usize = 8 << 10;
/// Looks whether its end is there, and the time between two of them.
const ERROR_LOOKS: u32 = 20;
const ERROR_PAUSE: Duration = Duration::from_millis(20);
/// From the end of the requests to the end of the program, which may still clear away what it has.
const END: Duration = Duration::from_secs(20);

/// What comes back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The shell is there; `again`: it was started over an earlier connection.
    Ready {
        again: bool,
    },
    Output(Vec<u8>),
    /// The command has ended; its report.
    End(Vec<u8>),
    /// The shell has ended without a report.
    Gone,
    Data(Vec<u8>),
    Done,
    /// Refused; a sentence of the helper.
    No(String),
}

/// An open connection. Dropping it closes it; what runs there goes on.
pub(crate) struct Link {
    /// Requests for the writing task, which ends when this closes. A few of them, since each waits for its answer.
    requests: mpsc::Sender<Vec<u8>>,
    /// From the reading task, which ends with the connection.
    frames: mpsc::Receiver<Frame>,
    errors: Arc<Mutex<Vec<u8>>>,
    _reader: AbortOnDropHandle<()>,
    keeps_errors: AbortOnDropHandle<()>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

impl Link {
    /// Starts the program that connects.
    pub(crate) fn start(launch: &Launch) -> std::io::Result<Self> {
        // Not killed with this process: its closed input ends it, and the last request may still be on its way.
        let mut command = command(launch);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(false);
        let mut child = retry_while_busy(|| command.spawn())?;
        let missing = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (requests, asked) = mpsc::channel(8);
        let (tx, frames) = mpsc::channel(8);
        let errors = Arc::<Mutex<Vec<u8>>>::default();
        // Not aborted with the link: it still sends what was asked last, then ends the program.
        drop(tokio::spawn(write(stdin, asked, child)));
        let kept = Arc::clone(&errors);
        Ok(Self {
            requests,
            frames,
            errors,
            _reader: AbortOnDropHandle::new(tokio::spawn(read(stdout, tx))),
            keeps_errors: AbortOnDropHandle::new(tokio::spawn(keep(stderr, kept))),
        })
    }

    /// Sends a request, with the bytes that follow its header. An error means that the connection is closed; the next
    /// frame says so as well.
    pub(crate) async fn ask(&self, header: &str, bodies: &[&[u8]]) {
        let mut bytes = Vec::with_capacity(header.len() + 1 + bodies.iter().map(|b| b.len()).sum::<usize>());
        bytes.extend_from_slice(header.as_bytes());
        bytes.push(b'\n');
        bodies.iter().for_each(|body| bytes.extend_from_slice(body));
        let _ = self.requests.send(bytes).await;
    }

    /// Sends a last request without waiting, for a link that is dropped: its program ends after it.
    pub(crate) fn ask_last(&self, header: &str) {
        let _ = self.requests.try_send(format!("{header}\n").into_bytes());
    }

    /// Ends the requests, and waits until the other side has ended too: what it still clears away is gone then. At most
    /// this long.
    pub(crate) async fn leave(self, most: Duration) {
        let Self { requests, mut frames, _reader, .. } = self;
        drop(requests);
        let ended = async { while frames.recv().await.is_some() {} };
        let _ = tokio::time::timeout(most, ended).await;
    }

    /// The next frame; `None`: the connection is closed. Nothing is lost when this is dropped before it is done.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        self.frames.recv().await
    }

    /// Whether the connection is known to be closed.
    pub(crate) fn closed(&self) -> bool {
        self.frames.is_closed() && self.frames.is_empty()
    }

    /// What the program said on its error output.
    pub(crate) async fn errors(&self) -> String {
        // It may still be on its way. What the program has left may hold the output: it is not waited for without end.
        for _ in 0..ERROR_LOOKS {
            if self.keeps_errors.is_finished() {
                break;
            }
            tokio::time::sleep(ERROR_PAUSE).await;
        }
        String::from_utf8_lossy(&lock(&self.errors)).trim().to_owned()
    }
}

fn command(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(k, v)| (k, v)));
    // Keys of the person's terminal, Ctrl-C for instance, are not for it.
    command.current_dir(&launch.folder).process_group(0);
    command
}

async fn write(mut stdin: ChildStdin, mut asked: mpsc::Receiver<Vec<u8>>, mut child: Child) {
    let mut first = format!("{}\n", HELPER.len()).into_bytes();
    first.extend_from_slice(HELPER.as_bytes());
    let mut next = Some(first);
    while let Some(bytes) = next {
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
        next = tokio::select! {
            next = asked.recv() => next,
            // So that it is noticed as ended on this side, too.
            _ = child.wait() => None,
        };
    }
    drop(stdin);
    let _ = tokio::time::timeout(END, child.wait()).await;
    let _ = child.kill().await;
}

async fn read(stdout: impl AsyncRead + Unpin, to: mpsc::Sender<Frame>) {
    let mut from = BufReader::with_capacity(128 << 10, stdout);
    while let Some(frame) = frame(&mut from).await {
        if to.send(frame).await.is_err() {
            break;
        }
    }
}

/// One frame; `None`: the end, or bytes that are no frame.
async fn frame(from: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Frame> {
    let mut header = Vec::new();
    let read = (&mut *from).take(HEADER as u64).read_until(b'\n', &mut header).await.ok()?;
    if read == 0 || header.pop() != Some(b'\n') {
        return None;
    }
    let header = String::from_utf8(header).ok()?;
    let (kind, rest) = header.split_once(' ').unwrap_or((&header, ""));
    let mut body = Vec::new();
    if matches!(kind, "o" | "e" | "d" | "no") {
        let length: usize = rest.parse().ok().filter(|length| *length <= FRAME)?;
        // Grows as the bytes come: the length is only what the other side says.
        let got = (&mut *from).take(length as u64).read_to_end(&mut body).await.ok()?;
        if got < length {
            return None;
        }
    }
    Some(match kind {
        "ready" => Frame::Ready { again: rest == "again" },
        "o" => Frame::Output(body),
        "e" => Frame::End(body),
        "gone" => Frame::Gone,
        "d" => Frame::Data(body),
        "ok" => Frame::Done,
        "no" => Frame::No(String::from_utf8_lossy(&body).trim().to_owned()),
        _ => return None,
    })
}

async fn keep(mut stderr: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = lock(&kept);
        kept.extend_from_slice(&buffer[..n]);
        let over = kept.len().saturating_sub(ERRORS);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frames(bytes: &[u8]) -> Vec<Frame> {
        let mut from = BufReader::new(bytes);
        let mut all = Vec::new();
        while let Some(frame) = frame(&mut from).await {
            all.push(frame);
        }
        all
    }

    /// Output that looks like a frame is output; what is cut off is no frame.
    #[tokio::test]
    async fn frames_are_told_apart_by_their_length() {
        let all = frames(b"ready new\no 7\ngone\no 1e 3\nr\n0d 0\nno 4\nwhy\ngone\n").await;
        let output = Frame::Output(b"gone\no ".to_vec());
        assert_eq!(all[..2], [Frame::Ready { again: false }, output]);
        assert_eq!(all.len(), 2, "`1e 3` is no header: nothing after it is believed");
        let all = frames(b"e 3\nr\n0d 0\nno 4\nwhy\ngone\nok\no 5\nabc").await;
        let no = Frame::No("why".into());
        assert_eq!(all, [Frame::End(b"r\n0".to_vec()), Frame::Data(vec![]), no, Frame::Gone, Frame::Done]);
        for wrong in ["o\n", "o -1\n", "o 99999999999\n", "x 1\na", "o 1", "\n", "ready"] {
            assert!(frames(wrong.as_bytes()).await.is_empty(), "{wrong:?}");
        }
        assert!(frames(&[b'r'; 1000]).await.is_empty());
    }
}
