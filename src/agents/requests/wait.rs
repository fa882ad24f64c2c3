//! Calls that wait for agents.

use tiller_protocol::{AgentId, AgentState};
use tiller_tool::crew::{CrewReply, Report};
use tokio::sync::oneshot;

use crate::driver::CrewDriver;
use crate::roster::Roster;

/// A call that waits for agents.
pub(crate) struct AgentWait {
    pub(crate) no: u64,
    pub(crate) by: AgentId,
    pub(crate) ids: Vec<AgentId>,
    pub(crate) how: WaitKind,
    /// The call that waits holds the receiver; it is closed when the call has ended.
    pub(crate) reply: oneshot::Sender<Result<CrewReply, String>>,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// The agent that it started: when the call ends, that agent stops, too.
    Own,
    Any,
    All,
}

impl CrewDriver<'_> {
    /// Answers calls whose agents have ended, and stops agents whose calls have ended.
    pub(crate) fn settle_waits(&mut self) {
        let (mut left, mut over, mut abandoned) = (Vec::new(), Vec::new(), Vec::new());
        for wait in std::mem::take(&mut self.crew.waits) {
            if wait.reply.is_closed() {
                if wait.how == WaitKind::Own {
                    abandoned.extend(wait.ids);
                }
                continue;
            }
            let ended = |id: &AgentId| self.crew.members.get(id).is_none_or(|m| !m.state().at_work());
            let done = match wait.how {
                WaitKind::Any => wait.ids.iter().any(ended),
                WaitKind::Own | WaitKind::All => wait.ids.iter().all(ended),
            };
            if done { over.push(wait) } else { left.push(wait) }
        }
        self.crew.waits = left;
        for wait in over {
            self.answer_wait(wait);
        }
        // Agents that are being cancelled stay cancelled.
        abandoned.retain(|id| self.crew.members.get(id).is_some_and(|m| !m.cancelled));
        for id in abandoned {
            self.stop_member(&id, AgentState::Interrupted);
        }
        self.start_waiting();
    }

    /// Answers a call with the reports so far.
    pub(crate) fn answer_wait(&mut self, wait: AgentWait) {
        let reports: Vec<Report> = wait.ids.iter().map(|id| self.crew.report_of(id)).collect();
        let reply = match (wait.how, reports.first()) {
            (WaitKind::Own, Some(report)) => CrewReply::Report(Box::new(report.clone())),
            _ => CrewReply::Reports(reports),
        };
        if wait.reply.send(Ok(reply)).is_ok() {
            for id in &wait.ids {
                self.mark_announced(id);
            }
        }
    }

    /// Marks the end of an agent as known to its parent.
    pub(crate) fn mark_announced(&mut self, id: &AgentId) {
        let ended = |m: &crate::roster::member::Member| !m.state().at_work() && m.report.is_some();
        if let Some(member) = self.crew.members.get_mut(id).filter(|m| ended(m) && !m.announced) {
            member.announced = true;
            self.store_member(id);
        }
    }
}

impl Roster {
    /// The report of an agent; while it works, its present state.
    pub(crate) fn report_of(&self, id: &AgentId) -> Report {
        let Some(member) = self.members.get(id) else { return Report::default() };
        match &member.report {
            Some(report) if !member.state().at_work() => report.clone(),
            _ => Report {
                agent: id.name().to_owned(),
                label: member.order.label.clone(),
                status: member.state().into(),
                summary: member.view.act.to_string(),
                tokens: self.reservations.used(id).0,
                folder: member.order.folder.clone(),
                terminal: member.terminal(),
                ..Report::default()
            },
        }
    }
}
