//! The common input of every command, read once: folders, the project, settings, environment, clock.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiller_config::{Flags, LoadedConfig, Places, Problem, Sources};
use tiller_engine::Open;
use tiller_permit::Redactor;
use tiller_permit::trust::{Choice, FolderConfig, Status, TrustDecision, discover, status};
use tiller_protocol::{Clock, IdSource, Notice, NoticeKind, RandomIds, SessionId, SystemClock};
use tiller_provider::ApiFormats;
use tiller_provider::registry::key_variables;
use tiller_skills::Library;
use tiller_store::{Filter, OnFailure, Options, Store, StoreError};
use tiller_tool::{ChildEnv, Registry};

use crate::app::definitions::{mcp::McpSetup, skills};
use crate::app::options::Common;

/// Reads an environment variable; an empty one counts as unset.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Everything that is read before the command runs.
pub struct Setup {
    pub places: Places,
    /// The workspace: absolute, links resolved.
    pub project: PathBuf,
    pub config: LoadedConfig,
    pub sources: Sources,
    pub env: Env,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub redactor: Arc<Redactor>,
    /// Known keys, from the environment and the key file. Never written, never passed to children.
    pub(super) secrets: Vec<String>,
    /// The tools of this process. The other rooms are handed them, or their catalog.
    pub tools: Registry,
    /// The API formats that providers of this process can have.
    pub formats: ApiFormats,
    /// Files of the folder that could run programs or loosen a rule.
    pub folder_config: FolderConfig,
    pub common: Common,
    children: std::sync::OnceLock<Arc<ChildEnv>>,
    /// What tools and the engine share.
    pub(crate) services: SetupServices,
}

/// Services that tools of this process and the engine share.
pub(crate) struct SetupServices {
    /// Memory across sessions.
    pub(crate) memory: Arc<tiller_memory::Memory>,
    /// Of the tools; filled when the database is open.
    pub(crate) learnings: tiller_memory::LearningsSlot,
    /// The `/tmp` of what is confined.
    pub(crate) tmp: tiller_tool::shell::TmpFolder,
    /// MCP servers.
    pub(crate) mcp: McpSetup,
    /// Skills; empty until [`Setup::read_skills`].
    pub(crate) skills: Library,
    /// Of the tools that change skills or make proposals.
    pub(crate) secrets: crate::app::tools::skills::SecretFinder,
}

/// Minimum length of a text that is treated as a key, in bytes.
pub(super) const SHORTEST_KEY: usize = 8;

impl Setup {
    /// Reads folders and settings. Creates nothing, contacts nothing.
    ///
    /// # Errors
    /// When there is no home folder, the project is not a folder, or the settings are invalid.
    pub fn read(common: &Common, flags: Flags) -> Result<Self, Notice> {
        Self::read_with(
            common,
            flags,
            Arc::new(|name: &str| std::env::var(name).ok().filter(|v| !v.is_empty())),
        )
    }

    /// The same, with these variables.
    pub(crate) fn read_with(common: &Common, flags: Flags, env: Env) -> Result<Self, Notice> {
        let places = Places::from_env(&|name| env(name)).ok_or_else(|| {
            Notice::new(
                NoticeKind::Config,
                "The home folder is unknown, so there is no place for settings and sessions.",
            )
            .hint("Set HOME, or set TILLER_HOME to a folder for Tiller.")
        })?;
        let wanted = common.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let project = wanted.canonicalize().ok().filter(|p| p.is_dir()).ok_or_else(|| {
            Notice::new(NoticeKind::Config, format!("{} is not an accessible folder.", wanted.display()))
                .hint("Name an existing folder with -C, or omit -C to work in the current folder.")
        })?;
        let flags = Flags {
            model: common.model.clone(),
            profile: common.profile.map(Into::into),
            effort: common.effort.map(Into::into),
            ..flags
        };
        let formats = ApiFormats::built_in();
        let sources =
            Sources::usual(&places, Some(&project), false, &|name| env(name), flags, formats.kinds());
        let config = tiller_config::load(&sources);
        // Their values are never written anywhere.
        let mut secrets: Vec<String> = key_variables().filter_map(&*env).collect();
        secrets.extend(config.config.providers.values().filter_map(|p| env(p.api_key_env.as_deref()?)));
        let web = &config.config.web;
        secrets.extend([&web.brave_key_env, &web.tavily_key_env].into_iter().filter_map(|name| env(name)));
        secrets.extend(config.config.media.key_variables().filter_map(|name| env(name)));
        secrets.extend(config.config.embeddings.key_env.as_deref().and_then(&*env));
        let file = tiller_config::KeyFile::usual(&places);
        // An unreadable file is reported where its keys are needed.
        for name in file.names().unwrap_or_default() {
            secrets.extend(file.get(&name).ok().flatten().map(|s| s.reveal().to_owned()));
        }
        // Too short for a key: masking it would garble ordinary text.
        secrets.retain(|s| s.len() >= SHORTEST_KEY);
        let mut tools = Registry::built_in();
        let path = env("PATH").unwrap_or_default();
        crate::app::tools::browser::add(
            &mut tools,
            &config.config.browser,
            &places.data.join("browser"),
            &path,
        );
        crate::app::tools::media::add(&mut tools, &config.config.media, &config.config.browser, &*env);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let memory =
            crate::app::tools::memory::add(&mut tools, &config.config, &places, &project, &clock, &secrets);
        let learnings = crate::app::tools::learnings::add(&mut tools);
        let (redactor, library) = (Arc::new(Redactor::new(secrets.clone())), Library::default());
        let approve = config.config.skills.approve;
        let finder = crate::app::tools::skills::SecretFinder::new(&redactor);
        let editor = crate::app::tools::skills::editor(&places, &project, approve, &finder, &clock);
        crate::app::tools::skills::add(&mut tools, &library, &editor);
        crate::app::tools::skills::add_proposals(&mut tools, &places, &project, &finder);
        let mut setup = Self {
            redactor,
            secrets,
            folder_config: FolderConfig::default(),
            tools,
            formats,
            places,
            project,
            config,
            sources,
            env,
            clock,
            ids: Arc::new(RandomIds),
            common: common.clone(),
            children: std::sync::OnceLock::new(),
            services: SetupServices {
                memory,
                learnings,
                tmp: Default::default(),
                mcp: McpSetup::none(),
                skills: library,
                secrets: finder,
            },
        };
        McpSetup::add_to(&mut setup);
        setup.folder_config = discover(&setup.project, &setup.tools.catalog());
        Ok(setup)
    }

    /// Masks these texts, too, in everything that is written. Short ones are not masked: that would garble ordinary text.
    pub(crate) fn keep_secret(&mut self, texts: Vec<String>) {
        self.secrets.extend(texts.into_iter().filter(|text| text.len() >= SHORTEST_KEY));
        self.redactor = Arc::new(Redactor::new(self.secrets.clone()));
        self.services.secrets.replace(&self.redactor);
        self.services.memory.find_secrets(crate::app::tools::skills::find_secret(&self.redactor));
    }

    /// Reads the skills; those of the folder while `trusted` is set. With a store they can be read again, with what the user
    /// trusts by then. Returns what is wrong with those that are left out.
    pub(crate) fn read_skills(&self, store: Option<&Store>, trusted: &Arc<AtomicBool>) -> Vec<Problem> {
        let mut disabled = self.config.config.skills.disabled.clone();
        disabled.extend(self.common.without_skills.iter().cloned());
        let now = trusted.load(Ordering::Relaxed);
        let (skills, wrong) = skills::read(&self.places, &self.folder_config, now, &disabled);
        self.services.skills.replace(skills);
        if let Some(store) = store {
            // Files that are used without stored trust (`--trust`) cannot be revoked.
            let agreed = now && self.trust(store) == Status::Trusted;
            let session = skills::SessionSkills {
                places: self.places.clone(),
                project: self.project.clone(),
                tools: self.tools.catalog(),
                store: store.clone(),
                start: self.folder_config.clone(),
                trusted: Arc::clone(trusted),
                agreed: std::sync::Mutex::new(agreed.then(|| self.folder_config.clone())),
                disabled,
            };
            self.services.skills.reload_with(Arc::new(move || session.again()));
        }
        wrong
    }

    /// The environment of child processes, shared by all that start some.
    pub(crate) fn children(&self) -> Arc<ChildEnv> {
        Arc::clone(self.children.get_or_init(|| ChildEnv::new(crate::app::child_env(self))))
    }

    /// The Python interpreter for scripts; `None`: there is none. For tests of builds for tests `TILLER_TEST_PYTHON` says it:
    /// `none`, or a path that is not looked at.
    pub(crate) fn python(&self) -> Option<PathBuf> {
        if let Some(told) = (self.env)("TILLER_TEST_PYTHON").filter(|_| cfg!(debug_assertions)) {
            return (told != "none").then(|| told.into());
        }
        let python = &self.config.config.code.python;
        tiller_tool::code::find_python(python, &self.children().now(), &self.project)
    }

    /// The tools of this machine: without Python there are no scripts.
    pub(crate) fn tools_here(&self) -> Registry {
        let tools = self.tools.clone();
        match self.python() {
            Some(_) => tools,
            None => tools.without("execute_code"),
        }
    }

    /// The environment of children after another terminal has replaced the variables `names` by `theirs`; the
    /// allow-list and the search for keys still apply.
    pub(crate) fn brought(
        &self,
    ) -> impl Fn(&[&str], &BTreeMap<String, String>) + Send + Sync + 'static + use<> {
        let (children, secrets) = (self.children(), self.secrets.clone());
        let extra = self.config.config.limits.env.clone();
        move |names, theirs| {
            let own = crate::app::start::vars().filter(|(n, _)| !names.contains(&n.as_str()));
            let theirs = theirs.iter().map(|(n, v)| (n.clone(), v.clone()));
            children.set(tiller_permit::child_env(own.chain(theirs), &extra, &secrets));
        }
    }

    /// Errors in the settings as one notice; headless commands stop at it, the screen shows it.
    ///
    /// # Errors
    /// When there are any.
    pub fn check_config(&self) -> Result<(), Notice> {
        let mut lines = self.config.problems.iter().map(ToString::to_string);
        let Some(first) = lines.next() else { return Ok(()) };
        let mut notice =
            Notice::new(NoticeKind::Config, first).hint("`tiller config --schema` lists every setting.");
        for line in lines {
            notice = notice.hint(line);
        }
        Err(notice)
    }

    /// The project's name in the store.
    pub fn project_name(&self) -> String {
        tiller_protocol::names::written(&self.project)
    }

    /// The path of the database.
    pub fn database(&self) -> PathBuf {
        self.places.data.join("tiller.db")
    }

    /// Opens the database, creating it if needed.
    ///
    /// # Errors
    /// A notice that says what to do.
    pub fn open_store(&self) -> Result<Store, Notice> {
        self.try_store(OnFailure::Keep).map_err(|e| e.at_start())
    }

    /// As [`Setup::open_store`]. `on_failure`: what to do with later writes that fail; a person can make room, a script
    /// gets an error.
    ///
    /// # Errors
    /// The error of the store.
    pub fn try_store(&self, on_failure: OnFailure) -> Result<Store, StoreError> {
        // Standard error may be closed.
        let say = |what: &str| drop(writeln!(std::io::stderr().lock(), "tiller: {what} ..."));
        self.try_store_telling(on_failure, Arc::new(say))
    }

    /// As [`Setup::try_store`]; calls `waits` while it takes long, with what it does.
    ///
    /// # Errors
    /// The error of the store.
    pub fn try_store_telling(
        &self,
        on_failure: OnFailure,
        waits: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Store, StoreError> {
        Store::open(&self.database(), Options { on_failure, waits, ..self.store_options() })
    }

    /// Masks errors and recordings of providers.
    pub fn redact(&self) -> tiller_provider::Redact {
        let redactor = Arc::clone(&self.redactor);
        tiller_provider::Redact::new(move |text: &str| redactor.redact(text).into_owned())
    }

    /// With the same clock and ids for store and engine.
    pub fn store_options(&self) -> Options {
        Options { clock: Arc::clone(&self.clock), ids: Arc::clone(&self.ids), ..Options::default() }
    }

    /// A session by its id, a prefix of it, or `last`: the one last used in this folder.
    ///
    /// # Errors
    /// When none matches, or several do.
    pub fn find_session(&self, store: &Store, text: &str) -> Result<SessionId, Notice> {
        if text != "last" {
            return store.sessions().find(text).map_err(|e| {
                let notice = e.notice();
                let known = !notice.hints.is_empty();
                if known { notice } else { notice.hint("`tiller sessions list --all` shows the ids.") }
            });
        }
        let filter = Filter { project: Some(self.project_name()), exec: true, limit: 1, ..Filter::default() };
        let rows = store.sessions().list(&filter).map_err(|e| e.notice())?;
        rows.first().map(|row| row.id).ok_or_else(|| {
            Notice::new(NoticeKind::User, "This folder has no session yet.").hint(
                "`tiller sessions list --all --archived` also lists other folders and archived sessions.",
            )
        })
    }

    /// The requested session. A prefix of its id is enough.
    ///
    /// # Errors
    /// When no session fits.
    pub fn which_session(&self, store: &Store, last: bool, id: Option<&str>) -> Result<Open, Notice> {
        match id {
            Some(text) => Ok(Open::Session(self.find_session(store, text)?)),
            None if last => Ok(Open::Last),
            None => Ok(Open::New),
        }
    }

    /// The user's decision about this folder, compared with its present files.
    pub fn trust(&self, store: &Store) -> Status {
        trust_status(store, &self.project, &self.folder_brings(store))
    }

    /// What the folder brings: a memory file that was made here is no part of it.
    pub fn folder_brings(&self, store: &Store) -> FolderConfig {
        crate::app::tools::memory::without_own(self.folder_config.clone(), &self.project, store)
    }

    /// Reads the project's settings too, in the form that was hashed: the user trusts that form.
    pub fn trust_project(&mut self) {
        crate::app::settings::trust(&mut self.sources, &self.folder_config);
        self.config = tiller_config::load(&self.sources);
    }

    /// The file of keys that the user entered.
    pub fn key_file(&self) -> PathBuf {
        tiller_config::KeyFile::usual(&self.places).path().to_path_buf()
    }

    /// The folder of this project's drafts: one file for each window.
    pub fn drafts(&self) -> PathBuf {
        let name = blake3::hash(self.project.as_os_str().as_encoded_bytes()).to_hex();
        self.places.state.join("drafts").join(&name[..16])
    }
}

/// The user's decision about a folder, compared with what it brings.
pub(crate) fn trust_status(store: &Store, project: &Path, brings: &FolderConfig) -> Status {
    let name = tiller_protocol::names::written(project);
    let stored = store.trust().get(&name).ok().flatten().map(|row| TrustDecision {
        choice: if row.trusted { Choice::Trust } else { Choice::Never },
        items: row.items.into_iter().map(|i| (i.path, i.hash)).collect(),
    });
    status(brings, stored.as_ref())
}

/// The nearest folder at or above `from` that holds `.git`.
pub(crate) fn repository(from: &Path) -> Option<&Path> {
    from.ancestors().find(|p| p.join(".git").exists())
}
