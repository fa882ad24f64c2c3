//! Waiting agents are started.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tiller_protocol::{AgentId, AgentState, Message};
use tiller_tool::Workspace;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::Envelope;
use crate::core::Core;
use crate::core::msg::{Msg, REPORTS};
use crate::core::services::Services;
use crate::crew::child::identity::{AgentIdentity, Assignment, Child, Pause, WorkTime};
use crate::crew::child::outbox::Outbox;
use crate::crew::driver::CrewDriver;
use crate::crew::external::{ExternalProgram, ProgramSession};
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::crew::roster::member::MemberHandle;
use crate::prompts::compose;
use crate::prompts::msg::Destination;
use crate::session::load;
use crate::session::open;

/// Capacity of a child's channel of commands.
const COMMANDS: usize = 64;

impl CrewDriver<'_> {
    /// Starts waiting agents until as many run as the settings permit.
    pub(crate) fn start_waiting(&mut self) {
        let places = self.core.services.config().agents.running;
        while !self.core.lifecycle.stop
            && self.core.lifecycle.quitting.is_none()
            && self.core.crew.running() < places
        {
            let Some(id) = self.core.crew.next_in_line() else { return };
            // An agent that was stopped before it began may have its folder already.
            let bare =
                |m: &crate::crew::roster::member::Member| m.order.brief.isolated && m.order.folder.is_empty();
            if self.core.crew.members.get(&id).is_some_and(bare) {
                self.make_folder(id);
            } else {
                self.launch(&id);
            }
        }
    }

    /// The services of a member.
    pub(crate) fn services_of(&self, id: &AgentId) -> Result<Services, String> {
        let chain = self.core.crew.chain(id);
        // Without its role its permissions are unknown.
        let lost = chain.iter().find_map(|m| m.order.brief.agent.as_ref().filter(|_| m.role.is_none()));
        if let Some(kind) = lost {
            return Err(format!("its kind of agent, {kind}, no longer exists: restore it first"));
        }
        let folder = self.folder_of(id)?;
        self.core.services.child(&chain, folder).map_err(|e| format!("the folder cannot be opened: {e}"))
    }

    /// The folder of a member if it is not the workspace: its own, or that of its parent.
    pub(crate) fn folder_of(&self, id: &AgentId) -> Result<Option<Workspace>, String> {
        let folder = self.core.crew.members.get(id).map(|m| m.order.folder.clone()).unwrap_or_default();
        if folder.is_empty() {
            return Ok(None);
        }
        let opened = Workspace::new(&tiller_protocol::names::path(&folder));
        let opened = opened.map_err(|e| format!("its folder {folder} cannot be opened: {e}"))?;
        let inside = self.core.services.permit.protection(&opened.root);
        Ok(Some(opened.protect(inside).like(&self.core.services.workspace)))
    }

    /// Creates a git worktree for a member on a blocking thread.
    pub(crate) fn make_folder(&mut self, id: AgentId) {
        self.set_state(&id, AgentState::Running);
        let Some(make) = self.core.services.crew.folders.clone() else {
            return self.start_failed(&id, "agents cannot have their own folders here");
        };
        let name = format!("{}-{}", &self.core.session.id.0.simple().to_string()[20..], id.name());
        let place = self.core.services.places.worktrees().join(name);
        let (own, tx, permit) = (
            Arc::clone(&self.core.services.workspace),
            self.core.tx.clone(),
            self.core.services.permit.clone(),
        );
        let Some(session) = self.core.crew.members.get(&id).map(|m| m.session) else { return };
        self.core.spawn(async move {
            let work = move || {
                let place = make(&own.root, &place)?;
                let folder = Workspace::new(&place).map_err(|e| e.to_string())?;
                let inside = permit.protection(&folder.root);
                Ok(folder.protect(inside).like(&own))
            };
            let made = tokio::task::spawn_blocking(work).await;
            let made = made.unwrap_or_else(|_| Err("internal error while creating it".into()));
            let msg = Box::new(MemberMsg::Folder(made));
            let _ = tx.send(Msg::Crew(CrewMsg::Member { id, session, msg })).await;
        });
    }

    pub(crate) fn folder_made(&mut self, id: &AgentId, made: Result<Workspace, String>) {
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        // If it was stopped meanwhile, only its folder is recorded.
        let waits = member.hands.is_none() && member.state() == AgentState::Running;
        match made {
            Ok(folder) => {
                member.order.folder = tiller_protocol::names::written(&folder.root);
                if waits {
                    self.launch(id);
                } else {
                    self.store_member(id);
                }
            }
            Err(why) if waits => {
                self.start_failed(id, &format!("its own folder could not be created: {why}"))
            }
            Err(_) => {}
        }
    }

    /// Starts a member on its task.
    pub(crate) fn launch(&mut self, id: &AgentId) {
        if !self.core.crew.members.contains_key(id) {
            return;
        }
        let w = match self.services_of(id) {
            Ok(w) => Arc::new(w),
            Err(why) => return self.start_failed(id, &why),
        };
        let (mut core, inbox) = self.new_child(id, w);
        let Some(member) = self.core.crew.members.get_mut(id) else { return };
        let message = Message::text(crate::crew::start::services::first_message(&core, &member.order.brief));
        core.session.id = member.session;
        core.session.info.title.clone_from(&member.order.label);
        core.session.info.titled = true;
        open::enter_fresh(&mut core);
        compose::compose(&mut core, Destination::Prompt { client: None }, vec![(None, message)]);
        self.run_child(id, core, inbox, true);
        self.deliver_early(id);
    }

    /// Runs a child's loop on its own task. `work`: it has something to do.
    pub(crate) fn run_child(&mut self, id: &AgentId, core: Core, inbox: mpsc::Receiver<Msg>, work: bool) {
        let (tx, name, session) = (core.tx.clone(), id.clone(), core.session.id);
        // The message of its end is sent after all others.
        let main = core
            .identity
            .child
            .as_ref()
            .map_or_else(|| Outbox::new(self.core.tx.clone()), |c| c.main.clone());
        self.core.crew.next += 1;
        let run = self.core.crew.next;
        let (sender, receiver) = mpsc::channel::<Envelope>(COMMANDS);
        let task = tokio::spawn(async move {
            // After an internal error in a child, callers that wait for it must still be answered.
            if AssertUnwindSafe(core.run(receiver, inbox)).catch_unwind().await.is_err() {
                tracing::error!(agent = %name, "an agent ended because of an internal error");
            }
            // The session may have ended.
            let msg = Box::new(MemberMsg::TaskEnded { run });
            main.send(Msg::Crew(CrewMsg::Member { id: name, session, msg }));
        });
        if let Some(member) = self.core.crew.members.get_mut(id) {
            member.hands = Some(MemberHandle {
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
        self.store_member(id);
    }

    /// The loop of a member, with an empty session.
    pub(crate) fn new_child(&self, id: &AgentId, w: Arc<Services>) -> (Core, mpsc::Receiver<Msg>) {
        let (tx, inbox) = mpsc::channel(REPORTS);
        let order = self.core.crew.members.get(id).map(|m| m.order.clone()).unwrap_or_default();
        let role = self.core.crew.members.get(id).and_then(|m| m.role.clone());
        let profile = crate::crew::start::recruit::narrowed(order.profile, self.core.session.profile);
        let external = order.brief.cli.as_ref().and_then(|cli| {
            let (adapter, transport) = self.find_program(cli).ok()?;
            let session = ProgramSession {
                id: order.theirs.clone(),
                booked: (order.booked, order.counted),
                model: order.brief.model.clone(),
            };
            Some(ExternalProgram::new(adapter, transport, session))
        });
        // Files of its earlier runs still count as its work.
        let report = self.core.crew.members.get(id).and_then(|m| m.report.as_ref());
        let files: BTreeSet<String> = report.map(|r| r.files.iter().cloned().collect()).unwrap_or_default();
        let child = Child {
            main: Outbox::new(self.core.tx.clone()),
            root: self.core.session.id,
            assignment: Assignment {
                spawned_by: order.spawned_by,
                label: order.label.clone(),
                skills: order.brief.skills.clone(),
                max_profile: order.profile,
            },
            reservations: Arc::clone(&self.core.crew.reservations),
            limits: order.limits,
            open_questions: 0,
            work: order.work,
            files,
            time: WorkTime { before: Duration::from_millis(order.work.millis), since: None },
            pause: Pause::default(),
            receipts: HashMap::new(),
            unannounced: Vec::new(),
            external,
        };
        let effort = role.as_ref().and_then(|r| r.effort).unwrap_or(self.core.session.effort);
        let me = AgentIdentity { id: id.clone(), child: Some(Box::new(child)), role, look_only: false };
        let mut session = load::fresh(&w, order.model, profile, false);
        session.effort = effort;
        let watching = self.core.watching.for_child();
        let mut core = Core::new(w, me, Arc::clone(&self.core.bus), tx, session, watching);
        core.prompts.finder = Arc::clone(&self.core.prompts.finder);
        core.money.day.clone_from(&self.core.money.day);
        (core, inbox)
    }

    /// Ends a member that could not be started.
    pub(crate) fn start_failed(&mut self, id: &AgentId, why: &str) {
        let why = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::Internal, why);
        let end =
            crate::crew::msg::RunEnd::without_work(tiller_protocol::event::TurnStatus::Failed, Some(why));
        self.member_ended(id, end);
    }
}
