//! What a server's program sends, within limits: lines of messages of bounded length, junk between them, standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::lock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum bytes of one message.
pub(crate) const MESSAGE: usize = 4 << 20;
/// Maximum bytes that are no messages between two messages.
const JUNK: u64 = 64 << 20;
/// Bytes of a program's standard error that are kept, from its end.
const TAIL: usize = 16 << 10;
/// Bytes of standard error after which it is read slowly.
const FLOOD: u64 = 1 << 20;
/// Pause after each piece of a flood.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of one read.
const CHUNK: usize = 64 << 10;
/// Maximum number of messages in one list of messages.
const LIST: usize = 1000;
/// Bytes at the beginning and the end of a dropped line in which its id is looked for.
const EDGE: usize = 256;

/// The last bytes of what a program prints, and why its output was closed. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<TailText>>);

#[derive(Debug, Default)]
struct TailText {
    bytes: VecDeque<u8>,
    /// Why Tiller stopped reading.
    closed: Option<String>,
}

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = lock(&self.0);
        tail.bytes.extend(bytes);
        let over = tail.bytes.len().saturating_sub(TAIL);
        tail.bytes.drain(..over);
    }

    fn close(&self, why: String) {
        lock(&self.0).closed = Some(why);
    }

    /// Why Tiller stopped reading; `None`: it did not.
    pub(crate) fn closed(&self) -> Option<String> {
        lock(&self.0).closed.clone()
    }

    /// The kept text, without what could control a terminal.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = lock(&self.0).bytes.iter().copied().collect();
        tiller_tool::text::clean(&bytes).trim().to_owned()
    }
}

/// Keeps the end of a program's standard error until it closes. A flood is read slowly, so that it costs little.
pub(crate) async fn keep_tail(mut pipe: impl AsyncRead + Unpin, tail: Tail) {
    let (mut chunk, mut total) = (vec![0; 8 << 10], 0u64);
    while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
        tail.push(&chunk[..n]);
        total += n as u64;
        if total > FLOOD {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Forwards the messages of a program's standard output. A list of messages in one line is taken apart. A line that is no
/// JSON of the protocol is kept in `tail` and goes no further; a message that is too long is replaced by an error with its id, so that its request ends at once.
pub(crate) async fn forward(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, tail: Tail) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; CHUNK];
    while let Ok(n @ 1..) = from.read(&mut chunk).await {
        for line in lines.push(&chunk[..n]) {
            match line {
                Line::Message(bytes) => {
                    if to.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Line::Junk(bytes) => tail.push(&bytes),
                Line::TooLong(Some(answer)) => {
                    if to.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Line::TooLong(None) => {
                    tail.close(format!("it sent a message of more than {} MB", MESSAGE >> 20));
                    return;
                }
            }
        }
        if lines.junk > JUNK {
            tail.close(format!("it printed more than {} MB that are no messages", JUNK >> 20));
            return;
        }
    }
}

/// A line of a program's output.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// With its line end.
    Message(Vec<u8>),
    Junk(Vec<u8>),
    /// The error that takes the place of a message that is too long; `None`: it has no id that was found.
    TooLong(Option<String>),
}

/// Takes bytes apart into lines. Holds at most one message.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    /// The present line is too long: its first and last bytes.
    long: Option<(Vec<u8>, VecDeque<u8>)>,
    /// Bytes that were no messages since the last message.
    junk: u64,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut found = Vec::new();
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.take(&bytes[..=end]);
            bytes = &bytes[end + 1..];
            found.extend(self.end());
        }
        self.take(bytes);
        found
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some((_, last)) = &mut self.long {
            self.junk += bytes.len() as u64;
            last.extend(&bytes[bytes.len().saturating_sub(EDGE)..]);
            let over = last.len().saturating_sub(EDGE);
            last.drain(..over);
            return;
        }
        let begins = self.line.trim_ascii_start().first();
        let limit = if matches!(begins, None | Some(b'{' | b'[')) { MESSAGE } else { CHUNK };
        if self.line.len() + bytes.len() <= limit {
            self.line.extend_from_slice(bytes);
            return;
        }
        let first: Vec<u8> = self.line.iter().chain(bytes).take(EDGE).copied().collect();
        self.junk += self.line.len() as u64;
        self.line = Vec::new();
        self.long = Some((first, VecDeque::new()));
        self.take(bytes);
    }

    fn end(&mut self) -> Option<Line> {
        if let Some((first, last)) = self.long.take() {
            if !is_object(&first) {
                return Some(Line::Junk(first));
            }
            let last: Vec<u8> = last.into_iter().collect();
            return Some(Line::TooLong(id_of(&first, &last).map(|id| {
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"the answer has more than {} MB and was dropped\"}}}}\n",
                    MESSAGE >> 20
                )
            })));
        }
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return None;
        }
        if is_object(&line) && serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() {
            self.junk = 0;
            return Some(Line::Message(line));
        }
        if let Some(messages) = batch(&line) {
            self.junk = 0;
            return Some(Line::Message(messages));
        }
        self.junk += line.len() as u64;
        Some(Line::Junk(line))
    }
}

/// The messages of a list of messages (revision 2025-03-26), one a line. `None`: the line is none, or it has more than [`LIST`].
/// Answers are last: the library reads nothing of a stream behind the first one.
pub(crate) fn batch(line: &[u8]) -> Option<Vec<u8>> {
    if line.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let mut all: Vec<serde_json::Value> = serde_json::from_slice(line).ok()?;
    all.sort_by_key(|message| message.get("method").is_none());
    let is_message = |value: &&serde_json::Value| value.get("jsonrpc").is_some();
    let lines: String = all.iter().filter(is_message).map(|message| format!("{message}\n")).collect();
    (!lines.is_empty() && all.len() <= LIST).then(|| lines.into_bytes())
}

fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'{')
}

/// The id of a message by its first and last bytes: programs write it before the result or at the very end.
fn id_of(first: &[u8], last: &[u8]) -> Option<u64> {
    let number = |text: &str| {
        let text = text.trim_start().strip_prefix("\"id\"")?.trim_start().strip_prefix(':')?.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let first = String::from_utf8_lossy(first);
    let head = first.trim_start().trim_start_matches('{');
    let after_version =
        head.split_once(',').filter(|(version, _)| version.contains("\"jsonrpc\"")).map(|(_, rest)| rest);
    let last = String::from_utf8_lossy(last);
    let tail = last.trim_end().strip_suffix('}');
    let id_at_end = tail.and_then(|tail| {
        let at = tail.rfind("\"id\"")?;
        let rest = &tail[at..];
        // Nothing but the version may follow: it is a member of the message, not of its result.
        let members = rest.matches(',').count();
        (members == 0 || (members == 1 && rest.contains("\"jsonrpc\""))).then(|| number(rest)).flatten()
    });
    number(head).or_else(|| number(after_version?)).or(id_at_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], size: usize) -> Vec<Line> {
        let mut lines = Lines::default();
        input.chunks(size).flat_map(|piece| lines.push(piece)).collect()
    }

    #[test]
    fn junk_between_messages_goes_no_further() {
        let input = b"Listening...\n{\"a\":1}\n[1,2]\n\n  \n{\"b\": {}}\r\n{broken\n{\"c\":1}\n";
        for size in [1, 7, 1000] {
            let messages: Vec<String> = all(input, size)
                .into_iter()
                .filter_map(|line| match line {
                    Line::Message(bytes) => Some(String::from_utf8(bytes).unwrap().trim().to_owned()),
                    _ => None,
                })
                .collect();
            assert_eq!(messages, ["{\"a\":1}", "{\"b\": {}}", "{\"c\":1}"], "pieces of {size}");
        }
    }

    #[test]
    fn a_list_of_messages_is_read_message_by_message() {
        let input = b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}, 7, {\"a\":1}, {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{}}]\n[]\n[1]\n[{]\n";
        for size in [1, 7, 1000] {
            let lines = all(input, size);
            let [Line::Message(both), Line::Junk(_), Line::Junk(_), Line::Junk(_)] = &lines[..] else {
                panic!("{lines:?}")
            };
            let both = String::from_utf8(both.clone()).unwrap();
            let ids: Vec<serde_json::Value> = both
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone())
                .collect();
            assert_eq!(ids, [1, 2], "pieces of {size}: {both}");
        }
    }

    #[test]
    fn an_answer_of_a_list_follows_its_other_messages() {
        let list = r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#;
        let lines = String::from_utf8(batch(list.as_bytes()).unwrap()).unwrap();
        let (other, answer) = lines.split_once('\n').unwrap();
        assert!(other.contains("method") && answer.contains("result"), "{lines}");
    }

    #[test]
    fn a_message_that_is_too_long_becomes_an_error_with_its_id() {
        let long = "x".repeat(MESSAGE + 1);
        for (line, id) in [
            (format!("{{\"jsonrpc\":\"2.0\",\"id\":41,\"result\":\"{long}\"}}\n"), Some(41)),
            (format!("{{\"id\": 42, \"result\":\"{long}\"}}\n"), Some(42)),
            (format!("{{\"result\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":43}}\n"), Some(43)),
            (format!("{{\"result\":\"{long}\",\"id\":44,\"jsonrpc\":\"2.0\"}}\n"), Some(44)),
            (format!("{{\"result\":{{\"t\":\"{long}\",\"id\":45,\"x\":1}},\"jsonrpc\":\"2.0\"}}\n"), None),
        ] {
            let found = all(format!("{line}{{\"next\":1}}\n").as_bytes(), CHUNK);
            let [Line::TooLong(answer), Line::Message(next)] = &found[..] else {
                panic!("{} lines", found.len())
            };
            assert_eq!(next, b"{\"next\":1}\n", "the next message is whole");
            assert_eq!(
                answer.as_ref().map(|a| a.contains(&format!("\"id\":{}", id.unwrap_or(0)))),
                id.map(|_| true)
            );
        }
        let mut lines = Lines::default();
        for _ in 0..200 {
            lines.push(&[b'x'; CHUNK]);
            assert!(lines.line.capacity() <= 2 * MESSAGE);
        }
        assert!(lines.junk >= 199 * CHUNK as u64, "a line without end counts as junk: {}", lines.junk);
    }

    #[tokio::test]
    async fn only_the_end_of_standard_error_is_kept() {
        let tail = Tail::default();
        let text = "x".repeat(TAIL) + "\x1b[31mthe end\n";
        keep_tail(text.as_bytes(), tail.clone()).await;
        assert!(tail.text().ends_with("the end") && !tail.text().contains('\x1b'), "{}", tail.text());
        assert!(tail.text().len() <= TAIL);
    }

    #[tokio::test]
    async fn an_endless_line_closes_the_connection_and_says_why() {
        let tail = Tail::default();
        let endless = tokio::io::repeat(b'x');
        forward(endless, tokio::io::sink(), tail.clone()).await;
        assert!(tail.closed().unwrap().contains("64 MB"), "{:?}", tail.closed());
    }
}
