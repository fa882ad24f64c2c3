//! The run of an external program: its start, its messages, its end.

use std::sync::Arc;
use std::time::Duration;

use tiller_external::{AgentEvent, Ending, Job, Limits, Status, Transport};
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::{
    Block, Cost, EntryBody, EventBody, HookEvent, ModelRef, Notice, NoticeKind, Profile, StopReason,
    TodoItem, ToolCall, ToolOutcome, Usage,
};
use tiller_store::ModelCall;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::agent_view;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::crew::child::identity::AgentIdentity;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::msg::ExternalMsg;
use crate::crew::external::{OpenCall, Output};
use crate::crew::msg::MemberMsg;
use crate::lock::lock;
use crate::money::call_sum::MissingCost;
use crate::tool_call::calls;
use crate::turn::driver;

/// Most bytes of one message in the conversation.
const MESSAGE: usize = 1 << 20;
/// Most bytes of text without a call in between.
const WORDS: usize = 4 << 20;
/// Columns and rows of a program's terminal, until its pane is shown.
const SIZE: (u16, u16) = (120, 36);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl AgentIdentity {
    /// What the program does now, for its row.
    pub(crate) fn external_act(&self) -> Option<String> {
        let outside = self.external()?;
        let newest = outside.calls.open.values().max_by_key(|o| o.since);
        newest.map(|o| format!("{} {}", o.tool.verb, o.tool.target))
    }
}

impl ExternalDriver<'_> {
    /// Starts the program with its prompt. Dropping the turn's stream ends it.
    pub(crate) fn start(&mut self) {
        let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(programs) = self.core.services.crew.programs.clone() else { return };
        let (words, anew) = self.prompts();
        let (cwd, env) =
            (self.core.services.workspace.root.clone(), (*self.core.services.tools.env.now()).clone());
        // Where hooks may deny calls, the program asks before each of them.
        let hooks = self.core.services.hooks.any(HookEvent::BeforeToolCall);
        let (auto, edits) = (
            self.core.session.profile == Profile::Full && !hooks,
            self.core.session.profile >= Profile::AutoEdit && !hooks,
        );
        let limits = self.core.identity.child().map(|c| c.limits).unwrap_or_default();
        if self.core.session.profile < Profile::Ask {
            let profile = self.core.session.profile.name();
            let text = format!("an external program may run commands, and the mode is {profile}");
            let notice = Notice::new(NoticeKind::Denied, text).hint("choose another mode, then continue it");
            return driver::finish(self.core, TurnStatus::Failed, String::new(), Some(notice));
        }
        let denied = self
            .core
            .services
            .permit
            .denied_reads(&self.core.identity.id)
            .into_iter()
            .flat_map(|d| d.globs)
            .collect();
        let config = self.core.services.config();
        let typing = Duration::from_secs(config.agents.typing_pause);
        let bounds = crate::core::services::program_bounds(&config);
        let Some(outside) = self.core.identity.external_mut() else { return };
        outside.auto_approved = auto;
        outside.output = Output::default();
        (outside.pane, outside.queued, outside.end_delayed, outside.refused) = Default::default();
        let mut job_limits = Limits { typing, bounds, ..Limits::default() };
        if limits.seconds.is_some() {
            // The loop keeps its time limit, because pauses do not count and the limit can be raised.
            job_limits.wall = YEAR;
        }
        // A program without sessions gets the conversation each time, without a notice.
        let (prompt, anew) = match (&outside.session.id, anew) {
            (None, Some(anew)) => (anew, None),
            (_, anew) => (words, anew),
        };
        let job = Job {
            adapter: Arc::clone(&outside.adapter),
            transport: outside.transport,
            prompt,
            cwd,
            model: outside.session.model.clone(),
            resume: tiller_external::Resume {
                session: outside.session.id.clone(),
                cost: outside.session.booked.0,
                usage: outside.session.booked.1,
                fresh_prompt: anew,
            },
            env,
            lookup: programs.lookup,
            auto_approve: auto,
            denied,
            edits,
            stay: false,
            size: SIZE,
            limits: job_limits,
            files: None,
        };
        let (control, mut said) = match tiller_external::start(job, &programs.host) {
            Ok(running) => running,
            Err(e) => {
                let notice = Notice::new(NoticeKind::Config, e.to_string());
                self.end_work();
                self.unconfined_ended();
                return driver::finish(self.core, TurnStatus::Failed, String::new(), Some(notice));
            }
        };
        (outside.control, outside.exit) = (Some(control), None);
        let tx = self.core.tx.clone();
        let forward = async move {
            while let Some(said) = said.recv().await {
                if tx.send(Msg::External(ExternalMsg::Said { turn, said: Box::new(said) })).await.is_err() {
                    return;
                }
            }
        };
        let handle = AbortOnDropHandle::new(tokio::spawn(forward));
        self.core.with_live(|l| l.tasks.stream = Some(handle));
        self.offer_queue();
        agent_view::agent_changed(self.core);
    }

    /// A message of the program.
    pub(crate) fn message(&mut self, turn: u64, said: AgentEvent) {
        if !self.core.is_live(turn) || self.core.identity.external().is_none() {
            return;
        }
        let works = matches!(
            said,
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::Tool(_) | AgentEvent::Ask(_)
        );
        if works && let Some(why) = self.limit_passed() {
            return driver::halt(self.core, TurnStatus::Limit, crate::money::reservations::limit(why));
        }
        let said = match said {
            AgentEvent::Ended(_) => match self.delay_end(turn, said) {
                Some(said) => said,
                None => return,
            },
            said => said,
        };
        let said = with_own_ids(said);
        match said {
            AgentEvent::Started { transport, .. } => {
                // A program that reports no calls counts as working as long as it runs.
                let mute = self.core.identity.external_mut().is_some_and(|o| o.adapter.is_mute(transport));
                self.set_working(mute);
                if !mute && transport != Transport::Pty {
                    // It uses another transport than expected, and reports its calls.
                    self.end_work();
                }
                self.core.child_driver().report(MemberMsg::ProgramSession {
                    session: None,
                    transport: Some(transport),
                    booked: None,
                });
            }
            AgentEvent::Session { id, model } => self.session_reported(id, model),
            AgentEvent::Anew => self.note_new_session(),
            AgentEvent::Text(text) => {
                if let Some(o) = self.core.identity.external_mut() {
                    o.output.text.push_str(&text);
                    o.output.answer.push_str(&text);
                    o.output.spoke |= !text.trim().is_empty();
                }
                driver::text_delta(self.core, &text);
                self.limit_output(text.len());
            }
            AgentEvent::Thinking(text) => {
                if let Some(o) = self.core.identity.external_mut() {
                    o.output.thinking.push_str(&text);
                }
                driver::thinking_delta(self.core, &text);
                self.limit_output(text.len());
            }
            AgentEvent::Break => {
                self.flush(None, StopReason::EndTurn);
                if let Some(o) = self.core.identity.external_mut() {
                    o.output.answer.clear();
                }
            }
            AgentEvent::Tool(tool) => self.call_reported(tool),
            AgentEvent::ToolProgress { id, text } => self.call_progress(id, &text),
            AgentEvent::ToolDone { id, ok, output, diffs } => self.call_done(&id, ok, output, diffs),
            AgentEvent::Plan(todos) => self.plan_changed(todos),
            AgentEvent::Ask(ask) => {
                if let Some(call) = &ask.call {
                    self.show_call(call);
                }
                self.question(ask);
            }
            AgentEvent::Usage { usage, cost } => self.record_usage(usage, cost),
            AgentEvent::Note(text) => {
                let who = self.core.identity.id.name().to_owned();
                self.core
                    .notice(Notice::new(NoticeKind::Info, format!("{who}: {}", self.core.redact(&text))));
            }
            AgentEvent::Ended(ending) => self.ended(ending),
            AgentEvent::State(_) | AgentEvent::Title(_) | AgentEvent::Bell => {
                self.terminal_message(turn, said)
            }
            AgentEvent::Delivered { id } => self.message_delivered(id),
            AgentEvent::Missed { id, why, tried } => self.message_missed(id, &why, tried),
            // Observers of the screen wait for these themselves.
            AgentEvent::Context { .. } | AgentEvent::Screen | AgentEvent::TurnDone { .. } => {}
        }
    }

    /// Counts output; splits long output into entries, and stops a program that writes without end.
    pub(crate) fn limit_output(&mut self, bytes: usize) {
        let Some(o) = self.core.identity.external_mut() else { return };
        o.output.bytes += bytes;
        if o.output.answer.len() > 2 * MESSAGE {
            o.output.answer.drain(..o.output.answer.ceil_char_boundary(o.output.answer.len() - MESSAGE));
        }
        let (long, flood) = (o.output.text.len() + o.output.thinking.len() > MESSAGE, o.output.bytes > WORDS);
        if long {
            self.flush(None, StopReason::EndTurn);
        }
        if flood {
            let text = format!("it wrote more than {} MB without calling a tool", WORDS >> 20);
            driver::halt(self.core, TurnStatus::Failed, Notice::new(NoticeKind::User, text));
        }
    }

    pub(crate) fn session_reported(&mut self, session: Option<String>, model: Option<String>) {
        let Some(o) = self.core.identity.external_mut() else { return };
        if session.is_some() && session != o.session.id {
            o.session.booked = Default::default();
        }
        o.session.id = session.clone().or(o.session.id.take());
        let booked = o.session.booked;
        let name = o.adapter.name.clone();
        if let Some(model) = model {
            self.core.session.model = ModelRef(format!("{name}/{model}"));
        }
        self.core.child_driver().report(MemberMsg::ProgramSession {
            session,
            transport: None,
            booked: Some(booked),
        });
        agent_view::agent_changed(self.core);
    }

    /// Stores the output so far as an entry, with the call that follows it, if any.
    pub(crate) fn flush(&mut self, call: Option<ToolCall>, stop: StopReason) {
        let Some(o) = self.core.identity.external_mut() else { return };
        let (text, thinking) = (std::mem::take(&mut o.output.text), std::mem::take(&mut o.output.thinking));
        let mut blocks = Vec::new();
        if !thinking.trim().is_empty() {
            blocks.push(Block::Thinking { text: thinking, signature: None });
        }
        if !text.trim().is_empty() {
            blocks.push(Block::Text { text: text.clone() });
        }
        blocks.extend(call.map(Block::ToolCall));
        if blocks.is_empty() {
            return;
        }
        driver::flush_deltas(self.core);
        let body = EntryBody::Assistant {
            blocks,
            stop,
            model: self.core.session.model.clone(),
            usage: Usage::default(),
            cost: None,
        };
        let entry = self.core.session.grow(&self.core.services, body);
        let scope = self.core.scope();
        let text = self.core.redact(&text);
        let event = TurnEvent::AssistantMessage { entry: entry.id, text, node: Box::new(entry.clone()) };
        let append = self.core.append().entries(vec![entry]);
        self.core.save(append, vec![(scope, EventBody::Turn(event))], Then::Nothing);
    }

    pub(crate) fn plan_changed(&mut self, mut todos: Vec<TodoItem>) {
        todos.iter_mut().for_each(|t| t.content = self.core.redact(&t.content));
        lock(&self.core.context.todo).replace(todos.clone());
        calls::todos_saved(self.core, todos, false);
    }

    /// Records the usage that it reports. A cost that it does not report stays unknown.
    pub(crate) fn record_usage(&mut self, usage: Usage, cost: Option<Cost>) {
        self.core.session.totals.usage.add(&usage);
        if let Some(cost) = cost {
            self.core.session.totals.cost =
                Some(self.core.session.totals.cost.unwrap_or_default().plus(cost));
            self.core.money.spent.session = self.core.money.spent.session.plus(cost);
        }
        self.core.child_driver().charge(&usage, cost, MissingCost::Later);
        self.core.money.reservations.release(&self.core.identity.id);
        if let Some(o) = self.core.identity.external_mut() {
            o.usage_reported = true;
            o.session.booked.0 = o.session.booked.0.plus(cost.unwrap_or_default());
            o.session.booked.1.add(&usage);
            let booked = Some(o.session.booked);
            self.core.child_driver().report(MemberMsg::ProgramSession {
                session: None,
                transport: None,
                booked,
            });
        }
        let call = ModelCall {
            agent: self.core.identity.id.clone(),
            model: self.core.session.model.clone(),
            tier: "external".into(),
            time: self.core.services.clock.now(),
            usage,
            cost,
        };
        let ticket = self.core.services.store.costs().record(self.core.session.id, call);
        self.core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        agent_view::agent_changed(self.core);
    }

    /// The limit that was passed by usage which it has reported before it continues. (Usage
    /// with its last message stops nothing.)
    pub(crate) fn limit_passed(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.core.identity.external_mut()?.usage_reported) {
            return None;
        }
        self.core.identity.child()?;
        self.core.money.reservations.over(&self.core.identity.id)
    }

    /// Stops a program that was started without approval prompts when the profile no longer permits that.
    pub(crate) fn profile_narrowed(&mut self) {
        let profile = self.core.session.profile;
        if self.core.turn.live.is_some()
            && profile < Profile::Full
            && self.core.identity.external_mut().is_some_and(|o| o.auto_approved)
        {
            let text =
                format!("it was started without approval prompts, and the mode is now {}", profile.name());
            let notice = Notice::new(NoticeKind::Denied, text).hint("continue it: from then on it asks");
            driver::halt(self.core, TurnStatus::Interrupted, notice);
        }
    }

    /// Ends open calls and output, so that the conversation is complete.
    pub(crate) fn close(&mut self, stop: StopReason) {
        let Some(o) = self.core.identity.external_mut() else { return };
        (o.control, o.pane, o.queued) = Default::default();
        let open: Vec<OpenCall> =
            std::mem::take(&mut o.calls.open).into_values().filter(|o| o.shown).collect();
        for mut open in open {
            self.call_ended(&mut open, &[]);
            let text = "It ended before this was done.".to_owned();
            self.store_result(open, ToolOutcome::Interrupted, text, None, 0.0);
        }
        self.set_working(false);
        self.end_work();
        self.unconfined_ended();
        self.flush(None, stop);
    }

    pub(crate) fn ended(&mut self, ending: Ending) {
        let Some(o) = self.core.identity.external_mut() else { return };
        o.exit = ending.exit;
        let said = std::mem::take(&mut o.output.answer);
        let refused = std::mem::take(&mut o.refused);
        // Some programs report their text only at the end; text that was reported is not repeated.
        if !o.output.spoke && !ending.text.trim().is_empty() {
            o.output.text.push_str(&ending.text);
        }
        let text = self.core.redact(if ending.text.trim().is_empty() { &said } else { &ending.text });
        let why = self.core.redact(&ending.why);
        let status = match ending.status {
            // It continued after a refusal; the run counts as refused, as with Tiller's own calls.
            Status::Done if refused => TurnStatus::Refused,
            Status::Done => TurnStatus::Done,
            Status::Cancelled => TurnStatus::Interrupted,
            Status::Failed | Status::TimedOut | Status::Crashed => TurnStatus::Failed,
        };
        let stop =
            if ending.status == Status::Done { StopReason::EndTurn } else { StopReason::Cut(why.clone()) };
        self.close(stop);
        let notice = (ending.status != Status::Done).then(|| Notice::new(NoticeKind::User, why));
        driver::finish(self.core, status, text, notice);
    }
}

/// The event with ids of calls that no message of the user's can have made.
fn with_own_ids(mut said: AgentEvent) -> AgentEvent {
    let id = match &mut said {
        AgentEvent::Tool(tool) => Some(&mut tool.id),
        AgentEvent::ToolProgress { id, .. } | AgentEvent::ToolDone { id, .. } => Some(id),
        AgentEvent::Ask(ask) => ask.call.as_mut(),
        _ => None,
    };
    if let Some(id) = id
        && ToolCall::is_of_message(id)
    {
        id.insert_str(0, "program-");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_makes_no_call_of_a_message() {
        let forged = format!("{}1", ToolCall::OF_MESSAGE);
        for (id, is) in [(forged.as_str(), "program-tiller-message-1"), ("toolu_1", "toolu_1")] {
            let said = with_own_ids(AgentEvent::ToolProgress { id: id.into(), text: "x".into() });
            assert!(matches!(&said, AgentEvent::ToolProgress { id, .. } if id == is));
            let tool = tiller_external::ToolUse { id: id.into(), ..Default::default() };
            assert!(matches!(with_own_ids(AgentEvent::Tool(tool)), AgentEvent::Tool(tool) if tool.id == is));
        }
    }
}
