//! The port of a workflow's task to the crew.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tiller_engine::crew::{CrewMailbox, CrewMsg, EngineEnded, RequestGuard};
use tiller_protocol::lock;
use tiller_protocol::{AgentId, EntryId, SessionId};
use tiller_tool::crew::{Brief, CrewPort, CrewReply, CrewRequest, Report};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::msg::{TaskMailbox, TaskMsg};
use crate::workflow::state::AbandonedSteps;
use crate::workflow::state::WorkflowMsg;

pub(crate) struct WorkflowPort {
    pub(crate) no: u32,
    pub(crate) by: AgentId,
    /// The main agent's session.
    pub(crate) root: SessionId,
    /// The call that started it, and the entry with that call.
    pub(crate) from: (Option<String>, Option<EntryId>),
    /// For requests of its steps.
    pub(crate) crew: CrewMailbox,
    pub(crate) mailbox: TaskMailbox,
    /// Reports of steps that were done in an earlier run.
    pub(crate) kept: BTreeMap<String, Report>,
    pub(crate) stop: CancellationToken,
    pub(crate) abandoned: AbandonedSteps,
}

impl WorkflowPort {
    async fn send<T>(&self, msg: impl FnOnce(oneshot::Sender<T>) -> WorkflowMsg) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(TaskMsg::Workflow(msg(reply))).await.ok()?;
        answer.await.ok()
    }
}

#[async_trait]
impl CrewPort for WorkflowPort {
    async fn request(&self, request: CrewRequest) -> Result<CrewReply, String> {
        let (reply, answer) = oneshot::channel();
        let _ended = RequestGuard(&self.crew);
        let (by, (call, entry)) = (self.by.clone(), self.from.clone());
        let asked = CrewMsg::Request { by, call: call.unwrap_or_default(), entry, request, reply };
        let asked = CrewMsg::Session { root: self.root, msg: Box::new(asked) };
        self.crew.send(asked).await.map_err(|e| e.to_string())?;
        answer.await.map_err(|_| EngineEnded.to_string())?
    }

    fn stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn abandoned(&self, step: &str) -> bool {
        lock(&self.abandoned).contains(step)
    }

    fn earlier_report(&self, step: &str) -> Option<Report> {
        self.kept.get(step).cloned()
    }

    async fn step_started(&self, step: &str, brief: &mut Brief) -> Option<String> {
        brief.step = Some(format!("w{}/{step}", self.no));
        let step = step.to_owned();
        self.send(|reply| WorkflowMsg::Begins { no: self.no, step, reply }).await.flatten()
    }

    async fn step_ended(&self, step: &str, report: &Report) {
        let (step, report) = (step.to_owned(), Box::new(report.clone()));
        // The next step begins when the store has received this one.
        let _ = self.send(|reply| WorkflowMsg::Ends { no: self.no, step, report, reply }).await;
    }
}
