//! Splits bytes that arrive in pieces into lines of bounded length.

use std::collections::VecDeque;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Includes the line end, which the last line of the input may lack.
    Text(Vec<u8>),
    /// A line longer than permitted; its bytes were dropped.
    TooLong,
}

/// Splits bytes into lines. Holds at most one incomplete line and the bytes that were pushed and not read yet.
#[derive(Debug)]
pub struct LineBuffer {
    rest: VecDeque<u8>,
    line: Vec<u8>,
    /// The present line is too long: its bytes are dropped until its end.
    dropping: bool,
    longest: usize,
}

impl LineBuffer {
    /// `longest`: maximum bytes of a line, its end not counted.
    pub fn new(longest: usize) -> Self {
        Self { rest: VecDeque::new(), line: Vec::new(), dropping: false, longest }
    }

    /// Adds bytes of the input.
    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
    }

    /// The next complete line; `None`: more bytes are needed.
    pub fn next_line(&mut self) -> Option<Line> {
        let end = self.rest.iter().position(|b| *b == b'\n');
        let n = end.unwrap_or(self.rest.len());
        if !self.dropping && self.line.len() + n > self.longest {
            self.dropping = true;
            self.line = Vec::new();
        }
        if self.dropping {
            self.rest.drain(..n);
        } else {
            self.line.extend(self.rest.drain(..n));
        }
        end?;
        self.line.extend(self.rest.pop_front());
        Some(self.take())
    }

    /// The last line of the input, when it has no line end.
    pub fn last_line(&mut self) -> Option<Line> {
        (self.dropping || !self.line.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.dropping) { Line::TooLong } else { Line::Text(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_whole() {
        let text = |t: &str| Line::Text(t.as_bytes().to_vec());
        let input = b"12345\n\n123456\n1234567\nabc\n1234567";
        for size in [1, 3, 7, 100] {
            let (mut buffer, mut lines) = (LineBuffer::new(6), Vec::new());
            for piece in input.chunks(size) {
                buffer.push(piece);
                lines.extend(std::iter::from_fn(|| buffer.next_line()));
                assert!(buffer.line.len() <= 6, "no more is kept than a line may be long");
            }
            lines.extend(buffer.last_line());
            let whole = [text("12345\n"), text("\n"), text("123456\n")];
            let rest = [Line::TooLong, text("abc\n"), Line::TooLong];
            assert_eq!(lines, whole.into_iter().chain(rest).collect::<Vec<_>>(), "pieces of {size}");
            assert_eq!(buffer.last_line(), None);
        }
    }
}
