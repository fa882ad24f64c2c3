//! Standard output and input, each on a thread of its own: a peer that does not read or answer stops
//! nothing else.

use std::io::{ErrorKind, Write as _};
use std::thread;

use tiller_protocol::{Notice, NoticeKind};
use tokio::sync::{mpsc, oneshot};

/// Texts that may wait for the reader.
const WAITING: usize = 64;

/// Writes to standard output, in order.
pub(crate) struct Printer {
    /// The thread holds the other end; it closes when nothing can be written any more. `None`: finished.
    tx: Option<mpsc::Sender<String>>,
    /// The result of the thread. Closed without a value: the thread is gone.
    done: Option<oneshot::Receiver<std::io::Result<()>>>,
}

impl Printer {
    /// Starts the thread. It ends when the printer is finished or dropped, or with the first mistake.
    ///
    /// # Errors
    /// When there is no thread.
    pub(crate) fn start() -> Result<Self, Notice> {
        let (tx, mut rx) = mpsc::channel::<String>(WAITING);
        let (told, done) = oneshot::channel();
        let work = move || {
            let mut out = std::io::stdout().lock();
            let mut result = Ok(());
            while result.is_ok() {
                let Some(text) = rx.blocking_recv() else { break };
                result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            }
            // Before the answer: senders that wait for room learn that the channel is closed.
            drop(rx);
            let _ = told.send(result);
        };
        let made = thread::Builder::new().name("stdout".into()).spawn(work);
        made.map_err(|e| Notice::new(NoticeKind::Internal, format!("No thread could be started: {e}.")))?;
        Ok(Self { tx: Some(tx), done: Some(done) })
    }

    /// Another sender. The printer ends when this one is dropped, too. `None`: finished.
    pub(crate) fn sender(&self) -> Option<mpsc::Sender<String>> {
        self.tx.clone()
    }

    /// Waits for room for one text. Err: the reader is gone.
    pub(crate) async fn room(&self) -> Result<mpsc::Permit<'_, String>, ()> {
        match &self.tx {
            Some(tx) => tx.reserve().await.map_err(drop),
            None => Err(()),
        }
    }

    /// Waits until everything is written. A reader that closed its end is no error.
    ///
    /// # Errors
    /// When it could not be written for another reason: a full disk, for instance.
    pub(crate) async fn finish(&mut self) -> Result<(), Notice> {
        self.tx = None;
        let Some(done) = self.done.take() else { return Ok(()) };
        match done.await {
            Ok(Err(e)) if e.kind() != ErrorKind::BrokenPipe => {
                Err(Notice::new(NoticeKind::User, format!("Standard output could not be written: {e}.")))
            }
            _ => Ok(()),
        }
    }
}

/// Lines that a person types. The thread is started by the first question, and ends with the input or the
/// process.
#[derive(Default)]
pub(crate) struct Lines(Option<mpsc::Receiver<String>>);

impl Lines {
    /// The next line; an empty one when there is none any more.
    pub(crate) async fn next(&mut self) -> String {
        let rx = self.0.get_or_insert_with(|| {
            // One at a time: what is typed ahead stays in the terminal. Closed: the input ended.
            let (tx, rx) = mpsc::channel(1);
            let work = move || {
                for line in std::io::stdin().lines() {
                    let Ok(line) = line else { break };
                    if tx.blocking_send(line).is_err() {
                        break;
                    }
                }
            };
            // Without a thread the channel is closed, so that no answer comes.
            let _ = thread::Builder::new().name("stdin".into()).spawn(work);
            rx
        });
        rx.recv().await.unwrap_or_default()
    }
}
