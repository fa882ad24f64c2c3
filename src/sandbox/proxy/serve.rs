//! One connection of a command: the request is checked, its name resolved, its addresses checked, then bytes are passed on.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::body::Input;
use super::request::{self, Request, Way, Wrong};
use super::{Refusal, Shared};

/// Longest time for the head of a request.
const HEAD: Duration = Duration::from_secs(30);
const RESOLVE: Duration = Duration::from_secs(15);
/// For each address.
const CONNECT: Duration = Duration::from_secs(15);
/// Addresses of one name that are tried.
const ADDRESSES: usize = 4;
/// A tunnel without a byte in either direction is closed after this time.
const IDLE: Duration = Duration::from_secs(300);

/// Serves a connection to its end.
pub(crate) async fn serve(mut client: TcpStream, shared: &Shared) {
    // What fails is a connection that ended: the command sees that itself.
    let _ = exchange(&mut client, shared).await;
}

async fn exchange(client: &mut TcpStream, shared: &Shared) -> Result<()> {
    let Ok(head) = timeout(HEAD, head(client)).await else {
        return answer(client, "408 Request Timeout", "the request did not arrive in time").await;
    };
    let Some((head, ready)) = head? else {
        return answer(client, "431 Request Header Fields Too Large", "the request is too long").await;
    };
    let request = match request::read(&head) {
        Ok(request) => request,
        Err(Wrong::Malformed(what)) => {
            return answer(client, "400 Bad Request", &format!("the request is malformed: {what}")).await;
        }
        Err(Wrong::Refused(host, why)) => return refuse(client, shared, host, why.into()).await,
    };
    if !shared.domains.allow(&request.host) {
        let why = "it is not listed in sandbox_network in config.toml";
        return refuse(client, shared, request.host, why.into()).await;
    }
    let host = match reach(&request, shared).await {
        Ok(host) => host,
        Err(Failed::Refused(why)) => return refuse(client, shared, request.host, why).await,
        Err(Failed::Gone(why)) => return answer(client, "502 Bad Gateway", &why).await,
    };
    shared.reach(&request.host);
    match request.way {
        Way::Tunnel => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            tunnel(client, host, ready).await
        }
        Way::Forward { head, body } => {
            let (from_host, mut to_host) = host.into_split();
            let (from_client, mut to_client) = client.split();
            let mut input = Input { ready, rest: from_client };
            let send = async {
                to_host.write_all(&head).await?;
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
    }
}

/// The head, and what came behind it. `None`: it is too long.
async fn head(client: &mut TcpStream) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
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

enum Failed {
    Refused(String),
    Gone(String),
}

/// Connects to the host. Each of its addresses must be public; the connection goes to one of those that were checked.
async fn reach(request: &Request, shared: &Shared) -> std::result::Result<TcpStream, Failed> {
    let found = timeout(RESOLVE, shared.outside.resolve(&request.host)).await;
    let found = match found {
        Ok(Ok(found)) if !found.is_empty() => found,
        Ok(Err(e)) => return Err(Failed::Gone(format!("{} was not found: {e}", request.host))),
        _ => return Err(Failed::Gone(format!("{} was not found", request.host))),
    };
    for address in &found {
        if let Err(what) = tiller_tool::web::address::check(*address) {
            return Err(Failed::Refused(format!("its address {address} is not public ({what})")));
        }
    }
    let mut last = Error::from(ErrorKind::TimedOut);
    for address in found.into_iter().take(ADDRESSES) {
        match timeout(CONNECT, shared.outside.connect(SocketAddr::new(address, request.port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = e,
            Err(_) => {}
        }
    }
    Err(Failed::Gone(format!("{} cannot be reached: {last}", request.host)))
}

async fn tunnel(client: &mut TcpStream, mut host: TcpStream, ready: Vec<u8>) -> Result<()> {
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

async fn refuse(client: &mut TcpStream, shared: &Shared, host: String, why: String) -> Result<()> {
    let refusal = Refusal { host, why };
    let words = refusal.words();
    shared.refuse(refusal);
    answer(client, "403 Forbidden", &format!("the sandbox refused the connection to {words}")).await
}

async fn answer(client: &mut TcpStream, status: &str, what: &str) -> Result<()> {
    let text = format!("tiller: {what}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}
