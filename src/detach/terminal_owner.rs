//! The host's side of the connection to one client: requests to it, and a thread that reads its messages.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_tui::UiSender;
use tiller_tui::terminal::terminal_owner::{OwnerEvent, OwnerMsg, TerminalOwner};

use super::codec::{self, Lines};
use super::messages::{AttachedTerminal, FromClient, FromHost};

/// How a program in the foreground ended.
pub(super) struct ForegroundExit {
    pub(super) code: Option<i32>,
    pub(super) error: Option<String>,
}

/// The connection to one client.
pub(super) struct ClientConnection {
    id: u64,
    pub(super) terminal: AttachedTerminal,
    line: UnixStream,
    /// The receiver; locked while a program runs in the foreground, so that there is only one. The reading thread and
    /// `give_up` are the senders.
    ran: Mutex<Receiver<ForegroundExit>>,
    /// A clone of the sender, for `abandon`.
    give_up: SyncSender<ForegroundExit>,
}

impl ClientConnection {
    pub(super) fn new(id: u64, line: UnixStream, terminal: AttachedTerminal) -> Arc<Self> {
        let (give_up, ran) = sync_channel(4);
        Arc::new(Self { id, terminal, line, ran: Mutex::new(ran), give_up })
    }

    /// Reads its messages on a separate thread until it disconnects; the thread owns a reference to the connection.
    /// `lines`: data that was read already.
    pub(super) fn listen(self: &Arc<Self>, lines: Lines, to: UiSender) -> io::Result<()> {
        let me = Arc::clone(self);
        let made = std::thread::Builder::new().name("tiller-client".into());
        made.stack_size(128 << 10).spawn(move || {
            me.read(lines, &to);
            me.abandon("the terminal was closed");
            to.owner(OwnerMsg::From(me.id, OwnerEvent::Gone));
        })?;
        Ok(())
    }

    fn read(&self, mut lines: Lines, to: &UiSender) {
        loop {
            let said = match lines.wait(&self.line) {
                Ok(Some(FromClient::Resized)) => OwnerEvent::Resized,
                Ok(Some(FromClient::Continued { stopped })) => OwnerEvent::Continued(stopped),
                Ok(Some(FromClient::Stop)) => OwnerEvent::Stop,
                Ok(Some(FromClient::Look { columns, rows })) => OwnerEvent::Look(columns, rows),
                Ok(Some(FromClient::Follow)) => OwnerEvent::Follow,
                Ok(Some(FromClient::Signal { n })) => {
                    self.abandon("it was asked to end");
                    OwnerEvent::Signal(n)
                }
                Ok(Some(FromClient::Ran { code, error })) => {
                    let _ = self.give_up.try_send(ForegroundExit { code, error });
                    continue;
                }
                Ok(None) | Err(_) => return,
            };
            if !to.owner(OwnerMsg::From(self.id, said)) {
                return;
            }
        }
    }

    /// Ends the wait for the program in the foreground.
    pub(super) fn abandon(&self, why: &str) {
        let _ = self.give_up.try_send(ForegroundExit { code: None, error: Some(why.into()) });
    }

    pub(super) fn say(&self, message: &FromHost) -> io::Result<()> {
        codec::send(&self.line, message)
    }

    /// Sends a request for the foreground, and waits for its end.
    fn in_foreground(&self, message: &FromHost) -> ForegroundExit {
        let ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        // Discards results that arrived before this request.
        while ran.try_recv().is_ok() {}
        let gone = |why: String| ForegroundExit { code: None, error: Some(why) };
        match self.say(message) {
            Ok(()) => ran.recv().unwrap_or_else(|e| gone(e.to_string())),
            Err(e) => gone(e.to_string()),
        }
    }

    /// Runs a program in the foreground.
    pub(super) fn run(&self, words: Vec<Vec<u8>>) -> ForegroundExit {
        self.in_foreground(&FromHost::Run { words })
    }
}

impl TerminalOwner for ClientConnection {
    fn id(&self) -> u64 {
        self.id
    }

    fn stop(&self, all: bool) {
        // The reading thread reports a disconnected client.
        let _ = self.say(&FromHost::Stop { all });
    }

    fn dump(&self, text: &str) {
        self.in_foreground(&FromHost::Show { text: text.into() });
    }

    fn leave(&self, words: &str) {
        let _ = self.say(&FromHost::Leave { text: words.into() });
    }
}
