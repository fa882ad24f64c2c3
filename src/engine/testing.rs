//! For tests of the whole engine, here and in `tests/engine`. Behind the feature `testing`.

use std::path::Path;
use std::sync::Arc;

use tiller_config::{Config, Places};
use tiller_permit::{Policy, Roots};
use tiller_protocol::{ModelRef, Part, Profile, RandomIds, SystemClock};
use tiller_provider::Providers;
use tiller_store::{Options, Store, StoreError};
use tiller_tool::{Registry, Workspace};

use crate::{
    CrewConfig, EngineConfig, Environment, FileServices, Human, Open, Permit, Redaction, RunLimits,
    SessionOptions, Startup, UserServices,
};

/// Why the parts of an engine in a scratch folder could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no folder for the data")]
    Places,
    #[error("the workspace: {0}")]
    Workspace(#[from] std::io::Error),
}

/// The configuration of an engine for the folder `work`: its agents are made with `crew`, data is in `home`, the given
/// tools, the profile `full`, no providers, no watcher, no snapshots, and a user who can answer.
///
/// # Errors
/// When a folder or the database cannot be made.
pub fn parts(
    work: &Path,
    home: &Path,
    crew: CrewConfig,
    tools: Registry,
) -> Result<EngineConfig, PartsError> {
    let var = |name: &str| (name == "TILLER_HOME").then(|| home.display().to_string());
    let places = Places::from_env(&var).ok_or(PartsError::Places)?;
    let roots = Roots::new(work, Some(home.to_owned()), vec![home.to_owned()]);
    let child_env = tiller_tool::ChildEnv::new(vec![("PATH".into(), "/usr/bin:/bin".into())]);
    let around = Arc::new(tiller_watch::GitSurroundings::new(Arc::clone(&child_env)));
    Ok(EngineConfig {
        store: Store::open(&home.join("data/tiller.db"), Options::default())?,
        config: Config::default(),
        providers: Providers::default(),
        workspace: Workspace::new(work)?,
        environment: Environment {
            places,
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            child_env,
            variables: Arc::new(|_| None),
            retry_scale: 0.01,
        },
        session: SessionOptions {
            open: Open::New,
            made_by: tiller_store::MadeBy::Person,
            model: Some(ModelRef("fake/m".into())),
            profile: Some(Profile::Full),
            effort: None,
            role: None,
            read_only: false,
            titles: false,
        },
        limits: RunLimits { requests: None, cost: None },
        crew,
        permit: Permit::new(Policy::new(roots, tools.catalog()).within(around), Arc::new(|_| Ok(()))),
        tools,
        hooks: tiller_hooks::Hooks::default(),
        redaction: Redaction { redact: Arc::new(str::to_owned), incomplete: Arc::new(|_| true) },
        user: UserServices {
            human: Human::Present,
            keys: None,
            settings: None,
            exporter: None,
            mcp: None,
            memory: None,
            memory_rights: tiller_protocol::MemoryRights::Write,
            learnings: None,
            may_learn: true,
            search: None,
            trust: None,
            exposure: crate::Exposure::default(),
        },
        files: FileServices { snapshots: None, watcher: None },
        startup: Startup { trust: None, notices: Vec::new(), sandbox: None },
    })
}

/// The text of a message's parts, one line break between two.
#[must_use]
pub fn text_of(content: &[Part]) -> String {
    crate::tool_call::text_of(content)
}
