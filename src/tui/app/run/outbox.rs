//! Commands on their way to the engine, in order. The engine may refuse a command for now; it is offered again.

use std::collections::VecDeque;
use std::time::Duration;

use tiller_protocol::Command;

/// Hands a command to the engine; `false`: not now.
pub(crate) type Engine = Box<dyn Fn(Command) -> bool + Send>;

/// Wait before a refused command is offered again. After [`TRIES`] refusals in a row (a few seconds) the engine is
/// not expected soon: then [`SELDOM`], and whenever a message arrives.
const RETRY: Duration = Duration::from_millis(5);
const TRIES: u32 = 600;
const SELDOM: Duration = Duration::from_secs(60);

/// Commands that the engine has not taken yet.
pub(crate) struct Outbox {
    engine: Engine,
    waiting: VecDeque<Command>,
    /// Refusals since the engine took a command.
    refused: u32,
}

impl Outbox {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, waiting: VecDeque::new(), refused: 0 }
    }

    pub(crate) fn push(&mut self, command: Command) {
        self.waiting.push_back(command);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Offers the commands in order, up to the first that the engine refuses.
    pub(crate) fn offer(&mut self) {
        while let Some(c) = self.waiting.front() {
            if !(self.engine)(c.clone()) {
                self.refused = self.refused.saturating_add(1);
                return;
            }
            self.waiting.pop_front();
        }
        self.refused = 0;
    }

    /// Time until the next offer; `None`: no command waits.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let wait = if self.refused < TRIES { RETRY } else { SELDOM };
        (!self.waiting.is_empty()).then_some(wait)
    }
}
