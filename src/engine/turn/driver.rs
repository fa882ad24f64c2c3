//! Does what a turn decides. Nothing here decides anything about the turn itself.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, AskBody, Block, Cost, EntryBody, EventBody, Notice, StopReason, ToolOutcome, Usage,
};
use tiller_provider::{ProviderError, transport::retry};
use tiller_store::Call;
use tokio_util::task::AbortOnDropHandle;

use super::reply::Used;
use super::stream::stream;
use super::{Delta, Effect, Input};
use crate::context::{request, tokens};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::questions::about::About;
use crate::turn::msg::TurnMsg;

impl Core {
    /// Gives the turn an input and does what it says.
    pub(crate) fn feed(&mut self, input: Input) {
        self.turn.inputs.push_back(input);
        self.pump();
    }

    pub(crate) fn pump(&mut self) {
        while let Some(input) = self.turn.inputs.pop_front() {
            let Some(live) = &mut self.turn.live else {
                self.turn.inputs.clear();
                return;
            };
            for effect in live.turn.step(input) {
                self.perform(effect);
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Prepare { may_compact } => self.prepare(may_compact),
            Effect::Request { n } => self.request(n),
            Effect::CancelStream => {
                self.with_live(|l| l.stream = None);
                self.outside_close(StopReason::Interrupted);
            }
            Effect::Delta(Delta::Text(text)) => self.delta(0, &text),
            Effect::Delta(Delta::Thinking(text)) => self.delta(1, &text),
            Effect::Delta(Delta::CallBegun(name)) => {
                self.flush_deltas();
                self.turn_event(TurnEvent::ToolCallBegun { name });
            }
            Effect::AppendReply { blocks, stop, used } => self.append_reply(blocks, stop, &used),
            Effect::Spent { used } => self.spent_for_nothing(&used),
            Effect::RunTool { call } => self.run_tool(call),
            Effect::CancelTool { call_id, hard } => {
                if let Some(call) = self.turn.live.as_ref().and_then(|l| l.calls.get(&call_id)) {
                    call.cancel.cancel();
                    if hard {
                        call.hard.cancel();
                    }
                }
            }
            Effect::AppendResult { call_id, name, result } => self.append_result(&call_id, name, result),
            Effect::Backoff { n, attempt, of, error, discard } => {
                self.back_off(n, attempt, of, &error, discard);
            }
            Effect::EndBackoff => {
                self.with_live(|l| l.timer = None);
                self.turn_event(TurnEvent::RetryEnded {});
            }
            Effect::Compact { overflow, round } => {
                if let Some(said) =
                    self.turn.live.as_ref().filter(|_| overflow).map(|l| l.turn.too_long().to_owned())
                {
                    let model = self.session.model.clone();
                    self.learn_window(&model, &said, self.context_tokens().0);
                }
                let turn = self.turn.live.as_ref().map(|l| l.no);
                self.compact(turn, overflow, round, None, None);
            }
            Effect::CancelCompact => self.with_live(|l| l.compaction = None),
            Effect::DeliverSteer => {
                if let Some(no) = self.turn.live.as_ref().map(|l| l.no) {
                    self.deliver_steer(no);
                }
            }
            Effect::Tell { text } => self.tell_model(&text),
            Effect::AskRepeats { calls, rounds } => self.ask_repeats(calls, rounds),
            Effect::Finish { status, text, notice } => self.finish(status, text, notice),
        }
    }

    pub(crate) fn with_live(&mut self, f: impl FnOnce(&mut crate::core::Live)) {
        if let Some(live) = &mut self.turn.live {
            f(live);
        }
    }

    /// New words, without secrets. `which`: 0 text, 1 thinking.
    pub(crate) fn delta(&mut self, which: usize, more: &str) {
        let Some(live) = &mut self.turn.live else { return };
        let rest = live.words[1 - which].finish();
        let new = live.words[which].push(more);
        self.show_delta(1 - which, rest);
        self.show_delta(which, new);
    }

    /// Nothing comes for a while: what is held back is shown, though it may go on.
    pub(crate) fn quiet(&mut self) {
        let Some(live) = &mut self.turn.live else { return };
        let [text, thinking] = live.words.each_mut().map(crate::context::clean::Stream::pause);
        self.show_delta(1, thinking);
        self.show_delta(0, text);
    }

    /// The words that were held back.
    pub(crate) fn flush_deltas(&mut self) {
        let Some(live) = &mut self.turn.live else { return };
        let [text, thinking] = live.words.each_mut().map(crate::context::clean::Stream::finish);
        self.show_delta(1, thinking);
        self.show_delta(0, text);
    }

    fn show_delta(&mut self, which: usize, text: String) {
        if !text.is_empty() {
            self.turn_event(match which {
                0 => TurnEvent::TextDelta { text },
                _ => TurnEvent::ThinkingDelta { text },
            });
        }
    }

    fn turn_event(&mut self, event: TurnEvent) {
        self.show(self.place(), EventBody::Turn(event));
    }

    pub(crate) fn request(&mut self, n: u32) {
        if self.outside().is_some() {
            return self.run_program();
        }
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let provider = self.provider(&self.session.model);
        let request = request::build(&self.session.path, &self.settings());
        let tx = self.tx.clone();
        let task = async move {
            let result = match (provider, request) {
                (Ok(p), Some(r)) => {
                    let work = AssertUnwindSafe(stream(p, r, turn, n, &tx)).catch_unwind();
                    work.await.unwrap_or_else(|_| {
                        Err(ProviderError::Rejected(
                            "internal error in the provider; this is a bug in Tiller".into(),
                        ))
                    })
                }
                (Err(e), _) => Err(e),
                (_, None) => Err(ProviderError::Rejected("the session has no prefix".into())),
            };
            // The engine may have ended.
            let _ = tx.send(Msg::Turn(TurnMsg::StreamEnded { turn, n, result })).await;
        };
        let handle = AbortOnDropHandle::new(tokio::spawn(task));
        self.with_live(|l| l.stream = Some(handle));
        self.agent_changed();
    }

    /// Books a request whose reply stands nowhere.
    fn spent_for_nothing(&mut self, used: &Used) {
        // A program of another vendor counts by itself.
        if self.outside().is_some() {
            return;
        }
        let call = self.spend(used);
        let mut append = self.append();
        append.calls.push(call);
        self.save(append, vec![(self.place(), self.usage_event())], Then::Nothing);
    }

    fn append_reply(&mut self, blocks: Vec<Block>, stop: StopReason, used: &Used) {
        self.flush_deltas();
        let call = self.spend(used);
        let usage = call.usage;
        let body =
            EntryBody::Assistant { blocks, stop, model: self.session.model.clone(), usage, cost: call.cost };
        let entry = self.session.grow(&self.services, body);
        let blocks: &[Block] =
            if let EntryBody::Assistant { blocks, .. } = &entry.body { blocks } else { &[] };
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|b| if let Block::Text { text } = b { Some(text.as_str()) } else { None })
            .collect();
        let text = texts.join("\n\n");
        if let Some(live) = &mut self.turn.live {
            live.args = blocks
                .iter()
                .filter_map(|b| {
                    if let Block::ToolCall(c) = b { Some((c.id.clone(), c.arguments.clone())) } else { None }
                })
                .collect();
        }
        let place = self.place();
        let event = TurnEvent::AssistantMessage { entry: entry.id, text, node: Box::new(entry.clone()) };
        let events = vec![(place.clone(), EventBody::Turn(event)), (place, self.usage_event())];
        let mut append = self.append().entries(vec![entry]);
        append.calls.push(call);
        self.save(append, events, Then::Nothing);
    }

    fn usage_event(&self) -> EventBody {
        EventBody::Turn(TurnEvent::Usage {
            usage: self.session.usage,
            cost_usd: self.session.cost.map(Cost::usd),
            context: self.context_tokens().0,
            window: self.window(),
        })
    }

    /// Books what a call of the session's model cost.
    fn spend(&mut self, used: &Used) -> Call {
        let model = self.session.model.clone();
        let tier = self.tier();
        let path = request::live(&self.session.path);
        let output = tokens::Calibration::of(&path).written(used.arrived);
        let request = tokens::next_request(&path);
        let usage = tokens::completed(used.usage, used.whole, request, output);
        if used.whole && !usage.estimated {
            self.window_took(&model, usage.context());
        }
        let call = self.book(&model, tier, usage);
        self.reservations().release(&self.identity.id);
        if let Some(live) = &mut self.turn.live {
            live.usage.add(&usage);
            live.cost = call.cost.map(|c| live.cost.unwrap_or_default().plus(c)).or(live.cost);
            live.unpriced |= call.cost.is_none();
        }
        self.tell_budget();
        call
    }

    fn back_off(&mut self, n: u32, attempt: u32, of: u32, error: &ProviderError, discard: bool) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let wait = retry::wait(error, attempt.saturating_sub(1), of, retry::random())
            .unwrap_or(retry::FIRST)
            .mul_f64(self.services.retry);
        self.flush_deltas();
        self.turn_event(TurnEvent::Retrying {
            attempt,
            of,
            seconds: wait.as_secs_f64(),
            why: error.to_string(),
            discard,
        });
        let tx = self.tx.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = tx.send(Msg::Turn(TurnMsg::WaitOver { turn, n })).await;
        });
        self.with_live(|l| {
            l.stream = None;
            l.timer = Some(AbortOnDropHandle::new(timer));
        });
        self.agent_changed();
    }

    /// Asks whether repeated calls continue. Where no one can answer, they stop.
    fn ask_repeats(&mut self, calls: String, rounds: u32) {
        if self.services.human == Human::Absent {
            return self.turn.inputs.push_back(Input::Repeats { go_on: false });
        }
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        self.ask_self(About::Repeats { turn }, AskBody::Repeats { calls, rounds });
    }

    /// Ends the turn as something that neither the person nor the model wanted.
    pub(crate) fn halt(&mut self, status: TurnStatus, notice: Notice) {
        if let Some(live) = &mut self.turn.live {
            live.ending.get_or_insert((status, notice));
            self.feed(Input::Interrupt { hard: true });
        }
    }

    pub(crate) fn finish(&mut self, status: TurnStatus, text: String, notice: Option<Notice>) {
        let Some(live) = &mut self.turn.live else { return };
        let turn = live.no;
        live.over = true;
        live.stream = None;
        live.timer = None;
        live.compaction = None;
        self.reservations().release(&self.identity.id);
        let Some(live) = &mut self.turn.live else { return };
        let (status, notice) = match live.ending.take() {
            Some((status, notice)) => (status, Some(notice)),
            None => (status, notice),
        };
        let place = live.place.clone();
        let why = notice.clone();
        live.text.clone_from(&text);
        live.why = why;
        if status == TurnStatus::Interrupted {
            self.context.news.set("stopped", "the user stopped your last turn before it ended");
        }
        let text = self.redact(&text);
        let mut events = Vec::new();
        let note = self.ending_note(status, notice.as_ref());
        let mut append = self.append();
        if let Some(text) = note {
            let entry = self.session.grow(&self.services, EntryBody::Note { text });
            if notice.is_none() {
                let node = Box::new(entry.clone());
                events.push((place.clone(), EventBody::Turn(TurnEvent::EntryAdded { node })));
            }
            append = self.append().entries(vec![entry]);
        }
        append.running = Some(None);
        events.push((place, self.finished_event(status, text, notice)));
        self.save(append, events, Then::TurnOver { turn, status });
    }

    /// A line for the next reader of the session, where no entry says that the turn did not end well. (Who is
    /// there now is shown the notice itself.)
    fn ending_note(&self, status: TurnStatus, notice: Option<&Notice>) -> Option<String> {
        let told = match self.session.path.last().map(|e| &e.body) {
            Some(EntryBody::Assistant { stop, .. }) => {
                !matches!(stop, StopReason::EndTurn | StopReason::ToolUse)
            }
            // That says that it was stopped, and not why.
            Some(EntryBody::ToolResult { outcome, .. }) => {
                *outcome == ToolOutcome::Interrupted && notice.is_none()
            }
            _ => false,
        };
        match (status, notice) {
            (TurnStatus::Done | TurnStatus::Refused, _) => None,
            _ if told => None,
            (TurnStatus::Interrupted, None) => Some("Stopped by you before the model answered.".into()),
            (_, Some(notice)) => Some(format!("The turn ended early: {}", notice.message)),
            (_, None) => None,
        }
    }

    pub(crate) fn finished_event(
        &self,
        status: TurnStatus,
        text: String,
        error: Option<Notice>,
    ) -> EventBody {
        let (usage, cost) = match &self.turn.live {
            Some(live) => {
                // A sum that lacks a part would be a lie.
                (live.usage, if live.unpriced { None } else { live.cost })
            }
            None => (Usage::default(), None),
        };
        EventBody::Turn(TurnEvent::TurnFinished { status, text, usage, cost_usd: cost.map(Cost::usd), error })
    }

    /// The end is on disk and shown.
    pub(crate) fn turn_over(&mut self, turn: u64, status: TurnStatus) {
        if !self.is_live(turn) {
            return;
        }
        let (prompt, text, why) =
            self.turn.live.take().map(|l| (l.prompt, l.text, l.why)).unwrap_or_default();
        self.turn.inputs.clear();
        self.settle_files();
        self.agent_changed();
        if self.lifecycle.quitting.is_some() {
            return self.quit_now();
        }
        if status == TurnStatus::Done {
            self.title_after(&prompt);
        }
        self.next_queued(status);
        self.goal_after(status);
        if !self.occupied() {
            self.child_ends(status, text, why);
        }
    }

    /// A fact for the agents panel.
    pub(crate) fn agent_changed(&mut self) {
        let view = self.agent_view();
        if self.identity.child.is_some() {
            return self.tell_view(view);
        }
        self.bus.publish(&self.place(), EventBody::State(StateEvent::AgentChanged { view }));
    }

    pub(crate) fn agent_id(&self) -> AgentId {
        self.identity.id.clone()
    }
}
