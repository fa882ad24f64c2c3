//! The hooks in force, where they come from, and their state in this session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use tiller_config::schema;
use tiller_config::schema::HookFormat;
use tiller_permit::pin::Held;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::{Clock, HookEvent, HookRow, HookRun, ToolCatalog, lock};
use tiller_tool::ChildEnv;
use tiller_tool::shell::{Confiner, Host};

/// Where hooks come from, in the order in which they run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookSource {
    /// The user's settings.
    User,
    /// The demo's own, to look at.
    Demo,
    /// A plugin that the user installed.
    Plugin(String),
    /// The project's `.tiller/hooks.toml`.
    Project,
}

impl HookSource {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::User => "yours".into(),
            Self::Demo => "demo".into(),
            Self::Plugin(name) => format!("plugin {name}"),
            Self::Project => "project".into(),
        }
    }
}

/// Names a file of a plugin that is no longer as the user trusted it; `None`: all are. Reads files.
pub type ChangedFile = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Looks before each run of a hook at what it runs. An error names what is no longer as the user trusted it. Reads files.
pub type CheckHook = Arc<dyn Fn(HookEvent, &schema::Hook) -> Result<Held, String> + Send + Sync>;

/// A hook with a `match` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFault {
    pub event: HookEvent,
    pub command: String,
    pub why: String,
}

impl std::fmt::Display for HookFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (event, command) = (self.event.name(), &self.command);
        write!(
            f,
            "hooks.{event}: `match` of the hook `{command}` cannot be used, so it runs each time: {}",
            self.why
        )
    }
}

/// What a hook runs for.
#[derive(Clone, Debug)]
pub(crate) enum HookMatch {
    All,
    /// Calls that a deny rule of this text would be for.
    Calls(Box<Rule>),
    Paths(GlobSet),
}

/// One hook.
#[derive(Debug)]
pub struct Hook {
    pub(crate) event: HookEvent,
    pub(crate) source: HookSource,
    pub(crate) settings: schema::Hook,
    pub(crate) matches: HookMatch,
    /// The folder of its plugin.
    pub(crate) folder: Option<PathBuf>,
    state: Mutex<HookState>,
}

#[derive(Debug)]
struct HookState {
    on: bool,
    runs: u64,
    last: Option<HookRun>,
    /// Its failure has been reported.
    told: bool,
    /// The file that changed while it ran: it is not run again.
    swapped: Option<String>,
}

impl Default for HookState {
    fn default() -> Self {
        Self { on: true, runs: 0, last: None, told: false, swapped: None }
    }
}

/// What a `match` stands for.
fn matching(
    event: HookEvent,
    text: &str,
    format: HookFormat,
    tools: &ToolCatalog,
) -> Result<HookMatch, String> {
    match event {
        HookEvent::BeforeToolCall | HookEvent::AfterToolCall => {
            // The tools of servers are not known yet, and a session need not have each tool that an import names.
            let rule = if text.starts_with("mcp") || format == HookFormat::Claude {
                Rule::parse(Effect::Deny, Source::User, text, tools)
            } else {
                Rule::written(Effect::Deny, Source::User, text, tools)
            };
            rule.map(|rule| HookMatch::Calls(Box::new(rule)))
        }
        HookEvent::FileChanged => {
            let mut forms = GlobSetBuilder::new();
            for form in tiller_protocol::names::pattern_forms(text)? {
                let glob = GlobBuilder::new(&form).literal_separator(true).build();
                forms.add(glob.map_err(|e| e.to_string())?);
            }
            forms.build().map(HookMatch::Paths).map_err(|e| e.to_string())
        }
        _ => Err("it is for tool calls and changed files only".into()),
    }
}

/// Longest name of a hook, in characters.
const NAME: usize = 60;

impl Hook {
    /// The hook, and what is wrong with its settings. With a `match` that cannot be read it runs each time: a guard must
    /// not fall away by a spelling mistake.
    fn new(
        event: HookEvent,
        source: &HookSource,
        settings: schema::Hook,
        folder: Option<PathBuf>,
        tools: &ToolCatalog,
    ) -> (Self, Option<HookFault>) {
        let text = settings.matches.as_deref().map(str::trim).filter(|text| !matches!(*text, "" | "*"));
        let read = match text {
            None => Ok(HookMatch::All),
            Some(text) => matching(event, text, settings.format, tools),
        };
        let (matches, fault) = match read {
            Ok(matches) => (matches, None),
            Err(why) => (HookMatch::All, Some(HookFault { event, command: settings.command.clone(), why })),
        };
        (Self { event, source: source.clone(), settings, matches, folder, state: Mutex::default() }, fault)
    }

    /// Its name in the settings, or its command in one line.
    pub fn name(&self) -> String {
        let text = self.settings.name.as_deref().unwrap_or(&self.settings.command);
        let line = tiller_tool::text::clean(text.as_bytes());
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(NAME) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.settings.timeout.clamp(1, 3600))
    }

    pub(crate) fn claude(&self) -> bool {
        self.settings.format == HookFormat::Claude
    }

    pub(crate) fn is_on(&self) -> bool {
        lock(&self.state).on
    }

    /// Records a run.
    pub(crate) fn ran(&self, run: HookRun) {
        let mut state = lock(&self.state);
        state.runs += 1;
        state.last = Some(run);
    }

    /// Whether its failure is to be reported now: once in a session.
    pub(crate) fn tell(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).told, true)
    }

    /// The file that changed while it ran.
    pub(crate) fn swapped(&self) -> Option<String> {
        lock(&self.state).swapped.clone()
    }

    pub(crate) fn set_swapped(&self, file: Option<String>) {
        lock(&self.state).swapped = file;
    }

    fn id(&self) -> String {
        let all = format!("{}\n{:?}\n{:?}", self.event.name(), self.source, self.settings);
        blake3::hash(all.as_bytes()).to_hex()[..12].to_owned()
    }

    fn same(&self, other: &Self) -> bool {
        self.event == other.event
            && self.source == other.source
            && self.settings == other.settings
            && self.folder == other.folder
    }

    /// For lists.
    pub fn row(&self) -> HookRow {
        let state = lock(&self.state);
        HookRow {
            id: self.id(),
            event: self.event,
            name: self.name(),
            command: self.settings.command.clone(),
            matches: self.settings.matches.clone().unwrap_or_default(),
            source: self.source.words(),
            blocking: self.settings.blocking,
            timeout: self.timeout().as_secs(),
            on: state.on,
            runs: state.runs,
            last: state.last.clone(),
        }
    }
}

/// What all hooks share.
pub struct HooksConfig {
    /// The project's folder, in which they start.
    pub folder: PathBuf,
    /// Their whole environment, without keys.
    pub env: Arc<ChildEnv>,
    /// Confines them; `None`: the sandbox is off, or this system has none.
    pub confiner: Option<Arc<dyn Confiner>>,
    /// The tools that `match` may name.
    pub tools: ToolCatalog,
    pub clock: Arc<dyn Clock>,
}

/// All hooks of a session. Clones share one list.
#[derive(Clone, Default)]
pub struct Hooks(pub(crate) Option<Arc<HookRunner>>);

/// The hooks, and what runs them.
pub(crate) struct HookRunner {
    pub(crate) config: HooksConfig,
    pub(crate) host: Host,
    list: RwLock<Arc<Vec<Arc<Hook>>>>,
    /// Tell whether what the hooks of a source run is still what was trusted.
    checks: RwLock<BTreeMap<HookSource, CheckHook>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hooks").field(&self.list().len()).finish()
    }
}

impl Hooks {
    /// Without hooks yet.
    pub fn new(config: HooksConfig) -> Self {
        let host = Host::default().confined(config.confiner.clone());
        let (list, checks) = (RwLock::default(), RwLock::default());
        Self(Some(Arc::new(HookRunner { config, host, list, checks })))
    }

    /// Replaces the hooks of a source. Hooks that stay the same keep their state. Returns faults of their settings.
    pub fn set(&self, source: &HookSource, hooks: &schema::Hooks, folder: Option<PathBuf>) -> Vec<HookFault> {
        let Some(runner) = &self.0 else { return Vec::new() };
        let mut list = runner.list.write().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(&list);
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for (event, settings) in events(hooks) {
            let (hook, fault) =
                Hook::new(event, source, settings.clone(), folder.clone(), &runner.config.tools);
            let kept = old.iter().find(|known| known.same(&hook)).cloned();
            all.push(kept.unwrap_or_else(|| Arc::new(hook)));
            faults.extend(fault);
        }
        all.extend(old.iter().filter(|hook| hook.source != *source).cloned());
        // Stable: the hooks of one source stay in the order of the file.
        all.sort_by(|a, b| a.source.cmp(&b.source));
        *list = Arc::new(all);
        faults
    }

    /// Removes the hooks of a source.
    pub fn remove(&self, source: &HookSource) {
        let _ = self.set(source, &schema::Hooks::default(), None);
    }

    /// As [`Hooks::set`], for hooks that the user trusts in one form. `check` is called before each run.
    pub fn set_trusted(
        &self,
        source: &HookSource,
        hooks: &schema::Hooks,
        folder: Option<PathBuf>,
        check: CheckHook,
    ) -> Vec<HookFault> {
        if let Some(runner) = &self.0 {
            let mut all = runner.checks.write().unwrap_or_else(PoisonError::into_inner);
            all.insert(source.clone(), check);
            // They are trusted anew.
            self.list().iter().filter(|hook| hook.source == *source).for_each(|hook| hook.set_swapped(None));
        }
        self.set(source, hooks, folder)
    }

    pub(crate) fn list(&self) -> Arc<Vec<Arc<Hook>>> {
        match &self.0 {
            Some(runner) => Arc::clone(&runner.list.read().unwrap_or_else(PoisonError::into_inner)),
            None => Arc::default(),
        }
    }

    /// Whether a hook is to run for this event.
    pub fn any(&self, event: HookEvent) -> bool {
        self.0.is_some() && self.list().iter().any(|hook| hook.event == event && hook.is_on())
    }

    /// Whether a hook is to run for a change of one of these paths, relative to the folder.
    pub fn follows<'a>(&self, mut paths: impl Iterator<Item = &'a str>) -> bool {
        let list = self.list();
        let hooks: Vec<_> =
            list.iter().filter(|hook| hook.event == HookEvent::FileChanged && hook.is_on()).collect();
        paths.any(|path| {
            hooks.iter().any(|hook| match &hook.matches {
                HookMatch::Paths(glob) => glob.is_match(path),
                HookMatch::All | HookMatch::Calls(_) => true,
            })
        })
    }

    /// All of them, in the order of their events.
    pub fn rows(&self) -> Vec<HookRow> {
        let mut rows: Vec<HookRow> = self.list().iter().map(|hook| hook.row()).collect();
        rows.sort_by_key(|row| HookEvent::ALL.iter().position(|event| *event == row.event));
        rows
    }

    /// Turns a hook on or off for this session; false: there is none with this id.
    pub fn switch(&self, id: &str, on: bool) -> bool {
        let list = self.list();
        let found = list.iter().filter(|hook| hook.id() == id);
        found.map(|hook| lock(&hook.state).on = on).count() > 0
    }
}

impl HookRunner {
    pub(crate) fn check_of(&self, source: &HookSource) -> Option<CheckHook> {
        self.checks.read().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }
}

/// The hooks of the settings with their events.
pub(crate) fn events(hooks: &schema::Hooks) -> impl Iterator<Item = (HookEvent, &schema::Hook)> {
    let of = |event: HookEvent| match event {
        HookEvent::SessionStart => &hooks.session_start,
        HookEvent::SessionEnd => &hooks.session_end,
        HookEvent::UserPrompt => &hooks.user_prompt,
        HookEvent::BeforeToolCall => &hooks.before_tool_call,
        HookEvent::AfterToolCall => &hooks.after_tool_call,
        HookEvent::BeforeResponse => &hooks.before_response,
        HookEvent::ContextCompact => &hooks.context_compact,
        HookEvent::AgentStart => &hooks.agent_start,
        HookEvent::AgentEnd => &hooks.agent_end,
        HookEvent::FileChanged => &hooks.file_changed,
        HookEvent::Notification => &hooks.notification,
    };
    HookEvent::ALL.into_iter().flat_map(move |event| of(event).iter().map(move |hook| (event, hook)))
}
