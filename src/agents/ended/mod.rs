//! An agent has ended its work.

pub(crate) mod announce;

use tiller_engine::crew::{HostEvents, RunEnd};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentState, ChangeKind, FileChange, Who};
use tiller_tool::crew::Report;

use crate::driver::CrewDriver;

/// Most bytes of a last message that are kept in the agent's row; its session has all of it.
const SUMMARY: usize = 20_000;
/// Most list items of a last message that are kept.
const FINDINGS: usize = 20;

impl CrewDriver<'_> {
    /// Records the end of an agent's run and notifies those that wait for it.
    pub(crate) fn member_ended(&mut self, id: &AgentId, end: RunEnd) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let state = match end.status {
            TurnStatus::Done => AgentState::Done,
            _ if member.cancelled => AgentState::Cancelled,
            TurnStatus::Interrupted => AgentState::Interrupted,
            TurnStatus::Failed | TurnStatus::Refused | TurnStatus::Limit | TurnStatus::Store => {
                AgentState::Failed
            }
        };
        let error = match (&end.why, end.status) {
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
            findings: findings(&end.text),
            summary: crate::text::ends(&end.text, SUMMARY, crate::text::IN_SESSION),
            files: end.files,
            tool_calls: end.calls,
            tokens,
            cost: known.then(|| cost.usd()),
            seconds: end.seconds,
            folder: member.order.folder.clone(),
            terminal: member.terminal(),
            error: if state == AgentState::Done { String::new() } else { error },
            ..Report::default()
        });
        member.order.inputs = Some(end.inputs);
        member.view.state = state;
        member.view.act = tiller_protocol::Act::Nothing;
        member.view.since = None;
        member.cancelled = false;
        member.announced = false;
        let (label, status) = (member.order.label.clone(), member.report.as_ref().map(|r| r.status));
        let early = std::mem::take(&mut member.early);
        member.order.said.clear();
        self.report_missed(id, early, "it ended before it started");
        let status = serde_json::to_value(status).unwrap_or_default();
        self.host.agent_ended(id, &label, status.as_str().unwrap_or_default(), &end.text);
        self.store_member(id);
        announce::show_end(self, id);
        self.settle_waits();
        announce::announce_end(self, id);
        for id in end.unannounced {
            announce::announce_end(self, &id);
        }
        self.start_waiting();
    }

    /// Adds files that changed while an external program was at work to its report, because programs do not report all
    /// of them.
    pub(crate) fn files_changed(&mut self, changes: &[FileChange]) {
        for change in changes.iter().filter(|c| c.kind != ChangeKind::Storm) {
            let (Who::Shell { agent } | Who::Agent { agent }) = &change.who else { continue };
            let member = self.crew.members.get(agent).filter(|m| m.order.brief.cli.is_some());
            let Some(member) = member else { continue };
            let path = change.path.clone();
            match &member.handle {
                Some(handle) if member.view.state.at_work() => handle.files_changed(vec![path]),
                _ => self.files_found(agent, vec![path]),
            }
        }
    }

    /// Adds files to the report of an agent that has ended. The end of one at work reports them itself.
    pub(crate) fn files_found(&mut self, id: &AgentId, files: Vec<String>) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.handle.is_some() && member.view.state.at_work() {
            return;
        }
        let Some(report) = &mut member.report else { return };
        let known = report.files.len();
        for file in files {
            if !report.files.contains(&file) {
                report.files.push(file);
            }
        }
        if report.files.len() > known {
            self.store_member(id);
        }
    }

    /// The task of an agent has ended, after a request to stop or because of an internal error.
    pub(crate) fn member_task_ended(&mut self, id: &AgentId, run: u64) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        if member.handle.as_ref().is_none_or(|h| h.run() != run) {
            // A later run has replaced it.
            return;
        }
        member.handle = None;
        if member.state().at_work() {
            self.crew.reservations.release(id);
            self.start_failed(id, "internal error; this is a bug in Tiller");
        }
    }

    /// Stops an agent; it ends in `state`.
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
        // A second request kills what runs.
        let hard = std::mem::replace(&mut member.stopping, true);
        match &member.handle {
            Some(handle) if queued.is_none() => handle.stop(hard),
            _ => {
                self.member_ended(id, RunEnd::without_work(TurnStatus::Interrupted, None));
            }
        }
    }

    /// Cancels an agent and all below it, the lowest first, so that none starts another meanwhile.
    pub(crate) fn cancel_tree(&mut self, id: &AgentId) {
        let mut all = self.crew.below(id);
        all.reverse();
        all.push(id.clone());
        for id in all {
            self.stop_member(&id, AgentState::Cancelled);
        }
    }
}

/// The list items of a last message.
fn findings(text: &str) -> Vec<String> {
    let point = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
        Some(crate::text::cut(rest.trim(), 500))
    };
    text.lines().filter_map(point).take(FINDINGS).collect()
}
