//! The queue of commands to a running program: input of a person is not lost while the driver is busy.
//!
//! [`super::Control`] holds the sender, the driver the receiver until the run is over. Bounded by the waiting bytes; a
//! command that exceeds the limit is refused as a whole, and the caller reports it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tiller_protocol::{TerminalInput, lock};
use tokio::sync::Notify;

use super::control::Command;

/// Maximum bytes of waiting commands: several of the largest pastes.
const WAITING: usize = 16 << 20;
/// Bytes that a command counts in addition to its text.
const EACH: usize = 64;

/// Why a command was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandRefusal {
    /// Too much waits already.
    Full,
    /// The run is over.
    Ended,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(Command, usize)>,
    bytes: usize,
    /// The driver accepts no more commands.
    closed: bool,
    /// All senders were dropped.
    abandoned: bool,
}

#[derive(Debug, Default)]
struct Channel {
    state: Mutex<Queue>,
    arrived: Notify,
}

/// The sending side, held by [`super::Control`].
#[derive(Debug)]
pub(crate) struct Sender(Arc<Channel>);

/// The receiving side, held by the driver.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Channel>);

/// A new queue.
pub(crate) fn channel() -> (Sender, Receiver) {
    let shared = Arc::<Channel>::default();
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

fn bytes(command: &Command) -> usize {
    let typed =
        |t: &TerminalInput| if let TerminalInput::Paste { text } = t { text.len() + EACH } else { EACH };
    EACH + match command {
        Command::Say { text, .. } => text.len(),
        Command::Keys(bytes) => bytes.len(),
        Command::Typed(all) => all.iter().map(typed).sum(),
        Command::Unsay(_) | Command::Resize(..) | Command::Attach(_) | Command::Finish => 0,
    }
}

impl Sender {
    /// Appends a command.
    ///
    /// # Errors
    /// When too much waits, or the run is over: the command is dropped as a whole.
    pub(crate) fn send(&self, command: Command) -> Result<(), CommandRefusal> {
        let mut state = lock(&self.0.state);
        if state.closed {
            return Err(CommandRefusal::Ended);
        }
        let size = bytes(&command);
        if state.bytes + size > WAITING {
            return Err(CommandRefusal::Full);
        }
        state.bytes += size;
        state.waiting.push_back((command, size));
        drop(state);
        self.0.arrived.notify_one();
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        lock(&self.0.state).abandoned = true;
        self.0.arrived.notify_one();
    }
}

impl Receiver {
    /// The next command, if one waits.
    pub(crate) fn try_recv(&mut self) -> Option<Command> {
        let mut state = lock(&self.0.state);
        let (command, size) = state.waiting.pop_front()?;
        state.bytes -= size;
        Some(command)
    }

    /// The next command; `None` when no more can come. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = self.try_recv() {
                return Some(command);
            }
            if lock(&self.0.state).abandoned {
                return None;
            }
            // A permit that was stored in the meantime ends this at once.
            self.0.arrived.notified().await;
        }
    }

    /// Refuses commands from now on; waiting ones can still be taken.
    pub(crate) fn close(&mut self) {
        lock(&self.0.state).closed = true;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy driver takes nothing for a while: all input arrives, in order.
    #[tokio::test]
    async fn no_key_is_lost_while_the_driver_is_busy() {
        let (tx, mut rx) = channel();
        for n in 0..10_000_u32 {
            tx.send(Command::Keys(n.to_le_bytes().to_vec())).unwrap();
        }
        let paste = "x".repeat(4 << 20);
        tx.send(Command::Typed(vec![TerminalInput::Paste { text: paste.clone() }])).unwrap();
        for n in 0..10_000_u32 {
            assert!(matches!(rx.recv().await, Some(Command::Keys(k)) if k == n.to_le_bytes()));
        }
        let Some(Command::Typed(typed)) = rx.recv().await else { panic!("the paste") };
        assert_eq!(typed, [TerminalInput::Paste { text: paste }]);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused_whole_and_an_end_is_told() {
        let (tx, mut rx) = channel();
        let large = || Command::Keys(vec![0; 10 << 20]);
        assert_eq!(tx.send(large()), Ok(()));
        assert_eq!(tx.send(large()), Err(CommandRefusal::Full));
        assert!(rx.try_recv().is_some());
        assert_eq!(tx.send(large()), Ok(()));
        rx.close();
        assert_eq!(tx.send(Command::Finish), Err(CommandRefusal::Ended));
        assert!(rx.recv().await.is_some());
        drop(tx);
        assert!(rx.recv().await.is_none());
    }
}
