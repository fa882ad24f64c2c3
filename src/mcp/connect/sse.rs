//! HTTP with server-sent events, as servers spoke it until 2025: one stream of events from the server, which names the
//! address that messages are posted to.

use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Url};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::{Connection, NoConnection, http, words};
use crate::bounds::{MESSAGE, Tail, batch};
use crate::handler::Handler;

/// Bytes between the events and the SDK.
const BUFFER: usize = 64 << 10;

pub(super) async fn connect(
    url: &str,
    headers: &[(String, String)],
    handler: Handler,
) -> Result<Connection, NoConnection> {
    let client = http::client(url)?;
    let headers: reqwest::header::HeaderMap = http::header_map(headers)?.into_iter().collect();
    let address = Url::parse(url).map_err(|e| NoConnection::new(format!("the url is not valid: {e}")))?;
    let sent =
        client.get(address.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream").send().await;
    let response = sent.map_err(|e| NoConnection::new(format!("no connection: {}", e.without_url())))?;
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !response.status().is_success() || !is_stream {
        return Err(NoConnection::new(format!("HTTP {}, no stream of events", response.status().as_u16())));
    }
    let mut events =
        Events { stream: Box::pin(response.bytes_stream()), parser: Parser::default(), ready: Vec::new() };
    let endpoint = loop {
        match events.next().await {
            Some(event) if event.name == "endpoint" => break event.data,
            Some(_) => {}
            None => return Err(NoConnection::new("the stream of events ended before it named an address")),
        }
    };
    let endpoint = address
        .join(&endpoint)
        .map_err(|e| NoConnection::new(format!("the server named an invalid address: {e}")))?;
    if endpoint.origin() != address.origin() {
        return Err(NoConnection::new("the server named an address of another host"));
    }
    let (theirs, ours) = tokio::io::duplex(BUFFER);
    let (from_sdk, to_sdk) = tokio::io::split(theirs);
    // It ends with the SDK's end of the pipe, or with the first of both directions that fails: the SDK sees the end.
    tokio::spawn(async move {
        tokio::select! {
            () = deliver(events, to_sdk) => {}
            () = post(client, endpoint, headers, from_sdk) => {}
        }
    });
    let (read, write) = tokio::io::split(ours);
    let transport = AsyncRwTransport::new(read, write).with_max_line_length(MESSAGE + 1);
    let (calls, changed) = (handler.calls.clone(), handler.changed.clone());
    let running = handler
        .serve_with_lifecycle(transport, ClientLifecycleMode::Initialize)
        .await
        .map_err(|error| words(&error))?;
    Ok(Connection { running, calls, changed, tail: Tail::default(), program: None })
}

async fn deliver(mut events: Events, mut to: tokio::io::WriteHalf<DuplexStream>) {
    while let Some(event) = events.next().await {
        if event.name == "message" || event.name.is_empty() {
            let line = event.data.replace(['\n', '\r'], " ") + "\n";
            let messages = batch(line.as_bytes()).unwrap_or_else(|| line.into_bytes());
            if to.write_all(&messages).await.is_err() {
                return;
            }
        }
    }
    // The SDK sees the end.
    let _ = to.shutdown().await;
}

async fn post(
    client: Client,
    endpoint: Url,
    headers: reqwest::header::HeaderMap,
    from: tokio::io::ReadHalf<DuplexStream>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request =
            client.post(endpoint.clone()).headers(headers.clone()).header(CONTENT_TYPE, "application/json");
        match request.body(line).send().await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                let status = response.status().as_u16();
                tracing::debug!(status, "an MCP server refused a message");
                return;
            }
            Err(error) => {
                tracing::debug!(error = %error.without_url(), "a message could not be posted to an MCP server");
                return;
            }
        }
    }
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    name: String,
    data: String,
}

/// The events of a response.
struct Events {
    stream: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    parser: Parser,
    ready: Vec<Event>,
}

impl Events {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.ready.remove(0));
            }
            let piece = self.stream.next().await?.ok()?;
            self.ready = self.parser.push(&piece)?;
        }
    }
}

/// Takes a stream of events apart. Holds at most one event.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    event: Event,
}

impl Parser {
    /// The events that these bytes complete; `None`: one is too long.
    fn push(&mut self, bytes: &[u8]) -> Option<Vec<Event>> {
        let mut found = Vec::new();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                if self.line.len() + self.event.data.len() > MESSAGE {
                    return None;
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                if !event.data.is_empty() {
                    found.push(event);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.event.name = value.to_owned(),
                "data" => {
                    if !self.event.data.is_empty() {
                        self.event.data.push('\n');
                    }
                    self.event.data.push_str(value);
                }
                _ => {}
            }
        }
        Some(found)
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod faults;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_taken_apart_whatever_its_pieces() {
        let input = b": hello\nevent: endpoint\r\ndata: /messages?x=1\r\n\r\ndata: {\"a\":\ndata: 1}\nid: 4\n\n\ndata: half";
        for size in [1, 3, 100] {
            let mut parser = Parser::default();
            let events: Vec<Event> =
                input.chunks(size).flat_map(|piece| parser.push(piece).unwrap()).collect();
            let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
            assert_eq!(
                events,
                [event("endpoint", "/messages?x=1"), event("", "{\"a\":\n1}")],
                "pieces of {size}"
            );
        }
        let mut parser = Parser::default();
        assert!(parser.push(&vec![b'x'; MESSAGE + 1]).is_none(), "an event is bounded");
    }
}
