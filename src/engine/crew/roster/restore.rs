//! A session is opened or closed: its agents are loaded, those that ran are interrupted, ends that were not reported are.

use std::time::Duration;

use tiller_protocol::Transport;
use tiller_protocol::command::TurnCommand;
use tiller_protocol::{
    AgentId, AgentState, ChildView, CommandBody, Notice, NoticeKind, Profile, SendMode, SessionId,
};
use tiller_store::{Store, StoreError};

use crate::core::msg::Msg;
use crate::crew::commands::route;
use crate::crew::driver::CrewDriver;
use crate::crew::msg::ChildMsg;
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::crew::roster::Crew;
use crate::crew::roster::member::{Member, Order, StoredAgent};
use crate::crew::workflow::state::WorkflowMsg;
use crate::session::load;

/// Longest wait for the tasks of agents that end.
const END_TIMEOUT: Duration = Duration::from_millis(1500);

/// Loads the agents of a session. Blocks.
fn kept(store: &Store, root: SessionId) -> Result<Vec<StoredAgent>, StoreError> {
    let rows = store.agents().list(root)?.into_iter();
    rows.map(|row| {
        let goal = crate::goal::pursuit::kept(store, row.session)?.map(|g| g.view().clone());
        Ok(StoredAgent { seen: store.agents().work(row.session)?, goal, row })
    })
    .collect()
}

impl CrewDriver<'_> {
    /// Another session is open: the agents of the one before end, and its own are loaded.
    pub(crate) fn session_opened(&mut self, stored: bool) {
        if self.core.identity.child.is_some() {
            return;
        }
        self.interrupt_all();
        let config = self.core.services.config();
        let tiers = self.core.crew.reservations.tiers();
        // Numbers continue, so that late messages of the session before are not taken for this one's.
        self.core.crew =
            Crew { root: Some(self.core.session.id), next: self.core.crew.next, ..Crew::default() };
        self.core.crew.reservations.learn(tiers);
        let caps = &config.agents;
        self.core
            .crew
            .reservations
            .limit_tree(caps.tree_tokens, caps.tree_cost.map(tiller_protocol::Cost::from_usd));
        if !stored {
            return;
        }
        self.core.crew.reading = true;
        let (store, root, tx) =
            (self.core.services.store.clone(), self.core.session.id, self.core.tx.clone());
        self.core.spawn(async move {
            let again = store.clone();
            let rows = load::blocking(move || kept(&store, root)).await;
            let _ = tx.send(Msg::Crew(CrewMsg::Restored { root, rows })).await;
            // Workflows follow their agents.
            let rows = load::blocking(move || again.workflows().list(root)).await;
            let _ = tx.send(Msg::Crew(CrewMsg::Workflow(WorkflowMsg::Restored { root, rows }))).await;
        });
    }

    /// Adds the loaded agents of the session that was opened.
    pub(crate) fn restore_agents(&mut self, root: SessionId, rows: Result<Vec<StoredAgent>, StoreError>) {
        if self.core.crew.root != Some(root) {
            return;
        }
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.core.notice(error.notice()),
        };
        let mut interrupted = Vec::new();
        let roles = self.core.services.roles();
        for StoredAgent { row, seen, goal } in rows {
            let mut order: Order = serde_json::from_value(row.brief).unwrap_or_default();
            // Work since its row was last stored is only in its own session.
            order.work = order.work.or_more(&seen, order.brief.cli.is_none());
            let used = crate::context::tokens::of_usage(&seen.usage);
            order.used = (order.used.0.max(used), order.used.1.max(seen.cost.0));
            let number = row.id.name().trim_start_matches('a').parse().unwrap_or(0);
            self.core.crew.names = self.core.crew.names.max(number);
            self.core.crew.reservations.recall(&row.id, order.used.0, order.used.1);
            self.core.crew.reservations.limit(&row.id, order.limits);
            let early = order.said.iter().map(|message| {
                let (message, mode) = (message.clone(), SendMode::Steer);
                route::internal(CommandBody::Turn(TurnCommand::Submit { message, mode }))
            });
            let early = early.collect();
            let mut member = Member::new(row.id.clone(), row.session, order, row.created);
            member.early = early;
            member.role = member.order.brief.agent.as_ref().and_then(|a| roles.get(a).cloned());
            member.view.state = row.state;
            member.view.cost =
                (member.order.used.1 > 0).then_some(tiller_protocol::Cost(member.order.used.1));
            member.view.usage.input = member.order.used.0;
            if let Some(goal) = goal {
                member.view.child =
                    Some(Box::new(ChildView { goal: Some(Box::new(goal)), ..ChildView::default() }));
            }
            member.report = row.report.and_then(|r| serde_json::from_value(r).ok());
            member.announced = row.announced;
            let worked = row.state.at_work();
            if worked {
                member.view.state = AgentState::Interrupted;
                interrupted.push(row.id.clone());
            }
            self.core.crew.members.insert(row.id.clone(), member);
            // The store already has it as interrupted.
            let used = self.core.crew.used_by(&row.id);
            if let Some(member) = self.core.crew.members.get_mut(&row.id) {
                member.disk.shown = Some(Box::new(member.row(used)));
            }
            if worked {
                self.store_member(&row.id);
            } else {
                self.show_member(&row.id);
                let told = matches!(row.state, AgentState::Done | AgentState::Failed | AgentState::Cancelled);
                if told && !row.announced && !self.core.session.read_only {
                    self.announce_end(&row.id);
                }
            }
        }
        if let Some(first) = interrupted.first() {
            let (n, first) = (interrupted.len(), first.name());
            let text = if n == 1 {
                format!("agent {first} was interrupted when Tiller ended")
            } else {
                format!("{n} agents were interrupted when Tiller ended")
            };
            let notice = Notice::new(NoticeKind::Info, text)
                .hint("in the agents panel, u continues one, U continues all");
            self.core.notice_after(notice);
        }
    }

    /// Interrupts every agent, so that it can continue later.
    pub(crate) fn interrupt_all(&mut self) {
        self.core.crew.line.clear();
        // Workflows first, so that they do not take the ends of their agents for results.
        self.core.workflow_driver().interrupt_all();
        for wait in std::mem::take(&mut self.core.crew.waits) {
            let _ = wait.reply.send(Err("the session ends".into()));
        }
        let working: Vec<_> =
            self.core.crew.members.values().filter(|m| m.state().at_work()).map(|m| m.id.clone()).collect();
        for id in working {
            self.set_state(&id, AgentState::Interrupted);
        }
        for member in self.core.crew.members.values_mut() {
            // An agent whose channel of commands closes ends by itself.
            if let Some(hands) = member.hands.take() {
                drop(hands.commands);
                self.core.lifecycle.agents.push(hands.task);
            }
        }
    }

    /// Interrupts every agent and waits for their tasks.
    pub(crate) async fn end_all(&mut self) {
        self.interrupt_all();
        let tasks = std::mem::take(&mut self.core.lifecycle.agents);
        let all = futures_util::future::join_all(tasks);
        if tokio::time::timeout(END_TIMEOUT, all).await.is_err() {
            tracing::error!("agents did not end in time");
        }
    }

    /// Handles a message from a child, a tool or the store.
    pub(crate) fn message(&mut self, msg: CrewMsg) {
        match msg {
            CrewMsg::Request { by, call, entry, request, reply } => {
                self.request(&by, call, entry, request, reply)
            }
            CrewMsg::RequestEnded => {
                self.core.workflow_driver().stop_unawaited();
                self.settle_waits();
            }
            CrewMsg::Workflow(msg) => self.core.workflow_driver().message(msg),
            CrewMsg::WaitTimedOut(no) => self.wait_timed_out(no),
            CrewMsg::Member { id, session, msg } => {
                if self.core.crew.members.get(&id).is_some_and(|m| m.session == session) {
                    self.member_message(&id, *msg);
                }
            }
            CrewMsg::Session { root, msg } => {
                if self.core.crew.root == Some(root) {
                    self.message(*msg);
                }
            }
            CrewMsg::Restored { root, rows } => self.restore_agents(root, rows),
        }
    }

    /// Handles a message from or about a child.
    fn member_message(&mut self, id: &AgentId, msg: MemberMsg) {
        match msg {
            MemberMsg::View(view) => self.record_view(*view),
            MemberMsg::Work(work) => self.record_work(id, work),
            MemberMsg::Ended(end) => self.member_ended(id, *end),
            MemberMsg::ProgramSession { session, transport, booked } => {
                self.record_external_session(id, session, transport, booked)
            }
            MemberMsg::ProgramModel(model) => {
                if let Some(member) = self.core.crew.members.get_mut(id) {
                    member.order.brief.model = Some(model);
                    self.store_member(id);
                }
            }
            MemberMsg::TaskEnded { run } => self.member_task_ended(id, run),
            MemberMsg::Folder(made) => self.folder_made(id, made),
            MemberMsg::Reloaded { services, loaded, then } => self.reloaded(id, services, *loaded, then),
        }
    }

    /// Stores what is needed to resume an external program's session.
    pub(crate) fn record_external_session(
        &mut self,
        id: &AgentId,
        session: Option<String>,
        transport: Option<Transport>,
        booked: Option<(tiller_protocol::Cost, tiller_protocol::Usage)>,
    ) {
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        member.order.theirs = session.or(member.order.theirs.take());
        if let Some((cost, tokens)) = booked {
            (member.order.booked, member.order.counted) = (cost, tokens);
        }
        member.order.transport = transport.or(member.order.transport.take());
        self.store_member(id);
    }

    /// Records what a child has done. Each request and refusal is stored at once; the rest with the next
    /// change.
    pub(crate) fn record_work(&mut self, id: &AgentId, work: crate::crew::child::identity::Work) {
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        let before = member.order.work;
        member.order.work = work;
        if before.requests != work.requests || before.refused != work.refused {
            self.store_member(id);
        }
    }

    /// Records the row that a child reports.
    pub(crate) fn record_view(&mut self, view: tiller_protocol::AgentView) {
        let id = view.id.clone();
        let Some(member) = self.core.crew.members.get_mut(&id) else { return };
        let (before, now) = (member.view.state, view.state);
        member.view = view;
        // An agent is idle between turns; its end has a message of its own.
        member.view.state = if now == AgentState::Idle { before } else { now };
        if member.view.state != before {
            if !before.at_work() {
                // It works again by itself, towards a goal.
                member.announced = false;
                member.stopping = false;
                member.order.background = true;
            }
            self.store_member(&id);
            // A change to or from paused or waiting changes how many agents may run.
            self.start_waiting();
        } else {
            self.show_member(&id);
        }
    }
}

impl Crew {
    /// Sends the profile of the session to its agents.
    pub(crate) fn profile_changed(&self, profile: Profile) {
        for member in self.members.values() {
            if let Some(hands) = &member.hands {
                hands.tell(Msg::Child(ChildMsg::Profile(profile)));
            }
        }
    }
}
