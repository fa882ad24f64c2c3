//! Messages over a WebSocket, for a browser that runs elsewhere.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use reqwest::{Client, StatusCode, Url, header};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::{MESSAGE_BYTES, Receive, Transmit};

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(15);

type Socket = WebSocketStream<reqwest::Upgraded>;

/// The system's proxy is used, except for a browser on this machine.
fn client(url: &Url) -> Result<Client, String> {
    tiller_http::install_crypto();
    let builder = Client::builder().http1_only().connect_timeout(CONNECT);
    let builder = if tiller_http::is_loopback(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(|e| format!("no HTTP client: {e}"))
}

/// The WebSocket address of a browser. `address`: that address itself (`ws:`, `wss:`), or the HTTP address of its
/// DevTools server, which names it in `/json/version`.
///
/// # Errors
/// The fault, in words.
pub(crate) async fn endpoint(address: &str) -> Result<Url, String> {
    let url = Url::parse(address).map_err(|e| format!("browser.url is not a URL: {e}"))?;
    match url.scheme() {
        "ws" | "wss" => return Ok(url),
        "http" | "https" => {}
        other => {
            return Err(format!("browser.url starts with {other}:, not with ws:, wss:, http: or https:"));
        }
    }
    let version = url.join("/json/version").map_err(|e| e.to_string())?;
    let reply = client(&version)?.get(version).timeout(CONNECT).send().await.map_err(|e| plain(&e))?;
    let reply: Value = reply.json().await.map_err(|_| "it does not answer as a browser does".to_owned())?;
    let named = reply["webSocketDebuggerUrl"].as_str().ok_or("it names no webSocketDebuggerUrl")?;
    let mut socket = Url::parse(named).map_err(|e| format!("its webSocketDebuggerUrl is not a URL: {e}"))?;
    // A browser behind a tunnel names its own host; the host of the setting is the way to it.
    socket.set_host(url.host_str()).map_err(|e| e.to_string())?;
    socket.set_port(url.port()).map_err(|()| "the port is invalid".to_owned())?;
    Ok(socket)
}

/// Connects to a browser's WebSocket.
///
/// # Errors
/// The fault, in words.
pub(crate) async fn connect(socket: &Url) -> Result<(Box<dyn Transmit>, Box<dyn Receive>), String> {
    let mut http = socket.clone();
    let scheme = if socket.scheme() == "wss" { "https" } else { "http" };
    http.set_scheme(scheme).map_err(|()| "the address is invalid".to_owned())?;
    let key = generate_key();
    let asked = client(&http)?
        .get(http)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .send();
    let reply =
        tokio::time::timeout(CONNECT, asked).await.map_err(|_| no_answer())?.map_err(|e| plain(&e))?;
    if reply.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("HTTP {}, no WebSocket", reply.status().as_u16()));
    }
    let accepted = reply.headers().get(header::SEC_WEBSOCKET_ACCEPT).and_then(|v| v.to_str().ok());
    if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Err("its answer to the WebSocket's key is wrong".into());
    }
    let stream = reply.upgrade().await.map_err(|e| plain(&e))?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES)).max_frame_size(Some(MESSAGE_BYTES));
    let (sink, stream) = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await.split();
    Ok((Box::new(Writer(sink)), Box::new(Reader(stream))))
}

fn no_answer() -> String {
    format!("no answer within {} s", CONNECT.as_secs())
}

/// Without the address, which may hold a token.
fn plain(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return no_answer();
    }
    let mut words = String::from(if error.is_connect() { "no connection" } else { "a failed request" });
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        words = format!("no connection: {inner}");
        source = inner.source();
    }
    words
}

struct Writer(SplitSink<Socket, Message>);

struct Reader(SplitStream<Socket>);

#[async_trait]
impl Transmit for Writer {
    async fn send(&mut self, message: Value) -> io::Result<()> {
        self.0.send(Message::Text(message.to_string().into())).await.map_err(io::Error::other)
    }
}

#[async_trait]
impl Receive for Reader {
    async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let message = match self.0.next().await {
                None => return Ok(None),
                Some(message) => message.map_err(io::Error::other)?,
            };
            return Ok(match message {
                Message::Text(text) => Some(Bytes::from(text).to_vec()),
                Message::Binary(bytes) => Some(bytes.to_vec()),
                Message::Close(_) => None,
                // Pings are answered by the library.
                _ => continue,
            });
        }
    }
}
