//! Detects the keyboard protocol of the terminal with the same query as the workbench.

use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

/// Time limit of the answer. Over ssh it is a round trip.
const TIMEOUT: Duration = Duration::from_millis(1500);
/// The query of the protocol, then a query that every terminal answers: its answer is the last.
const ASK: &[u8] = b"\x1b[?u\x1b[c";

/// The result of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyboard {
    /// Standard output is not a terminal.
    NotAsked,
    /// The terminal did not answer.
    Silent,
    /// Shift-Enter and Ctrl-Enter look like Enter.
    Legacy,
    /// All keys are distinct.
    Enhanced,
}

/// Queries the terminal.
pub(crate) fn ask() -> Keyboard {
    if !std::io::stdout().is_terminal() {
        return Keyboard::NotAsked;
    }
    let Ok(mut tty) = std::fs::File::options().read(true).write(true).open("/dev/tty") else {
        return Keyboard::NotAsked;
    };
    let Ok(before) = tcgetattr(&tty) else { return Keyboard::NotAsked };
    let mut raw = before.clone();
    raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    raw.special_codes[SpecialCodeIndex::VMIN] = 0;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    if tcsetattr(&tty, OptionalActions::Now, &raw).is_err() {
        return Keyboard::NotAsked;
    }
    let mut answer = Vec::new();
    if tty.write_all(ASK).and_then(|()| tty.flush()).is_ok() {
        let end = Instant::now() + TIMEOUT;
        while meaning(&answer).is_none() && answer.len() < 4096 {
            let left = end.saturating_duration_since(Instant::now());
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            let wait = if left.as_secs() > 0 { Timespec { tv_sec: 1, tv_nsec: 0 } } else { wait };
            let ready = poll(&mut [PollFd::new(&tty, PollFlags::IN)], Some(&wait));
            let mut buffer = [0; 256];
            match ready.is_ok_and(|n| n > 0).then(|| tty.read(&mut buffer)) {
                Some(Ok(n)) if n > 0 => answer.extend_from_slice(&buffer[..n]),
                _ if Instant::now() >= end => break,
                _ => {}
            }
        }
    }
    let _ = tcsetattr(&tty, OptionalActions::Flush, &before);
    meaning(&answer).unwrap_or(Keyboard::Silent)
}

/// The result of the answers; `None`: the last one has not arrived yet.
fn meaning(answer: &[u8]) -> Option<Keyboard> {
    let text = String::from_utf8_lossy(answer);
    let mut keyboard = Keyboard::Legacy;
    for part in text.split("\x1b[?").skip(1) {
        let end = part.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
        match part[end..].chars().next() {
            Some('u') => keyboard = Keyboard::Enhanced,
            Some('c') => return Some(keyboard),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_understood() {
        assert_eq!(meaning(b"\x1b[?0u\x1b[?62;22c"), Some(Keyboard::Enhanced));
        assert_eq!(meaning(b"\x1b[?1;2c"), Some(Keyboard::Legacy));
        assert_eq!(meaning(b"\x1b[?0u"), None);
        assert_eq!(meaning(b"\x1b[?6"), None);
        assert_eq!(meaning(b"xyz"), None);
    }
}
