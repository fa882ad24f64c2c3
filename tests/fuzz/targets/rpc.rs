//! JSON-RPC: bytes to lines, lines to messages, and back.

use tiller_rpc::{Encoder, Line, LineBuffer, Message};

use super::texts;
use crate::outline::{cuts, pieces};
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "rpc", words: &[super::words::JSON, WORDS], seeds, run };

const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":null",
    "\"id\":\"a\"",
    "\"id\":[]",
    "\"id\":1.5",
    "\"id\":-9223372036854775809",
    "\"method\":\"session/update\"",
    "\"method\":1",
    "\"params\":{}",
    "\"params\":null",
    "\"params\":[1]",
    "\"result\":{}",
    "\"result\":null",
    "\"error\":{\"code\":-32000,\"message\":\"x\"}",
    "\"error\":null",
    "\"error\":{}",
    "\"error\":\"x\"",
    "\"code\":1e999",
    "\"message\":1",
    "\"data\":{\"a\":[1]}",
    "\"\\u0000\"",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
    "Loading...\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":1}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n",
    "{\"id\":1,\"result\":{}}\n",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n{\"id\":1,\"error\":{\"code\":-32600,\"message\":\"no\",\"data\":[1]}}\n",
        "Loading...\n{\"id\":\"x\",\"result\":null}",
    ])
}

/// Longest line.
const LONGEST: usize = 200;

/// All lines of the pieces.
fn lines(pieces: &[&[u8]]) -> Vec<Line> {
    let (mut buffer, mut lines) = (LineBuffer::new(LONGEST), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        lines.extend(std::iter::from_fn(|| buffer.next_line()));
    }
    lines.extend(buffer.last_line());
    lines
}

fn run(data: &[u8]) -> u64 {
    let mut outline = Outline::default();
    let whole = lines(&[data]);
    assert_eq!(whole, lines(&pieces(data, &cuts(data, 6))), "in pieces and whole");
    let kept: Vec<u8> =
        whole.iter().flat_map(|l| if let Line::Text(t) = l { t.clone() } else { Vec::new() }).collect();
    if !whole.contains(&Line::TooLong) {
        assert_eq!(kept, data, "nothing is lost");
    }
    outline.size(whole.len());
    outline.add(whole.contains(&Line::TooLong));
    for line in data.split(|b| *b == b'\n').filter(|l| !l.is_empty()).take(8) {
        let lenient = std::str::from_utf8(line).ok().and_then(Message::read_lenient);
        match Message::read(line) {
            Ok(message) => {
                outline.add(std::mem::discriminant(&message));
                back(&message);
                // A reader that forgives reads it too, unless it is an answer to nothing.
                let unasked = matches!(&message, Message::Response { id, .. } if id.is_null());
                assert!(lenient.is_some() || unasked, "{message:?}");
            }
            Err(malformed) => {
                outline.add((malformed.error.code, malformed.id.is_null(), lenient.is_some()));
                let line = Encoder::VersionFirst.answer(&malformed.id, Err(malformed.error.clone()));
                assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "one line: {line:?}");
            }
        }
    }
    outline.end()
}

/// What is written is read as the same message.
fn back(message: &Message) {
    for encoder in [Encoder::VersionFirst, Encoder::VersionLast] {
        let line = match message {
            Message::Request { id, method, params } => encoder.request(id, method, params),
            Message::Notification { method, params } => encoder.notification(method, params),
            Message::Response { id, result } => encoder.answer(id, result.clone()),
        };
        assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "one line: {line:?}");
        assert_eq!(Message::read(line.trim_end().as_bytes()).as_ref().ok(), Some(message), "{line:?}");
    }
}
