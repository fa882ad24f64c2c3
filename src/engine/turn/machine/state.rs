//! The state of a turn.

use std::collections::{BTreeMap, HashSet};

use tiller_protocol::event::TurnStatus;
use tiller_protocol::tool::Display;
use tiller_protocol::{Addition, Additions, Part, Taint, ToolCall, ToolOutcome, Touch};
use tiller_provider::ProviderError;

use super::repeats::Repeats;
use super::reply::Reply;

/// Limits of the loops of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Requests; retries are not counted.
    pub requests: u32,
    /// Attempts of one request.
    pub attempts: u32,
    /// The longest wait that a server may ask for before another try; `None`: any.
    pub longest_wait: Option<std::time::Duration>,
    /// Read-only calls at once.
    pub parallel: usize,
    /// Calls of one reply that are run.
    pub calls_per_reply: usize,
    /// Compactions forced by the provider's context-length error.
    pub overflows: u32,
    /// Empty replies in a row before it gives up.
    pub empties: u32,
    /// Replies in a row that the output limit may cut off and which the model then continues.
    pub cut_replies: u32,
    /// Rounds of equal calls with equal results after which the user is asked; 0: never.
    pub repeats: u32,
    /// Answers of a turn that hooks look at; 0: there are no such hooks.
    pub checks: u32,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            requests: 200,
            attempts: 6,
            longest_wait: None,
            parallel: 8,
            calls_per_reply: 64,
            overflows: 3,
            empties: 2,
            cut_replies: 3,
            repeats: 6,
            checks: 0,
        }
    }
}

/// The tools in the request, and what each touches.
#[derive(Clone, Debug, Default)]
pub struct ToolTable(pub BTreeMap<String, Touch>);

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    pub outcome: ToolOutcome,
    pub content: Vec<Part>,
    pub display: Option<Display>,
    /// From monotonic time.
    pub seconds: f64,
    /// It was refused because no user could approve it.
    pub unanswered: bool,
    /// The numbers of the learnings whose texts stand at its end.
    pub learnings: Vec<i64>,
    /// The least trusted text of others in `content` besides what the tool itself says; `None`: there is none.
    pub taint: Option<Taint>,
    /// The parts of `content` that the tool did not say.
    pub added: Additions,
}

impl CallResult {
    /// A result that is only text.
    pub fn text(outcome: ToolOutcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            content: vec![Part::Text { text: text.into() }],
            display: None,
            seconds: 0.0,
            unanswered: false,
            learnings: Vec::new(),
            taint: None,
            added: Additions::default(),
        }
    }

    /// Adds a text before what the tool said.
    pub(crate) fn put_before(&mut self, text: String) {
        self.content.insert(0, Part::Text { text });
        self.added.before += 1;
    }

    /// Adds a part behind all others.
    pub(crate) fn put_behind(&mut self, what: Addition, part: Part) {
        self.content.push(part);
        self.added.after.push(what);
    }

    /// The result of a call that the user stopped before it was done.
    pub fn interrupted() -> Self {
        Self::text(ToolOutcome::Interrupted, INTERRUPTED)
    }
}

/// The text of the result of a call that never got one.
pub const INTERRUPTED: &str = "Interrupted by the user before it finished.";

/// One call of the present reply.
#[derive(Clone, Debug)]
pub struct Slot {
    pub call: ToolCall,
    pub touch: Touch,
    pub state: SlotState,
}

/// The progress of a call.
#[derive(Clone, Debug)]
pub enum SlotState {
    Waiting,
    Running,
    /// Finished; waits for the results of earlier calls.
    Done(CallResult),
    Appended,
}

/// The phase of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not begun.
    New,
    /// Budgets and context are being checked.
    Preparing,
    /// A reply is coming.
    Streaming,
    /// Waits before a retry.
    Waiting,
    /// The agent is paused, and its request goes out when it is resumed.
    Paused,
    /// Calls are running.
    Tools,
    Steering,
    /// The user is asked whether repeated calls continue.
    RepeatQuestion,
    /// Hooks look at the answer.
    Checking,
    /// `overflow`: the provider rejected the request as too long.
    Compacting {
        overflow: bool,
    },
    Finished(TurnStatus),
}

/// One turn.
#[derive(Clone, Debug)]
pub struct Turn {
    pub(super) limits: TurnLimits,
    pub(super) tools: ToolTable,
    pub(super) phase: Phase,
    pub(super) counts: Counts,
    pub(super) overflow: Overflow,
    /// Steering messages wait to be delivered.
    pub(super) steer: bool,
    pub(super) calls: CallFlags,
    /// Configured name of the model's provider.
    pub(super) provider: String,
    pub(super) reply: Reply,
    pub(super) slots: Vec<Slot>,
    pub(super) repeats: Repeats,
    /// Names of the calls that the user was asked about.
    pub(super) repeating: String,
    /// Ids of all calls of the path. A new call must have an id of its own.
    pub(super) ids: HashSet<String>,
    /// Text of the last reply, with that of the replies that it continues.
    pub(super) text: String,
    /// Text of a reply that the output limit cut off, and which the next reply continues.
    pub(super) cut_text: String,
}

/// What is known of the calls of a turn.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFlags {
    /// They are the commands of the message, which is sent after them.
    pub(super) of_message: bool,
    /// The user stopped the turn while they were running.
    pub(super) stopping: bool,
    /// One was refused because no user was present to approve it.
    pub(super) refused: bool,
}

/// What is compared with [`TurnLimits`].
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Streams so far; the number of the present one.
    pub(super) streams: u32,
    pub(super) requests: u32,
    /// Number of the present try of a request, from 1.
    pub(super) attempt: u32,
    /// Empty replies in a row.
    pub(super) empties: u32,
    /// Replies in a row that the output limit cut off.
    pub(super) cut_replies: u32,
    /// Answers that hooks have looked at.
    pub(super) checks: u32,
}

/// How often the context was too long, and what was done about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow {
    /// Context-length errors in a row.
    pub(super) rounds: u32,
    /// The last one.
    pub(super) error: Option<ProviderError>,
    /// A compaction by limit was tried since the last reply; another would not help.
    pub(super) compacted: bool,
}

impl Turn {
    /// A turn that has not begun. `provider` is the configured name of the model's provider, `ids` are the ids of all
    /// calls of the path.
    pub fn new(limits: TurnLimits, tools: ToolTable, provider: &str, ids: HashSet<String>) -> Self {
        Self {
            limits,
            tools,
            phase: Phase::New,
            counts: Counts { attempt: 1, ..Counts::default() },
            overflow: Overflow::default(),
            steer: false,
            calls: CallFlags::default(),
            provider: provider.to_owned(),
            reply: Reply::default(),
            slots: Vec::new(),
            repeats: Repeats::default(),
            repeating: String::new(),
            ids,
            text: String::new(),
            cut_text: String::new(),
        }
    }

    /// Continues a turn that the end of a process interrupted during its calls: `calls` are those without a result, in
    /// order; the ones with `None` are run (again), the others get the given result.
    #[must_use]
    pub fn with_calls(mut self, calls: Vec<(ToolCall, Option<CallResult>)>) -> Self {
        self.slots = calls
            .into_iter()
            .map(|(call, result)| (self.known(call), result))
            .map(|(call, result)| Slot {
                touch: self.tools.0.get(&call.name).copied().unwrap_or(Touch::Execute),
                call,
                state: result.map_or(SlotState::Waiting, SlotState::Done),
            })
            .collect();
        self
    }

    /// Whether the calls that it begins with belong to its message, which is sent after them.
    #[must_use]
    pub fn before_message(mut self, waits: bool) -> Self {
        self.calls.of_message = waits;
        self
    }

    /// The number of the last request.
    pub fn n(&self) -> u32 {
        self.counts.streams
    }

    /// The error of the last request that the provider rejected as too long; `None`: it rejected none.
    pub fn too_long(&self) -> Option<&ProviderError> {
        self.overflow.error.as_ref()
    }

    /// Whether a reply is awaited or arriving.
    pub fn streaming(&self) -> bool {
        self.phase == Phase::Streaming
    }

    /// Whether a reply is awaited and no block of it has begun.
    pub fn unanswered(&self) -> bool {
        self.streaming() && self.reply.is_empty()
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// True once [`super::Effect::Finish`] was given.
    pub fn finished(&self) -> bool {
        matches!(self.phase, Phase::Finished(_))
    }

    /// The blocks of the reply so far.
    pub fn partial(&self) -> Vec<tiller_protocol::Block> {
        if self.phase == Phase::Streaming { self.reply.so_far() } else { Vec::new() }
    }

    /// Calls of the present reply.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}
