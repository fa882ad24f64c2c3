//! Starting and ending the engine.

use crate::files::record;
use crate::questions::trust;
use crate::session::open;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{Command, CommandBody, CommandId, Notice, Profile, SessionId};
use tiller_store::{MadeBy, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, EngineHandle};
use crate::context::part::ContextPart;
use crate::core::Core;
use crate::core::lifecycle::Lifecycle;
use crate::core::msg::{Msg, REPORTS};
use crate::core::quit::CHANGED;
use crate::core::sandbox;
use crate::core::saves::Saves;
use crate::core::services::{EngineConfig, Human, Open, RunLimits, Services, SessionOptions};
use crate::files::part::FilesPart;
use crate::money::part::MoneyPart;
use crate::prompts::part::PromptPart;
use crate::questions::asks::Asks;
use crate::questions::rule_writes::RuleWrites;
use crate::session::Session;
use crate::session::load::{self, SessionData};
use crate::turn::part::TurnPart;
use crate::undo::before::Reviews;
use crate::watching::Watching;
use crate::{money, money::budget, prompts::compose};

/// Longest time that [`Engine::shutdown`] takes.
const LAST: Duration = Duration::from_millis(4500);

/// Why it could not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("internal engine error: {0}")]
    Internal(String),
}

impl StartError {
    /// The error as a notice for the user.
    pub fn notice(&self) -> Notice {
        match self {
            Self::Store(e) => e.notice(),
            Self::Internal(_) => Notice::new(tiller_protocol::NoticeKind::Internal, self.to_string()),
        }
    }
}

/// A running engine. Dropping it and every handle ends it, too; [`Engine::shutdown`] waits for the end.
#[derive(Debug)]
pub struct Engine {
    handle: EngineHandle,
    task: JoinHandle<()>,
    session: SessionId,
    /// The rules of answers that are being written.
    rules: Arc<RuleWrites>,
    /// How long its end may take.
    last: Duration,
    /// Its end waits for no hooks of changed files.
    hurry: CancellationToken,
}

impl Engine {
    /// Opens the session and starts the loop. Events of the start (`session_started`, what was interrupted) wait in
    /// the returned stream, so that none is missed.
    ///
    /// # Errors
    /// When the session does not exist or the store cannot be read.
    pub async fn start(config: EngineConfig) -> Result<(Self, crate::EventStream), StartError> {
        let (bus, handle, commands) = Bus::new(Arc::clone(&config.environment.clock));
        let events = handle.subscribe();
        let (tx, inbox) = mpsc::channel(REPORTS);
        let SessionOptions { open, ref model, profile, effort, ref role, read_only, .. } = config.session;
        let (model, role) = (model.clone(), role.clone());
        let RunLimits { requests: max_requests, cost: max_cost } = config.limits;
        let watcher = config.files.watcher.clone();
        let for_hooks = watcher.as_ref().is_some_and(|watcher| watcher.is_for_hooks());
        let trust = config.startup.trust.clone();
        let notices = config.startup.notices.clone();
        let (sandbox, present) = (config.startup.sandbox.clone(), config.user.human == Human::Present);
        let crew = (config.crew.agents)();
        let services = Arc::new(Services::new(config));
        let id = match open {
            Open::New => None,
            Open::Session(id) => Some(id),
            Open::Last => {
                let services = Arc::clone(&services);
                let last = move || {
                    let project = tiller_protocol::names::written(&services.workspace.root);
                    match services.made_by {
                        MadeBy::Person => services.store.sessions().last_own(&project),
                        MadeBy::Exec | MadeBy::Ephemeral => services.store.sessions().last(&project),
                    }
                };
                load::blocking(last).await?.map(|s| s.id)
            }
        };
        let loaded: Option<SessionData> = match id {
            Some(id) => Some(load::load(&services, id, read_only).await?),
            None => None,
        };
        let for_today = Arc::clone(&services);
        let today = load::blocking(move || {
            for_today.models.windows.load(&for_today.store);
            money::today::today(&for_today)
        })
        .await?;
        let first = model.clone().unwrap_or_else(|| services.models.default_model());
        let usual = profile.unwrap_or(services.config().profile);
        let mut session = load::fresh(&services, first, usual, read_only);
        if let Some(effort) = effort.or(role.as_ref().and_then(|r| r.effort)) {
            session.effort = effort;
        }
        let resumed = loaded.is_some();
        let identity = crate::crew::AgentIdentity::main(role);
        let watching = Watching::start(watcher, tx.clone());
        let mut core = Core::new(services, identity, bus, tx, session, watching);
        core.crew = crew;
        core.money.spent.day = today.all;
        core.money.day.clone_from(&today.tiers.day);
        core.money.reservations.learn(today.tiers);
        core.identity.look_only = read_only;
        core.turn.max_requests = max_requests;
        core.money.max_cost = max_cost;
        match loaded {
            Some(mut loaded) => {
                if let Some(model) = model {
                    // Chosen for this start: where it cannot be used, that is an error.
                    (loaded.session.model, loaded.replaced) = (model, None);
                }
                if let Some(effort) = effort {
                    loaded.session.effort = effort;
                }
                if let Some(profile) = profile {
                    if profile == Profile::Plan && loaded.session.profile != profile {
                        loaded.session.before_plan = Some(loaded.session.profile);
                    }
                    loaded.session.profile = profile;
                }
                open::enter(&mut core, loaded);
            }
            None => {
                open::enter_fresh(&mut core);
            }
        }
        for notice in core.services.store.notices().to_vec() {
            core.notice(notice);
        }
        core.services.store.mark_notices_shown();
        open::announce(&mut core, None, resumed);
        for notice in notices {
            core.notice(notice);
        }
        if let Some(offer) = trust {
            trust::ask_trust(&mut core, offer);
        }
        if let Some(test) = sandbox {
            sandbox::start(&mut core, test, present);
        }
        crate::learning::consolidate_if_due(&mut core);
        crate::learning::notice_of_faults(&mut core);
        record::finish_restore(&mut core);
        crate::memory::condense::with_model(&mut core);
        crate::memory::late::begin(&mut core);
        // What an import or another process has written has no vectors yet.
        if let Some(finder) = &core.services.user.search {
            finder.refresh();
        }
        let session = core.session.id;
        let rules = Arc::clone(core.services.permit.writes());
        let closing = Closing(Arc::clone(&core.bus));
        let hurry = core.lifecycle.hurry.clone();
        let task = tokio::spawn(async move {
            let _closing = closing;
            core.run(commands, inbox).await;
        });
        let last = if for_hooks { LAST + CHANGED } else { LAST };
        Ok((Self { handle, task, session, rules, last, hurry }, events))
    }

    /// A handle for clients.
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// The session that it began with.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Cancelled, it has the end wait for no hooks of changed files.
    pub fn hurry(&self) -> CancellationToken {
        self.hurry.clone()
    }

    /// Stops it at once, for tests of what a crash leaves behind.
    #[cfg(any(test, feature = "testing"))]
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Saves, ends every child process, and ends. Takes a few seconds at most, usually milliseconds. Returns notices about what
    /// could not be saved and no event reported.
    pub async fn shutdown(self) -> Vec<Notice> {
        let quit = Command::new(CommandId(u64::MAX), CommandBody::Session(SessionCommand::Quit));
        // When the queue of commands is full, the task is aborted below.
        let _ = self.handle.send(quit);
        let mut task = self.task;
        if tokio::time::timeout(self.last, &mut task).await.is_err() {
            task.abort();
        }
        self.rules.unsaved()
    }
}

impl Core {
    /// The state before a session is opened.
    pub(crate) fn new(
        services: Arc<Services>,
        identity: crate::crew::AgentIdentity,
        bus: Arc<Bus>,
        tx: mpsc::Sender<Msg>,
        session: Session,
        watching: Watching,
    ) -> Self {
        let keeping = tokio_util::task::TaskTracker::new();
        keeping.close();
        let restores = tokio_util::task::TaskTracker::new();
        restores.close();
        Self {
            identity,
            crew: Box::new(crate::crew::NoCrew),
            bus,
            tx,
            session,
            turn: TurnPart {
                live: None,
                begun: 0,
                inputs: VecDeque::new(),
                prefix: compose::no_prefix(),
                max_requests: None,
                offered: None,
                uses_skills: false,
                model_before: None,
            },
            prompts: PromptPart {
                queue: Vec::new(),
                queue_writes: crate::prompts::pending::QueueWrites::default(),
                behind_job: Vec::new(),
                pending: Vec::new(),
                asked: crate::prompts::msg::SeenComments::default(),
                typed: crate::prompts::msg::ShellLines::default(),
                lines: HashMap::new(),
                finder: Arc::new(crate::prompts::finder::Finder::new(&services.workspace.root)),
                busy: None,
                jobs: 0,
                opened: None,
            },
            asks: Asks::default(),
            context: ContextPart::default(),
            money: MoneyPart {
                limits: budget::Limits::new(&services.config().budget),
                spent: budget::Spending::default(),
                day: String::new(),
                announced_left: None,
                reservations: Arc::default(),
                max_cost: None,
            },
            files: FilesPart {
                reviews: Arc::new(Mutex::new(Reviews::default())),
                recorded: None,
                stepped: false,
                named: Vec::new(),
                last_state: crate::files::LastState::default(),
                failed: false,
                keeping,
                restores,
                quitting: tokio_util::sync::CancellationToken::new(),
            },
            watching,
            saves: Saves::new(),
            lifecycle: Lifecycle::default(),
            services,
        }
    }
}

/// Closes the bus when it is dropped: readers notice the end of the engine, after a panic too.
struct Closing(Arc<Bus>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
