//! What a workflow's steps are run with, on a task of its own.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tiller_protocol::{AgentId, EntryId, SessionId};
use tiller_tool::crew::{Brief, CrewPort, CrewReply, CrewRequest, Report};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::CrewMsg;
use crate::core::msg::Msg;
use crate::core::ports::{AskedOver, ENDED};
use crate::crew::flow_state::FlowMsg;
use crate::crew::flow_state::GivenUp;
use crate::lock::lock;

pub(crate) struct FlowPort {
    pub(crate) no: u32,
    pub(crate) by: AgentId,
    /// For whose session.
    pub(crate) root: SessionId,
    /// The call that asks for it, and the entry with that call.
    pub(crate) from: (Option<String>, Option<EntryId>),
    pub(crate) tx: mpsc::Sender<Msg>,
    /// What was brought before.
    pub(crate) kept: BTreeMap<String, Report>,
    pub(crate) stop: CancellationToken,
    pub(crate) given_up: GivenUp,
}

impl FlowPort {
    async fn send<T>(&self, msg: impl FnOnce(oneshot::Sender<T>) -> FlowMsg) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let msg = Box::new(CrewMsg::Flow(msg(reply)));
        self.tx.send(Msg::Crew(CrewMsg::In { root: self.root, msg })).await.ok()?;
        answer.await.ok()
    }
}

#[async_trait]
impl CrewPort for FlowPort {
    async fn request(&self, ask: CrewRequest) -> Result<CrewReply, String> {
        let (reply, answer) = oneshot::channel();
        let _over = AskedOver(&self.tx);
        let (by, (call, entry)) = (self.by.clone(), self.from.clone());
        let asked = CrewMsg::Asked { by, call: call.unwrap_or_default(), entry, ask, reply };
        let asked = CrewMsg::In { root: self.root, msg: Box::new(asked) };
        self.tx.send(Msg::Crew(asked)).await.map_err(|_| ENDED.to_owned())?;
        answer.await.map_err(|_| ENDED.to_owned())?
    }

    fn stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn abandoned(&self, step: &str) -> bool {
        lock(&self.given_up).contains(step)
    }

    fn earlier_report(&self, step: &str) -> Option<Report> {
        self.kept.get(step).cloned()
    }

    async fn step_started(&self, step: &str, brief: &mut Brief) -> Option<String> {
        brief.step = Some(format!("w{}/{step}", self.no));
        let step = step.to_owned();
        self.send(|reply| FlowMsg::Begins { no: self.no, step, reply }).await.flatten()
    }

    async fn step_ended(&self, step: &str, report: &Report) {
        let (step, report) = (step.to_owned(), Box::new(report.clone()));
        // The next step begins when this one is written down, or on its way.
        let _ = self.send(|reply| FlowMsg::Ends { no: self.no, step, report, reply }).await;
    }
}
