//! The part of the loop's state that belongs to turns.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::view::AuditRow;
use tiller_protocol::{EntryId, ModelRef, Notice, SessionId, Time};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::EventScope;
use crate::context::clean::Stream;
use crate::core::services::Redaction;
use crate::money::call_sum::CallSum;
use crate::prompts::message_commands::held::HeldMessage;
use crate::turn::record::TurnRecord;
use crate::turn::{Input, Turn};

/// The turn in flight, and what turns share.
pub(crate) struct TurnPart {
    pub(crate) live: Option<RunningTurn>,
    /// Turns that have begun; the number of the last one.
    pub(crate) begun: u64,
    /// Inputs of the turn that wait for the one being handled.
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) prefix: crate::prompts::msg::PrefixTask,
    /// Requests that this run may make.
    pub(crate) max_requests: Option<u32>,
    /// The session in which a skill was offered: once in each.
    pub(crate) offered: Option<SessionId>,
    /// The newest turn used skills.
    pub(crate) uses_skills: bool,
    /// The model of the own command that runs, and the one that is in use again after it.
    pub(crate) model_before: Option<(ModelRef, ModelRef)>,
}

/// The turn in flight. Dropping it stops everything that it runs.
pub(crate) struct RunningTurn {
    /// Its number in this process, from 1.
    pub(crate) no: u64,
    pub(crate) machine: Turn,
    pub(crate) scope: EventScope,
    /// Text of the message that began it.
    pub(crate) prompt: String,
    /// Text of others is in that message.
    pub(crate) of_others: bool,
    /// The user's message that it answers.
    pub(crate) root: Option<EntryId>,
    pub(crate) since: Time,
    pub(crate) tasks: TurnTasks,
    pub(crate) calls: TurnCalls,
    pub(crate) deltas: Deltas,
    /// A check of budget and context that waits until saving works again, or until the budget allows it: its
    /// `may_compact`.
    pub(crate) deferred_check: Option<bool>,
    pub(crate) end: TurnEnd,
    pub(crate) record: TurnRecord,
    /// The message whose commands run, until it is sent.
    pub(crate) message: Option<Box<HeldMessage>>,
}

/// The tasks of the turn, its calls aside. Dropping one stops it.
#[derive(Default)]
pub(crate) struct TurnTasks {
    /// Reads the reply.
    pub(crate) stream: Option<AbortOnDropHandle<()>>,
    /// Waits before the request is tried again.
    pub(crate) timer: Option<AbortOnDropHandle<()>>,
    pub(crate) compaction: Option<AbortOnDropHandle<()>>,
    /// The trace that the request leaves once it is sent again.
    pub(crate) trace: Option<String>,
    /// Clients show that the first token is awaited.
    pub(crate) awaited: bool,
}

/// The calls of the present reply, by their ids.
#[derive(Default)]
pub(crate) struct TurnCalls {
    pub(crate) running: HashMap<String, RunningCall>,
    /// What stops the calls that scripts make, by their ids.
    pub(crate) inner: HashMap<String, CancellationToken>,
    /// Arguments, until the results are shown.
    pub(crate) args: HashMap<String, Value>,
    /// Rows for the audit, until the results are stored.
    pub(crate) audits: HashMap<String, AuditRow>,
}

/// A running call. Dropping it stops the call.
pub(crate) struct RunningCall {
    /// Asks the tool to end.
    pub(crate) cancel: CancellationToken,
    /// Ends what did not end when asked to.
    pub(crate) hard: CancellationToken,
    pub(crate) _task: AbortOnDropHandle<()>,
    /// Verb and target, for the view of the agent.
    pub(crate) act: String,
}

/// How the turn ends, or ended.
#[derive(Default)]
pub(crate) struct TurnEnd {
    /// Replaces the machine's own status: the store failed, or a limit was reached.
    pub(crate) forced: Option<(TurnStatus, Notice)>,
    /// The machine has finished; its last entries are being written.
    pub(crate) over: bool,
    /// Text of the last reply.
    pub(crate) text: String,
    pub(crate) notice: Option<Notice>,
    /// Its use and that of the agents below it, once this is reported.
    pub(crate) sum: Option<CallSum>,
}

/// Text and thinking on their way to the screen. The end of a text is withheld while it may be the beginning of a secret.
pub(crate) struct Deltas {
    text: Stream,
    thinking: Stream,
}

impl Deltas {
    /// Nothing has come yet.
    pub(crate) fn new(redaction: &Redaction) -> Self {
        Self { text: Stream::new(redaction), thinking: Stream::new(redaction) }
    }

    /// Takes more text; gives the events to publish now.
    pub(crate) fn text(&mut self, more: &str) -> Vec<TurnEvent> {
        let thinking = thinking_delta(self.thinking.finish());
        thinking.into_iter().chain(text_delta(self.text.push(more))).collect()
    }

    /// Takes more thinking; gives the events to publish now.
    pub(crate) fn thinking(&mut self, more: &str) -> Vec<TurnEvent> {
        let text = text_delta(self.text.finish());
        text.into_iter().chain(thinking_delta(self.thinking.push(more))).collect()
    }

    /// Gives what was withheld, when nothing has come for a while. More may follow.
    pub(crate) fn pause(&mut self) -> Vec<TurnEvent> {
        thinking_delta(self.thinking.pause()).into_iter().chain(text_delta(self.text.pause())).collect()
    }

    /// Gives what was withheld, and starts anew.
    pub(crate) fn finish(&mut self) -> Vec<TurnEvent> {
        thinking_delta(self.thinking.finish()).into_iter().chain(text_delta(self.text.finish())).collect()
    }
}

fn text_delta(text: String) -> Option<TurnEvent> {
    (!text.is_empty()).then_some(TurnEvent::TextDelta { text })
}

fn thinking_delta(text: String) -> Option<TurnEvent> {
    (!text.is_empty()).then_some(TurnEvent::ThinkingDelta { text })
}
