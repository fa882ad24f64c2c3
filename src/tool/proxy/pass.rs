//! Bytes passed on between a client of a proxy and a host.

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::body::Input;
use super::request::{self, Body};

/// Longest time for the head of a request.
pub const HEAD: Duration = Duration::from_secs(30);
/// A tunnel without a byte in either direction is closed after this time.
const IDLE: Duration = Duration::from_secs(300);

/// Reads a head: the head, and what came behind it. `None`: it is too long.
///
/// # Errors
/// When the connection ends before.
pub async fn head(client: &mut TcpStream) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut all = Vec::new();
    loop {
        let from = all.len().saturating_sub(3);
        let mut buffer = [0; 4096];
        let read = client.read(&mut buffer).await?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        all.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if let Some(at) = all.windows(4).skip(from).position(|four| four == b"\r\n\r\n") {
            let rest = all.split_off(from + at + 4);
            return Ok((all.len() <= request::LONGEST).then_some((all, rest)));
        }
        if all.len() > request::LONGEST {
            return Ok(None);
        }
    }
}

/// Sends a request whose head is `head` to the host, and the answer back. `ready`: what was read of the body.
///
/// # Errors
/// When a side is gone, or the body is malformed.
pub async fn forward(
    client: &mut TcpStream,
    host: TcpStream,
    ready: Vec<u8>,
    head: &[u8],
    body: Body,
) -> Result<()> {
    let (from_host, mut to_host) = host.into_split();
    let (from_client, mut to_client) = client.split();
    let mut input = Input { ready, rest: from_client };
    let send = async {
        to_host.write_all(head).await?;
        input.pass(body, &mut to_host).await
    };
    let silent = AtomicU64::new(0);
    // The answer may come before the end of the body.
    let answer = pass(from_host, &mut to_client, &silent);
    tokio::pin!(send, answer);
    tokio::select! {
        sent = &mut send => {
            sent?;
            answer.await
        }
        answered = &mut answer => answered,
    }
}

/// Passes bytes on in both directions to the end. `ready`: what was read of the client already.
///
/// # Errors
/// When a side is gone or silent.
pub async fn tunnel(client: &mut TcpStream, mut host: TcpStream, ready: Vec<u8>) -> Result<()> {
    host.write_all(&ready).await?;
    let (from_host, mut to_host) = host.split();
    let (from_client, mut to_client) = client.split();
    let passed = AtomicU64::new(0);
    tokio::try_join!(pass(from_client, &mut to_host, &passed), pass(from_host, &mut to_client, &passed))?;
    Ok(())
}

/// Passes bytes on to the end. `passed` counts them for both directions: while one is in use, the other may be silent.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    passed: &AtomicU64,
) -> Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let before = passed.load(Ordering::Relaxed);
        let read = match timeout(IDLE, from.read(&mut buffer)).await {
            Ok(read) => read?,
            Err(_) if passed.load(Ordering::Relaxed) != before => continue,
            Err(_) => return Err(ErrorKind::TimedOut.into()),
        };
        if read == 0 {
            return to.shutdown().await;
        }
        passed.fetch_add(read as u64, Ordering::Relaxed);
        // A side that takes nothing any more is given up as well.
        let written = timeout(IDLE, to.write_all(buffer.get(..read).unwrap_or_default())).await;
        written.map_err(|_| Error::from(ErrorKind::TimedOut))??;
    }
}

/// Answers with a status and words of this program, and ends the connection.
///
/// # Errors
/// When the client is gone.
pub async fn answer(client: &mut TcpStream, status: &str, what: &str) -> Result<()> {
    let text = format!("tiller: {what}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}
