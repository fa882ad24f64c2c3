//! Commands to one agent.

use tiller_engine::crew::{
    COMMANDS, ChildHandle, ChildServices, CommandSlot, HostEvents, HostTasks, LoadedSession, SlotError,
};
use tiller_engine::{ClientId, Envelope, EventScope};
use tiller_protocol::command::{GoalCommand, Query, TurnCommand};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{AgentId, AgentState, Command, CommandBody, EventBody, Notice, NoticeKind, Receipt};
use tiller_store::StoreError;

use crate::driver::CrewDriver;
use crate::msg::{MemberTaskMsg, TaskMsg};

impl CrewDriver<'_> {
    /// Routes a command to another agent than the main one.
    pub(crate) fn route(&mut self, client: ClientId, agent: &AgentId, command: Command) {
        if !self.crew.members.contains_key(agent) {
            let notice = Notice::new(NoticeKind::User, format!("there is no agent {}", agent.name()));
            return self.host.refuse(client, command.id, notice);
        }
        self.deliver(agent, Envelope { client, command: Command { agent: None, ..command } });
    }

    /// Delivers a command to a member's loop; a member without one is loaded from the store first.
    pub(crate) fn deliver(&mut self, id: &AgentId, envelope: Envelope) {
        let slot = match self.slot(id) {
            Ok(slot) => slot,
            Err(Busy) => {
                let notice = Notice::new(NoticeKind::User, "the agent is busy: try again");
                self.host.refuse(envelope.client, envelope.command.id, notice);
                return self.report_missed(id, vec![envelope], "it was busy");
            }
        };
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let pursues =
            matches!(envelope.command.body, CommandBody::Goal(GoalCommand::Set { .. } | GoalCommand::Go));
        // An agent that has begun may refuse a goal: its row changes when its turn begins.
        let works = works(&envelope.command.body) || pursues && member.order.fresh;
        let scope =
            EventScope { session: member.session, agent: id.clone(), cause: Some(envelope.command.id) };
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
                self.crew.line.push_back(id.clone());
            }
        }
        if member.state() == AgentState::Queued && member.handle.is_none() {
            // It has not begun: messages are stored with it before they are reported as queued.
            member.early.push(envelope);
            let said = message.is_some();
            member.order.said.extend(message);
            if said || begins {
                self.store_member(id);
            }
            if said {
                self.host.show(scope, receipt);
            }
            return self.start_waiting();
        }
        if begins {
            self.store_member(id);
        }
        if message.is_some() {
            self.host.publish(&scope, receipt);
        }
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.handle.is_none() && matches!(envelope.command.body, CommandBody::Pane(_)) {
            // Its terminal is closed; input to it is dropped.
            return;
        }
        match slot {
            Some(slot) => slot.send(envelope),
            None => self.reload(id, vec![envelope]),
        }
    }

    /// A place in the member's queue of commands, before anything is said or stored about the command. `None`: it has no
    /// loop, or its loop has ended.
    fn slot(&mut self, id: &AgentId) -> Result<Option<CommandSlot>, Busy> {
        let Some(member) = self.crew.members.get_mut(id) else { return Ok(None) };
        match member.handle.as_ref().map(ChildHandle::reserve) {
            Some(Ok(slot)) => Ok(Some(slot)),
            Some(Err(SlotError::Full)) => Err(Busy),
            Some(Err(SlotError::Closed)) => {
                member.handle = None;
                Ok(None)
            }
            None => {
                // They are sent to its loop all at once.
                let waiting = member.reviving.as_ref().map_or(0, Vec::len).max(member.early.len());
                if waiting + 1 < COMMANDS { Ok(None) } else { Err(Busy) }
            }
        }
    }

    /// Loads an agent's session from the store to run it again.
    pub(crate) fn reload(&mut self, id: &AgentId, then: Vec<Envelope>) {
        if let Some(member) = self.crew.members.get_mut(id)
            && let Some(waiting) = &mut member.reviving
        {
            waiting.extend(then);
            return;
        }
        let Some(session) = self.crew.members.get(id).map(|m| m.session) else { return };
        let services = match self.services_of(id) {
            Ok(services) => services,
            Err(why) => {
                self.report_missed(id, then, &why);
                return self.start_failed(id, &why);
            }
        };
        let (mailbox, id) = (self.mailbox(), id.clone());
        if let Some(member) = self.crew.members.get_mut(&id) {
            member.reviving = Some(Vec::new());
        }
        self.host.spawn(async move {
            let loaded = services.load(session).await;
            let msg = MemberTaskMsg::Reloaded { services, loaded, then };
            let _ = mailbox.send(TaskMsg::Member { id, session, msg }).await;
        });
    }

    pub(crate) fn reloaded(
        &mut self,
        id: &AgentId,
        services: ChildServices,
        loaded: Result<LoadedSession, StoreError>,
        then: Vec<Envelope>,
    ) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
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
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(StoreError::NoSession(_)) if work => {
                // It ended before its session was stored: it begins again.
                member.order.fresh = true;
                member.early = all.into_iter().filter(|e| !goes_on(&e.command.body)).collect();
                self.set_state(id, AgentState::Queued);
                self.crew.line.push_back(id.clone());
                return self.start_waiting();
            }
            Err(e) => {
                let why = e.notice().message;
                self.report_missed(id, all, &why);
                return self.start_failed(id, &why);
            }
        };
        let Some(mut engine) = self.new_child(id, services) else { return };
        engine.resume(loaded);
        if work && engine.read_only() {
            let why = "its session is open in another Tiller process: end that process first";
            self.report_missed(id, all, why);
            return self.start_failed(id, why);
        }
        if work && engine.has_no_message() {
            // The same, when its session has no message.
            all.retain(|e| !goes_on(&e.command.body));
            let brief = self.crew.members.get(id).map(|m| m.order.brief.clone());
            engine.give_task(&brief.unwrap_or_default());
        }
        self.run_child(id, engine, work);
        let handle = self.crew.members.get(id).and_then(|m| m.handle.as_ref());
        let late = all.into_iter().filter_map(|envelope| match handle.map(ChildHandle::reserve) {
            Some(Ok(slot)) => {
                slot.send(envelope);
                None
            }
            Some(Err(_)) | None => Some(envelope),
        });
        let late = late.collect();
        self.report_missed(id, late, "too many messages were sent to it at once");
    }

    /// Publishes receipts for messages that do not reach an agent.
    pub(crate) fn report_missed(&self, id: &AgentId, messages: Vec<Envelope>, why: &str) {
        let Some(session) = self.crew.members.get(id).map(|m| m.session) else { return };
        for envelope in messages {
            if matches!(envelope.command.body, CommandBody::Turn(TurnCommand::Submit { .. })) {
                let scope = EventScope { session, agent: id.clone(), cause: Some(envelope.command.id) };
                let receipt = Receipt::Missed { why: why.to_owned() };
                self.host.publish(&scope, EventBody::State(StateEvent::Receipt { receipt }));
            }
        }
    }
}

/// Too many commands wait for the agent.
struct Busy;

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
