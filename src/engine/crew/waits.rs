//! Who waits for whom.

use tiller_protocol::{AgentId, AgentState};
use tiller_tool::crew::{CrewReply, Report};
use tokio::sync::oneshot;

use crate::core::Core;

/// A call that waits for agents.
pub(crate) struct WaitFor {
    pub(crate) no: u64,
    pub(crate) by: AgentId,
    pub(crate) ids: Vec<AgentId>,
    pub(crate) how: How,
    /// Held by the call that waits; closed when it has ended.
    pub(crate) reply: oneshot::Sender<Result<CrewReply, String>>,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The one that it started: when the wait is given up, that one stops, too.
    Own,
    Any,
    All,
}

impl Core {
    /// Answers those whose wait is over, and stops those for whom nobody waits any more.
    pub(crate) fn settle_waits(&mut self) {
        let (mut left, mut over, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
        for wait in std::mem::take(&mut self.crew.waits) {
            if wait.reply.is_closed() {
                if wait.how == How::Own {
                    given_up.extend(wait.ids);
                }
                continue;
            }
            let ended = |id: &AgentId| self.crew.members.get(id).is_none_or(|m| !m.state().at_work());
            let done = match wait.how {
                How::Any => wait.ids.iter().any(ended),
                How::Own | How::All => wait.ids.iter().all(ended),
            };
            if done { over.push(wait) } else { left.push(wait) }
        }
        self.crew.waits = left;
        for wait in over {
            self.answer_wait(wait);
        }
        // Who is being cancelled stays so.
        given_up.retain(|id| self.crew.members.get(id).is_some_and(|m| !m.cancelled));
        for id in given_up {
            self.stop_member(&id, AgentState::Interrupted);
        }
        self.muster();
    }

    /// Gives what is there.
    pub(crate) fn answer_wait(&mut self, wait: WaitFor) {
        let reports: Vec<Report> = wait.ids.iter().map(|id| self.report_of(id)).collect();
        let reply = match (wait.how, reports.first()) {
            (How::Own, Some(report)) => CrewReply::Report(Box::new(report.clone())),
            _ => CrewReply::Reports(reports),
        };
        if wait.reply.send(Ok(reply)).is_ok() {
            for id in &wait.ids {
                self.heard(id);
            }
        }
    }

    /// Its parent knows the end of it now.
    pub(crate) fn heard(&mut self, id: &AgentId) {
        let ended = |m: &super::member::Member| !m.state().at_work() && m.report.is_some();
        if let Some(member) = self.crew.members.get_mut(id).filter(|m| ended(m) && !m.announced) {
            member.announced = true;
            self.keep_member(id);
        }
    }

    /// What it brought; of one that still works, how it stands.
    pub(crate) fn report_of(&self, id: &AgentId) -> Report {
        let Some(member) = self.crew.members.get(id) else { return Report::default() };
        match &member.report {
            Some(report) if !member.state().at_work() => report.clone(),
            _ => Report {
                agent: id.name().to_owned(),
                label: member.order.label.clone(),
                status: member.state().into(),
                summary: member.view.act.clone(),
                tokens: self.crew.reservations.used(id).0,
                folder: member.order.folder.clone(),
                ..Report::default()
            },
        }
    }
}
