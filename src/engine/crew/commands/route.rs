//! Commands to one agent.

use tiller_protocol::command::{GoalCommand, Query, TurnCommand};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentId, AgentState, Command, CommandBody, CommandId, EventBody, Message, Notice, NoticeKind, Receipt,
};
use tokio::sync::mpsc::error::TrySendError;

use crate::bus::{ClientId, Envelope, Place};
use crate::core::msg::Msg;
use crate::crew::driver::{ChildDriver, CrewDriver};
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::prompts::compose;
use crate::prompts::msg::Destination;
use crate::prompts::queue;
use crate::session::load;
use crate::session::open;

/// The client of commands that the engine sends itself; replies to it are dropped.
const NOBODY: ClientId = ClientId(u64::MAX);

pub(crate) fn internal(body: CommandBody) -> Envelope {
    Envelope { client: NOBODY, command: Command::new(CommandId(0), body) }
}

impl CrewDriver<'_> {
    /// Routes a command to another agent than the main one.
    pub(crate) fn route(&mut self, client: ClientId, agent: &AgentId, command: Command) {
        if !self.core.crew.members.contains_key(agent) {
            let notice = Notice::new(NoticeKind::User, format!("there is no agent {}", agent.name()));
            return self.core.refuse(client, command.id, notice);
        }
        self.deliver(agent, Envelope { client, command: Command { agent: None, ..command } });
    }

    /// Delivers a command to a member's loop; a member without one is loaded from the store first.
    pub(crate) fn deliver(&mut self, id: &AgentId, envelope: Envelope) {
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        let pursues =
            matches!(envelope.command.body, CommandBody::Goal(GoalCommand::Set { .. } | GoalCommand::Go));
        // An agent that has begun may refuse a goal: its row changes when its turn begins.
        let works = works(&envelope.command.body) || pursues && member.order.fresh;
        let place = Place { session: member.session, agent: id.clone(), cause: Some(envelope.command.id) };
        // `Continue` is no message.
        let message = match &envelope.command.body {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.clone()),
            _ => None,
        };
        let receipt = EventBody::State(StateEvent::Receipt { receipt: Receipt::Queued });
        // From here on it has work.
        let begins = works && !member.state().at_work();
        if begins {
            member.announced = false;
            member.stopping = false;
            member.view.state = AgentState::Running;
            if member.order.fresh {
                // It was stopped before it began: it joins the line again.
                member.view.state = AgentState::Queued;
                self.core.crew.line.push_back(id.clone());
            }
        }
        if member.state() == AgentState::Queued && member.hands.is_none() {
            // It has not begun: messages are stored with it before they are reported as queued.
            member.early.push(envelope);
            let said = message.is_some();
            member.order.said.extend(message);
            if said || begins {
                self.store_member(id);
            }
            if said {
                self.core.show(place, receipt);
            }
            return self.start_waiting();
        }
        if begins {
            self.store_member(id);
        }
        if message.is_some() {
            self.core.bus.publish(&place, receipt);
        }
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        if member.hands.is_none() && matches!(envelope.command.body, CommandBody::Pane(_)) {
            // Its terminal is closed; input to it is dropped.
            return;
        }
        let Some(hands) = &member.hands else { return self.reload(id, vec![envelope]) };
        match hands.commands.try_send(envelope) {
            Ok(()) => {}
            Err(TrySendError::Full(e)) => {
                let notice = Notice::new(NoticeKind::User, "the agent is busy: try again");
                self.core.refuse(e.client, e.command.id, notice);
                self.report_missed(id, vec![e], "it was busy");
            }
            Err(TrySendError::Closed(e)) => {
                member.hands = None;
                self.reload(id, vec![e]);
            }
        }
    }

    /// Loads an agent's session from the store to run it again.
    pub(crate) fn reload(&mut self, id: &AgentId, then: Vec<Envelope>) {
        if let Some(member) = self.core.crew.members.get_mut(id)
            && let Some(waiting) = &mut member.reviving
        {
            waiting.extend(then);
            return;
        }
        let Some(session) = self.core.crew.members.get(id).map(|m| m.session) else { return };
        let w = match self.services_of(id) {
            Ok(w) => std::sync::Arc::new(w),
            Err(why) => {
                self.report_missed(id, then, &why);
                return self.start_failed(id, &why);
            }
        };
        let (tx, id) = (self.core.tx.clone(), id.clone());
        if let Some(member) = self.core.crew.members.get_mut(&id) {
            member.reviving = Some(Vec::new());
        }
        self.core.spawn(async move {
            let loaded = Box::new(load::load(&w, session, false).await);
            let msg = Box::new(MemberMsg::Reloaded { services: w, loaded, then });
            let _ = tx.send(Msg::Crew(CrewMsg::Member { id, session, msg })).await;
        });
    }

    pub(crate) fn reloaded(
        &mut self,
        id: &AgentId,
        w: std::sync::Arc<crate::core::services::Services>,
        loaded: Result<crate::session::load::Loaded, tiller_store::StoreError>,
        then: Vec<Envelope>,
    ) {
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        let later = member.reviving.take().unwrap_or_default();
        let mut all: Vec<Envelope> = then.into_iter().chain(later).collect();
        if (member.stopping || !member.view.state.at_work()) && all.iter().any(|e| works(&e.command.body)) {
            // It was stopped meanwhile: only commands that look at it are delivered.
            let (work, looks) = all.into_iter().partition(|e| works(&e.command.body));
            all = looks;
            self.report_missed(id, work, "it was already stopped");
            if all.is_empty() {
                return;
            }
        }
        let work = all.iter().any(|e| works(&e.command.body));
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(tiller_store::StoreError::NoSession(_)) if work => {
                // It ended before its session was stored: it begins again.
                member.order.fresh = true;
                member.early = all.into_iter().filter(|e| !goes_on(&e.command.body)).collect();
                self.set_state(id, AgentState::Queued);
                self.core.crew.line.push_back(id.clone());
                return self.start_waiting();
            }
            Err(e) => {
                let why = e.notice().message;
                self.report_missed(id, all, &why);
                return self.start_failed(id, &why);
            }
        };
        let (mut core, inbox) = self.new_child(id, w);
        let profile = core.session.profile;
        open::enter(&mut core, loaded);
        core.session.profile = profile;
        if work && core.session.read_only {
            let why = "its session is open in another Tiller process: end that process first";
            self.report_missed(id, all, why);
            return self.start_failed(id, why);
        }
        if work && core.session.last_message().is_none() && core.prompts.queue.is_empty() {
            // The same, when its session has no message.
            all.retain(|e| !goes_on(&e.command.body));
            let task = self
                .core
                .crew
                .members
                .get(id)
                .map(|m| crate::crew::start::services::first_message(&core, &m.order.brief));
            let message = Message::text(task.unwrap_or_default());
            compose::compose(&mut core, Destination::Prompt { client: None }, vec![(None, message)]);
        }
        self.run_child(id, core, inbox, work);
        let hands = self.core.crew.members.get(id).and_then(|m| m.hands.as_ref());
        let late = all.into_iter().filter_map(|envelope| match hands {
            Some(hands) => hands.commands.try_send(envelope).err().map(TrySendError::into_inner),
            None => Some(envelope),
        });
        let late = late.collect();
        self.report_missed(id, late, "too many messages were sent to it at once");
    }

    /// Publishes receipts for messages that do not reach an agent.
    pub(crate) fn report_missed(&self, id: &AgentId, messages: Vec<Envelope>, why: &str) {
        let Some(session) = self.core.crew.members.get(id).map(|m| m.session) else { return };
        for envelope in messages {
            if matches!(envelope.command.body, CommandBody::Turn(TurnCommand::Submit { .. })) {
                let place = Place { session, agent: id.clone(), cause: Some(envelope.command.id) };
                let receipt = Receipt::Missed { why: why.to_owned() };
                self.core.bus.publish(&place, EventBody::State(StateEvent::Receipt { receipt }));
            }
        }
    }
}

impl ChildDriver<'_> {
    /// The receipt of a message that is in the conversation. (Only children give receipts.)
    pub(crate) fn receipt(&self, cause: CommandId) -> Option<(Place, EventBody)> {
        let step = self.core.identity.child.as_ref()?.work.requests;
        let event = StateEvent::Receipt { receipt: Receipt::Delivered { step } };
        Some((self.core.place_of(Some(cause)), EventBody::State(event)))
    }

    /// As [`Self::receipt`], for a message that waited in the queue.
    pub(crate) fn take_receipt(&mut self, id: tiller_protocol::QueueId) -> Option<(Place, EventBody)> {
        let cause = self.core.identity.child.as_mut()?.receipts.remove(&id)?;
        self.receipt(cause)
    }

    /// Publishes receipts for messages that a stopped agent did not read.
    pub(crate) fn report_unread(&mut self, why: &str) {
        let Some(child) = &mut self.core.identity.child else { return };
        let missed = std::mem::take(&mut child.receipts);
        if missed.is_empty() {
            return;
        }
        self.core.prompts.queue.retain(|q| !missed.contains_key(&q.id));
        for cause in missed.into_values() {
            self.core
                .state(Some(cause), StateEvent::Receipt { receipt: Receipt::Missed { why: why.to_owned() } });
        }
        queue::queue_changed(self.core, None);
    }
}

/// Whether a command only continues the agent.
fn goes_on(body: &CommandBody) -> bool {
    matches!(body, CommandBody::Turn(TurnCommand::Continue))
}

/// Whether a command gives an agent something to do.
fn works(body: &CommandBody) -> bool {
    match body {
        CommandBody::Turn(TurnCommand::Submit { .. } | TurnCommand::Continue) => true,
        CommandBody::Query(Query::Snapshot) => false,
        _ => false,
    }
}
