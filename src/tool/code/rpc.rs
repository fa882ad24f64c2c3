//! Messages between a script and the tool: JSON, one a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// Longest message of a script, in bytes.
pub(super) const LONGEST: usize = 8 << 20;
/// Messages that wait in each direction. A script that sends more waits.
const WAITING: usize = 16;

/// What a script sends.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Message {
    /// A call. The reply has the same number.
    Call {
        id: u64,
        tool: String,
        #[serde(default)]
        args: Value,
    },
    /// The end of the script; `done`: without an error.
    Done { done: bool },
}

/// The reply to a call.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    pub id: u64,
    pub ok: bool,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
}

/// The order to run a script.
#[derive(Debug, Serialize)]
pub(super) struct Run<'a> {
    pub run: &'a str,
    pub name: &'a str,
    /// Ends the output of the run.
    pub mark: &'a str,
    pub keep: bool,
}

/// Why no more messages can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Closed,
    TooLong,
    NotJson,
}

/// A message, or why there are no more.
pub(super) type Heard = Result<Message, Broken>;

/// Reads messages. The task that calls this holds the sender; the run holds the receiver and ends the task.
pub(super) async fn read(mut from: OwnedReadHalf, to: mpsc::Sender<Heard>) {
    let mut line: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut chunk).await.unwrap_or(0);
        if n == 0 {
            let _ = to.send(Err(Broken::Closed)).await;
            return;
        }
        let mut rest = &chunk[..n];
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let message = serde_json::from_slice(&line).map_err(|_| Broken::NotJson);
            line.clear();
            let over = message.is_err();
            if to.send(message).await.is_err() || over {
                return;
            }
        }
        if line.len() + rest.len() > LONGEST {
            let _ = to.send(Err(Broken::TooLong)).await;
            return;
        }
        line.extend_from_slice(rest);
    }
}

/// Where messages to the script go: a task writes them, so that a script that does not read stops nothing else.
pub(super) fn writer(mut to: OwnedWriteHalf) -> (mpsc::Sender<String>, impl Future<Output = ()> + Send) {
    let (tx, mut lines) = mpsc::channel::<String>(WAITING);
    let write = async move {
        while let Some(mut line) = lines.recv().await {
            line.push('\n');
            if to.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    };
    (tx, write)
}

/// A channel for [`read`].
pub(super) fn messages() -> (mpsc::Sender<Heard>, mpsc::Receiver<Heard>) {
    mpsc::channel(WAITING)
}
