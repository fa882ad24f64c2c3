//! Waiting agents are started.

use tiller_engine::crew::{
    ChildEngine, ChildServices, ChildSpec, HostChildren, HostSettings, HostTasks, ProgramSpec, RunEnd,
};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentState, Notice, NoticeKind};

use crate::driver::CrewDriver;
use crate::msg::{MemberTaskMsg, TaskMsg};
use crate::reuse;
use crate::roster::member::Member;

impl CrewDriver<'_> {
    /// Starts waiting agents until as many run as the settings permit.
    pub(crate) fn start_waiting(&mut self) {
        let places = self.host.config().agents.running;
        while !self.host.ending() && self.crew.running() < places {
            let Some(id) = self.crew.next_in_line() else { return };
            // An agent that was stopped before it began may have its folder already.
            let bare = |m: &Member| m.order.brief.isolated && m.order.folder.is_empty();
            if self.crew.members.get(&id).is_some_and(bare) {
                self.make_folder(id);
            } else if self.crew.members.get(&id).is_some_and(|m| reuse::needs_stamp(self, m)) {
                reuse::note_stamp(self, id);
            } else {
                self.launch(&id);
            }
        }
    }

    /// The services of a member.
    pub(crate) fn services_of(&self, id: &AgentId) -> Result<ChildServices, String> {
        let chain = self.crew.chain(id);
        // Without its role its permissions are unknown.
        let lost = chain.iter().find_map(|m| m.order.brief.agent.as_ref().filter(|_| m.role.is_none()));
        if let Some(kind) = lost {
            return Err(format!("its kind of agent, {kind}, no longer exists: restore it first"));
        }
        let folder = chain.last().map_or("", |m| m.order.folder.as_str());
        self.host.child_services(&self.crew.grants(id), folder)
    }

    /// Creates a git worktree for a member.
    pub(crate) fn make_folder(&mut self, id: AgentId) {
        self.set_state(&id, AgentState::Running);
        let folder = match self.host.make_folder(&id) {
            Ok(folder) => folder,
            Err(why) => return self.start_failed(&id, &why),
        };
        let Some(session) = self.crew.members.get(&id).map(|m| m.session) else { return };
        let mailbox = self.mailbox();
        self.host.spawn(async move {
            let msg = MemberTaskMsg::Folder(folder.await);
            let _ = mailbox.send(TaskMsg::Member { id, session, msg }).await;
        });
    }

    pub(crate) fn folder_made(&mut self, id: &AgentId, made: Result<String, String>) {
        let Some(member) = self.crew.members.get_mut(id) else { return };
        // If it was stopped meanwhile, only its folder is recorded.
        let waits = member.handle.is_none() && member.state() == AgentState::Running;
        match made {
            Ok(folder) => {
                member.order.folder = folder;
                if waits {
                    self.launch(id);
                } else {
                    self.store_member(id);
                }
            }
            Err(why) if waits => {
                self.start_failed(id, &format!("its own folder could not be created: {why}"));
            }
            Err(_) => {}
        }
    }

    /// Starts a member on its task.
    pub(crate) fn launch(&mut self, id: &AgentId) {
        if !self.crew.members.contains_key(id) {
            return;
        }
        let services = match self.services_of(id) {
            Ok(services) => services,
            Err(why) => return self.start_failed(id, &why),
        };
        let Some(mut engine) = self.new_child(id, services) else { return };
        let Some(member) = self.crew.members.get(id) else { return };
        engine.begin(&member.order.brief);
        self.run_child(id, engine, true);
        self.deliver_early(id);
    }

    /// Runs the engine of a member. `work`: it has something to do.
    pub(crate) fn run_child(&mut self, id: &AgentId, engine: ChildEngine, work: bool) {
        self.crew.next += 1;
        let handle = engine.run(self.crew.next);
        if let Some(member) = self.crew.members.get_mut(id) {
            member.handle = Some(handle);
            member.cancelled = false;
            member.order.fresh = false;
            if work {
                member.view.state = AgentState::Running;
            }
        }
        self.store_member(id);
    }

    /// The engine of a member, with an empty session.
    pub(crate) fn new_child(&self, id: &AgentId, services: ChildServices) -> Option<ChildEngine> {
        let member = self.crew.members.get(id)?;
        let order = &member.order;
        let program = order.brief.cli.as_ref().and_then(|cli| {
            let (adapter, transport) = self.find_program(cli).ok()?;
            Some(ProgramSpec {
                adapter,
                transport,
                session: order.theirs.clone(),
                booked: (order.booked, order.counted),
                model: order.brief.model.clone(),
            })
        });
        // Files of its earlier runs still count as its work.
        let files = member.report.as_ref().map(|r| r.files.iter().cloned().collect());
        let spec = ChildSpec {
            id: id.clone(),
            session: member.session,
            label: order.label.clone(),
            role: member.role.clone(),
            model: order.model.clone(),
            profile: order.profile,
            limits: order.limits,
            spawned_by: order.spawned_by,
            task_of_user: order.of_user,
            skills: order.brief.skills.clone(),
            work: order.work,
            files: files.unwrap_or_default(),
            program,
        };
        Some(self.host.new_child(spec, services))
    }

    /// Ends a member that could not be started.
    pub(crate) fn start_failed(&mut self, id: &AgentId, why: &str) {
        let why = Notice::new(NoticeKind::Internal, why);
        let end = RunEnd::without_work(TurnStatus::Failed, Some(why));
        self.member_ended(id, end);
    }
}
