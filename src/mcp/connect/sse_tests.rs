//! The older transport against a server that is scripted byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tiller_config::{McpServer, McpTransport};
use tiller_protocol::{Part, lock};
use tiller_tool::ChildEnv;
use tiller_tool::shell::Bounds;

use crate::hub::{Hub, HubConfig};
use crate::settings::{Origin, ServerSettings};

/// A server. The names of its tools say what a call does.
struct Server {
    address: String,
    /// Streams of events that were opened.
    streams: Arc<AtomicU32>,
}

/// `endpoint`: what the stream names as the address for messages.
fn serve(endpoint: &'static str) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/sse", listener.local_addr().unwrap());
    let streams: Arc<AtomicU32> = Arc::default();
    let (opened, events) = (Arc::clone(&streams), Arc::new(Mutex::new(None::<TcpStream>)));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (opened, events) = (Arc::clone(&opened), Arc::clone(&events));
            std::thread::spawn(move || one(stream.unwrap(), endpoint, &opened, &events));
        }
    });
    Server { address, streams }
}

/// Serves one connection.
fn one(mut stream: TcpStream, endpoint: &str, opened: &AtomicU32, events: &Mutex<Option<TcpStream>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            line.clear();
        }
        if first.starts_with("GET") {
            opened.fetch_add(1, Ordering::Relaxed);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            // Messages are answered on this stream from now on.
            let mut events = lock(events);
            write!(stream, "{head}: hello\n\nevent: endpoint\ndata: {endpoint}\n\n").unwrap();
            *events = Some(stream);
            return;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let status = if tool == "refused" { "503 Service Unavailable" } else { "202 Accepted" };
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
        let result = match (message["method"].as_str().unwrap_or_default(), tool) {
            ("initialize", _) => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"}}),
            ("tools/list", _) => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools = ["echo", "refused", "ends"].map(tool);
                json!({"tools": tools})
            }
            (_, "ends") => {
                // The stream ends in the middle of an event.
                let mut events = lock(events);
                events.as_mut().unwrap().write_all(b"data: {\"half").unwrap();
                *events = None;
                continue;
            }
            (_, "echo") => json!({"content": [{"type": "text", "text": "grüße 🦀"}]}),
            _ => continue,
        };
        let data = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let mut events = lock(events);
        // Byte by byte: no piece holds a whole character.
        for byte in format!("event: message\r\ndata: {data}\r\n\r\n").bytes() {
            events.as_mut().unwrap().write_all(&[byte]).unwrap();
        }
    }
}

fn hub(folder: &std::path::Path, server: &Server, transport: Option<McpTransport>) -> Arc<Hub> {
    let config = HubConfig {
        root: folder.to_owned(),
        state: folder.join("state"),
        vars: ChildEnv::new(Vec::new()),
        confine: Arc::new(|_, _| None),
        bounds: Bounds::default(),
    };
    let server = McpServer { url: Some(server.address.clone()), transport, ..McpServer::default() };
    let mut settings = ServerSettings::new("old", Origin::User, &server, &|_| None).unwrap();
    (settings.start, settings.call) = (Duration::from_secs(120), Duration::from_secs(120));
    Hub::new(config, vec![settings])
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_come_in_pieces_and_a_stream_that_ends_is_opened_again() {
    let (folder, server) = (tempfile::tempdir().unwrap(), serve("/messages?session=1"));
    let hub = hub(folder.path(), &server, Some(McpTransport::Sse));
    let call = |tool: &'static str| hub.call("old", tool, Map::new(), None);
    let said = |result: crate::CallResult| result.parts;
    let text = vec![Part::Text { text: "grüße 🦀".into() }];
    assert_eq!(said(call("echo").await.unwrap()), text);
    assert_eq!(server.streams.load(Ordering::Relaxed), 1);
    // A call whose stream ends, and a message that is refused, fail at once, and the next call connects again.
    for (tool, streams) in [("ends", 2), ("refused", 3)] {
        let why = call(tool).await.unwrap_err();
        assert!(matches!(why, crate::NoResult::Failed(_)), "{tool}: {why:?}");
        hub.find("old").unwrap().reset().await;
        assert_eq!(said(call("echo").await.unwrap()), text, "after {tool}");
        assert_eq!(server.streams.load(Ordering::Relaxed), streams, "after {tool}");
    }
    hub.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_posted_to_the_same_host_only() {
    let folder = tempfile::tempdir().unwrap();
    for (endpoint, words) in [
        ("http://127.0.0.2:9/messages", "another host"),
        ("//127.0.0.1:9/messages", "another host"),
        ("http://[", "invalid address"),
    ] {
        let server = serve(endpoint);
        let hub = hub(folder.path(), &server, Some(McpTransport::Sse));
        let why = hub.find("old").unwrap().check().await.unwrap_err().why;
        assert!(why.contains(words), "{endpoint}: {why}");
    }
}
