//! Messages over two streams, one a line. What is no message is answered with an error and costs nothing else.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tiller_rpc::{INVALID_REQUEST, Line, LineBuffer, PARSE_ERROR};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::handler::Handler;
use crate::library::Library;

/// Maximum bytes of one message of a client. Arguments of these tools are short.
const MESSAGE: usize = 1 << 20;
/// Bytes of one read.
const CHUNK: usize = 16 << 10;
/// Time limit for writing the last answers.
const LAST: Duration = Duration::from_secs(5);
/// Messages that wait to be written.
const WAITING: usize = 16;

/// Serves one client until its input ends or it no longer reads.
///
/// # Errors
/// When the client does not begin as the protocol says; a sentence without a full stop.
pub async fn serve(
    library: Library,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    let (connection, writer) = Connection::new(input, output);
    let result = async {
        let running = match rmcp::serve_server(Handler::new(library), connection).await {
            Ok(running) => running,
            // Nothing was asked.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(first_words(&error.to_string())),
        };
        running.waiting().await.map(drop).map_err(|e| first_words(&e.to_string()))
    }
    .await;
    // Every sender is gone: the writer ends with the last answer. A client that does not read is not waited for.
    let _ = tokio::time::timeout(LAST, writer).await;
    result
}

/// An error may quote the message that caused it.
fn first_words(text: &str) -> String {
    tiller_text::clean::plain(text).chars().take(300).collect()
}

/// The client.
struct Connection<R> {
    input: R,
    lines: LineBuffer,
    chunk: Vec<u8>,
    ended: bool,
    /// The writing task holds the receiver; it is dropped when the client no longer reads.
    out: Option<mpsc::Sender<String>>,
}

/// The client no longer reads.
#[derive(Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the client no longer reads")
    }
}

impl std::error::Error for Gone {}

impl<R: AsyncRead + Send + Unpin> Connection<R> {
    fn new(
        input: R,
        mut output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (out, mut waiting) = mpsc::channel::<String>(WAITING);
        let writer = tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                    return;
                }
            }
        });
        let lines = LineBuffer::new(MESSAGE);
        (Self { input, lines, chunk: vec![0; CHUNK], ended: false, out: Some(out) }, writer)
    }

    /// The next line; `None`: the input has ended. A dropped future loses no bytes.
    async fn line(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return Some(line);
            }
            if self.ended {
                return self.lines.last_line();
            }
            match self.input.read(&mut self.chunk).await {
                Ok(0) => self.ended = true,
                Ok(n) => self.lines.push(&self.chunk[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => self.ended = true,
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Connection<R> {
    type Error = Gone;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let Ok(mut line) = serde_json::to_string(&message) else { return Ok(()) };
            line.push('\n');
            out.ok_or(Gone)?.send(line).await.map_err(|_| Gone)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let refused = match self.line().await? {
                Line::Text(bytes) if bytes.trim_ascii().is_empty() => continue,
                Line::Text(bytes) => match serde_json::from_slice(&bytes) {
                    Ok(message) => return Some(message),
                    Err(_) => refusal(&bytes),
                },
                Line::TooLong => Some(answer(
                    &Value::Null,
                    INVALID_REQUEST,
                    &format!("a message may have {} MB at most", MESSAGE >> 20),
                )),
            };
            let Some(refused) = refused else { continue };
            tracing::debug!("a line of the client is no message");
            self.out.as_ref()?.send(refused).await.ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.out = None;
        Ok(())
    }
}

/// The answer to a line that is no message; `None`: a notification, which has none.
fn refusal(bytes: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(bytes) {
        Err(_) => Some(answer(&Value::Null, PARSE_ERROR, "this line is not JSON")),
        Ok(value) => match value.get("id") {
            Some(id @ (Value::Number(_) | Value::String(_))) => {
                Some(answer(id, INVALID_REQUEST, "this is not a request"))
            }
            _ if value.get("method").is_some() => None,
            _ => Some(answer(&Value::Null, INVALID_REQUEST, "this is not a request")),
        },
    }
}

fn answer(id: &Value, code: i64, message: &str) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}
