//! An agent as the main one knows it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tiller_config::agents::Definition;
use tiller_protocol::{
    AgentId, AgentLimits, AgentState, AgentView, ChildView, EntryId, Message, ModelRef, Profile, SessionId,
    Time,
};
use tiller_store::AgentRow;
use tiller_tool::crew::{Brief, Report};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::outbox::Outbox;
use crate::bus::Envelope;
use crate::core::msg::Msg;

/// The ends of a child that runs.
pub(crate) struct Hands {
    /// Dropping it makes the child end by itself.
    pub(crate) commands: mpsc::Sender<Envelope>,
    pub(crate) outbox: Outbox,
    /// Tells it from those before.
    pub(crate) run: u64,
    pub(crate) task: AbortOnDropHandle<()>,
}

impl Hands {
    /// Tells it something that must not be lost, in order: when it is behind, this waits and is not overtaken.
    pub(crate) fn tell(&self, msg: Msg) {
        self.outbox.send(msg);
    }
}

/// What it was asked, as it is kept.
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
    pub(crate) spawned_by: Option<EntryId>,
    /// A folder of its own.
    pub(crate) folder: String,
    /// Tokens and millionths of a dollar that it has used.
    pub(crate) used: (u64, u64),
    pub(crate) work: super::identity::Work,
    /// It has not begun: there is no session of it yet.
    pub(crate) fresh: bool,
    /// What was said to it before it began: it waits with it, also over a restart.
    pub(crate) said: Vec<Message>,
    /// A program's own name for the talk, and how it is driven.
    pub(crate) theirs: Option<String>,
    pub(crate) transport: Option<String>,
    /// What was booked of the costs of that talk.
    pub(crate) booked: tiller_protocol::Cost,
    /// The same of its tokens.
    pub(crate) counted: tiller_protocol::Usage,
}

/// One of the crew.
pub(crate) struct Member {
    pub(crate) id: AgentId,
    pub(crate) session: SessionId,
    pub(crate) order: Order,
    pub(crate) role: Option<Arc<Definition>>,
    /// As it was shown last.
    pub(crate) view: AgentView,
    pub(crate) hands: Option<Hands>,
    /// The person or its parent ended it; its turn is on the way to its end.
    pub(crate) cancelled: bool,
    pub(crate) report: Option<Report>,
    pub(crate) announced: bool,
    /// It has received a request to stop.
    pub(crate) stopping: bool,
    /// What was said to it before it began.
    pub(crate) early: Vec<Envelope>,
    /// It is being read again; what came meanwhile.
    pub(crate) reviving: Option<Vec<Envelope>>,
    pub(crate) created: Time,
    pub(crate) disk: OnDisk,
}

/// How far its row is written down: a fact is shown when it is.
#[derive(Default)]
pub(crate) struct OnDisk {
    /// Changes on their way.
    pub(crate) pending: u32,
    /// Something changed meanwhile that is not kept.
    pub(crate) behind: bool,
    /// The last change could not be written.
    pub(crate) lost: bool,
    /// As everybody has seen it.
    pub(crate) shown: Option<Box<AgentView>>,
}

impl OnDisk {
    /// What is known of it is not on disk yet.
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
            model: order.model.0.clone(),
            ..AgentView::default()
        };
        Self {
            id,
            session,
            order,
            role: None,
            view,
            hands: None,
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

    pub(crate) fn state(&self) -> AgentState {
        self.view.state
    }

    /// Its row, with all that only the main agent knows.
    pub(crate) fn row(&self, used: AgentLimits) -> AgentView {
        let report = self.report.as_ref();
        let child = ChildView {
            session: Some(self.session),
            role: self.order.brief.agent.clone().unwrap_or_default(),
            backend: match (&self.order.brief.cli, &self.order.transport) {
                (Some(cli), Some(how)) => format!("{}, {how}", cli.split(':').next().unwrap_or(cli)),
                (Some(cli), None) => cli.clone(),
                (None, _) => String::new(),
            },
            task: self.order.brief.goal.clone(),
            result: report.map(words).unwrap_or_default(),
            background: self.order.background,
            call: self.order.call.clone(),
            todo: self.order.brief.todo.clone(),
            used,
            limits: self.order.limits,
            files: report.map_or(0, |r| u32::try_from(r.files.len()).unwrap_or(u32::MAX)),
            took: report.filter(|_| !self.state().at_work()).map_or(0.0, |r| r.seconds),
            refused: self.order.work.refused,
            folder: self.order.folder.clone(),
            pane: self.view.child.as_ref().and_then(|c| c.pane.clone()).filter(|_| self.state().at_work()),
            goal: self.view.child.as_ref().and_then(|c| c.goal.clone()),
        };
        AgentView { child: Some(Box::new(child)), ..self.view.clone() }
    }

    /// As it is kept over a restart.
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

/// An agent of a session that was imported. It keeps what was asked and what it brought; where it works, whose talk it
/// goes on with and what begins by itself is not for a file to say.
pub fn from_elsewhere(mut row: AgentRow) -> AgentRow {
    let mut order: Order = serde_json::from_value(row.brief).unwrap_or_default();
    (order.folder, order.theirs, order.transport) = (String::new(), None, None);
    (order.booked, order.counted) = Default::default();
    row.brief = serde_json::to_value(&order).unwrap_or_default();
    if row.state.at_work() {
        row.state = AgentState::Interrupted;
    }
    row.announced = true;
    row
}

/// What came out, for its row.
pub(crate) fn words(report: &Report) -> String {
    let text = if report.done() || report.error.is_empty() { &report.summary } else { &report.error };
    crate::job::words::cut(text.trim(), 2_000)
}
