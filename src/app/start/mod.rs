//! Creates the engine from a [`Setup`] and runs it on separate threads.

mod waiting;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tiller_engine::{
    CrewConfig, Engine, EngineConfig, EngineHandle, Environment, EventStream, Exposure, FileServices, Human,
    KeyStore, Open, Redaction, Roles, RunLimits, SessionOptions, SettingsSource, Startup, UserServices,
};
use tiller_hooks::HookSource;
use tiller_permit::Source;
use tiller_permit::trust::Status;
use tiller_protocol::{HookEvent, ModelRef, Notice, NoticeKind};
use tiller_provider::registry::Local;
use tiller_store::{MadeBy, Store};
use tiller_tool::Workspace;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::app::process::temporary;
use crate::app::settings::{self, SharedSettings};
use crate::app::{
    Setup, definitions, definitions::workflows, extensions, logs, restricting, rules, sandbox, terminals,
    trust, watch,
};

/// Permission rules of this run only, in the syntax of `permissions.yaml`.
#[derive(Clone, Debug, Default)]
pub struct RuleFlags {
    /// `--allow`.
    pub allow: Vec<String>,
    /// From the main agent's definition.
    pub ask: Vec<String>,
    /// `--deny`.
    pub deny: Vec<String>,
}

/// What a run may load from the folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct FolderTrust {
    /// The user allows on the command line to load this folder's files.
    pub given: bool,
    /// Ask the user about the folder's files. Otherwise they are loaded only if they are trusted already.
    pub ask: bool,
}

/// The options of a start.
pub struct Start {
    pub open: Open,
    /// The origin of its sessions.
    pub(crate) made_by: MadeBy,
    pub human: Human,
    pub read_only: bool,
    pub rules: RuleFlags,
    pub limits: RunLimits,
    pub trust: FolderTrust,
    /// Watch files (for the screen; a single headless turn shows no changes).
    pub watch: bool,
    /// Create titles with a model.
    pub titles: bool,
    /// Report errors in files as events, too.
    pub announce: bool,
    /// The settings, when the screen shares them.
    pub(crate) shared: Option<Arc<SharedSettings>>,
    /// The definition of the main agent.
    pub(crate) role: Option<String>,
    /// A workflow from a file that the user named.
    pub(crate) workflow: Option<tiller_tool::crew::Workflow>,
    /// Writes sessions to files. `None`: sessions cannot be exported.
    pub(crate) exporter: Option<tiller_engine::Exporter>,
    /// Called after a yes to the folder.
    pub(crate) on_trust: Option<trust::OnTrust>,
}

impl Start {
    /// A new session without a person.
    pub fn headless(open: Open) -> Self {
        Self {
            open,
            made_by: MadeBy::Exec,
            human: Human::Absent,
            read_only: false,
            rules: RuleFlags::default(),
            limits: RunLimits::default(),
            trust: FolderTrust::default(),
            watch: false,
            titles: false,
            announce: false,
            shared: None,
            role: None,
            workflow: None,
            exporter: None,
            on_trust: None,
        }
    }
}

/// A running engine with its runtime.
pub struct Running {
    runtime: Runtime,
    engine: Engine,
    events: Option<EventStream>,
    mcp: Option<Arc<tiller_mcp::Hub>>,
    /// Dropped last, so that messages at the end are logged, too.
    _logs: Option<logs::Logs>,
    /// Errors in files, for the user.
    pub notices: Vec<Notice>,
}

impl Running {
    /// Starts the engine.
    ///
    /// # Errors
    /// When a part of it cannot be created; the notice says what to do.
    pub fn start(mut setup: Setup, store: Store, start: Start) -> Result<Self, Notice> {
        let internal = |what: &str, e: &dyn std::fmt::Display| {
            Notice::new(NoticeKind::Internal, format!("{what}: {e}."))
        };
        tiller_tool::shell::own_folder::sweep_at_start();
        let confiners = sandbox::confiners(&setup);
        let programs_confiner = sandbox::program_confiner(&setup, &confiners);
        let (plugins, mut plugin_notices) =
            extensions::plugins::load(&mut setup, programs_confiner.as_ref(), &store);
        let status = setup.trust(&store);
        let trusted = start.trust.given || status.may_load();
        let mut server_problems = setup.services.mcp.notices();
        if trusted {
            setup.trust_project();
            server_problems.extend(setup.services.mcp.trust(&setup.folder_config));
        }
        let shared = start.shared.unwrap_or_else(|| SharedSettings::new(&setup));
        if trusted {
            // Errors in them are reported below.
            let _ = shared.trust(&setup.folder_config);
        }
        let mut notices: Vec<Notice> = setup
            .config
            .problems
            .iter()
            .map(|p| {
                let hint = match setup.sources.user.as_ref() == Some(&p.source) && shared.unusable().is_none()
                {
                    true => "Until it is corrected, the file is not used.",
                    false => rules::UNTIL,
                };
                Notice::new(NoticeKind::Config, p.to_string()).hint(hint)
            })
            .collect();
        notices.extend(temporary::notice());
        notices.extend(server_problems);
        notices.append(&mut plugin_notices);
        notices.extend(settings::doubled(&setup));
        notices.extend(crate::app::files::taken_back(&setup));
        let name = setup.project_name();
        let programs = crate::app::definitions::programs::programs(&setup, &store);
        let may_load = Arc::new(AtomicBool::new(trusted));
        let own_files = trusted || crate::app::tools::memory::may_use(&status);
        crate::app::tools::memory::open(&setup, &store, own_files, shared.secrets());
        setup.services.secrets.open(shared.secrets());
        let (finder, fault) = crate::app::tools::search::finder(&setup, &store);
        notices.extend(fault);
        let (hooks, wrong) = extensions::hooks::load(&setup, &store, programs_confiner, trusted, &plugins);
        notices.extend(wrong);
        let sandbox_test = sandbox::test(&setup, start.human == Human::Present);
        let effects = trust::TrustEffects {
            shared: Arc::clone(&shared),
            trusted: Arc::clone(&may_load),
            places: setup.places.clone(),
            tools: setup.tools.catalog(),
            skills: setup.services.skills.clone(),
            hooks: hooks.clone(),
            project: setup.project.clone(),
            mcp: setup.services.mcp.clone(),
            memory: Arc::clone(&setup.services.memory),
            then: start.on_trust,
        };
        // What the command line allows holds for the whole run.
        let trust_check = (!start.trust.given).then(|| trust::check(&name, &store, effects.clone()));
        let trust = (start.trust.ask && !trusted)
            .then(|| trust::offer(&name, &setup.folder_brings(&store), &store, &status, effects))
            .flatten();
        if !trusted && trust.is_none() && !matches!(status, Status::Nothing) {
            notices.push(
                Notice::new(
                    NoticeKind::Info,
                    match status {
                        Status::Changed(_) => {
                            "Settings, rules or memory of this folder changed since you trusted them; they are not loaded."
                        }
                        _ => "This folder has its own settings, rules or memory; they are not loaded.",
                    },
                )
                .hint("Run `tiller trust` to see them and decide."),
            );
        }
        let log = setup.places.state.join("log");
        let redact = shared.redact();
        let logs = logs::start(&log, (setup.env)("TILLER_LOG").as_deref(), Arc::clone(&redact))
            .map_err(|why| notices.push(Notice::new(NoticeKind::Config, why)))
            .ok();
        // Files that were trusted and changed restrict, too, as far as they can.
        let counts = trusted || matches!(status, Status::Changed(_));
        let (bad, wrong) = if counts {
            restricting::bad_of_folder(&setup.folder_config, &setup.formats.kinds())
        } else {
            Default::default()
        };
        notices.extend(wrong);
        let others = restricting::others(
            {
                let shared = Arc::clone(&shared);
                move || shared.unusable()
            },
            &setup.services.memory,
        );
        let unread = setup.services.memory.unreadable_rules();
        notices.extend(unread.into_iter().map(|(_, why)| rules::BadFile::new(Source::User, why).notice()));
        let lists = [&start.rules.allow[..], &start.rules.ask, &start.rules.deny];
        let (permit, policy, wrong) = rules::permit(&setup, [trusted, counts], &bad, others, lists)?;
        notices.extend(wrong);
        let (roles, wrong) =
            definitions::read(&setup.places, &setup.folder_config, trusted, &setup.tools.catalog());
        notices.extend(definitions::problem_notice(&wrong));
        notices.extend(definitions::skills::problem_notice(&setup.read_skills(Some(&store), &may_load)));
        notices.extend(extensions::packs::notices(&setup.places));
        if start.human == Human::Present && start.watch && !start.read_only {
            notices.extend(waiting::notice(&setup, &store));
        }
        let role = match &start.role {
            Some(name) => Some(roles.get(name).cloned().ok_or_else(|| {
                Notice::new(NoticeKind::User, roles.no_such(name)).hint("see `tiller agents list`")
            })?),
            None => None,
        };
        if let Some(it) = &role
            && let Some(why) = setup.services.skills.now().wrong(&it.skills)
        {
            let said = format!("the agent {} uses a skill that does not exist here: {why}", it.name);
            return Err(Notice::new(NoticeKind::User, said).hint(
                "skills are folders with a SKILL.md in skills/ of the settings folder or in .tiller/skills/",
            ));
        }
        let config = setup.config.config.clone();
        let providers = shared.providers();
        let terminals = terminals::session(&setup);
        let workspace = Workspace::new(&setup.project)
            .map_err(|e| internal("The folder cannot be opened", &e))?
            .protect(policy.protected.as_fn())
            .mask(shared.secrets())
            .confine(confiners)
            .tmp(sandbox::tmp(&setup))
            .at(terminals::of_main(&setup, &terminals)?)
            .publishes(crate::app::files::publishes(&setup));
        let p = &setup.places;
        let own = vec![p.config.clone(), p.data.clone(), p.state.clone(), p.cache.clone()];
        // Hooks for changed files run without a screen, too.
        let follows = hooks.any(HookEvent::FileChanged) && !start.read_only;
        let watcher = ((start.watch || follows) && config.watch.enabled).then(|| {
            let watch = watch::Watch::new(&setup.project, &config.watch, own, Arc::clone(&setup.clock));
            Arc::new(watch.for_hooks(!start.watch)) as Arc<dyn tiller_engine::Watcher>
        });
        let keys = KeyStore {
            file: setup.key_file(),
            rebuild: {
                let shared = Arc::clone(&shared);
                Arc::new(move || shared.providers())
            },
            entered: {
                let shared = Arc::clone(&shared);
                Arc::new(move |provider: &str| shared.entered(provider))
            },
            learn: {
                let shared = Arc::clone(&shared);
                Arc::new(move |key: &str| shared.learn(key))
            },
        };
        let again = SettingsSource {
            read: {
                let (shared, hooks) = (Arc::clone(&shared), hooks.clone());
                Arc::new(move || {
                    let fresh = shared.fresh()?;
                    // Faults of the file were reported when it was checked.
                    let _ = hooks.set(&HookSource::User, &fresh.config.hooks, None);
                    Ok(fresh)
                })
            },
            keep: {
                let (file, kinds) = (setup.places.config.join(tiller_config::FILE), setup.formats.kinds());
                Arc::new(move |local: &Local| settings::keep_local(&file, &kinds, local))
            },
        };
        let child_env = setup.children();
        let env = child_env.now();
        let flows =
            workflows::source(&setup.places.config, &setup.project, &setup.folder_config, may_load, env);
        let flows = workflows::with(flows, start.workflow);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("engine")
            .enable_all()
            .build()
            .map_err(|e| internal("The engine's threads could not be started", &e))?;
        let (folders, kept) = (crate::app::spill::folders(&setup.places), store.clone());
        // Not awaited; at the end of the process it stops wherever it is.
        drop(runtime.spawn_blocking(move || {
            match kept.trash().discard_ephemeral().wait() {
                Ok(gone) => gone.iter().for_each(|id| crate::app::spill::discard(&folders, *id)),
                Err(error) => {
                    tracing::warn!(%error, "sessions of killed ephemeral runs could not be removed")
                }
            }
            for folder in folders {
                crate::app::spill::sweep(&folder, &kept, std::time::SystemTime::now());
            }
        }));
        setup.services.skills.record_in(store.clone());
        let reload = {
            let (shared, hooks) = (Arc::clone(&shared), hooks.clone());
            // The settings were checked before they were written.
            Arc::new(move || {
                if let Ok(fresh) = shared.fresh() {
                    let _ = hooks.set(&HookSource::User, &fresh.config.hooks, None);
                }
            })
        };
        let learnings = Some(crate::app::tools::learnings::service(&setup, &store, reload));
        let parts = EngineConfig {
            session: SessionOptions {
                open: start.open,
                made_by: start.made_by,
                model: config
                    .model
                    .clone()
                    .filter(|_| setup.sources.flags.model.is_some() || setup.sources.model.is_some())
                    .map(ModelRef),
                profile: setup.sources.flags.profile,
                effort: setup.sources.flags.effort,
                role,
                read_only: start.read_only,
                titles: start.titles,
            },
            limits: start.limits,
            environment: Environment {
                places: setup.places.clone(),
                clock: Arc::clone(&setup.clock),
                ids: Arc::clone(&setup.ids),
                child_env,
                variables: Arc::clone(&setup.env),
                retry_scale: 1.0,
            },
            store,
            config,
            providers,
            workspace,
            tools: setup.tools_here(),
            crew: CrewConfig {
                agents: Arc::new(|| Box::<tiller_agents::Roster>::default()),
                delegation: Arc::new(tiller_agents::Delegation),
                programs: Some(programs),
                folders: Some(Arc::new(tiller_watch::git::worktree::make)),
                terminals: Some(terminals),
                workflows: Some(flows),
                roles: Roles::with_skills(roles, setup.services.skills.clone()),
            },
            permit,
            hooks,
            redaction: Redaction { redact, incomplete: shared.incomplete() },
            user: UserServices {
                human: start.human,
                keys: Some(keys),
                settings: Some(again),
                exporter: start.exporter,
                mcp: setup.services.mcp.hub.clone().map(|hub| hub as Arc<dyn tiller_tool::mcp::McpServers>),
                memory: Some(Arc::clone(&setup.services.memory)),
                memory_rights: tiller_protocol::MemoryRights::Write,
                learnings,
                may_learn: true,
                search: Some(finder),
                trust: trust_check,
                exposure: Exposure::default(),
            },
            files: FileServices { snapshots: crate::app::files::keeper(&setup), watcher },
            startup: Startup {
                trust,
                notices: if start.announce { notices.clone() } else { Vec::new() },
                sandbox: Some(sandbox_test),
            },
        };
        let (engine, events) = runtime.block_on(Engine::start(parts)).map_err(|e| e.notice())?;
        Ok(Self { runtime, engine, events: Some(events), mcp: setup.services.mcp.hub, _logs: logs, notices })
    }

    /// For sending commands.
    pub fn handle(&self) -> EngineHandle {
        self.engine.handle()
    }

    /// The session at the start.
    pub fn session(&self) -> tiller_protocol::SessionId {
        self.engine.session()
    }

    /// All events since the start. A second call returns later events only.
    pub fn events(&mut self) -> EventStream {
        self.events.take().unwrap_or_else(|| self.engine.handle().subscribe())
    }

    /// Runs a future on the engine's threads.
    pub fn block_on<T>(&self, f: impl Future<Output = T>) -> T {
        self.runtime.block_on(f)
    }

    /// Cancelled, it has the end wait for no hooks of changed files.
    pub fn hurry(&self) -> CancellationToken {
        self.engine.hurry()
    }

    /// Saves, ends all children, and stops. Returns notices about what could not be saved and no event
    /// reported.
    pub fn stop(self) -> Vec<Notice> {
        let unsaved = self.runtime.block_on(self.engine.shutdown());
        if let Some(hub) = &self.mcp {
            self.runtime.block_on(hub.end());
        }
        self.runtime.shutdown_timeout(Duration::from_millis(200));
        unsaved
    }
}

/// The environment of every child.
pub(crate) fn child_env(setup: &Setup) -> Vec<(String, String)> {
    tiller_permit::child_env(vars(), &setup.config.config.limits.env, &setup.secrets)
}

/// Tiller's own environment, with a `TMPDIR` that can be used. Variables that are not UTF-8 are not passed to children.
pub(super) fn vars() -> impl Iterator<Item = (String, String)> {
    let utf8 =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let temporary = temporary::replaced();
    std::env::vars_os().filter_map(utf8).map(move |(name, value)| match temporary {
        Some((_, folder)) if name == temporary::VARIABLE => (name, folder.display().to_string()),
        _ => (name, value),
    })
}
