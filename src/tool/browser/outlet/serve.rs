//! One connection of the browser.
//!
//! A connection that is not made is closed without an answer: a script sees the same as without the proxy, and the result of
//! the call says why.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Url;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Upstream;
use super::guard::{self, Guard, NoWay};
use crate::proxy::request::{self, Hosts, Request, Way, Wrong};
use crate::proxy::{HEAD, answer, forward, head, tunnel};

const RESOLVE: Duration = Duration::from_secs(15);
/// For each address.
const CONNECT: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried.
const ADDRESSES: usize = 4;
/// First byte of a TLS connection: a record of a handshake.
const TLS: u8 = 0x16;
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Serves a connection to its end.
///
/// # Errors
/// When a side is gone.
pub(super) async fn serve(mut client: TcpStream, guard: &Guard, upstream: Option<&Upstream>) -> Result<()> {
    let Ok(read) = timeout(HEAD, head(&mut client)).await else { return Ok(()) };
    let Some((head, ready)) = read? else {
        return answer(&mut client, "431 Request Header Fields Too Large", "the request is too long").await;
    };
    let request = match request::read(&head, Hosts::Any) {
        Ok(request) => request,
        Err(Wrong::Malformed(what) | Wrong::Refused(_, what)) => {
            return answer(&mut client, "400 Bad Request", &format!("the request is malformed: {what}"))
                .await;
        }
    };
    let Ok(url) = Url::parse(&named(&request)) else {
        return answer(&mut client, "400 Bad Request", "the host cannot be read").await;
    };
    if let Err(why) = pass(client, guard, upstream, request, ready, &url).await? {
        guard.fail(&guard::place(&url), &why);
    }
    Ok(())
}

/// The address that is judged. Of a tunnel only the host is known.
fn named(request: &Request) -> String {
    let host = if request.host.contains(':') { format!("[{}]", request.host) } else { request.host.clone() };
    match &request.way {
        Way::Tunnel => format!("https://{host}:{}/", request.port),
        Way::Forward { head, .. } => {
            let path = head.split(|b| *b == b' ').nth(1).unwrap_or(b"/");
            format!("http://{host}:{}{}", request.port, String::from_utf8_lossy(path))
        }
    }
}

/// Passes on what is allowed. The inner error says why nothing was.
async fn pass(
    mut client: TcpStream,
    guard: &Guard,
    upstream: Option<&Upstream>,
    request: Request,
    ready: Vec<u8>,
    url: &Url,
) -> Result<std::result::Result<(), NoWay>> {
    let judged = timeout(RESOLVE, guard.way(url)).await;
    let late = || NoWay::Gone(format!("{} was not found in time", request.host));
    let way = match (judged.unwrap_or_else(|_| Err(late())), upstream) {
        (Ok(way), _) => Some(way),
        // Behind a proxy there is often no resolver for the outside: it finds the host itself.
        (Err(NoWay::Gone(_)), Some(_)) => None,
        (Err(why), _) => return Ok(Err(why)),
    };
    let own = way.as_ref().is_some_and(|way| way.own);
    let refused =
        |why: String| Ok(Err(NoWay::Refused(format!("{} is this machine, and {why}", request.host))));
    if let (true, Way::Forward { site, .. }) = (own, &request.way)
        && !matches!(site.as_deref(), Some("none" | "same-origin" | "same-site"))
    {
        return refused("a page of another host asked".into());
    }
    let mut first = ready;
    if own && request.way == Way::Tunnel {
        client.write_all(ESTABLISHED).await?;
        let mut byte = [0; 1];
        let Ok(peeked) = timeout(HEAD, client.peek(&mut byte)).await else { return Ok(Ok(())) };
        match (peeked?, byte[0]) {
            (0, _) => return Ok(Ok(())),
            (_, TLS) if guard.shows_others(url) => {
                return refused(
                    "over TLS it cannot be seen which page asks: close the pages of other hosts".into(),
                );
            }
            (_, TLS) => {}
            _ => {
                let Ok(read) = timeout(HEAD, head(&mut client)).await else { return Ok(Ok(())) };
                let Some((mut head, rest)) = read? else { return Ok(Ok(())) };
                if !is_own_socket(&head, url) {
                    return refused("a page of another host asked".into());
                }
                head.extend(rest);
                first = head;
            }
        }
    }
    // A proxy of the person's is for what is elsewhere.
    let through = upstream.filter(|_| !own && way.as_ref().is_none_or(|way| !way.is_local()));
    let connected = match (through, &way) {
        (Some(upstream), _) => upstream.connect(&request).await,
        (None, Some(way)) => connect(&way.addresses, request.port).await,
        (None, None) => return Ok(Err(late())),
    };
    let host = match connected {
        Ok(host) => host,
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            return Ok(Err(NoWay::Gone(format!("nothing listens at {}", guard::place(url)))));
        }
        Err(e) => return Ok(Err(NoWay::Gone(format!("{} cannot be reached: {e}", guard::place(url))))),
    };
    match request.way {
        Way::Tunnel => {
            if !own {
                client.write_all(ESTABLISHED).await?;
            }
            tunnel(&mut client, host, first).await?;
        }
        Way::Forward { ref head, body, .. } => {
            let head = through.map_or_else(|| head.clone(), |upstream| upstream.head(head, url));
            forward(&mut client, host, first, &head, body).await?;
        }
    }
    Ok(Ok(()))
}

/// Returns true if a head opens a WebSocket of a page of the same host, which the `Origin` header names: a browser sets it, and no
/// page can.
fn is_own_socket(head: &[u8], url: &Url) -> bool {
    let Ok(text) = std::str::from_utf8(head) else { return false };
    let mut lines = text.split("\r\n");
    if !lines.next().is_some_and(|first| first.starts_with("GET ")) {
        return false;
    }
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let named = |name: &str| -> Vec<&str> {
        headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim()).collect()
    };
    let [upgrade] = named("upgrade")[..] else { return false };
    let [origin] = named("origin")[..] else { return false };
    upgrade.eq_ignore_ascii_case("websocket")
        && Url::parse(origin).is_ok_and(|origin| origin.host_str() == url.host_str())
}

/// Connects to one of the addresses that were judged.
async fn connect(addresses: &[std::net::IpAddr], port: u16) -> Result<TcpStream> {
    let mut last = Error::from(ErrorKind::TimedOut);
    for address in addresses.iter().take(ADDRESSES) {
        match timeout(CONNECT, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = e,
            Err(_) => {}
        }
    }
    Err(last)
}
