//! Reads lines of standard input on a separate thread.

use std::io::{ErrorKind, Read};
use std::thread;

use tiller_protocol::{Notice, NoticeKind};
use tiller_rpc::{Line, LineBuffer};
use tokio::sync::{mpsc, watch};

use super::outlet::Ending;

/// Maximum bytes of one message. Images are sent as text, and are large.
pub(super) const LONGEST: usize = 64 << 20;
/// Capacity of the channel of lines.
const WAITING: usize = 16;
/// Bytes of one read.
const CHUNK: usize = 64 << 10;

/// Starts the thread. It ends with the input, when the receiver is dropped, or with the process. `ended` is set when
/// the input ends.
///
/// # Errors
/// When the thread cannot be started.
pub(super) fn lines(ended: watch::Sender<Ending>) -> Result<mpsc::Receiver<Line>, Notice> {
    // The hub holds the receiver; the channel closes when the input ends.
    let (tx, rx) = mpsc::channel(WAITING);
    let work = move || {
        // It fails only when the receiver was dropped.
        let _ = read(&mut std::io::stdin().lock(), &tx);
        // An earlier signal takes precedence.
        ended.send_if_modified(|e| {
            let first = *e == Ending::No;
            if first {
                *e = Ending::Input;
            }
            first
        });
    };
    let made = thread::Builder::new().name("stdin".into()).spawn(work);
    made.map_err(|e| Notice::new(NoticeKind::Internal, format!("No thread could be started: {e}.")))?;
    Ok(rx)
}

/// Sends each line that is not empty, until the input ends or cannot be read any more.
///
/// # Errors
/// When the receiver is dropped.
fn read(input: &mut impl Read, tx: &mpsc::Sender<Line>) -> Result<(), mpsc::error::SendError<Line>> {
    let (mut buffer, mut chunk) = (LineBuffer::new(LONGEST), vec![0; CHUNK]);
    let send = |line| match &line {
        Line::Text(text) if text.trim_ascii().is_empty() => Ok(()),
        _ => tx.blocking_send(line),
    };
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break buffer.last_line().map_or(Ok(()), send),
            Ok(n) => buffer.push(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break Ok(()),
        }
        while let Some(line) = buffer.next_line() {
            send(line)?;
        }
    }
}
