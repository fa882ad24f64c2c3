//! Messages over a pipe, as CBOR (`--remote-debugging-pipe=cbor`).

use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::{MESSAGE_BYTES, Receive, Transmit, cbor};

/// Both ends of the pipe to a browser that this process started.
pub(crate) fn pipe(input: ChildStdin, output: ChildStdout) -> (Box<dyn Transmit>, Box<dyn Receive>) {
    (Box::new(Writer(input)), Box::new(Reader(BufReader::with_capacity(64 << 10, output))))
}

struct Writer(ChildStdin);

struct Reader(BufReader<ChildStdout>);

#[async_trait]
impl Transmit for Writer {
    async fn send(&mut self, message: String) -> io::Result<()> {
        self.0.write_all(&cbor::encode(&message)?).await?;
        self.0.flush().await
    }
}

#[async_trait]
impl Receive for Reader {
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
        if length > MESSAGE_BYTES {
            return Err(io::Error::other("a message of the browser is too large"));
        }
        // As much as has come: the head may promise more.
        let mut message = Vec::from(head);
        let read = (&mut self.0).take(length as u64).read_to_end(&mut message).await?;
        if read < length { Ok(None) } else { cbor::decode(&message).map(Some) }
    }
}
