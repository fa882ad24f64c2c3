//! Which providers there are: built-in names made ready by the environment, and `[providers.NAME]` of
//! the configuration, which wins. Nothing here touches the network.

pub(crate) mod formats;
pub mod key;
pub(crate) mod learned;
pub(crate) mod local;
pub(crate) mod offered;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tiller_config::Config;
use tiller_config::schema::{Provider as Entry, Timeouts};
use tiller_protocol::{Clock as _, ModelRef, SystemClock};

use crate::anthropic;
use crate::codec::WireProvider;
use crate::codec::format::{ApiFormat, LocalEntry, Make};
use crate::demo::{self, Demo};
use crate::gemini;
use crate::models;
use crate::openai::chat::{self, Dialect, OpenAiChat};
use crate::openai::responses;
pub use crate::registry::formats::ApiFormats;
use crate::registry::key::{Key, Secret};
use crate::registry::learned::Learned;
pub use crate::registry::local::{LOCALS, Local, probe_ports};
use crate::registry::local::{is_near, ollama};
pub use crate::registry::offered::{EnteredKey, FoundVariable, OFFERED, OfferedVariable, entered, found};
use crate::replay::record::Recorder;
use crate::replay::redact::{MaskedProvider, Redact};
use crate::transport::http::{Http, NetEnv};
use crate::{Provider, ProviderError};

/// A provider that comes with the program.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    kind: &'static str,
    /// The variable that holds the key; empty: none is needed.
    pub(crate) key: &'static str,
    /// The variable that holds another address.
    base_var: &'static str,
    base: &'static str,
}

const fn builtin(
    name: &'static str,
    kind: &'static str,
    key: &'static str,
    base_var: &'static str,
    base: &'static str,
) -> Builtin {
    Builtin { name, kind, key, base_var, base }
}

/// In the order in which a default model is chosen.
pub(crate) const BUILTIN: &[Builtin] = &[
    builtin("anthropic", anthropic::FORMAT.kind, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", anthropic::BASE),
    builtin("openai-responses", responses::FORMAT.kind, "OPENAI_API_KEY", "OPENAI_BASE_URL", chat::BASE),
    builtin("openai", chat::FORMAT.kind, "OPENAI_API_KEY", "OPENAI_BASE_URL", chat::BASE),
    builtin("gemini", gemini::FORMAT.kind, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", gemini::BASE),
    builtin("openrouter", chat::FORMAT.kind, "OPENROUTER_API_KEY", "", "https://openrouter.ai/api/v1"),
    builtin("xai", chat::FORMAT.kind, "XAI_API_KEY", "", "https://api.x.ai/v1"),
    builtin("groq", chat::FORMAT.kind, "GROQ_API_KEY", "", "https://api.groq.com/openai/v1"),
    builtin("deepseek", chat::FORMAT.kind, "DEEPSEEK_API_KEY", "", "https://api.deepseek.com/v1"),
    builtin("ollama", chat::FORMAT.kind, "", "OLLAMA_HOST", "http://127.0.0.1:11434/v1"),
];

/// Variables that hold keys: of the built-in providers, and of those that are offered.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    let builtin = BUILTIN.iter().map(|b| b.key).filter(|k| !k.is_empty());
    builtin.chain(OFFERED.iter().map(|o| o.variable))
}

/// The API format of a provider that comes with the program, as `kind` names it in `config.toml`.
pub fn builtin_kind(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|b| b.name == name).map(|b| b.kind)
}

/// One name, ready or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedProvider {
    pub name: String,
    /// Why it cannot be used and what would make it ready; `None`: it is ready.
    pub unavailable: Option<String>,
}

/// Vendors that serve their own models at their own address: the table has the names of these.
const VENDORS: [&str; 6] = ["anthropic", "openai-responses", "openai", "gemini", "xai", "deepseek"];

/// Every provider of this process.
#[derive(Clone, Default)]
pub struct Providers {
    /// Those of [`VENDORS`] that are reached at their own address.
    vendors: Vec<&'static str>,
    table: Arc<models::Overrides>,
    ready: BTreeMap<String, Arc<dyn Provider>>,
    listed: Vec<ListedProvider>,
    default: Option<ModelRef>,
    http: Arc<Http>,
    redact: Option<Redact>,
}

/// Makes the providers, each by its format of `formats`. `var` reads the environment; `key_file` is where [`key::save`]
/// keeps keys that the person entered (a file 0600). `redact` masks what servers say of failures, and recordings.
pub fn build(
    config: &Config,
    formats: &ApiFormats,
    var: &dyn Fn(&str) -> Option<String>,
    key_file: Option<&Path>,
    redact: &Redact,
) -> Providers {
    let var = |name: &str| var(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
    let http = Arc::new(Http::new(NetEnv::read(&var)));
    let table: models::Overrides =
        config.providers.iter().map(|(name, p)| (name.clone(), p.models.clone())).collect();
    let table = Arc::new(table);
    let maker =
        Maker { formats, var: &var, key_file, http: Arc::clone(&http), table: Arc::clone(&table), redact };
    let own_address = |b: &&Builtin| {
        let entry = config.providers.get(b.name);
        VENDORS.contains(&b.name)
            && (b.base_var.is_empty() || var(b.base_var).is_none())
            && entry.is_none_or(|entry| entry.base_url.is_none() && entry.kind.0 == b.kind)
    };
    let vendors = BUILTIN.iter().filter(own_address).map(|b| b.name).collect();
    let mut out = Providers { vendors, table, http, redact: Some(redact.clone()), ..Providers::default() };
    for b in BUILTIN {
        match config.providers.get(b.name) {
            Some(entry) => out.add(b.name, maker.entry(b.name, entry, Some(b))),
            None => out.add(b.name, maker.builtin(b)),
        }
    }
    if !config.providers.contains_key(demo::NAME) {
        out.add(demo::NAME, Ok(Arc::new(Demo::default())));
    }
    for (name, entry) in &config.providers {
        if !BUILTIN.iter().any(|b| b.name == name) {
            out.add(name, maker.entry(name, entry, None));
        }
    }
    out.default = choose(config, &var, &out);
    out
}

/// The order: the person's `model`, the main tier, then the first ready built-in with a default model.
fn choose(config: &Config, var: &dyn Fn(&str) -> Option<String>, found: &Providers) -> Option<ModelRef> {
    if let Some(model) = config.model.as_ref().or(config.tiers.main.as_ref()) {
        return Some(ModelRef(model.clone()));
    }
    BUILTIN.iter().find_map(|b| {
        let custom = !b.base_var.is_empty() && var(b.base_var).is_some();
        // A server at another address that speaks the older format is far more common.
        if !found.ready.contains_key(b.name) || b.name == "openai-responses" && custom {
            return None;
        }
        models::default_of(b.name).map(|m| ModelRef(format!("{}/{m}", b.name)))
    })
}

impl Providers {
    fn add(&mut self, name: &str, made: Result<Arc<dyn Provider>, String>) {
        let unavailable = match made {
            Ok(provider) => {
                self.ready.insert(name.to_owned(), provider);
                None
            }
            Err(why) => Some(why),
        };
        self.listed.push(ListedProvider { name: name.to_owned(), unavailable });
    }

    /// Whether no list has this model of a vendor: its name may be wrong, or it is newer than the list. Servers at other
    /// addresses have models of any name.
    pub fn is_unlisted(&self, model: &ModelRef) -> bool {
        let provider = model.provider();
        self.vendors.contains(&provider) && !models::is_listed(&self.table, provider, model.model())
    }

    /// The provider of this name.
    ///
    /// # Errors
    /// [`ProviderError::Rejected`] with what to do, when there is none or it is not ready.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ProviderError> {
        if let Some(provider) = self.ready.get(name) {
            return Ok(self.masked(Arc::clone(provider)));
        }
        if name.is_empty() {
            return Err(ProviderError::Rejected(format!(
                "a model is named PROVIDER/MODEL, for example anthropic/claude-sonnet-5. Known providers: {}.",
                self.names().collect::<Vec<_>>().join(", ")
            )));
        }
        Err(match self.listed.iter().find(|l| l.name == name).and_then(|l| l.unavailable.clone()) {
            Some(why) => ProviderError::Auth(format!("the provider `{name}` is not ready: {why}")),
            None => ProviderError::Rejected(format!(
                "there is no provider `{name}`. Known providers: {}. Add it as \
                    [providers.{name}] in config.toml.",
                self.names().collect::<Vec<_>>().join(", ")
            )),
        })
    }

    fn masked(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        match &self.redact {
            Some(redact) => Arc::new(MaskedProvider { inner, redact: redact.clone() }),
            None => inner,
        }
    }

    /// Adds or replaces a ready provider: a local server after consent, a scripted one in tests.
    pub fn insert(&mut self, provider: Arc<dyn Provider>) {
        let name = provider.name().to_owned();
        match self.listed.iter_mut().find(|l| l.name == name) {
            Some(listed) => listed.unavailable = None,
            None => self.listed.push(ListedProvider { name: name.clone(), unavailable: None }),
        }
        self.ready.insert(name, provider);
    }

    /// Adds a local server after the person's yes. It is then [`Self::get`] by its [`Local::name`].
    pub fn accept(&mut self, local: &Local) {
        self.insert(self.server(local.name, &local.base()));
    }

    /// A server that speaks Chat Completions and needs no key, to try it before it is configured.
    pub fn server(&self, name: &str, base: &str) -> Arc<dyn Provider> {
        Arc::new(WireProvider {
            name: name.to_owned(),
            wire: Box::new(OpenAiChat::new(Dialect::Compatible, is_near(base))),
            base: base.trim_end_matches('/').to_owned(),
            key: Key::None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            table: Arc::default(),
            http: Arc::clone(&self.http),
            learned: None,
        })
    }

    /// Names that are ready, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.ready.keys().map(String::as_str)
    }

    /// Every known name, with the reason when it is not ready. Built-in ones first.
    pub fn list(&self) -> &[ListedProvider] {
        &self.listed
    }

    /// The model to start with; `None`: nothing is configured and nothing was found.
    pub fn default_model(&self) -> Option<ModelRef> {
        self.default.clone()
    }
}

struct Maker<'a> {
    formats: &'a ApiFormats,
    redact: &'a Redact,
    var: &'a dyn Fn(&str) -> Option<String>,
    key_file: Option<&'a Path>,
    http: Arc<Http>,
    table: Arc<models::Overrides>,
}

impl Maker<'_> {
    fn builtin(&self, b: &Builtin) -> Result<Arc<dyn Provider>, String> {
        let key = if b.key.is_empty() {
            if (self.var)(b.base_var).is_none() {
                return Err(format!("needs {}", b.base_var));
            }
            Key::None
        } else {
            self.find_key(b.name, Some(b.key), false)?
        };
        let base = self.base(b, None);
        self.make(b.name, b.kind, base, key, Vec::new(), Timeouts::default())
    }

    fn base(&self, b: &Builtin, own: Option<&str>) -> String {
        let from_env = || (!b.base_var.is_empty()).then(|| (self.var)(b.base_var)).flatten();
        let text = own.map(str::to_owned).or_else(from_env).unwrap_or_else(|| b.base.to_owned());
        if b.name == "ollama" && own.is_none() { ollama(&text) } else { text }
    }

    /// A variable that the configuration names wins, and so does a key that the person entered over a variable
    /// that is only looked at because it is usual: what was said later and closer counts.
    fn find_key(&self, name: &str, variable: Option<&str>, named: bool) -> Result<Key, String> {
        let value = || variable.and_then(|v| (self.var)(v)).map(|v| Key::Value(Secret::new(&v)));
        if named && let Some(key) = value() {
            return Ok(key);
        }
        let mut unreadable = None;
        if let Some(path) = self.key_file {
            // The two names of one vendor share a key.
            for name in [name, if name == "openai-responses" { "openai" } else { name }] {
                match key::load(path, name) {
                    Ok(Some(_)) => return Ok(Key::File { path: path.to_owned(), name: name.to_owned() }),
                    Ok(None) => {}
                    Err(why) => unreadable = Some(why),
                }
            }
        }
        value().ok_or_else(|| match (unreadable, variable) {
            (Some(why), _) => why,
            (None, Some(v)) => format!("needs {v}"),
            (None, None) => "needs a key".to_owned(),
        })
    }

    fn entry(&self, name: &str, entry: &Entry, b: Option<&Builtin>) -> Result<Arc<dyn Provider>, String> {
        let format = self.format(&entry.kind.0)?;
        let provider = match format.make {
            Make::Local(make) => make(&LocalEntry { name, entry, redact: self.redact })?,
            Make::Server(_) => self.wired(name, entry, b)?,
        };
        match entry.recording.as_deref().map(Path::new) {
            Some(path) if format.records => Ok(Arc::new(Recorder::new(provider, path, self.redact.clone())?)),
            _ => Ok(provider),
        }
    }

    fn format(&self, kind: &str) -> Result<&ApiFormat, String> {
        self.formats.get(kind).ok_or_else(|| format!("there is no kind `{kind}`"))
    }

    fn wired(&self, name: &str, entry: &Entry, b: Option<&Builtin>) -> Result<Arc<dyn Provider>, String> {
        let same_kind = b.filter(|b| b.kind == entry.kind.0);
        let base = match (same_kind, &entry.base_url) {
            (Some(b), own) => self.base(b, own.as_deref()),
            (None, Some(own)) => own.clone(),
            (None, None) => match BUILTIN.iter().find(|b| b.kind == entry.kind.0) {
                Some(b) => b.base.to_owned(),
                None => String::new(),
            },
        };
        let key = if let Some(command) = &entry.api_key_command {
            Key::command(command)
        } else if let Some(variable) = &entry.api_key_env {
            self.find_key(name, Some(variable), true)?
        } else {
            let variable = same_kind.map(|b| b.key).filter(|k| !k.is_empty());
            // A server of one's own may need no key; a vendor's does.
            match self.find_key(name, variable, false) {
                Ok(key) => key,
                Err(_) if entry.base_url.is_some() || same_kind.is_some_and(|b| b.key.is_empty()) => {
                    Key::None
                }
                Err(why) => return Err(why),
            }
        };
        let headers = entry.headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect();
        self.make(name, &entry.kind.0, base, key, headers, entry.timeouts.clone())
    }

    fn make(
        &self,
        name: &str,
        kind: &str,
        base: String,
        key: Key,
        headers: Vec<(String, String)>,
        timeouts: Timeouts,
    ) -> Result<Arc<dyn Provider>, String> {
        let base = base.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err("its base_url must start with http:// or https://".into());
        }
        let Make::Server(wire) = self.format(kind)?.make else {
            return Err("this kind has no base URL".into());
        };
        let wire = wire(&base);
        let learned = self.key_file.map(Learned::beside);
        if let Some(learned) = &learned {
            wire.amendments().recall(learned.of(&base, SystemClock::default().now()));
        }
        Ok(Arc::new(WireProvider {
            name: name.to_owned(),
            wire,
            base,
            key,
            headers,
            timeouts,
            table: Arc::clone(&self.table),
            http: Arc::clone(&self.http),
            learned,
        }))
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
