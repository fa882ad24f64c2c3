//! The transitions of a turn.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Notice, NoticeKind, StopReason, Taint, ToolCall};
use tiller_provider::{Chunk, ProviderError, transport::retry};

use super::effect::{Delta, Effect, Input, Prepared};
use super::repeats::{self, Verdict};
use super::reply::{FinishedReply, Reply, ReplyUsage, drop_calls};
use super::state::{CallResult, Phase, Slot, SlotState, Turn};
use crate::bus::notices;

impl Turn {
    /// Takes one input and returns the effects. Inputs that do not fit the phase change nothing.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        if !self.finished() {
            self.take(input, &mut out);
        }
        out
    }

    fn take(&mut self, input: Input, out: &mut Vec<Effect>) {
        match (input, self.phase) {
            (Input::Interrupt { hard }, _) => self.interrupt(hard, out),
            (Input::Steer(waiting), _) => self.steer = waiting,
            (Input::Start, Phase::New) if self.slots.is_empty() => self.prepare(out),
            (Input::Start, Phase::New) => {
                self.phase = Phase::Tools;
                self.go_on(out);
            }
            (Input::Prepared(p), Phase::Preparing) => self.prepared(p, out),
            (Input::Chunk { n, chunk }, Phase::Streaming) if n == self.counts.streams => {
                self.chunk(chunk, out)
            }
            (Input::StreamEnded { n, result }, Phase::Streaming) if n == self.counts.streams => {
                match result {
                    Ok(()) => self.cut(ProviderError::Network("the reply was cut off".into()), out),
                    Err(e) => self.cut(e, out),
                }
            }
            (Input::WaitOver { n }, Phase::Waiting) if n == self.counts.streams => self.again(out),
            (Input::SkipWait, Phase::Waiting) => self.again(out),
            (Input::Pause, Phase::Streaming) if self.reply.is_empty() => self.rest(out),
            (Input::Resume, Phase::Paused) => self.request(out),
            (Input::ToolDone { call_id, result }, Phase::Tools) => self.tool_done(&call_id, result, out),
            (Input::StopTool { call_id }, Phase::Tools) if self.is_running(&call_id) => {
                out.push(Effect::CancelTool { call_id, hard: false });
            }
            (Input::Steered, Phase::Steering) => self.prepare(out),
            (Input::Repeats { go_on: true }, Phase::RepeatQuestion) => self.prepare(out),
            (Input::Repeats { go_on: false }, Phase::RepeatQuestion) => {
                let notice = notices::repeats(&self.repeating);
                self.finish(TurnStatus::Limit, Some(notice), out);
            }
            (Input::Checked { tell: Some(text) }, Phase::Checking) => {
                self.phase = Phase::Steering;
                // Hooks say what they read.
                out.push(Effect::Tell { text, taint: Some(Taint::ToolOutput) });
            }
            (Input::Checked { tell: None }, Phase::Checking) if self.steer => self.deliver(out),
            (Input::Checked { tell: None }, Phase::Checking) => self.finish(TurnStatus::Done, None, out),
            (Input::Compacted(result), Phase::Compacting { overflow }) => {
                self.after_compaction(overflow, result, out);
            }
            _ => {}
        }
    }

    fn is_running(&self, call_id: &str) -> bool {
        self.slots.iter().any(|s| s.call.id == call_id && matches!(s.state, SlotState::Running))
    }

    fn prepare(&mut self, out: &mut Vec<Effect>) {
        self.phase = Phase::Preparing;
        out.push(Effect::Prepare { may_compact: !self.overflow.compacted });
    }

    fn prepared(&mut self, prepared: Prepared, out: &mut Vec<Effect>) {
        match prepared {
            Prepared::Stop { status, notice } => self.finish(status, Some(notice), out),
            Prepared::Compact => {
                self.overflow.compacted = true;
                self.phase = Phase::Compacting { overflow: false };
                out.push(Effect::Compact { overflow: false, round: 1 });
            }
            Prepared::Go if self.counts.requests >= self.limits.requests => {
                let n = self.limits.requests;
                let notice =
                    Notice::new(NoticeKind::Budget, format!("the turn reached its limit of {n} requests"))
                        .hint("continue to start another turn")
                        .hint("--max-turns, or limits.turns in config.toml, allows more");
                self.finish(TurnStatus::Limit, Some(notice), out);
            }
            Prepared::Go => {
                self.counts.requests += 1;
                self.counts.attempt = 1;
                self.request(out);
            }
        }
    }

    fn request(&mut self, out: &mut Vec<Effect>) {
        self.counts.streams += 1;
        self.reply = Reply::new(&self.provider, self.counts.streams, &self.ids);
        self.phase = Phase::Streaming;
        out.push(Effect::Request { n: self.counts.streams });
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<Effect>) {
        match &chunk {
            Chunk::Text { text, .. } if !text.is_empty() => {
                out.push(Effect::Delta(Delta::Text(text.clone())));
            }
            Chunk::Thinking { text, .. } if !text.is_empty() => {
                out.push(Effect::Delta(Delta::Thinking(text.clone())));
            }
            Chunk::ToolBegin { name, .. } => out.push(Effect::Delta(Delta::CallStarted(name.clone()))),
            _ => {}
        }
        self.reply.push(chunk);
        if self.reply.stopped() {
            // The stop chunk ends the reply: the server need not close its connection.
            out.push(Effect::CancelStream);
            self.whole(out);
        }
    }

    /// The reply is complete.
    fn whole(&mut self, out: &mut Vec<Effect>) {
        let FinishedReply { mut blocks, dropped, stop, used } = self.reply.finish(&mut self.ids);
        self.overflow.rounds = 0;
        self.overflow.compacted = false;
        if matches!(stop, StopReason::Refusal(_)) {
            drop_calls(&mut blocks, |_| true);
        }
        let calls: Vec<ToolCall> = blocks
            .iter()
            .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.clone()) } else { None })
            .collect();
        self.text = std::mem::take(&mut self.cut_text) + &text_of(&blocks);
        let is_cut = matches!(stop, StopReason::MaxTokens);
        let empty = calls.is_empty() && self.text.trim().is_empty();
        if empty && matches!(stop, StopReason::EndTurn | StopReason::ToolUse) {
            return self.empty(blocks, stop, used, out);
        }
        self.counts.empties = 0;
        let (status, end) = match &stop {
            StopReason::Refusal(why) => (TurnStatus::Failed, Some(notices::refusal(why))),
            // A reply that a limit cut off is no answer.
            StopReason::MaxTokens => (TurnStatus::Failed, Some(notices::max_tokens())),
            _ => (TurnStatus::Done, None),
        };
        append_reply(blocks, stop, used, out);
        if !is_cut || !calls.is_empty() {
            self.counts.cut_replies = 0;
        }
        if !calls.is_empty() {
            self.slots = self.slots_of(calls);
            self.phase = Phase::Tools;
            self.go_on(out);
        } else if is_cut && self.counts.cut_replies < self.limits.cut_replies && !self.steer {
            // A note asks the model to go on, or for a smaller step.
            self.counts.cut_replies += 1;
            self.phase = Phase::Steering;
            let text = cut_reply_text(dropped.first().map(String::as_str), &self.text);
            if dropped.is_empty() {
                self.cut_text.clone_from(&self.text);
            }
            out.push(Effect::Tell { text, taint: None });
        } else if self.steer {
            self.deliver(out);
        } else if status == TurnStatus::Done && end.is_none() && self.counts.checks < self.limits.checks {
            self.counts.checks += 1;
            self.phase = Phase::Checking;
            out.push(Effect::CheckAnswer { text: self.text.clone(), again: self.counts.checks > 1 });
        } else {
            self.finish(status, end, out);
        }
    }

    /// An empty reply: the request is repeated a limited number of times, then the turn is parked.
    fn empty(&mut self, blocks: Vec<Block>, stop: StopReason, used: ReplyUsage, out: &mut Vec<Effect>) {
        self.counts.empties += 1;
        if self.counts.empties < self.limits.empties {
            out.push(Effect::Spent { used });
            let error = ProviderError::Network("the model sent an empty reply".into());
            return self.back_off(error, self.limits.empties, !blocks.is_empty(), out);
        }
        append_reply(blocks, stop, used, out);
        self.finish(TurnStatus::Failed, Some(notices::empty_reply()), out);
    }

    fn tool_done(&mut self, call_id: &str, result: CallResult, out: &mut Vec<Effect>) {
        let running = |s: &&mut Slot| s.call.id == call_id && matches!(s.state, SlotState::Running);
        if let Some(slot) = self.slots.iter_mut().find(running) {
            self.calls.refused |= result.unanswered;
            slot.state = SlotState::Done(result);
            self.go_on(out);
        }
    }

    /// Appends finished results in order, starts calls that may start, and continues when all have results.
    fn go_on(&mut self, out: &mut Vec<Effect>) {
        for slot in &mut self.slots {
            match std::mem::replace(&mut slot.state, SlotState::Appended) {
                SlotState::Appended => {}
                SlotState::Done(result) => {
                    if !self.calls.of_message {
                        let known = self.tools.0.contains_key(&slot.call.name);
                        self.repeats.call(&slot.call, &result, known);
                    }
                    let (call_id, name) = (slot.call.id.clone(), slot.call.name.clone());
                    out.push(Effect::AppendResult { call_id, name, result });
                }
                earlier => {
                    slot.state = earlier;
                    break;
                }
            }
        }
        if self.slots.iter().all(|s| matches!(s.state, SlotState::Appended)) {
            self.slots.clear();
            if std::mem::take(&mut self.calls.of_message) {
                return self.send_message(out);
            }
            let repeats = self.repeats.round(self.limits.repeats);
            if self.calls.stopping {
                self.finish(TurnStatus::Interrupted, None, out);
            } else if self.steer {
                self.deliver(out);
            } else {
                self.next_round(repeats, out);
            }
            return;
        }
        self.start_calls(out);
    }

    /// The commands of the message have ended: it is sent, unless the user stopped the turn.
    fn send_message(&mut self, out: &mut Vec<Effect>) {
        if self.calls.stopping {
            return self.finish(TurnStatus::Interrupted, None, out);
        }
        self.phase = Phase::Steering;
        out.push(Effect::DeliverMessage);
    }

    /// All calls have their results: continues, unless they repeat.
    fn next_round(&mut self, repeats: Verdict, out: &mut Vec<Effect>) {
        match repeats {
            Verdict::GoOn => self.prepare(out),
            Verdict::Tell => {
                self.repeats.told();
                self.phase = Phase::Steering;
                out.push(Effect::Tell { text: repeats::told(), taint: None });
            }
            Verdict::Ask(rounds) => {
                self.repeating = self.repeats.take();
                self.phase = Phase::RepeatQuestion;
                out.push(Effect::AskRepeats { calls: self.repeating.clone(), rounds });
            }
        }
    }

    fn deliver(&mut self, out: &mut Vec<Effect>) {
        self.steer = false;
        self.phase = Phase::Steering;
        out.push(Effect::DeliverSteer);
    }

    /// The reply is incomplete.
    fn cut(&mut self, error: ProviderError, out: &mut Vec<Effect>) {
        if error.too_long() {
            if self.overflow.rounds < self.limits.overflows {
                self.overflow.rounds += 1;
                self.overflow.error = Some(error);
                self.phase = Phase::Compacting { overflow: true };
                out.push(Effect::Compact { overflow: true, round: self.overflow.rounds });
                return;
            }
            let notice = notices::too_long(&error.to_string());
            return self.finish(TurnStatus::Failed, Some(notice), out);
        }
        let discard = self.reply.shown();
        let error = retry::over(&error, self.limits.longest_wait).unwrap_or(error);
        if error.retryable() && self.counts.attempt < self.limits.attempts {
            if self.reply.begun() {
                out.push(Effect::Spent { used: self.reply.used() });
            }
            return self.back_off(error, self.limits.attempts, discard, out);
        }
        let why = error.to_string();
        let charged = self.reply.charged(&error);
        let FinishedReply { mut blocks, used, .. } = self.reply.finish(&mut self.ids);
        // A call of an incomplete reply is never run, so it must not be in the history either.
        drop_calls(&mut blocks, |_| true);
        self.text = std::mem::take(&mut self.cut_text) + &text_of(&blocks);
        if charged {
            append_reply(blocks, StopReason::Cut(why), used, out);
        }
        self.finish(TurnStatus::Failed, Some(notices::provider(&error)), out);
    }

    fn back_off(&mut self, error: ProviderError, of: u32, discard: bool, out: &mut Vec<Effect>) {
        self.counts.attempt += 1;
        self.phase = Phase::Waiting;
        self.reply = Reply::default();
        out.push(Effect::Backoff {
            n: self.counts.streams,
            attempt: self.counts.attempt,
            of,
            error,
            discard,
        });
    }

    /// Gives up a request without any reply so far. The server charges for it if it accepted it.
    fn rest(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::CancelStream);
        if self.reply.begun() {
            out.push(Effect::Spent { used: self.reply.used() });
        }
        self.reply = Reply::default();
        self.phase = Phase::Paused;
    }

    fn again(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::EndBackoff);
        self.request(out);
    }

    fn after_compaction(&mut self, overflow: bool, result: Result<(), Notice>, out: &mut Vec<Effect>) {
        match result {
            Ok(()) => {
                self.overflow.compacted = true;
                if overflow {
                    // This repeats the request and is no new one.
                    self.counts.requests = self.counts.requests.saturating_sub(1);
                }
                self.prepare(out);
            }
            Err(notice) if overflow => {
                let why = self.overflow.error.as_ref().map(ToString::to_string).unwrap_or_default();
                let notice = notices::cannot_shorten(&why, &notice);
                self.finish(TurnStatus::Failed, Some(notice), out);
            }
            // Only our own limit was exceeded, not the provider's: a long request is better than none.
            Err(_) => self.prepare(out),
        }
    }

    fn interrupt(&mut self, hard: bool, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Streaming => {
                out.push(Effect::CancelStream);
                self.keep_partial(out);
            }
            Phase::Waiting => out.push(Effect::EndBackoff),
            Phase::Compacting { .. } => out.push(Effect::CancelCompact),
            Phase::Tools => {
                self.calls.stopping = true;
                for slot in &mut self.slots {
                    match slot.state {
                        SlotState::Waiting => slot.state = SlotState::Done(CallResult::interrupted()),
                        SlotState::Running => {
                            out.push(Effect::CancelTool { call_id: slot.call.id.clone(), hard });
                        }
                        _ => {}
                    }
                }
                return self.go_on(out);
            }
            Phase::New
            | Phase::Preparing
            | Phase::Paused
            | Phase::Steering
            | Phase::RepeatQuestion
            | Phase::Checking
            | Phase::Finished(_) => {}
        }
        self.finish(TurnStatus::Interrupted, None, out);
    }

    /// Keeps the partial reply, marked as interrupted; complete calls get their result at once.
    fn keep_partial(&mut self, out: &mut Vec<Effect>) {
        let FinishedReply { mut blocks, used, .. } = self.reply.finish(&mut self.ids);
        drop_calls(&mut blocks, |call| call.malformed.is_some());
        self.text = std::mem::take(&mut self.cut_text) + &text_of(&blocks);
        let calls: Vec<(String, String)> = blocks
            .iter()
            .filter_map(
                |b| if let Block::ToolCall(c) = b { Some((c.id.clone(), c.name.clone())) } else { None },
            )
            .collect();
        append_reply(blocks, StopReason::Interrupted, used, out);
        for (call_id, name) in calls {
            out.push(Effect::AppendResult { call_id, name, result: CallResult::interrupted() });
        }
    }

    fn finish(&mut self, status: TurnStatus, notice: Option<Notice>, out: &mut Vec<Effect>) {
        let status =
            if status == TurnStatus::Done && self.calls.refused { TurnStatus::Refused } else { status };
        self.phase = Phase::Finished(status);
        self.reply = Reply::default();
        out.push(Effect::Finish { status, text: std::mem::take(&mut self.text), notice });
    }
}

/// A reply without blocks is not part of the conversation, but the server charges for its request.
fn append_reply(blocks: Vec<Block>, stop: StopReason, used: ReplyUsage, out: &mut Vec<Effect>) {
    out.push(match blocks.is_empty() {
        false => Effect::AppendReply { blocks, stop, used },
        true => Effect::Spent { used },
    });
}

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|b| if let Block::Text { text } = b { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n\n")
}

/// The note about a reply that the output limit cut off, in a call of this name or in its text.
fn cut_reply_text(call: Option<&str>, text: &str) -> String {
    if let Some(name) = call {
        let name: String = name.chars().take(60).collect();
        return format!(
            "Your reply hit the output limit in the middle of a call to '{name}', which was not run. Do it in smaller steps."
        );
    }
    if text.trim().is_empty() {
        return "Your reply hit the output limit before it said anything. Think less, and answer in smaller steps.".into();
    }
    "Your reply hit the output limit and was cut off. Go on exactly where it stopped, and repeat nothing of it.".into()
}
