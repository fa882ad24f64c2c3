//! Agents that wait for a place are started.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::{AgentId, AgentState, Message};
use tiller_tool::Workspace;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::member::Hands;
use super::{Child, CrewMsg, Me, world};
use crate::bus::Envelope;
use crate::compose::Goal;
use crate::core::Core;
use crate::msg::{Msg, REPORTS};
use crate::session::load;
use crate::world::World;

/// Commands that may wait for a child.
const COMMANDS: usize = 64;

impl Core {
    /// Starts whom there is a place for.
    pub(crate) fn muster(&mut self) {
        let places = self.w.config().agents.running;
        while !self.stop && self.quitting.is_none() && self.crew.running() < places {
            let Some(id) = self.crew.line.pop_front() else { return };
            let isolated = self.crew.members.get(&id).is_some_and(|m| m.order.brief.isolated);
            if isolated {
                self.make_folder(id);
            } else {
                match self.folder_of(&id) {
                    Ok(folder) => self.launch(&id, folder),
                    Err(why) => self.no_start(&id, &why),
                }
            }
        }
    }

    /// The folder apart that a member works in: its own, or that of the one which started it.
    pub(super) fn folder_of(&self, id: &AgentId) -> Result<Option<Workspace>, String> {
        let folder = self.crew.members.get(id).map(|m| m.order.folder.clone()).unwrap_or_default();
        if folder.is_empty() {
            return Ok(None);
        }
        let opened = Workspace::new(std::path::Path::new(&folder));
        let opened = opened.map_err(|e| format!("its folder {folder} cannot be opened: {e}"))?;
        let inside = self.w.permit.protection(&opened.root);
        Ok(Some(opened.protect(inside)))
    }

    /// A git worktree of its own, made away from the engine's task.
    fn make_folder(&mut self, id: AgentId) {
        self.set_state(&id, AgentState::Running);
        let Some(make) = self.w.folders.clone() else {
            return self.no_start(&id, "no folders of their own can be made for agents here");
        };
        let name = format!("{}-{}", &self.s.id.0.simple().to_string()[20..], id.name());
        let place = self.w.places.worktrees().join(name);
        let (root, tx, permit) = (self.w.workspace.root.clone(), self.tx.clone(), self.w.permit.clone());
        self.spawn(async move {
            let work = move || {
                let place = make(&root, &place)?;
                let folder = Workspace::new(&place).map_err(|e| e.to_string())?;
                let inside = permit.protection(&folder.root);
                Ok(folder.protect(inside))
            };
            let made = tokio::task::spawn_blocking(work).await;
            let made = made.unwrap_or_else(|_| Err("making it failed inside".into()));
            let _ = tx.send(Msg::Crew(CrewMsg::Folder { id, made })).await;
        });
    }

    pub(crate) fn folder_made(&mut self, id: &AgentId, made: Result<Workspace, String>) {
        match made {
            Ok(folder) => {
                if let Some(member) = self.crew.members.get_mut(id) {
                    member.order.folder = folder.root.display().to_string();
                }
                // It may have been stopped while its folder was made; the folder stays.
                let wanted = self.crew.members.get(id).is_some_and(|m| m.state().at_work());
                if wanted {
                    self.launch(id, Some(folder));
                }
            }
            Err(why) if self.crew.members.get(id).is_some_and(|m| m.state().at_work()) => {
                self.no_start(id, &format!("its own folder could not be made: {why}"));
            }
            Err(_) => {}
        }
    }

    /// Starts it.
    fn launch(&mut self, id: &AgentId, folder: Option<Workspace>) {
        if !self.crew.members.contains_key(id) {
            return;
        }
        let w = match self.w.child(&self.crew.chain(id), folder) {
            Ok(w) => Arc::new(w),
            Err(e) => return self.no_start(id, &format!("the folder cannot be opened: {e}")),
        };
        let (mut core, inbox) = self.new_child(id, w);
        let Some(member) = self.crew.members.get_mut(id) else { return };
        let message = Message::text(world::task(&member.order.brief));
        core.s.id = member.session;
        core.s.title.clone_from(&member.order.label);
        core.s.titled = true;
        core.enter_fresh();
        core.compose(Goal::Prompt { client: None }, vec![(None, message)]);
        self.set_running(id, core, inbox);
        self.early(id);
    }

    /// Hands the child's end of things to its own task.
    pub(super) fn set_running(&mut self, id: &AgentId, core: Self, inbox: mpsc::Receiver<Msg>) {
        let (tx, main, name) = (core.tx.clone(), self.tx.clone(), id.clone());
        let (sender, receiver) = mpsc::channel::<Envelope>(COMMANDS);
        let task = tokio::spawn(async move {
            core.run(receiver, inbox).await;
            // The session may have ended.
            let _ = main.send(Msg::Crew(CrewMsg::Gone { id: name })).await;
        });
        if let Some(member) = self.crew.members.get_mut(id) {
            member.hands = Some(Hands { commands: sender, tx, task: AbortOnDropHandle::new(task) });
            member.cancelled = false;
            member.started = true;
            member.view.state = AgentState::Running;
        }
        self.keep_member(id);
    }

    /// A core for a member, with nothing in it yet.
    pub(super) fn new_child(&self, id: &AgentId, w: Arc<World>) -> (Self, mpsc::Receiver<Msg>) {
        let (tx, inbox) = mpsc::channel(REPORTS);
        let order = self.crew.members.get(id).map(|m| m.order.clone()).unwrap_or_default();
        let role = self.crew.members.get(id).and_then(|m| m.role.clone());
        let profile = super::recruit::narrowed(order.profile, self.s.profile);
        let outside = order.brief.cli.as_ref().and_then(|cli| {
            let (adapter, transport) = self.program(cli).ok()?;
            Some(super::outside::Outside::new(
                adapter,
                transport,
                order.theirs.clone(),
                order.brief.model.clone(),
            ))
        });
        let child = Child {
            main: self.tx.clone(),
            root: self.s.id,
            spawned_by: order.spawned_by,
            label: order.label.clone(),
            purse: Arc::clone(&self.crew.purse),
            most: order.profile,
            limits: order.limits,
            waiting: 0,
            requests: 0,
            calls: 0,
            files: BTreeSet::new(),
            worked: Duration::ZERO,
            working: None,
            paused: false,
            resting: None,
            receipts: HashMap::new(),
            heard: Vec::new(),
            outside,
        };
        let me = Me { id: id.clone(), child: Some(Box::new(child)), role };
        let session = load::fresh(&w, order.model, profile, false);
        let watching = self.watching.for_child();
        let mut core = Self::new(w, me, Arc::clone(&self.bus), tx, session, watching);
        core.finder = Arc::clone(&self.finder);
        core.day.clone_from(&self.day);
        (core, inbox)
    }

    /// It could not be started.
    pub(super) fn no_start(&mut self, id: &AgentId, why: &str) {
        let why = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::Internal, why);
        let over = super::msg::Over {
            status: tiller_protocol::event::TurnStatus::Failed,
            text: String::new(),
            why: Some(why),
            files: Vec::new(),
            calls: 0,
            seconds: 0.0,
        };
        self.member_over(id, over);
    }
}
