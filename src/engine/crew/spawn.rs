//! Engines of children: how the crew makes an engine, and the handle of a running engine.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tiller_config::agents::Definition;
use tiller_external::{Adapter, Transport};
use tiller_protocol::{AgentId, AgentLimits, Cost, EntryId, Message, ModelRef, Profile, SessionId, Usage};
use tiller_store::StoreError;
use tiller_tool::crew::Brief;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::Envelope;
use crate::core::Core;
use crate::core::msg::{Msg, REPORTS};
use crate::core::services::Services;
use crate::crew::child::identity::{AgentIdentity, AgentKind, Assignment, Child, Pause, Work, WorkTime};
use crate::crew::child::msg::ChildMsg;
use crate::crew::child::outbox::Outbox;
use crate::crew::external::{ExternalProgram, ProgramSession};
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::crew::rights::{first_message, narrowed};
use crate::files::msg::FilesMsg;
use crate::prompts::compose;
use crate::prompts::msg::Destination;
use crate::session::load::{self, SessionData};
use crate::session::open;
use crate::tool_call::CallOrigin;

/// Capacity of a child's channel of commands.
pub const COMMANDS: usize = 64;

/// What a child may use. Never more than the agent above it.
#[derive(Clone)]
pub struct ChildServices(pub(crate) Arc<Services>);

impl ChildServices {
    /// Loads a session from the store, to continue it.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub async fn load(&self, session: SessionId) -> Result<LoadedSession, StoreError> {
        load::load(&self.0, session, false).await.map(|loaded| LoadedSession(Box::new(loaded)))
    }
}

/// A session that was loaded from the store.
pub struct LoadedSession(Box<SessionData>);

/// What a child is given at its start.
pub struct ChildSpec {
    pub id: AgentId,
    pub session: SessionId,
    pub label: String,
    pub role: Option<Arc<Definition>>,
    pub model: ModelRef,
    /// The widest profile that it can have.
    pub profile: Profile,
    pub limits: AgentLimits,
    /// The entry that its session hangs off.
    pub spawned_by: Option<EntryId>,
    /// The user wrote its task.
    pub task_of_user: bool,
    /// Names of skills that its task gives it.
    pub skills: Vec<String>,
    /// What it did in earlier runs.
    pub work: Work,
    /// Files that it changed in earlier runs, relative to its folder.
    pub files: BTreeSet<String>,
    /// The program of another vendor that does the work; `None`: a model of a provider.
    pub program: Option<ProgramSpec>,
}

/// The program of another vendor that does the work of a child.
pub struct ProgramSpec {
    pub adapter: Arc<Adapter>,
    /// `None`: the first that the program supports.
    pub transport: Option<Transport>,
    /// The program's own id of the session to resume.
    pub session: Option<String>,
    /// Cost and usage of that session that have been recorded.
    pub booked: (Cost, Usage),
    /// In the program's own spelling.
    pub model: Option<String>,
}

/// The engine of a child that does not run yet.
pub struct ChildEngine {
    core: Core,
    inbox: mpsc::Receiver<Msg>,
    session: SessionId,
}

impl ChildEngine {
    pub(crate) fn new(main: &Core, spec: ChildSpec, services: ChildServices) -> Self {
        let (tx, inbox) = mpsc::channel(REPORTS);
        let program = spec.program.map(|program| {
            let session =
                ProgramSession { id: program.session, booked: program.booked, model: program.model };
            ExternalProgram::new(program.adapter, program.transport, session)
        });
        let init = CallOrigin::in_init(main);
        // Tiller does not see each call of a program of another vendor: all of them are asked about.
        let widest = if init && program.is_some() { spec.profile.min(Profile::Ask) } else { spec.profile };
        let child = Child {
            main: Outbox::new(main.tx.clone()),
            root: main.session.id,
            assignment: Assignment {
                spawned_by: spec.spawned_by,
                task_of_user: spec.task_of_user,
                label: spec.label,
                skills: spec.skills,
                max_profile: widest,
                init,
            },
            limits: spec.limits,
            open_questions: 0,
            work: spec.work,
            files: spec.files,
            time: WorkTime { before: Duration::from_millis(spec.work.millis), since: None },
            pause: Pause::default(),
            receipts: HashMap::new(),
            unannounced: Vec::new(),
        };
        let kind = match program {
            None => AgentKind::Child(Box::new(child)),
            Some(program) => AgentKind::External(Box::new(child), Box::new(program)),
        };
        let effort = spec.role.as_ref().and_then(|r| r.effort).unwrap_or(main.session.effort);
        let identity = AgentIdentity { id: spec.id, kind, role: spec.role, look_only: false };
        let profile = narrowed(widest, main.session.profile);
        let mut session = load::fresh(&services.0, spec.model, profile, false);
        session.effort = effort;
        let watching = main.watching.for_child();
        let mut core = Core::new(services.0, identity, Arc::clone(&main.bus), tx, session, watching);
        core.prompts.finder = Arc::clone(&main.prompts.finder);
        core.money.day.clone_from(&main.money.day);
        core.money.reservations = Arc::clone(&main.money.reservations);
        Self { core, inbox, session: spec.session }
    }

    /// Opens its session, which is new, and gives it its task.
    pub fn begin(&mut self, brief: &Brief) {
        let message = first_message(&self.core, brief);
        self.core.session.id = self.session;
        if let Some(child) = self.core.identity.child() {
            self.core.session.info.title.clone_from(&child.assignment.label);
        }
        self.core.session.info.titled = true;
        open::enter_fresh(&mut self.core);
        self.compose(message);
    }

    /// Opens its session as it was stored.
    pub fn resume(&mut self, loaded: LoadedSession) {
        let profile = self.core.session.profile;
        open::enter(&mut self.core, loaded.0.with_own_model());
        self.core.session.profile = profile;
    }

    /// Another process has its session open.
    pub fn read_only(&self) -> bool {
        self.core.session.read_only
    }

    /// Its session has no message, and none waits.
    pub fn has_no_message(&self) -> bool {
        self.core.session.last_message().is_none() && self.core.prompts.queue.is_empty()
    }

    /// Gives it its task, when its stored session has no message.
    pub fn give_task(&mut self, brief: &Brief) {
        let message = first_message(&self.core, brief);
        self.compose(message);
    }

    fn compose(&mut self, message: String) {
        let message = Message::text(message);
        compose::compose(&mut self.core, Destination::Prompt { client: None }, vec![(None, message)]);
    }

    /// Runs it on a task of its own. `run`: the number of this run, with which its end is reported.
    pub fn run(self, run: u64) -> ChildHandle {
        let Self { core, inbox, .. } = self;
        let (tx, id, session) = (core.tx.clone(), core.identity.id.clone(), core.session.id);
        // The message of its end is sent after all others.
        let main = core.identity.child().map(|c| c.main.clone());
        let (commands, receiver) = mpsc::channel::<Envelope>(COMMANDS);
        let task = tokio::spawn(async move {
            // After an internal error in a child, callers that wait for it must still be answered.
            if AssertUnwindSafe(core.run(receiver, inbox)).catch_unwind().await.is_err() {
                tracing::error!(agent = %id, "an agent ended because of an internal error");
            }
            // The session may have ended.
            if let Some(main) = main {
                let msg = Box::new(MemberMsg::TaskEnded { run });
                main.send(Msg::Crew(CrewMsg::Member { id, session, msg }));
            }
        });
        ChildHandle { commands, outbox: Outbox::new(tx), run, task: AbortOnDropHandle::new(task) }
    }
}

/// A reserved place in the queue of a child's commands: the child receives the command that is sent, unless it ends.
#[derive(Debug)]
pub struct CommandSlot(mpsc::OwnedPermit<Envelope>);

impl CommandSlot {
    /// Sends the command.
    pub fn send(self, envelope: Envelope) {
        self.0.send(envelope);
    }
}

/// Why a child takes no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// Too many commands wait.
    Full,
    /// It has ended.
    Closed,
}

/// The engine of a child that runs. Messages keep their order and are not lost, but where a method says otherwise.
pub struct ChildHandle {
    /// Dropping it ends the child. Its loop holds the other end.
    commands: mpsc::Sender<Envelope>,
    outbox: Outbox,
    run: u64,
    task: AbortOnDropHandle<()>,
}

impl ChildHandle {
    /// The number of the run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// A place for one command of the user or of another agent. Never waits.
    ///
    /// # Errors
    /// When too many commands wait, or the child has ended.
    pub fn reserve(&self) -> Result<CommandSlot, SlotError> {
        match self.commands.clone().try_reserve_owned() {
            Ok(permit) => Ok(CommandSlot(permit)),
            Err(TrySendError::Full(_)) => Err(SlotError::Full),
            Err(TrySendError::Closed(_)) => Err(SlotError::Closed),
        }
    }

    /// Stops its turn. `hard`: kills what runs.
    pub fn stop(&self, hard: bool) {
        self.outbox.send(Msg::Child(ChildMsg::Stop { hard }));
    }

    /// Pauses or resumes it; false: its inbox is full, or it has ended.
    pub fn pause(&self, paused: bool) -> bool {
        self.try_send(ChildMsg::Pause(paused))
    }

    /// Reports that a child of it has ended; false: its inbox is full, or it has ended.
    pub fn child_ended(&self, id: AgentId, text: String) -> bool {
        self.try_send(ChildMsg::ChildEnded { id, text })
    }

    /// Sets the limits that the user chose.
    pub fn set_limits(&self, limits: AgentLimits) {
        self.outbox.send(Msg::Child(ChildMsg::Limits(limits)));
    }

    /// Reports that the profile of the main agent has changed.
    pub fn profile_changed(&self, profile: Profile) {
        self.outbox.send(Msg::Child(ChildMsg::Profile(profile)));
    }

    /// Reports files that its external program changed, relative to its folder.
    pub fn files_changed(&self, files: Vec<String>) {
        self.outbox.send(Msg::Files(FilesMsg::Touched(files)));
    }

    /// Ends it by closing its channel of commands. The result is its task.
    pub fn end(self) -> AbortOnDropHandle<()> {
        self.task
    }

    fn try_send(&self, msg: ChildMsg) -> bool {
        self.outbox.main().try_send(Msg::Child(msg)).is_ok()
    }

    #[cfg(test)]
    pub(crate) fn for_test(outbox: Outbox) -> Self {
        let task = AbortOnDropHandle::new(tokio::spawn(async {}));
        Self { commands: mpsc::channel(1).0, outbox, run: 1, task }
    }
}
