//! Messages over a pipe, as CBOR (`--remote-debugging-pipe=cbor`).

use std::io;

use async_trait::async_trait;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::{MESSAGE_BYTES, Receive, Transmit, cbor};

/// Both ends of the pipe to a browser that this process started.
pub(crate) fn pipe(input: ChildStdin, output: ChildStdout) -> (Box<dyn Transmit>, Box<dyn Receive>) {
    (Box::new(Writer(input)), Box::new(Reader(BufReader::with_capacity(64 << 10, output))))
}

/// Bytes of a message that is too large which are looked at.
const BEGIN: usize = 4096;

struct Writer(ChildStdin);

struct Reader<R>(BufReader<R>);

#[async_trait]
impl Transmit for Writer {
    async fn send(&mut self, message: Value) -> io::Result<()> {
        self.0.write_all(&cbor::encode(&message)?).await?;
        self.0.flush().await
    }
}

#[async_trait]
impl<R: AsyncRead + Send + Unpin> Receive for Reader<R> {
    async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; cbor::HEAD];
        if self.0.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(error),
        };
        if let Err(error) = self.0.read_exact(&mut head[1..]).await {
            return cut(error);
        }
        let length = cbor::length(head)?;
        // As much as has come: the head may promise more. Of one that is too large, what holds its id.
        let kept = if length > MESSAGE_BYTES { BEGIN } else { length };
        let mut message = Vec::from(head);
        let read = (&mut self.0).take(kept as u64).read_to_end(&mut message).await?;
        let over = (length - kept) as u64;
        let passed = tokio::io::copy(&mut (&mut self.0).take(over), &mut tokio::io::sink()).await?;
        if read < kept || passed < over {
            return Ok(None);
        }
        Ok(Some(cbor::decode(&message).unwrap_or_else(|_| cbor::begin(&message))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A message whose head names `more` bytes than it needs.
    fn reply(id: u64, result: &[u8], more: usize) -> Vec<u8> {
        let mut message = cbor::encode(&json!({"id": id, "sessionId": "s"})).unwrap();
        message.pop();
        message.extend(b"\x66result");
        message.extend(result);
        message.push(0xff);
        let length = message.len() - cbor::HEAD + more;
        message[3..cbor::HEAD].copy_from_slice(&(length as u32).to_be_bytes());
        message
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_read_costs_no_other_one() {
        let event = cbor::encode(&json!({"method": "Page.x"})).unwrap();
        let large = [&[0x5a][..], &(MESSAGE_BYTES as u32).to_be_bytes()].concat();
        for (bad, begin) in [
            // A kind of value that there is not, an end too early, a break in place of a value, and no text as a key.
            (reply(7, &[0x1c], 0), "{\"id\":7"),
            (reply(70_000, &[0x7a, 0, 0, 1, 0], 0), "{\"id\":70000"),
            (reply(9, &[0xff], 0), "{\"id\":9"),
            (reply(8, &[0xbf, 1, 1, 0xff], 0), "{\"id\":8"),
            // Of a length that none may have.
            ([reply(5, &large, MESSAGE_BYTES), vec![b'x'; MESSAGE_BYTES]].concat(), "{\"id\":5"),
            // No id can be read.
            ([&event[..3], &[0, 0, 0, 3, 0xbf, 0x1c, 0xff]].concat(), ""),
            ([&event[..3], &[0, 0, 0, 0]].concat(), ""),
        ] {
            let all = [&event[..], &bad, &event].concat();
            let mut reader = Reader(BufReader::new(&all[..]));
            let next = "{\"method\":\"Page.x\"}";
            for wanted in [next, begin, next] {
                let message = reader.receive().await.unwrap().unwrap();
                assert_eq!(String::from_utf8(message).unwrap(), wanted, "{begin}");
            }
            assert!(reader.receive().await.unwrap().is_none());
        }
    }
}
