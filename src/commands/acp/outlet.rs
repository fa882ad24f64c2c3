//! Writes messages to the client, each as a whole.

use std::time::Duration;

use serde_json::Value;
use tiller_rpc::{Encoder, Error};
use tokio::sync::{mpsc, watch};

/// How messages to the client are written.
const LINES: Encoder = Encoder::VersionFirst;

/// Sends messages. Clones share the channel.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    /// The printing thread holds the receiver; it is dropped when the client does not read any more.
    tx: mpsc::Sender<String>,
    ending: watch::Receiver<Ending>,
}

/// Whether the program is to end, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// The input has ended.
    Input,
    Signal,
}

/// Time limit for a client that does not read, while everything ends.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Outlet {
    /// `ending`: from then on a client that does not read is not waited for.
    pub(super) fn new(tx: mpsc::Sender<String>, ending: watch::Receiver<Ending>) -> Self {
        Self { tx, ending }
    }

    /// Waits until the client has closed its end.
    pub(super) async fn closed(&self) {
        self.tx.closed().await;
    }

    /// Waits for room. The hub notices a client that is gone.
    async fn send(&self, line: String) {
        let mut ending = self.ending.clone();
        let late = async {
            if ending.wait_for(|e| *e != Ending::No).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(TIMEOUT).await;
        };
        tokio::select! {
            biased;
            room = self.tx.reserve() => if let Ok(room) = room {
                room.send(line);
            },
            () = late => {}
        }
    }

    /// Answers a request of the client.
    pub(super) async fn answer(&self, id: &Value, result: Result<Value, Error>) {
        self.send(LINES.answer(id, result)).await;
    }

    /// Sends a request; its answer arrives with this id.
    pub(super) async fn request(&self, id: &str, method: &str, params: &Value) {
        self.send(LINES.request(&id.into(), method, params)).await;
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.send(LINES.notification(method, params)).await;
    }
}
