//! The body of a request, passed on exactly as long as its head says: nothing behind it reaches the host, so that no
//! second request can hide there.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::request::Body;

/// Longest silence within a body.
const IDLE: Duration = Duration::from_secs(120);
/// Longest line of a chunk's size, extensions included, and all trailers together, in bytes.
const LINE: usize = 256;
const TRAILERS: usize = 8 << 10;

/// A connection with what was read of it already.
pub struct Input<R> {
    /// The bytes that were read.
    pub ready: Vec<u8>,
    /// The connection.
    pub rest: R,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// Up to `most` bytes; empty at the end.
    async fn some(&mut self, most: usize) -> Result<Vec<u8>> {
        if self.ready.is_empty() {
            let mut buffer = vec![0; most.min(16 << 10)];
            let read = timeout(IDLE, self.rest.read(&mut buffer)).await;
            let read = read.map_err(|_| Error::from(ErrorKind::TimedOut))??;
            buffer.truncate(read);
            return Ok(buffer);
        }
        let rest = self.ready.split_off(most.min(self.ready.len()));
        Ok(std::mem::replace(&mut self.ready, rest))
    }

    async fn byte(&mut self) -> Result<u8> {
        let byte = self.some(1).await?;
        byte.first().copied().ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// A line without its CR LF, of at most `most` bytes.
    async fn line(&mut self, most: usize) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            match self.byte().await? {
                b'\r' => match self.byte().await? {
                    b'\n' => return Ok(line),
                    _ => return Err(invalid("a line without its end")),
                },
                b'\n' => return Err(invalid("a line without its end")),
                byte if line.len() < most => line.push(byte),
                _ => return Err(invalid("a line that is too long")),
            }
        }
    }

    async fn exactly(&mut self, mut left: u64, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        while left > 0 {
            let piece = self.some(usize::try_from(left).unwrap_or(usize::MAX)).await?;
            if piece.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            to.write_all(&piece).await?;
            left -= piece.len() as u64;
        }
        Ok(())
    }

    /// Passes the body on.
    ///
    /// # Errors
    /// When it is malformed or cut, or a side is gone.
    pub async fn pass(&mut self, body: Body, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        match body {
            Body::Length(length) => self.exactly(length, to).await,
            Body::Chunked => self.chunks(to).await,
        }
    }

    /// Chunks are written anew: extensions and trailers are left out.
    async fn chunks(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        loop {
            let line = self.line(LINE).await?;
            let digits = line.split(|b| *b == b';').next().unwrap_or_default();
            let digits = std::str::from_utf8(digits).unwrap_or_default().trim_end_matches([' ', '\t']);
            let hex =
                !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let size = u64::from_str_radix(digits, 16).ok().filter(|_| hex);
            let size = size.ok_or_else(|| invalid("not the size of a chunk"))?;
            to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
            if size == 0 {
                break;
            }
            self.exactly(size, to).await?;
            if !self.line(0).await?.is_empty() {
                return Err(invalid("a chunk that is longer than its size"));
            }
            to.write_all(b"\r\n").await?;
        }
        let mut trailers = 0;
        loop {
            let line = self.line(LINE).await?;
            trailers += line.len();
            if line.is_empty() {
                return to.write_all(b"\r\n").await;
            }
            if trailers > TRAILERS {
                return Err(invalid("trailers that are too long"));
            }
        }
    }
}

fn invalid(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(ready: &str, rest: &'static str, body: Body) -> (bool, String) {
        let mut input = Input { ready: ready.as_bytes().to_vec(), rest: rest.as_bytes() };
        let mut out = Vec::new();
        let done = input.pass(body, &mut out).await.is_ok();
        (done, String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn nothing_behind_a_body_is_passed_on() {
        let second = "GET http://b.example/ HTTP/1.1\r\n\r\n";
        assert_eq!(pass(&format!("abc{second}"), "", Body::Length(3)).await, (true, "abc".into()));
        assert_eq!(pass("ab", "cGET /", Body::Length(3)).await, (true, "abc".into()));
        let chunked = format!("3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n{second}");
        assert_eq!(pass(&chunked, "", Body::Chunked).await, (true, "3\r\nabc\r\n0\r\n\r\n".into()));
    }

    #[tokio::test]
    async fn malformed_chunks_end_the_connection() {
        for text in [
            "3\nabc\r\n0\r\n\r\n",
            "+3\r\nabc\r\n",
            "3\r\nabcd\r\n",
            "\r\n",
            "0x3\r\nabc\r\n",
            "3\r\nab",
            "g\r\n",
        ] {
            let (done, out) = pass(text, "", Body::Chunked).await;
            assert!(!done && !out.contains("0\r\n\r\n"), "{text:?}: {out:?}");
        }
        let long = "1".repeat(LINE + 1);
        assert!(!pass(&long, "", Body::Chunked).await.0);
    }
}
