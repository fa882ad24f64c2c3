//! Commands to one agent.

use crate::prompts::compose;
use crate::prompts::queue;
use crate::session::open;
use tiller_protocol::command::{GoalCommand, Query, TurnCommand};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentId, AgentState, Command, CommandBody, CommandId, EventBody, Message, Notice, NoticeKind, Receipt,
};
use tokio::sync::mpsc::error::TrySendError;

use super::CrewMsg;
use crate::bus::{ClientId, Envelope, Place};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::prompts::msg::Goal;
use crate::session::load;

/// Sent by the engine itself; nobody hears the answers.
const NOBODY: ClientId = ClientId(u64::MAX);

pub(super) fn internal(body: CommandBody) -> Envelope {
    Envelope { client: NOBODY, command: Command::new(CommandId(0), body) }
}

impl Core {
    /// A command that is for another agent than the main one.
    pub(crate) fn route_to(&mut self, client: ClientId, agent: &AgentId, command: Command) {
        if !self.crew.members.contains_key(agent) {
            let notice = Notice::new(NoticeKind::User, format!("there is no agent {}", agent.name()));
            return self.refuse(client, command.id, notice);
        }
        self.hand_to(agent, Envelope { client, command: Command { agent: None, ..command } });
    }

    /// To a member's task; one that has none is read again first.
    pub(crate) fn hand_to(&mut self, id: &AgentId, envelope: Envelope) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let pursues =
            matches!(envelope.command.body, CommandBody::Goal(GoalCommand::Set { .. } | GoalCommand::Go));
        // One that has begun may refuse a goal: its row follows when its turn begins.
        let works = works(&envelope.command.body) || pursues && member.order.fresh;
        let place = Place { session: member.session, agent: id.clone(), cause: Some(envelope.command.id) };
        // Going on is no message.
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
                // It was stopped before it began: it takes its place in the line again.
                member.view.state = AgentState::Queued;
                self.crew.line.push_back(id.clone());
            }
        }
        if member.state() == AgentState::Queued && member.hands.is_none() {
            // It has not begun: what is said to it waits with it, on disk before that is reported.
            member.early.push(envelope);
            let said = message.is_some();
            member.order.said.extend(message);
            if said || begins {
                self.keep_member(id);
            }
            if said {
                self.show(place, receipt);
            }
            return self.muster();
        }
        if begins {
            self.keep_member(id);
        }
        if message.is_some() {
            self.bus.publish(&place, receipt);
        }
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.hands.is_none() && matches!(envelope.command.body, CommandBody::Pane(_)) {
            // Its terminal is gone; what was done there came too late.
            return;
        }
        let Some(hands) = &member.hands else { return self.revive(id, vec![envelope]) };
        match hands.commands.try_send(envelope) {
            Ok(()) => {}
            Err(TrySendError::Full(e)) => {
                let notice = Notice::new(NoticeKind::User, "the agent is busy: try again");
                self.refuse(e.client, e.command.id, notice);
                self.unheard(id, vec![e], "it was busy");
            }
            Err(TrySendError::Closed(e)) => {
                member.hands = None;
                self.revive(id, vec![e]);
            }
        }
    }

    /// Reads an agent's session again, and goes on with it.
    fn revive(&mut self, id: &AgentId, then: Vec<Envelope>) {
        if let Some(member) = self.crew.members.get_mut(id)
            && let Some(waiting) = &mut member.reviving
        {
            waiting.extend(then);
            return;
        }
        let Some(session) = self.crew.members.get(id).map(|m| m.session) else { return };
        let w = match self.world_of(id) {
            Ok(w) => std::sync::Arc::new(w),
            Err(why) => {
                self.unheard(id, then, &why);
                return self.no_start(id, &why);
            }
        };
        let (tx, id) = (self.tx.clone(), id.clone());
        if let Some(member) = self.crew.members.get_mut(&id) {
            member.reviving = Some(Vec::new());
        }
        self.spawn(async move {
            let loaded = Box::new(load::load(&w, session, false).await);
            let msg = Box::new(CrewMsg::Revived { id: id.clone(), w, loaded, then });
            let _ = tx.send(Msg::Crew(CrewMsg::Of { id, session, msg })).await;
        });
    }

    pub(crate) fn revived(
        &mut self,
        id: &AgentId,
        w: std::sync::Arc<crate::core::services::Services>,
        loaded: Result<crate::session::load::Loaded, tiller_store::StoreError>,
        then: Vec<Envelope>,
    ) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let later = member.reviving.take().unwrap_or_default();
        let mut all: Vec<Envelope> = then.into_iter().chain(later).collect();
        if (member.stopping || !member.view.state.at_work()) && all.iter().any(|e| works(&e.command.body)) {
            // It was stopped meanwhile: it is only looked at, if anybody does.
            let (work, looks) = all.into_iter().partition(|e| works(&e.command.body));
            all = looks;
            self.unheard(id, work, "it was already stopped");
            if all.is_empty() {
                return;
            }
        }
        let work = all.iter().any(|e| works(&e.command.body));
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(tiller_store::StoreError::NoSession(_)) if work => {
                // It ended before anything of it was on disk: it begins once more.
                member.order.fresh = true;
                member.early = all.into_iter().filter(|e| !goes_on(&e.command.body)).collect();
                self.set_state(id, AgentState::Queued);
                self.crew.line.push_back(id.clone());
                return self.muster();
            }
            Err(e) => {
                let why = e.notice().message;
                self.unheard(id, all, &why);
                return self.no_start(id, &why);
            }
        };
        let (mut core, inbox) = self.new_child(id, w);
        let profile = core.session.profile;
        open::enter(&mut core, loaded);
        core.session.profile = profile;
        if work && core.session.read_only {
            let why = "its session is open in another Tiller process: end that process first";
            self.unheard(id, all, why);
            return self.no_start(id, why);
        }
        if work && core.session.last_message().is_none() {
            // The same, when only its session was there.
            all.retain(|e| !goes_on(&e.command.body));
            let task = self.crew.members.get(id).map(|m| core.task(&m.order.brief));
            let message = Message::text(task.unwrap_or_default());
            compose::compose(&mut core, Goal::Prompt { client: None }, vec![(None, message)]);
        }
        self.set_running(id, core, inbox, work);
        let hands = self.crew.members.get(id).and_then(|m| m.hands.as_ref());
        let late = all.into_iter().filter_map(|envelope| match hands {
            Some(hands) => hands.commands.try_send(envelope).err().map(TrySendError::into_inner),
            None => Some(envelope),
        });
        let late = late.collect();
        self.unheard(id, late, "too many messages were sent to it at once");
    }

    /// Messages that never reach an agent: who wrote them hears it.
    pub(super) fn unheard(&self, id: &AgentId, messages: Vec<Envelope>, why: &str) {
        let Some(session) = self.crew.members.get(id).map(|m| m.session) else { return };
        for envelope in messages {
            if matches!(envelope.command.body, CommandBody::Turn(TurnCommand::Submit { .. })) {
                let place = Place { session, agent: id.clone(), cause: Some(envelope.command.id) };
                let receipt = Receipt::Missed { why: why.to_owned() };
                self.bus.publish(&place, EventBody::State(StateEvent::Receipt { receipt }));
            }
        }
    }

    /// The receipt of a message that stands in the conversation. (Only children give receipts.)
    pub(crate) fn delivery(&self, cause: CommandId) -> Option<(Place, EventBody)> {
        let step = self.identity.child.as_ref()?.work.requests;
        let event = StateEvent::Receipt { receipt: Receipt::Delivered { step } };
        Some((self.place_of(Some(cause)), EventBody::State(event)))
    }

    /// The same, of one that had waited.
    pub(crate) fn delivered(&mut self, id: tiller_protocol::QueueId) -> Option<(Place, EventBody)> {
        let cause = self.identity.child.as_mut()?.receipts.remove(&id)?;
        self.delivery(cause)
    }

    /// It has ended, and not by itself: who wrote to it hears that it was not read.
    pub(crate) fn missed(&mut self, why: &str) {
        let Some(child) = &mut self.identity.child else { return };
        let missed = std::mem::take(&mut child.receipts);
        if missed.is_empty() {
            return;
        }
        self.prompts.queue.retain(|q| !missed.contains_key(&q.id));
        for cause in missed.into_values() {
            self.state(Some(cause), StateEvent::Receipt { receipt: Receipt::Missed { why: why.to_owned() } });
        }
        queue::queue_changed(self, None);
    }
}

/// Whether it only goes on where it stood.
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
