//! One connection of a command: the request is checked, its name resolved, its addresses checked, then bytes are passed on.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use tiller_tool::proxy::request::{self, Hosts, Request, Way, Wrong};
use tiller_tool::proxy::{HEAD, answer, forward, head, tunnel};

use super::{Refusal, Shared};

const RESOLVE: Duration = Duration::from_secs(15);
/// For each address.
const CONNECT: Duration = Duration::from_secs(15);
/// Addresses of one name that are tried.
const ADDRESSES: usize = 4;

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
    let request = match request::read(&head, Hosts::Names) {
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
        Way::Forward { head, body, .. } => forward(client, host, ready, &head, body).await,
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

async fn refuse(client: &mut TcpStream, shared: &Shared, host: String, why: String) -> Result<()> {
    let refusal = Refusal { host, why };
    let words = refusal.words();
    shared.refuse(refusal);
    answer(client, "403 Forbidden", &format!("the sandbox refused the connection to {words}")).await
}
