//! Programs of other vendors as agents: what they report becomes entries and events like those of Tiller's own agents.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod` | the state of a program |
//! | `trust` | whether the files that steer it are trusted, before it starts |
//! | `run` | its start, its messages, its end |
//! | `calls`, `file_states` | its tool calls; the states of the files, and of memory, before and after them |
//! | `questions` | its questions |
//! | `asked_call`, `command_texts` | a call that it asks for; commands in texts that it shows |
//! | `prompt`, `messages`, `model` | its prompt; messages to it while it runs; its model |
//! | `terminal` | its terminal |

mod asked_call;
pub(crate) mod calls;
pub(crate) mod command_texts;
mod file_states;
pub(crate) mod handle;
mod messages;
mod model;
pub(crate) mod msg;
pub(crate) mod prompt;
mod questions;
mod run;
mod terminal;
mod trust;

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
use crate::files::msg::PendingState;
use crate::memory::unconfined::UnconfinedProgram;

/// Most calls at once whose states of the files are stored; others are not followed.
const STATES: usize = 8;

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
    Trusted(BeforeWork),
    /// The person has just agreed to those that were shown.
    Agreed,
    /// Some are not: the person is asked.
    Open(Box<TrustOffer>),
    /// The person, or the lack of one, forbids the start. With the reason.
    Refused(Box<Notice>),
}

/// The program that does the work of an agent.
pub(crate) struct ExternalProgram {
    pub(crate) adapter: Arc<Adapter>,
    /// WaitKind it is driven; `None`: the first way that it supports.
    pub(crate) transport: Option<Transport>,
    pub(crate) session: ProgramSession,
    pub(crate) output: Output,
    pub(crate) calls: Calls,
    /// The watcher has been told that the program is at work in its terminal.
    pub(crate) marked_working: bool,
    pub(crate) before: BeforeWork,
    /// Its end has been delayed once, until what its last call did to the files is stored.
    pub(crate) end_delayed: bool,
    /// It has reported usage since limits were checked.
    pub(crate) usage_reported: bool,
    /// It was started without approval prompts.
    pub(crate) auto_approved: bool,
    /// One of its calls needed an approval that no one could give.
    pub(crate) refused: bool,
    /// While it runs.
    pub(crate) control: Option<tiller_external::Control>,
    /// Its terminal, if it runs in one.
    pub(crate) pane: Pane,
    /// Exit code of its last run; `None` while it runs, and where Tiller ended it.
    pub(crate) exit: Option<i32>,
    /// Messages that its driver holds until the program takes them.
    pub(crate) queued: Vec<QueuedMessage>,
}

/// The program's own session.
#[derive(Default)]
pub(crate) struct ProgramSession {
    /// The program's name for it, to resume it; `None`: not known yet.
    pub(crate) id: Option<String>,
    /// Cost and usage of this session that have been recorded.
    pub(crate) booked: (Cost, Usage),
    /// In the program's own spelling.
    pub(crate) model: Option<String>,
}

/// What the program has written.
#[derive(Default)]
pub(crate) struct Output {
    /// Text since the last entry.
    pub(crate) text: String,
    /// Thinking since the last entry.
    pub(crate) thinking: String,
    /// Text since its turn or last call began: the answer, when its turn ends.
    pub(crate) answer: String,
    /// Bytes since its turn or last call began.
    pub(crate) bytes: usize,
    /// It has written text since the last message to it.
    pub(crate) spoke: bool,
}

/// Calls of its own tools.
pub(crate) struct Calls {
    /// By the program's ids.
    pub(crate) open: HashMap<String, OpenCall>,
    /// Permits to store states of the files, one for each call at once.
    pub(crate) permits: Arc<Semaphore>,
    /// The last state of the files could not be stored: what the program does cannot be undone.
    pub(crate) state_not_stored: Arc<AtomicBool>,
}

impl ExternalProgram {
    pub(crate) fn new(adapter: Arc<Adapter>, transport: Option<Transport>, session: ProgramSession) -> Self {
        Self {
            adapter,
            transport,
            session,
            output: Output::default(),
            calls: Calls {
                open: HashMap::new(),
                permits: Arc::new(Semaphore::new(STATES)),
                state_not_stored: Arc::default(),
            },
            marked_working: false,
            before: BeforeWork::default(),
            end_delayed: false,
            usage_reported: false,
            auto_approved: false,
            refused: false,
            control: None,
            pane: Pane::default(),
            exit: None,
            queued: Vec::new(),
        }
    }

    /// While it runs.
    pub(crate) fn control(&self) -> Option<&tiller_external::Control> {
        self.control.as_ref()
    }

    /// An open call by the program's id.
    pub(crate) fn open_call(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.calls.open.get_mut(id)
    }

    /// Starts another answer.
    pub(crate) fn new_answer(&mut self) {
        self.output.answer.clear();
        self.output.spoke = false;
    }
}

/// A message that the program's driver holds until the program takes it.
pub(crate) struct QueuedMessage {
    /// The driver's number for it.
    pub(crate) no: u64,
    pub(crate) id: QueueId,
    pub(crate) message: Message,
}

/// A call that has begun and not ended.
pub(crate) struct OpenCall {
    pub(crate) tool: ToolUse,
    /// Monotonic time of its start.
    pub(crate) since: Duration,
    /// It is shown once its arguments are known, which some programs report later.
    pub(crate) shown: bool,
    /// The user was asked whether it may run.
    pub(crate) asked: bool,
    /// The command that was reported to the watcher as running; `None`: no command.
    pub(crate) watched: Option<String>,
    /// The state of the files before it.
    pub(crate) before: Option<(PendingState, OwnedSemaphorePermit)>,
    /// Masks its output, which arrives in pieces that may cut a secret.
    pub(crate) stream: Option<Stream>,
    /// Pieces of output so far.
    pub(crate) pieces: u64,
}

impl OpenCall {
    pub(crate) fn new(tool: ToolUse, since: Duration) -> Self {
        Self { tool, since, shown: false, asked: false, stream: None, pieces: 0, watched: None, before: None }
    }
}

/// The state of a program's terminal, and the clients that wait for its next screen.
#[derive(Default)]
pub(crate) struct Pane {
    pub(crate) view: PaneView,
    /// Waits for a change, one for each client; a newer wait replaces an older one.
    pub(crate) observers: HashMap<ClientId, AbortOnDropHandle<()>>,
    /// Earliest moment at which observers are notified of the next frame.
    pub(crate) from: Option<Instant>,
    /// Set for an interval after a title was published: whether another title has come since.
    pub(crate) titled: Option<bool>,
}

/// What was noted before the work of a program, to compare with it afterwards.
#[derive(Default)]
pub(crate) struct BeforeWork {
    /// The state of the files, where it reports no calls.
    pub(crate) files: Option<ProgramWork>,
    /// Memory, where nothing confines it.
    pub(crate) memory: Option<UnconfinedProgram>,
}

/// Work of a program that reports no calls, with the state of the files before it.
pub(crate) struct ProgramWork {
    /// The name of the step, in place of a call.
    pub(crate) call: String,
    pub(crate) before: PendingState,
    pub(crate) room: OwnedSemaphorePermit,
}
