//! Agents that wait for a place are started.

use crate::prompts::compose;
use crate::session::open;
use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tiller_protocol::{AgentId, AgentState, Message};
use tiller_tool::Workspace;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::member::Hands;
use super::outbox::Outbox;
use super::{AgentIdentity, Child, CrewMsg};
use crate::bus::Envelope;
use crate::core::Core;
use crate::core::msg::{Msg, REPORTS};
use crate::core::services::Services;
use crate::prompts::msg::Goal;
use crate::session::load;

/// Commands that may wait for a child.
const COMMANDS: usize = 64;

impl Core {
    /// Starts whom there is a place for.
    pub(crate) fn muster(&mut self) {
        let places = self.services.config().agents.running;
        while !self.lifecycle.stop && self.lifecycle.quitting.is_none() && self.crew.running() < places {
            let Some(id) = self.crew.next_in_line() else { return };
            // One that was stopped before it began may have its folder already.
            let bare = |m: &super::member::Member| m.order.brief.isolated && m.order.folder.is_empty();
            if self.crew.members.get(&id).is_some_and(bare) {
                self.make_folder(id);
            } else {
                self.launch(&id);
            }
        }
    }

    /// What a member may use.
    pub(super) fn world_of(&self, id: &AgentId) -> Result<Services, String> {
        let chain = self.crew.chain(id);
        // Without its kind nobody would know what it may not do.
        let lost = chain.iter().find_map(|m| m.order.brief.agent.as_ref().filter(|_| m.role.is_none()));
        if let Some(kind) = lost {
            return Err(format!("its kind of agent, {kind}, no longer exists: restore it first"));
        }
        let folder = self.folder_of(id)?;
        self.services.child(&chain, folder).map_err(|e| format!("the folder cannot be opened: {e}"))
    }

    /// The folder apart that a member works in: its own, or that of the one which started it.
    fn folder_of(&self, id: &AgentId) -> Result<Option<Workspace>, String> {
        let folder = self.crew.members.get(id).map(|m| m.order.folder.clone()).unwrap_or_default();
        if folder.is_empty() {
            return Ok(None);
        }
        let opened = Workspace::new(&tiller_protocol::names::path(&folder));
        let opened = opened.map_err(|e| format!("its folder {folder} cannot be opened: {e}"))?;
        let inside = self.services.permit.protection(&opened.root);
        Ok(Some(opened.protect(inside).like(&self.services.workspace)))
    }

    /// A git worktree of its own, made away from the engine's task.
    fn make_folder(&mut self, id: AgentId) {
        self.set_state(&id, AgentState::Running);
        let Some(make) = self.services.crew.folders.clone() else {
            return self.no_start(&id, "agents cannot have their own folders here");
        };
        let name = format!("{}-{}", &self.session.id.0.simple().to_string()[20..], id.name());
        let place = self.services.places.worktrees().join(name);
        let (own, tx, permit) =
            (Arc::clone(&self.services.workspace), self.tx.clone(), self.services.permit.clone());
        let Some(session) = self.crew.members.get(&id).map(|m| m.session) else { return };
        self.spawn(async move {
            let work = move || {
                let place = make(&own.root, &place)?;
                let folder = Workspace::new(&place).map_err(|e| e.to_string())?;
                let inside = permit.protection(&folder.root);
                Ok(folder.protect(inside).like(&own))
            };
            let made = tokio::task::spawn_blocking(work).await;
            let made = made.unwrap_or_else(|_| Err("internal error while creating it".into()));
            let msg = Box::new(CrewMsg::Folder { id: id.clone(), made });
            let _ = tx.send(Msg::Crew(CrewMsg::Of { id, session, msg })).await;
        });
    }

    pub(crate) fn folder_made(&mut self, id: &AgentId, made: Result<Workspace, String>) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        // It may have been stopped meanwhile: then only its folder is there.
        let waits = member.hands.is_none() && member.state() == AgentState::Running;
        match made {
            Ok(folder) => {
                member.order.folder = tiller_protocol::names::written(&folder.root);
                if waits {
                    self.launch(id);
                } else {
                    self.keep_member(id);
                }
            }
            Err(why) if waits => self.no_start(id, &format!("its own folder could not be created: {why}")),
            Err(_) => {}
        }
    }

    /// Starts it.
    fn launch(&mut self, id: &AgentId) {
        if !self.crew.members.contains_key(id) {
            return;
        }
        let w = match self.world_of(id) {
            Ok(w) => Arc::new(w),
            Err(why) => return self.no_start(id, &why),
        };
        let (mut core, inbox) = self.new_child(id, w);
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let message = Message::text(core.task(&member.order.brief));
        core.session.id = member.session;
        core.session.title.clone_from(&member.order.label);
        core.session.titled = true;
        open::enter_fresh(&mut core);
        compose::compose(&mut core, Goal::Prompt { client: None }, vec![(None, message)]);
        self.set_running(id, core, inbox, true);
        self.early(id);
    }

    /// Hands the child's end of things to its own task. `work`: it has something to do.
    pub(super) fn set_running(&mut self, id: &AgentId, core: Self, inbox: mpsc::Receiver<Msg>, work: bool) {
        let (tx, name, session) = (core.tx.clone(), id.clone(), core.session.id);
        // Its end comes after all that it said.
        let main =
            core.identity.child.as_ref().map_or_else(|| Outbox::new(self.tx.clone()), |c| c.main.clone());
        self.crew.next += 1;
        let run = self.crew.next;
        let (sender, receiver) = mpsc::channel::<Envelope>(COMMANDS);
        let task = tokio::spawn(async move {
            // A mistake of ours in one must not leave those waiting who wait for it.
            if AssertUnwindSafe(core.run(receiver, inbox)).catch_unwind().await.is_err() {
                tracing::error!(agent = %name, "an agent ended because of an internal error");
            }
            // The session may have ended.
            let msg = Box::new(CrewMsg::Gone { id: name.clone(), run });
            main.send(Msg::Crew(CrewMsg::Of { id: name, session, msg }));
        });
        if let Some(member) = self.crew.members.get_mut(id) {
            member.hands = Some(Hands {
                commands: sender,
                outbox: Outbox::new(tx),
                run,
                task: AbortOnDropHandle::new(task),
            });
            member.cancelled = false;
            member.order.fresh = false;
            if work {
                member.view.state = AgentState::Running;
            }
        }
        self.keep_member(id);
    }

    /// A core for a member, with nothing in it yet.
    pub(super) fn new_child(&self, id: &AgentId, w: Arc<Services>) -> (Self, mpsc::Receiver<Msg>) {
        let (tx, inbox) = mpsc::channel(REPORTS);
        let order = self.crew.members.get(id).map(|m| m.order.clone()).unwrap_or_default();
        let role = self.crew.members.get(id).and_then(|m| m.role.clone());
        let profile = super::recruit::narrowed(order.profile, self.session.profile);
        let outside = order.brief.cli.as_ref().and_then(|cli| {
            let (adapter, transport) = self.program(cli).ok()?;
            Some(crate::crew::external::Outside::new(
                adapter,
                transport,
                order.theirs.clone(),
                (order.booked, order.counted),
                order.brief.model.clone(),
            ))
        });
        // What it changed before is still its work.
        let report = self.crew.members.get(id).and_then(|m| m.report.as_ref());
        let files: BTreeSet<String> = report.map(|r| r.files.iter().cloned().collect()).unwrap_or_default();
        let child = Child {
            main: Outbox::new(self.tx.clone()),
            root: self.session.id,
            spawned_by: order.spawned_by,
            label: order.label.clone(),
            skills: order.brief.skills.clone(),
            reservations: Arc::clone(&self.crew.reservations),
            most: order.profile,
            limits: order.limits,
            waiting: 0,
            work: order.work,
            files,
            worked: Duration::from_millis(order.work.millis),
            working: None,
            paused: false,
            resting: None,
            receipts: HashMap::new(),
            heard: Vec::new(),
            outside,
        };
        let effort = role.as_ref().and_then(|r| r.effort).unwrap_or(self.session.effort);
        let me = AgentIdentity { id: id.clone(), child: Some(Box::new(child)), role, look_only: false };
        let mut session = load::fresh(&w, order.model, profile, false);
        session.effort = effort;
        let watching = self.watching.for_child();
        let mut core = Self::new(w, me, Arc::clone(&self.bus), tx, session, watching);
        core.prompts.finder = Arc::clone(&self.prompts.finder);
        core.money.day.clone_from(&self.money.day);
        (core, inbox)
    }

    /// It could not be started.
    pub(super) fn no_start(&mut self, id: &AgentId, why: &str) {
        let why = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::Internal, why);
        let over = super::msg::Over::idle(tiller_protocol::event::TurnStatus::Failed, Some(why));
        self.member_over(id, over);
    }
}
