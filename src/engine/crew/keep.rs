//! The crew over a restart: what was running is interrupted, what was not reported is reported.

use std::sync::Arc;

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentState, ChildView, CommandBody, Notice, NoticeKind, SendMode, SessionId};
use tiller_store::{Store, StoreError};

use super::member::{Member, Order};
use super::{Crew, CrewMsg, route};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::flow_state::FlowMsg;
use crate::crew::msg::ChildMsg;
use crate::crew::state::Kept;
use crate::money::budget::Spent;
use crate::session::load;

/// The agents of a session. Blocks.
fn kept(store: &Store, root: SessionId) -> Result<Vec<Kept>, StoreError> {
    let rows = store.agents().list(root)?.into_iter();
    rows.map(|row| {
        let goal = crate::goal::pursuit::kept(store, row.session)?.map(|g| g.view().clone());
        Ok(Kept { seen: store.agents().worked(row.session)?, goal, row })
    })
    .collect()
}

impl Core {
    /// Another session is open: its crew takes the place of the one before, whose agents end.
    pub(crate) fn change_crew(&mut self, stored: bool) {
        if self.identity.child.is_some() {
            return;
        }
        self.disband();
        let config = self.services.config();
        let tiers = self.crew.reservations.tiers();
        // Numbers go on: what the session before had under way must not be taken for this one's.
        self.crew = Crew { root: Some(self.session.id), next: self.crew.next, ..Crew::default() };
        self.crew.reservations.learn(tiers);
        let caps = &config.agents;
        self.crew
            .reservations
            .limit_tree(caps.tree_tokens, caps.tree_cost.map(tiller_protocol::Cost::from_usd));
        if !stored {
            return;
        }
        self.crew.reading = true;
        let (store, root, tx) = (self.services.store.clone(), self.session.id, self.tx.clone());
        self.spawn(async move {
            let again = store.clone();
            let rows = load::blocking(move || kept(&store, root)).await;
            let _ = tx.send(Msg::Crew(CrewMsg::Kept { root, rows })).await;
            // After their agents.
            let rows = load::blocking(move || again.workflows().list(root)).await;
            let _ = tx.send(Msg::Crew(CrewMsg::Flow(FlowMsg::Kept { root, rows }))).await;
        });
    }

    /// The agents of the session that was opened.
    pub(crate) fn crew_kept(&mut self, root: SessionId, rows: Result<Vec<Kept>, StoreError>) {
        if self.crew.root != Some(root) {
            return;
        }
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.notice(error.notice()),
        };
        let mut interrupted = Vec::new();
        let roles = self.services.roles();
        for Kept { row, seen, goal } in rows {
            let mut order: Order = serde_json::from_value(row.brief).unwrap_or_default();
            // What it did until Tiller was killed stands in its own session only.
            order.work = order.work.or_more(&seen, order.brief.cli.is_none());
            let used = crate::context::tokens::of_usage(&seen.usage);
            order.used = (order.used.0.max(used), order.used.1.max(seen.cost.0));
            let number = row.id.name().trim_start_matches('a').parse().unwrap_or(0);
            self.crew.names = self.crew.names.max(number);
            self.crew.reservations.recall(&row.id, order.used.0, order.used.1);
            self.crew.reservations.limit(&row.id, order.limits);
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
            self.crew.members.insert(row.id.clone(), member);
            // That it was interrupted is what the store says already.
            let used = self.used_by(&row.id);
            if let Some(member) = self.crew.members.get_mut(&row.id) {
                member.disk.shown = Some(Box::new(member.row(used)));
            }
            if worked {
                self.keep_member(&row.id);
            } else {
                self.show_member(&row.id);
                let told = matches!(row.state, AgentState::Done | AgentState::Failed | AgentState::Cancelled);
                if told && !row.announced && !self.session.read_only {
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
            self.notice_after(notice);
        }
    }

    /// Every agent ends: quickly, and so that it can go on later.
    pub(crate) fn disband(&mut self) {
        self.crew.line.clear();
        // First: they must not hear that their agents end.
        self.rest_flows();
        for wait in std::mem::take(&mut self.crew.waits) {
            let _ = wait.reply.send(Err("the session ends".into()));
        }
        let working: Vec<_> =
            self.crew.members.values().filter(|m| m.state().at_work()).map(|m| m.id.clone()).collect();
        for id in working {
            self.set_state(&id, AgentState::Interrupted);
        }
        for member in self.crew.members.values_mut() {
            // Without its commands it ends by itself.
            if let Some(hands) = member.hands.take() {
                drop(hands.commands);
                self.lifecycle.agents.push(hands.task);
            }
        }
    }

    /// Waits for the tasks of agents that end.
    pub(crate) async fn end_crew(&mut self) {
        self.disband();
        let tasks = std::mem::take(&mut self.lifecycle.agents);
        let all = futures_util::future::join_all(tasks);
        if tokio::time::timeout(crate::crew::state::CREW, all).await.is_err() {
            tracing::error!("agents did not end in time");
        }
    }

    /// The profile of a session holds for its agents, too.
    pub(crate) fn tell_profile(&self) {
        for member in self.crew.members.values() {
            if let Some(hands) = &member.hands {
                hands.tell(Msg::Child(ChildMsg::Profile(self.session.profile)));
            }
        }
    }

    /// What session and day leave for the agents.
    pub(crate) fn tell_money(&self) {
        if self.identity.child.is_none() && !self.crew.members.is_empty() {
            self.crew.reservations.limit_money(self.money.limits.left(self.spent_so_far()));
        }
    }

    /// What everybody spent in this session, and today.
    pub(crate) fn spent_so_far(&self) -> Spent {
        let crew = self.crew.reservations.spent();
        let (session, day) =
            (self.money.spent.session.plus(crew.session), self.money.spent.day.plus(crew.day));
        Spent { session, day }
    }

    /// The same, with what the calls that are under way may cost.
    pub(crate) fn spent_by_all(&self) -> Spent {
        let (spent, held) = (self.spent_so_far(), self.crew.reservations.held());
        Spent { session: spent.session.plus(held), day: spent.day.plus(held) }
    }

    /// A message from a child, a tool or the disk.
    pub(crate) fn crew_msg(&mut self, msg: CrewMsg) {
        match msg {
            CrewMsg::Asked { by, call, entry, ask, reply } => self.asked(&by, call, entry, ask, reply),
            CrewMsg::Ended => {
                self.settle_flows();
                self.settle_waits();
            }
            CrewMsg::Flow(msg) => self.flow_msg(msg),
            CrewMsg::Late(no) => self.late(no),
            CrewMsg::Of { id, session, msg } => {
                if self.crew.members.get(&id).is_some_and(|m| m.session == session) {
                    self.crew_msg(*msg);
                }
            }
            CrewMsg::In { root, msg } => {
                if self.crew.root == Some(root) {
                    self.crew_msg(*msg);
                }
            }
            CrewMsg::View(view) => self.member_view(*view),
            CrewMsg::Work { id, work } => self.member_work(&id, work),
            CrewMsg::Over { id, over } => self.member_over(&id, *over),
            CrewMsg::Theirs { id, session, transport, booked } => {
                self.theirs(&id, session, transport, booked)
            }
            CrewMsg::TheirModel { id, model } => {
                if let Some(member) = self.crew.members.get_mut(&id) {
                    member.order.brief.model = Some(model);
                    self.keep_member(&id);
                }
            }
            CrewMsg::Gone { id, run } => self.member_gone(&id, run),
            CrewMsg::Folder { id, made } => self.folder_made(&id, made),
            CrewMsg::Revived { id, w, loaded, then } => self.revived(&id, Arc::clone(&w), *loaded, then),
            CrewMsg::Kept { root, rows } => self.crew_kept(root, rows),
        }
    }

    /// What is needed to go on with a program's talk later.
    fn theirs(
        &mut self,
        id: &tiller_protocol::AgentId,
        session: Option<String>,
        transport: Option<String>,
        booked: Option<(tiller_protocol::Cost, tiller_protocol::Usage)>,
    ) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        member.order.theirs = session.or(member.order.theirs.take());
        if let Some((cost, tokens)) = booked {
            (member.order.booked, member.order.counted) = (cost, tokens);
        }
        member.order.transport = transport.or(member.order.transport.take());
        self.keep_member(id);
    }

    /// What a child has done. Each request is written down, and each refusal shown; the rest goes with what is
    /// written next.
    fn member_work(&mut self, id: &tiller_protocol::AgentId, work: super::identity::Work) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let before = member.order.work;
        member.order.work = work;
        if before.requests != work.requests || before.refused != work.refused {
            self.keep_member(id);
        }
    }

    /// How a child says that it stands.
    fn member_view(&mut self, view: tiller_protocol::AgentView) {
        let id = view.id.clone();
        let Some(member) = self.crew.members.get_mut(&id) else { return };
        let (before, now) = (member.view.state, view.state);
        member.view = view;
        // Between turns it is idle: its end is reported by its own report.
        member.view.state = if now == AgentState::Idle { before } else { now };
        if member.view.state != before {
            if !before.at_work() {
                // It works again, by itself: towards a goal.
                member.announced = false;
                member.stopping = false;
                member.order.background = true;
            }
            self.keep_member(&id);
            // Who rests or waits makes room, or takes it.
            self.muster();
        } else {
            self.show_member(&id);
        }
    }
}
