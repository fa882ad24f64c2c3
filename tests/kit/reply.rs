//! One scripted answer to one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::script::{Script, Wire};

/// How the end of the body is signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`, as real servers do. A cut is visible as a broken transfer.
    Chunked,
    /// Until the connection closes: a cut looks like a regular end. The hardest case.
    UntilClose,
    /// `Content-Length` of this many bytes, true or not.
    Length(usize),
}

/// Holds answers back until the test releases them.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<AtomicBool>);

impl Hold {
    /// Lets all answers with this hold go on, also those of later requests.
    pub fn release(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_released(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The same one.
impl PartialEq for Hold {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Hold {}

/// One action of the server while it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waits until it is released. Ends early when the server is dropped.
    Hold(Hold),
    /// Sends these bytes as one write.
    Bytes(Vec<u8>),
    /// Waits. Ends early when the server is dropped.
    Pause(Duration),
    /// Sends this text repeatedly with this pause in between, until the client disconnects.
    Repeat(Vec<u8>, Duration),
    /// Closes the connection here, without an end mark.
    Cut,
    /// Keeps the socket open and sends nothing more, until the client disconnects or the server is dropped.
    Hang,
}

/// One scripted answer: status, headers, then steps. Built by chaining.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) framing: Framing,
    /// Nothing is sent, not even the status line.
    pub(crate) silent: bool,
}

impl Reply {
    /// An empty answer with this status.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), steps: Vec::new(), framing: Framing::Chunked, silent: false }
    }

    /// Status 200, `text/event-stream`, and this body in one piece.
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").bytes(body)
    }

    /// What `wire`'s vendor would stream for `script`.
    pub fn script(wire: Wire, script: &Script) -> Self {
        Self::sse(script.body(wire))
    }

    /// Accepts the request and never answers.
    pub fn silence() -> Self {
        let mut reply = Self::status(200).hang();
        reply.silent = true;
        reply
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends these bytes next.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Bytes(bytes.into()));
        self
    }

    /// Sends a JSON body, with its content type.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").bytes(body.to_string())
    }

    /// Waits this many milliseconds.
    #[must_use]
    pub fn pause(mut self, ms: u64) -> Self {
        self.steps.push(Step::Pause(Duration::from_millis(ms)));
        self
    }

    /// Sends its body only after `hold` was released.
    #[must_use]
    pub fn held(mut self, hold: &Hold) -> Self {
        self.steps.insert(0, Step::Hold(hold.clone()));
        self
    }

    /// Goes on only after `hold` was released.
    #[must_use]
    pub fn wait_for(mut self, hold: &Hold) -> Self {
        self.steps.push(Step::Hold(hold.clone()));
        self
    }

    /// Sends `bytes` repeatedly, `ms` milliseconds apart, until the client disconnects.
    #[must_use]
    pub fn repeat(mut self, bytes: impl Into<Vec<u8>>, ms: u64) -> Self {
        self.steps.push(Step::Repeat(bytes.into(), Duration::from_millis(ms)));
        self
    }

    /// Closes here without an end mark.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    /// Keeps only the first `offset` bytes of the body, then closes without an end mark.
    #[must_use]
    pub fn cut_at(mut self, offset: usize) -> Self {
        let mut left = offset;
        let mut kept = Vec::new();
        for step in self.steps {
            match step {
                Step::Bytes(mut b) => {
                    b.truncate(left);
                    left -= b.len();
                    kept.push(Step::Bytes(b));
                    if left == 0 {
                        break;
                    }
                }
                other => kept.push(other),
            }
        }
        kept.push(Step::Cut);
        self.steps = kept;
        self
    }

    /// Leaves the socket open after the last byte: no end mark, no close.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Hang);
        self
    }

    /// Cuts every piece of the body into writes of `size` bytes with `ms` milliseconds between them.
    #[must_use]
    pub fn dribble(mut self, size: usize, ms: u64) -> Self {
        let mut steps = Vec::new();
        for step in self.steps {
            match step {
                Step::Bytes(b) => {
                    for piece in b.chunks(size.max(1)) {
                        steps.push(Step::Bytes(piece.to_vec()));
                        if ms > 0 {
                            steps.push(Step::Pause(Duration::from_millis(ms)));
                        }
                    }
                }
                other => steps.push(other),
            }
        }
        self.steps = steps;
        self
    }

    /// Splits the body after each blank line (one event a write), `ms` milliseconds apart.
    #[must_use]
    pub fn paced(mut self, ms: u64) -> Self {
        let mut steps = Vec::new();
        for step in self.steps {
            let Step::Bytes(bytes) = step else {
                steps.push(step);
                continue;
            };
            let mut from = 0;
            for at in 0..bytes.len() {
                let end = at + 1;
                if end == bytes.len() || (at > from && &bytes[at - 1..end] == b"\n\n") {
                    steps.push(Step::Bytes(bytes[from..end].to_vec()));
                    steps.push(Step::Pause(Duration::from_millis(ms)));
                    from = end;
                }
            }
        }
        self.steps = steps;
        self
    }

    /// Sets how the end of the body is signalled. Default: chunked.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }
}
