//! Converts events of the engine to updates, answers and questions for the client.

use std::sync::Arc;

use serde_json::{Value, json};
use tiller_protocol::command::{AskCommand, Query, QueueCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::skill::SkillReply;
use tiller_protocol::view::Snapshot;
use tiller_protocol::{
    AgentId, Ask, AskId, CommandBody, CommandId, Event, EventBody, Notice, NoticeKind, Queued, QueuedState,
    StopReason,
};

use super::super::ask::{self, QuestionForm};
use super::super::{history, view};
use super::{PendingQuestion, Session, words};
use tiller_rpc::Error;

impl Session {
    pub(super) async fn event(&mut self, event: &Arc<Event>) {
        for update in self.view.event(event) {
            self.update(update).await;
        }
        let waiting = event.cause.and_then(|c| self.waiting.remove(&c));
        match (&event.body, waiting) {
            (
                EventBody::State(StateEvent::ProfileChanged { .. } | StateEvent::ModelChanged { .. }),
                Some(w),
            ) => {
                self.changed(w, Ok(())).await;
            }
            (EventBody::Reply(r), Some(w)) => {
                let error = match r.as_ref() {
                    ReplyEvent::ErrorReply { notice } => notice.clone().into(),
                    _ => Error::invalid_params("this names a server: also name one of its models"),
                };
                self.changed(w, Err(error)).await;
            }
            (_, Some(w)) => {
                // Another event of the same command: its end will follow.
                if let Some(cause) = event.cause {
                    self.waiting.insert(cause, w);
                }
            }
            // The end of a child's turn does not end this one.
            (EventBody::Turn(turn), None) if event.agent.is_main() => self.turn(turn, event.cause).await,
            (EventBody::Ask(asked), None) => self.asking(asked).await,
            (EventBody::Reply(reply), None) => self.replied(reply, event.cause).await,
            (EventBody::State(StateEvent::Notice { notice }), None) => {
                self.notice(&event.agent, notice).await;
            }
            (EventBody::State(StateEvent::QueueChanged { queue }), None) => self.queued(event.cause, queue),
            (EventBody::State(StateEvent::Lagged { .. }), None) => {
                self.send(CommandBody::Query(Query::Snapshot));
            }
            _ => {}
        }
    }

    async fn turn(&mut self, event: &TurnEvent, cause: Option<CommandId>) {
        match event {
            TurnEvent::TurnFinished { status, error, .. } => {
                let result = self.ending(*status, error.as_ref()).await;
                self.finish(result).await;
                // The agent or the user may have made one, or trusted the folder.
                self.look_for_commands();
            }
            TurnEvent::Compacted { .. } if self.ours(cause) => self.finish(Ok("end_turn")).await,
            _ => {}
        }
    }

    /// Notes the place of the prompt in flight in the queue: it waits there while its commands run.
    fn queued(&mut self, cause: Option<CommandId>, queue: &[Queued]) {
        if let Some(prompt) = self.prompt.as_mut().filter(|p| Some(p.command) == cause) {
            let queued = queue.iter().find(|q| q.state == QueuedState::Queued).map(|q| q.id);
            if !prompt.cancelled {
                prompt.queued = queued;
            } else if let Some(id) = queued {
                self.send(CommandBody::Queue(QueueCommand::Remove { id }));
            }
        }
    }

    /// Whether this event is the end of the prompt in flight, which is a command.
    fn ours(&self, cause: Option<CommandId>) -> bool {
        self.prompt.as_ref().is_some_and(|p| p.slash && Some(p.command) == cause)
    }

    async fn ending(&self, status: TurnStatus, error: Option<&Notice>) -> Result<&'static str, Error> {
        let reason = match (status, &self.view.stop) {
            (TurnStatus::Interrupted, _) => return Ok("cancelled"),
            // The model declined, possibly without a text.
            (TurnStatus::Failed, _) if error.is_some_and(|n| n.kind == NoticeKind::Denied) => "refusal",
            (TurnStatus::Failed | TurnStatus::Store, stop) if *stop != Some(StopReason::MaxTokens) => {
                let unknown = || Notice::new(NoticeKind::Network, "the turn ended early");
                let error: Error = error.cloned().unwrap_or_else(unknown).into();
                return Err(error);
            }
            (TurnStatus::Refused, _) | (_, Some(StopReason::Refusal(_))) => "refusal",
            (_, Some(StopReason::MaxTokens)) => "max_tokens",
            (TurnStatus::Limit, _) => "max_turn_requests",
            _ => "end_turn",
        };
        if let Some(notice) = error {
            self.update(view::said(&format!("\n\n{}", words(notice)))).await;
        }
        Ok(reason)
    }

    async fn replied(&mut self, reply: &ReplyEvent, cause: Option<CommandId>) {
        match reply {
            // Events were lost because this task was too slow: reports the missed ones.
            ReplyEvent::SnapshotReply { snapshot } => self.catch_up(snapshot).await,
            ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows } } => self.own_commands(rows).await,
            ReplyEvent::DoneReply { said } if self.ours(cause) => {
                self.update(view::said(said)).await;
                self.finish(Ok("end_turn")).await;
            }
            ReplyEvent::ErrorReply { notice } if self.ours(cause) => {
                self.update(view::said(&words(notice))).await;
                self.finish(Ok("end_turn")).await;
            }
            ReplyEvent::ErrorReply { notice }
                if self.prompt.as_ref().is_some_and(|p| Some(p.command) == cause) =>
            {
                self.finish(Err(notice.clone().into())).await;
            }
            _ => {}
        }
    }

    async fn catch_up(&mut self, snapshot: &Snapshot) {
        let missed: Vec<_> = snapshot
            .entries
            .iter()
            .filter(|e| self.view.last.is_none_or(|last| e.id > last))
            .cloned()
            .collect();
        self.view.last = snapshot.entries.last().map(|e| e.id).or(self.view.last);
        let updates = history::replay(&self.view.root, &self.view.tools, &missed);
        for update in updates.into_iter().filter(|u| u["sessionUpdate"] != "user_message_chunk") {
            self.update(update).await;
        }
        self.update(view::plan(&snapshot.todo)).await;
        if let Some(update) = self.view.agents(&snapshot.agents) {
            self.update(update).await;
        }
        self.asked.retain(|_, a| snapshot.asks.iter().any(|b| b.id == a.ask.id));
        for ask in &snapshot.asks {
            if self.worded != Some(ask.id) && !self.asked.values().any(|a| a.ask.id == ask.id) {
                self.ask(ask.clone()).await;
            }
        }
        if !snapshot.running {
            self.finish(Ok("end_turn")).await;
        }
    }

    /// Sends a notice within the turn, or with the next text when no turn runs.
    async fn notice(&mut self, agent: &AgentId, notice: &Notice) {
        if notice.kind == NoticeKind::Info {
            return;
        }
        let mut text = words(notice);
        if !agent.is_main() {
            text = format!("{}: {text}", agent.name());
        }
        if self.prompt.is_some() {
            self.update(view::thought(&format!("{text}\n"))).await;
        } else {
            self.notes.push(text);
        }
    }

    async fn asking(&mut self, event: &AskEvent) {
        match event {
            AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask } => {
                self.ask(ask.clone()).await
            }
            AskEvent::PermissionDecided { id: Some(id), decision, .. } => {
                let call = self.closed(*id).await;
                if let Some(call) = call.filter(|_| decision.consents()) {
                    self.update(view::status(&call, "in_progress")).await;
                }
            }
            AskEvent::QuestionAnswered { id, .. } => {
                self.closed(*id).await;
            }
            AskEvent::PermissionDecided { id: None, .. } => {}
        }
    }

    pub(super) async fn ask(&mut self, ask: Ask) {
        self.requests += 1;
        let n = self.requests;
        let (session, id) = (self.id.to_string(), self.request_id(n));
        match ask::put(&session, &self.view.root, &self.view.tools, &ask, self.forms) {
            QuestionForm::Choice(params) => {
                self.out.request(&id, "session/request_permission", &params).await;
                self.asked.insert(n, PendingQuestion { ask, answered: false });
            }
            QuestionForm::Form(params) => {
                self.out.request(&id, "elicitation/create", &params).await;
                self.asked.insert(n, PendingQuestion { ask, answered: false });
            }
            QuestionForm::Words(question) => {
                self.worded = Some(ask.id);
                self.update(view::said(&format!("\n\n{question}"))).await;
                // The turn waits; the client's next prompt is the answer.
                let Some(prompt) = self.prompt.take() else { return };
                self.out.answer(&prompt.id, Ok(json!({"stopReason": "end_turn"}))).await;
            }
        }
    }

    /// The id of request `n` to the client: the hub finds the session by it.
    fn request_id(&self, n: u64) -> String {
        format!("{}/{n}", self.id)
    }

    pub(super) fn answered(&mut self, n: u64, result: Option<&Value>) {
        let Some(asked) = self.asked.get_mut(&n) else { return };
        asked.answered = true;
        // Stopping a turn closes its questions.
        if self.prompt.as_ref().is_some_and(|p| p.cancelled) {
            return;
        }
        let ask = &asked.ask;
        let reply = ask::reply(ask, result).unwrap_or_else(|| ask::unanswered(ask));
        let id = ask.id;
        self.send(CommandBody::Ask(AskCommand::Answer { id, reply }));
    }

    /// Closes a question and returns its call. The client is informed when it did not answer.
    async fn closed(&mut self, id: AskId) -> Option<String> {
        if self.worded == Some(id) {
            self.worded = None;
        }
        let n = *self.asked.iter().find(|(_, a)| a.ask.id == id)?.0;
        let PendingQuestion { ask, answered } = self.asked.remove(&n)?;
        if !answered {
            let id = json!({"requestId": self.request_id(n)});
            self.out.notify("$/cancel_request", &id).await;
        }
        ask.call.is_some().then(|| ask::call_id(&ask))
    }
}
