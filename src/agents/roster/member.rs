//! An agent as the main agent's loop knows it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tiller_config::agents::Definition;
use tiller_engine::Envelope;
use tiller_engine::crew::{ChildHandle, Grant};
use tiller_protocol::{
    AgentId, AgentLimits, AgentState, AgentView, ChildView, EntryId, GoalView, Message, ModelRef, Profile,
    SessionId, Time,
};
use tiller_protocol::{Backend, Transport};
use tiller_store::{AgentRow, AgentWork};
use tiller_tool::crew::{Brief, Report};

/// The task of an agent and what is needed to continue it, as stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    pub(crate) brief: Brief,
    pub(crate) label: String,
    pub(crate) model: ModelRef,
    pub(crate) profile: Profile,
    pub(crate) limits: AgentLimits,
    pub(crate) background: bool,
    pub(crate) call: Option<String>,
    /// The user wrote the task.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_user: bool,
    pub(crate) spawned_by: Option<EntryId>,
    /// Its own folder; empty: that of the workspace.
    pub(crate) folder: String,
    /// Tokens and millionths of a US dollar that it has used.
    pub(crate) used: (u64, u64),
    pub(crate) work: tiller_engine::crew::Work,
    /// It has not begun; it has no session yet.
    pub(crate) fresh: bool,
    /// Messages to it before it began; they are kept over a restart.
    pub(crate) said: Vec<Message>,
    /// The external program's id of its session.
    pub(crate) theirs: Option<String>,
    /// How that program was driven; `None`: it has not started, or a transport that this version does not know.
    #[serde(deserialize_with = "known_transport")]
    pub(crate) transport: Option<Transport>,
    /// Cost of that session that has been recorded.
    pub(crate) booked: tiller_protocol::Cost,
    /// Usage of that session that has been recorded.
    pub(crate) counted: tiller_protocol::Usage,
    /// What its result depends on; `None`: it has no result, or one of an older version, which is not used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inputs: Option<tiller_engine::crew::Inputs>,
    /// The state of its folder when it began; empty: it could not be noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stamp: Option<String>,
}

fn known_transport<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Transport>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.and_then(|name| Transport::of(&name)))
}

/// An agent from the store.
pub(crate) struct StoredAgent {
    pub(crate) row: AgentRow,
    /// What its session shows of its work.
    pub(crate) seen: AgentWork,
    pub(crate) goal: Option<GoalView>,
}

/// One agent of the crew.
pub(crate) struct Member {
    pub(crate) id: AgentId,
    pub(crate) session: SessionId,
    pub(crate) order: Order,
    pub(crate) role: Option<Arc<Definition>>,
    /// Its row as it was last reported.
    pub(crate) view: AgentView,
    pub(crate) handle: Option<ChildHandle>,
    /// The user or its parent cancelled it; its turn has not ended yet.
    pub(crate) cancelled: bool,
    pub(crate) report: Option<Report>,
    pub(crate) announced: bool,
    /// It was asked to stop.
    pub(crate) stopping: bool,
    /// Commands to it before it began.
    pub(crate) early: Vec<Envelope>,
    /// Its session is being loaded; the commands that wait for that.
    pub(crate) reviving: Option<Vec<Envelope>>,
    pub(crate) created: Time,
    pub(crate) disk: OnDisk,
}

/// Whether its row is stored: a change is published once it is.
#[derive(Default)]
pub(crate) struct OnDisk {
    /// Changes that are being stored.
    pub(crate) pending: u32,
    /// The row changed meanwhile in a way that needs no store.
    pub(crate) behind: bool,
    /// The last change could not be stored.
    pub(crate) lost: bool,
    /// The row that was published last.
    pub(crate) shown: Option<Box<AgentView>>,
}

impl OnDisk {
    /// The row is not stored yet.
    pub(crate) fn ahead(&self) -> bool {
        self.pending > 0 || self.lost
    }
}

impl Member {
    pub(crate) fn new(id: AgentId, session: SessionId, order: Order, created: Time) -> Self {
        let view = AgentView {
            parent: id.parent(),
            id: id.clone(),
            label: order.label.clone(),
            state: AgentState::Queued,
            model: order.model.clone(),
            ..AgentView::default()
        };
        Self {
            id,
            session,
            order,
            role: None,
            view,
            handle: None,
            cancelled: false,
            report: None,
            announced: false,
            stopping: false,
            early: Vec::new(),
            reviving: None,
            created,
            disk: OnDisk::default(),
        }
    }

    /// What it was given, for its services.
    pub(crate) fn grant(&self) -> Grant<'_> {
        Grant { id: &self.id, role: self.role.as_deref(), brief: &self.order.brief }
    }

    /// The terminal elsewhere where its commands run.
    pub(crate) fn terminal(&self) -> Option<String> {
        self.order.brief.terminal.clone().filter(|name| name != "local")
    }

    pub(crate) fn state(&self) -> AgentState {
        self.view.state
    }

    /// Its row, with what only the main agent's loop knows.
    pub(crate) fn row(&self, used: AgentLimits) -> AgentView {
        let report = self.report.as_ref();
        let child = ChildView {
            session: Some(self.session),
            role: self.order.brief.agent.clone().unwrap_or_default(),
            backend: self
                .order
                .brief
                .cli
                .as_deref()
                .map_or(Backend::Tiller, |cli| Backend::program(cli, self.order.transport)),
            task: self.order.brief.goal.clone(),
            result: report
                .map(|r| crate::text::ends(words(r), 2_000, crate::text::IN_SESSION))
                .unwrap_or_default(),
            background: self.order.background,
            call: self.order.call.clone(),
            todo: self.order.brief.todo.clone(),
            used,
            limits: self.order.limits,
            files: report.map_or(0, |r| u32::try_from(r.files.len()).unwrap_or(u32::MAX)),
            took: report.filter(|_| !self.state().at_work()).map_or(0.0, |r| r.seconds),
            refused: self.order.work.refused,
            folder: self.order.folder.clone(),
            terminal: self.terminal().unwrap_or_default(),
            pane: self.view.child.as_ref().and_then(|c| c.pane.clone()).filter(|_| self.state().at_work()),
            exit: self.view.child.as_ref().and_then(|c| c.exit).filter(|_| !self.state().at_work()),
            goal: self.view.child.as_ref().and_then(|c| c.goal.clone()),
        };
        AgentView { child: Some(Box::new(child)), ..self.view.clone() }
    }

    /// Its row in the store.
    pub(crate) fn kept(&self, root: SessionId) -> AgentRow {
        AgentRow {
            root,
            id: self.id.clone(),
            session: self.session,
            brief: serde_json::to_value(&self.order).unwrap_or_default(),
            state: self.state(),
            report: self.report.as_ref().and_then(|r| serde_json::to_value(r).ok()),
            announced: self.announced,
            created: self.created,
        }
    }
}

/// Cleans the row of an agent of an imported session. Its task and report stay; its folder, its terminal, the
/// session of its external program and anything that would start by itself are removed, because an imported file must not set them.
pub fn from_elsewhere(mut row: AgentRow) -> AgentRow {
    let mut order: Order = serde_json::from_value(row.brief).unwrap_or_default();
    (order.folder, order.theirs, order.transport) = (String::new(), None, None);
    (order.booked, order.counted, order.brief.terminal) = Default::default();
    row.brief = serde_json::to_value(&order).unwrap_or_default();
    if row.state.at_work() {
        row.state = AgentState::Interrupted;
    }
    row.announced = true;
    row
}

/// Its result in words: what it said last, or why it failed.
pub(crate) fn words(report: &Report) -> &str {
    if report.done() || report.error.is_empty() { report.summary.trim() } else { report.error.trim() }
}

/// The way to all of a result that is shown in part.
pub(crate) fn way_to_all(report: &Report) -> String {
    format!("agent_result {} has more", report.agent)
}
