//! A session is opened or closed: its agents are loaded, those that ran are interrupted, ends that were not reported are.

use tiller_engine::Envelope;
use tiller_engine::crew::{HostBudget, HostEvents, HostSession, HostSettings, HostStorage, HostTasks};
use tiller_protocol::Transport;
use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentId, AgentState, ChildView, CommandBody, Notice, NoticeKind, SendMode, SessionId};
use tiller_store::{Store, StoreError};

use crate::driver::CrewDriver;
use crate::ended::announce;
use crate::msg::TaskMsg;
use crate::roster::Roster;
use crate::roster::member::{Member, Order, StoredAgent};

/// Loads the agents of a session. Blocks.
fn kept(store: &Store, root: SessionId) -> Result<Vec<StoredAgent>, StoreError> {
    let rows = store.agents().list(root)?.into_iter();
    rows.map(|row| {
        let goal = tiller_engine::crew::stored_goal(store, row.session)?;
        Ok(StoredAgent { seen: store.agents().work(row.session)?, goal, row })
    })
    .collect()
}

/// Runs a read of the store on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(StoreError::Internal(e.to_string())))
}

impl CrewDriver<'_> {
    /// Another session is open: the agents of the one before end, and its own are loaded.
    pub(crate) fn session_opened(&mut self, stored: bool) {
        self.interrupt_all();
        // Numbers continue, so that late messages of the session before are not taken for this one's.
        *self.crew = Roster {
            root: Some(self.host.session_id()),
            next: self.crew.next,
            reservations: self.host.reset_reservations(),
            ..Roster::default()
        };
        if !stored {
            return;
        }
        self.crew.reading = true;
        let (store, root, mailbox) = (self.host.store().clone(), self.host.session_id(), self.mailbox());
        self.host.spawn(async move {
            let again = store.clone();
            let rows = blocking(move || kept(&store, root)).await;
            let _ = mailbox.send(TaskMsg::AgentsLoaded(rows)).await;
            // Workflows follow their agents.
            let rows = blocking(move || again.workflows().list(root)).await;
            let _ = mailbox.send(TaskMsg::WorkflowsLoaded(rows)).await;
        });
    }

    /// Adds the loaded agents of the session that was opened.
    pub(crate) fn restore_agents(&mut self, rows: Result<Vec<StoredAgent>, StoreError>) {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.host.notice(error.notice()),
        };
        let mut interrupted = Vec::new();
        let roles = self.host.roles();
        for StoredAgent { row, seen, goal } in rows {
            let mut order: Order = serde_json::from_value(row.brief).unwrap_or_default();
            // Work since its row was last stored is only in its own session.
            order.work = order.work.or_more(&seen, order.brief.cli.is_none());
            let used = tiller_engine::context::tokens::of_usage(&seen.usage);
            order.used = (order.used.0.max(used), order.used.1.max(seen.cost.0));
            let number = row.id.name().trim_start_matches('a').parse().unwrap_or(0);
            self.crew.names = self.crew.names.max(number);
            self.crew.reservations.recall(&row.id, order.used.0, order.used.1);
            self.crew.reservations.limit(&row.id, order.limits);
            let early = order.said.iter().map(|message| {
                let (message, mode) = (message.clone(), SendMode::Steer);
                Envelope::internal(CommandBody::Turn(TurnCommand::Submit { message, mode }))
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
            // The store already has it as interrupted.
            let used = self.crew.used_by(&row.id);
            if let Some(member) = self.crew.members.get_mut(&row.id) {
                member.disk.shown = Some(Box::new(member.row(used)));
            }
            if worked {
                self.store_member(&row.id);
            } else {
                self.show_member(&row.id);
                let told = matches!(row.state, AgentState::Done | AgentState::Failed | AgentState::Cancelled);
                if told && !row.announced && !self.host.read_only() {
                    announce::announce_end(self, &row.id);
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
            self.host.notice_after(notice);
        }
    }

    /// Agents and workflows are loaded: commands that waited for that are carried out.
    pub(crate) fn all_restored(&mut self) {
        self.crew.reading = false;
        for (client, cause, command) in std::mem::take(&mut self.crew.asked) {
            self.command(client, cause, command);
        }
    }

    /// Interrupts every agent, so that it can continue later.
    pub(crate) fn interrupt_all(&mut self) {
        self.crew.line.clear();
        // Workflows first, so that they do not take the ends of their agents for results.
        self.workflows().interrupt_all();
        for wait in std::mem::take(&mut self.crew.waits) {
            let _ = wait.reply.send(Err("the session ends".into()));
        }
        let working: Vec<_> =
            self.crew.members.values().filter(|m| m.state().at_work()).map(|m| m.id.clone()).collect();
        for id in working {
            self.set_state(&id, AgentState::Interrupted);
        }
        for member in self.crew.members.values_mut() {
            // An agent whose channel of commands closes ends by itself.
            if let Some(handle) = member.handle.take() {
                self.host.await_end(handle.end());
            }
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
        let Some(member) = self.crew.members.get_mut(id) else { return };
        member.order.theirs = session.or(member.order.theirs.take());
        if let Some((cost, tokens)) = booked {
            (member.order.booked, member.order.counted) = (cost, tokens);
        }
        member.order.transport = transport.or(member.order.transport.take());
        self.store_member(id);
    }

    /// Records what a child has done. Each request and refusal is stored at once; the rest with the next
    /// change.
    pub(crate) fn record_work(&mut self, id: &AgentId, work: tiller_engine::crew::Work) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let before = member.order.work;
        member.order.work = work;
        if before.requests != work.requests || before.refused != work.refused {
            self.store_member(id);
        }
    }

    /// Records the row that a child reports.
    pub(crate) fn record_view(&mut self, view: tiller_protocol::AgentView) {
        let id = view.id.clone();
        let Some(member) = self.crew.members.get_mut(&id) else { return };
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
