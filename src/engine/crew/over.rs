//! An agent has ended its work.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentState, ChangeKind, FileChange, Who};
use tiller_tool::crew::Report;

use super::msg::Over;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::msg::ChildMsg;
use crate::files::msg::FilesMsg;

/// Characters of last words that are kept in its row; its session has all.
const SUMMARY: usize = 20_000;
/// Points of its last words.
const FINDINGS: usize = 20;

impl Core {
    /// A child's turn ended.
    pub(crate) fn member_over(&mut self, id: &AgentId, over: Over) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let state = match over.status {
            TurnStatus::Done => AgentState::Done,
            _ if member.cancelled => AgentState::Cancelled,
            TurnStatus::Interrupted => AgentState::Interrupted,
            TurnStatus::Failed | TurnStatus::Refused | TurnStatus::Limit | TurnStatus::Store => {
                AgentState::Failed
            }
        };
        let error = match (&over.why, over.status) {
            (Some(notice), _) => notice.message.clone(),
            (None, TurnStatus::Refused) => "a call needed an approval that no one could give".into(),
            (None, _) if state == AgentState::Cancelled => "it was cancelled".into(),
            (None, _) if state == AgentState::Interrupted => "it was stopped before it finished".into(),
            (None, _) => String::new(),
        };
        let (tokens, cost) = self.crew.reservations.used(id);
        let known =
            tokens == 0 || cost.0 > 0 || self.crew.members.get(id).is_some_and(|m| m.view.cost.is_some());
        let Some(member) = self.crew.members.get_mut(id) else { return };
        member.report = Some(Report {
            agent: id.name().to_owned(),
            label: member.order.label.clone(),
            status: state.into(),
            findings: findings(&over.text),
            summary: crate::job::cut(&over.text, SUMMARY),
            files: over.files,
            tool_calls: over.calls,
            tokens,
            cost: known.then(|| cost.usd()),
            seconds: over.seconds,
            folder: member.order.folder.clone(),
            error: if state == AgentState::Done { String::new() } else { error },
            ..Report::default()
        });
        member.view.state = state;
        member.view.act.clear();
        member.view.since = None;
        member.cancelled = false;
        member.announced = false;
        let early = std::mem::take(&mut member.early);
        member.order.said.clear();
        self.unheard(id, early, "it ended before it started");
        self.keep_member(id);
        self.show_end(id);
        self.settle_waits();
        self.announce_end(id);
        for id in over.untold {
            self.announce_end(&id);
        }
        self.muster();
    }

    /// Files that changed while a program of the crew was at work on them count as its work: it tells of none, or not
    /// of all.
    pub(crate) fn crew_changed(&mut self, changes: &[FileChange]) {
        for change in changes.iter().filter(|c| c.kind != ChangeKind::Storm) {
            let (Who::Shell { agent } | Who::Agent { agent }) = &change.who else { continue };
            let member = self.crew.members.get_mut(agent).filter(|m| m.order.brief.cli.is_some());
            let Some(member) = member else { continue };
            let path = change.path.clone();
            match (&mut member.report, &member.hands) {
                (_, Some(hands)) if member.view.state.at_work() => {
                    hands.tell(Msg::Files(FilesMsg::Touched(vec![path])))
                }
                (Some(report), _) if !report.files.contains(&path) => {
                    report.files.push(path);
                    let id = agent.clone();
                    self.keep_member(&id);
                }
                _ => {}
            }
        }
    }

    /// A child's task ended by itself: by an error of its own, or after a request to stop.
    pub(crate) fn member_gone(&mut self, id: &AgentId, run: u64) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.hands.as_ref().is_none_or(|h| h.run != run) {
            // Another one does its work by now, or is on its way.
            return;
        }
        member.hands = None;
        if member.state().at_work() {
            self.crew.reservations.release(id);
            self.no_start(id, "internal error; this is a bug in Tiller");
        }
    }

    /// Stops one: it ends as `state` says.
    pub(crate) fn stop_member(&mut self, id: &AgentId, state: AgentState) {
        let queued = self.crew.line.iter().position(|q| q == id);
        if let Some(at) = queued {
            self.crew.line.remove(at);
        }
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if !member.state().at_work() {
            return;
        }
        member.cancelled = state == AgentState::Cancelled;
        // A second stop kills.
        let hard = std::mem::replace(&mut member.stopping, true);
        match &member.hands {
            Some(hands) if queued.is_none() => hands.tell(Msg::Child(ChildMsg::Stop { hard })),
            _ => {
                let over = Over::idle(TurnStatus::Interrupted, None);
                self.member_over(id, over);
            }
        }
    }

    /// Ends one and all that it started, the lowest first: none of them starts another meanwhile.
    pub(crate) fn cancel_tree(&mut self, id: &AgentId) {
        let mut all = self.crew.below(id);
        all.reverse();
        all.push(id.clone());
        for id in all {
            self.stop_member(&id, AgentState::Cancelled);
        }
    }
}

/// Lines of a list in its last words.
fn findings(text: &str) -> Vec<String> {
    let point = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
        Some(crate::job::cut(rest.trim(), 500))
    };
    text.lines().filter_map(point).take(FINDINGS).collect()
}
