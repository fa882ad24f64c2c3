//! What the loop holds of the external program that does an agent's work.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tiller_external::{Adapter, Adapters, Lookup, ToolUse, Transport};
use tiller_protocol::{Cost, Message, Notice, PaneView, QueueId, Usage};
use tiller_tool::shell::Host;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::TrustOffer;
use crate::bus::ClientId;
use crate::context::clean::Stream;
use crate::files::msg::Beginning;

/// Calls whose states are being kept at once: one that calls without end is not followed for ever.
const KEPT: usize = 8;

/// What drives programs of other vendors.
#[derive(Clone)]
pub struct Programs {
    pub adapters: Adapters,
    /// Ends what they started, also when we die.
    pub host: Host,
    /// Where each adapter looks up its own vendor's variables.
    pub lookup: Lookup,
    /// Whether a folder's own files may steer a program.
    pub trust: ProgramTrust,
}

/// Looks at what `adapter`'s program would read as its own configuration in a folder (absolute): a question about what
/// the person has not agreed to; `None`: it may start. Reads a few small files.
///
/// The last argument: rules of the person that deny reading and that the program cannot be held to, in words. They are
/// asked about in the same way.
pub type ProgramTrust = Arc<dyn Fn(&Path, &Adapter, &[String]) -> Option<TrustOffer> + Send + Sync>;

/// Whether the files that steer a program are trusted.
pub(crate) enum FilesTrust {
    /// All of them, in their present form.
    Trusted {
        /// Begun, for a program that reports no calls.
        work: Option<ProgramWork>,
    },
    /// The person has just agreed to those that were shown.
    Agreed,
    /// Some are not: the person is asked.
    Open(Box<TrustOffer>),
    /// The person, or the lack of one, forbids the start. With the reason.
    Refused(Box<Notice>),
}

/// The program that an agent is, and what it has said since its last entry.
pub(crate) struct Outside {
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) transport: Option<Transport>,
    /// Its own name for the talk, to go on with it.
    pub(crate) theirs: Option<String>,
    /// What was booked of the costs and of the tokens of that talk.
    pub(crate) booked: (Cost, Usage),
    /// In the program's own spelling.
    pub(crate) model: Option<String>,
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Words since its turn began; the last of them are its answer.
    pub(crate) said: String,
    /// Bytes of words since its turn or its last call began.
    pub(crate) words: usize,
    /// It has said something since the last message to it.
    pub(crate) spoke: bool,
    /// Tools at work.
    pub(crate) open: HashMap<String, Open>,
    /// Calls whose states of the files may be kept at once.
    pub(crate) room: Arc<tokio::sync::Semaphore>,
    /// The last state of the files could not be kept: what the program does cannot be undone.
    pub(crate) unkept: Arc<AtomicBool>,
    /// The watcher has received that the program is at work in its terminal.
    pub(crate) covers: bool,
    /// The state of the files before that work.
    pub(crate) work: Option<ProgramWork>,
    /// Its end was held back for what it did last.
    pub(crate) held: bool,
    /// It has told of what it used: whether it may go on is looked at when it does.
    pub(crate) paid: bool,
    /// It was started to do everything unasked.
    pub(crate) unasked: bool,
    /// One of its calls needed an approval that no one could give.
    pub(crate) refused: bool,
    pub(crate) control: Option<tiller_external::Control>,
    /// Its terminal, when it has one.
    pub(crate) pane: Pane,
    /// Messages that its driver holds.
    pub(crate) holds: Vec<Holding>,
}

impl Outside {
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        transport: Option<Transport>,
        theirs: Option<String>,
        booked: (Cost, Usage),
        model: Option<String>,
    ) -> Self {
        Self {
            adapter,
            transport,
            theirs,
            booked,
            model,
            text: String::new(),
            thinking: String::new(),
            said: String::new(),
            words: 0,
            spoke: false,
            open: HashMap::new(),
            room: Arc::new(Semaphore::new(KEPT)),
            unkept: Arc::default(),
            covers: false,
            work: None,
            held: false,
            paid: false,
            unasked: false,
            refused: false,
            control: None,
            pane: Pane::default(),
            holds: Vec::new(),
        }
    }

    /// While it runs.
    pub(crate) fn control(&self) -> Option<&tiller_external::Control> {
        self.control.as_ref()
    }

    /// One of its calls that is at work.
    pub(crate) fn open_call(&mut self, id: &str) -> Option<&mut Open> {
        self.open.get_mut(id)
    }

    /// What it says from here on is another answer.
    pub(crate) fn new_words(&mut self) {
        self.said.clear();
        self.spoke = false;
    }
}

/// A message that the program's driver holds.
pub(crate) struct Holding {
    /// As the driver calls it.
    pub(crate) no: u64,
    pub(crate) id: QueueId,
    pub(crate) message: Message,
}

/// A call that is open.
pub(crate) struct Open {
    pub(crate) tool: ToolUse,
    pub(crate) since: Duration,
    /// It was shown: some tell what they do only a moment later.
    pub(crate) shown: bool,
    /// The person was asked whether it may run.
    pub(crate) asked: bool,
    /// The state that the watcher received last.
    pub(crate) told: Option<String>,
    pub(crate) before: Option<(Beginning, OwnedSemaphorePermit)>,
    /// Its output as it comes: a secret may be cut anywhere between two pieces.
    pub(crate) words: Option<Stream>,
    /// Pieces of output so far.
    pub(crate) pieces: u64,
}

impl Open {
    pub(crate) fn new(tool: ToolUse, since: Duration) -> Self {
        Self { tool, since, shown: false, asked: false, words: None, pieces: 0, told: None, before: None }
    }
}

/// What is known of a terminal, and who looks at it.
#[derive(Default)]
pub(crate) struct Pane {
    pub(crate) view: PaneView,
    /// Who waits for a change. The answer to an older question is not given any more.
    pub(crate) lookers: HashMap<ClientId, AbortOnDropHandle<()>>,
    /// Earliest moment at which observers are notified of the next frame.
    pub(crate) from: Option<Instant>,
    /// The title was told a moment ago; whether another has come since.
    pub(crate) titled: Option<bool>,
}

/// Work of a program that reports no calls, with the state of the files before it.
pub(crate) struct ProgramWork {
    /// The name of the step, in place of a call.
    pub(crate) call: String,
    pub(crate) before: Beginning,
    pub(crate) room: OwnedSemaphorePermit,
}
