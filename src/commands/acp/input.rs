//! Lines of standard input, on a thread of their own.

use std::io::{BufRead, BufReader, Read};
use std::thread;

use tiller_protocol::{Notice, NoticeKind};
use tokio::sync::{mpsc, watch};

use super::rpc::Ending;

/// Bytes of one message. Pictures come as text, and are large.
pub(super) const LONGEST: usize = 64 << 20;
/// Lines that wait to be looked at.
const WAITING: usize = 16;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// It was read over.
    TooLong,
}

/// Starts the thread. It ends with the input, when the receiver is dropped, or with the process. `ended`: told
/// when the input ends.
///
/// # Errors
/// When there is no thread.
pub(super) fn lines(ended: watch::Sender<Ending>) -> Result<mpsc::Receiver<Line>, Notice> {
    // The hub holds the other end; it closes when the input ended.
    let (tx, rx) = mpsc::channel(WAITING);
    let work = move || {
        let mut from = BufReader::new(std::io::stdin().lock());
        while let Some(line) = next(&mut from, LONGEST) {
            if tx.blocking_send(line).is_err() {
                break;
            }
        }
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

/// The next line that is not empty. `None`: the input ended, or cannot be read any more.
fn next(from: &mut impl BufRead, longest: usize) -> Option<Line> {
    loop {
        let mut line = Vec::new();
        let most = longest as u64 + 1;
        if from.by_ref().take(most).read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if line.len() as u64 == most && line.last() != Some(&b'\n') {
            drop(line);
            skip(from)?;
            return Some(Line::TooLong);
        }
        if !line.trim_ascii().is_empty() {
            return Some(Line::Text(line));
        }
    }
}

/// Reads the rest of a line without keeping it.
fn skip(from: &mut impl BufRead) -> Option<()> {
    loop {
        let (used, ended) = {
            let bytes = from.fill_buf().ok()?;
            match bytes.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), bytes.is_empty()),
            }
        };
        from.consume(used);
        if ended {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_read_over_and_the_next_one_is_whole() {
        let text = |t: &str| Some(Line::Text(t.as_bytes().to_vec()));
        let mut from = BufReader::with_capacity(3, &b"12345\n\n \n1234567\nabc\n1234567"[..]);
        assert_eq!(next(&mut from, 6), text("12345\n"));
        assert_eq!(next(&mut from, 6), Some(Line::TooLong));
        assert_eq!(next(&mut from, 6), text("abc\n"));
        assert_eq!(next(&mut from, 6), Some(Line::TooLong));
        assert_eq!(next(&mut from, 6), None);
    }
}
