//! Lines of standard input, on a thread of their own.

use std::io::{ErrorKind, Read};
use std::thread;

use tiller_protocol::{Notice, NoticeKind};
use tiller_rpc::{Line, LineBuffer};
use tokio::sync::{mpsc, watch};

use super::outlet::Ending;

/// Bytes of one message. Pictures come as text, and are large.
pub(super) const LONGEST: usize = 64 << 20;
/// Lines that wait to be looked at.
const WAITING: usize = 16;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Starts the thread. It ends with the input, when the receiver is dropped, or with the process. `ended` is set when the
/// input ends.
///
/// # Errors
/// When there is no thread.
pub(super) fn lines(ended: watch::Sender<Ending>) -> Result<mpsc::Receiver<Line>, Notice> {
    // The hub holds the other end; it closes when the input ended.
    let (tx, rx) = mpsc::channel(WAITING);
    let work = move || {
        // It fails only when the lines are not read any more.
        let _ = read(&mut std::io::stdin().lock(), &tx);
        // A signal that came before says more.
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
