//! Messages over a pipe: each ends with a zero byte (`--remote-debugging-pipe`).

use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::{MESSAGE_BYTES, Receive, Transmit};

/// Both ends of the pipe to a browser that this process started.
pub(crate) fn pipe(input: ChildStdin, output: ChildStdout) -> (Box<dyn Transmit>, Box<dyn Receive>) {
    (Box::new(Writer(input)), Box::new(Reader(BufReader::with_capacity(64 << 10, output))))
}

struct Writer(ChildStdin);

struct Reader(BufReader<ChildStdout>);

#[async_trait]
impl Transmit for Writer {
    async fn send(&mut self, message: String) -> io::Result<()> {
        let mut bytes = message.into_bytes();
        bytes.push(0);
        self.0.write_all(&bytes).await?;
        self.0.flush().await
    }
}

#[async_trait]
impl Receive for Reader {
    async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut message = Vec::new();
        let limit = MESSAGE_BYTES as u64 + 1;
        let read = (&mut self.0).take(limit).read_until(0, &mut message).await?;
        if read == 0 {
            return Ok(None);
        }
        if message.pop_if(|last| *last == 0).is_none() {
            let cut = message.len() >= MESSAGE_BYTES;
            return if cut {
                Err(io::Error::other("a message of the browser is too large"))
            } else {
                Ok(None)
            };
        }
        Ok(Some(message))
    }
}
