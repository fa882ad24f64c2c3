//! Standard output and input, each on a separate thread, so that a peer that does not read or answer blocks nothing
//! else.

use std::io::{ErrorKind, Write as _};
use std::thread;

use tiller_protocol::{Notice, NoticeKind};
use tokio::sync::{mpsc, oneshot};

/// Capacity of the channel of texts.
const WAITING: usize = 64;

/// Writes to standard output, in order.
pub(crate) struct Printer {
    /// The printing thread holds the receiver; it is dropped when nothing can be written any more. `None`: finished.
    tx: Option<mpsc::Sender<String>>,
    /// The result of the thread, which holds the sender. Closed without a value: the thread is gone.
    done: Option<oneshot::Receiver<std::io::Result<()>>>,
}

impl Printer {
    /// Starts the thread. It ends when the printer is finished or dropped, or with the first error.
    ///
    /// # Errors
    /// When the thread cannot be started.
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
            // Before the result: senders that wait for room notice that the channel is closed.
            drop(rx);
            let _ = told.send(result);
        };
        let made = thread::Builder::new().name("stdout".into()).spawn(work);
        made.map_err(|e| Notice::new(NoticeKind::Internal, format!("No thread could be started: {e}.")))?;
        Ok(Self { tx: Some(tx), done: Some(done) })
    }

    /// A further sender. The printer ends only when it is dropped, too. `None`: finished.
    pub(crate) fn sender(&self) -> Option<mpsc::Sender<String>> {
        self.tx.clone()
    }

    /// Waits for room for one text. `Err`: the reader is gone.
    pub(crate) async fn room(&self) -> Result<mpsc::Permit<'_, String>, ()> {
        match &self.tx {
            Some(tx) => tx.reserve().await.map_err(drop),
            None => Err(()),
        }
    }

    /// Waits until everything is written. A reader that closed its end is not an error.
    ///
    /// # Errors
    /// When it could not be written for another reason, for instance a full disk.
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

/// Lines that a person types. The thread starts with the first question, and ends with the input or the process.
#[derive(Default)]
pub(crate) struct Lines(Option<mpsc::Receiver<String>>);

impl Lines {
    /// The next line; an empty one when the input has ended.
    pub(crate) async fn next(&mut self) -> String {
        let rx = self.0.get_or_insert_with(|| {
            // Capacity 1: text that is typed ahead stays in the terminal. The thread holds the sender and drops it when
            // the input ends.
            let (tx, rx) = mpsc::channel(1);
            let work = move || {
                for line in std::io::stdin().lines() {
                    let Ok(line) = line else { break };
                    if tx.blocking_send(line).is_err() {
                        break;
                    }
                }
            };
            // Without a thread the channel is closed, and no answer arrives.
            let _ = thread::Builder::new().name("stdin".into()).spawn(work);
            rx
        });
        rx.recv().await.unwrap_or_default()
    }
}
