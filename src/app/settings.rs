//! The present settings. The screen, the engine and the question about trust share them; an unreadable file changes
//! nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::Value;
use tiller_config::schema::ProviderKinds;
use tiller_config::{Config, Problem, Sources};
use tiller_engine::{Incomplete, LoadedSettings, Redact};
use tiller_permit::Redactor;
use tiller_permit::trust::FolderConfig;
use tiller_protocol::{Notice, NoticeKind};
use tiller_provider::registry::{EnteredKey, FoundVariable, Local, entered};
use tiller_provider::{ApiFormats, Providers};
use tiller_tui::model::kinds::FoundKey;

use crate::app::Setup;
use crate::app::setup::Env;

pub(crate) use tiller_config::PROJECT;

/// The shared settings.
pub(crate) struct SharedSettings {
    formats: ApiFormats,
    env: Env,
    keys: PathBuf,
    state: Mutex<SettingsState>,
    /// Known keys, which are masked.
    secrets: Mutex<Vec<String>>,
    redactor: Arc<RwLock<Redactor>>,
    /// Why the person's file has not been usable since the start, where it may restrict something.
    unusable: Mutex<Option<String>>,
}

struct SettingsState {
    sources: Sources,
    good: Config,
}

impl SharedSettings {
    /// The settings from the start.
    pub(crate) fn new(setup: &Setup) -> Arc<Self> {
        Arc::new(Self {
            formats: setup.formats.clone(),
            env: Arc::clone(&setup.env),
            keys: setup.key_file(),
            state: Mutex::new(SettingsState {
                sources: setup.sources.clone(),
                good: setup.config.config.clone(),
            }),
            secrets: Mutex::new(setup.secrets.clone()),
            redactor: Arc::new(RwLock::new(setup.redactor.as_ref().clone())),
            unusable: Mutex::new(unusable(setup)),
        })
    }

    /// For tests: from files only, with this environment.
    #[cfg(test)]
    pub(crate) fn of(env: Env, keys: PathBuf, sources: Sources) -> Arc<Self> {
        let good = tiller_config::load(&sources).config;
        Arc::new(Self {
            formats: ApiFormats::built_in(),
            env,
            keys,
            state: Mutex::new(SettingsState { sources, good }),
            secrets: Mutex::default(),
            redactor: Arc::default(),
            unusable: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SettingsState> {
        // Plain data that is valid after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again. An error in the person's own file is returned, and nothing changes; a project's file with
    /// an error is left out, as at the start.
    ///
    /// # Errors
    /// The first error, with its line.
    pub(crate) fn read(&self) -> Result<Config, Notice> {
        let mut state = self.state();
        let loaded = tiller_config::load(&state.sources);
        let project = state.sources.project.clone();
        let own: Vec<Problem> =
            loaded.problems.into_iter().filter(|p| Some(&p.source) != project.as_ref()).collect();
        if let Some(notice) = Problem::notice(&own) {
            return Err(notice);
        }
        state.good = loaded.config;
        *self.unusable.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(state.good.clone())
    }

    /// Why the person's file has not been usable since the start, without a full stop. What it restricts is not known.
    pub(crate) fn unusable(&self) -> Option<String> {
        self.unusable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As [`Self::read`], with the resulting providers.
    ///
    /// # Errors
    /// As [`SharedSettings::read`].
    pub(crate) fn fresh(&self) -> Result<LoadedSettings, Notice> {
        let config = self.read()?;
        let web = [&config.web.brave_key_env, &config.web.tavily_key_env].into_iter().map(String::as_str);
        for variable in config
            .providers
            .values()
            .filter_map(|p| p.api_key_env.as_deref())
            .chain(web)
            .chain(config.media.key_variables())
            .chain(config.embeddings.key_env.as_deref())
        {
            if let Some(key) = (self.env)(variable) {
                self.learn(&key);
            }
        }
        Ok(LoadedSettings { providers: self.providers(), config })
    }

    /// The names of API formats that a provider can have.
    pub(crate) fn kinds(&self) -> ProviderKinds {
        self.formats.kinds()
    }

    /// The settings in force.
    pub(crate) fn current(&self) -> Config {
        self.state().good.clone()
    }

    /// The providers of the settings in force, with the present keys.
    pub(crate) fn providers(&self) -> Providers {
        self.build(&self.current())
    }

    /// The providers for these settings.
    pub(crate) fn build(&self, config: &Config) -> Providers {
        let redactor = Arc::clone(&self.redactor);
        let redact = tiller_provider::Redact::new(move |text: &str| {
            redactor.read().unwrap_or_else(PoisonError::into_inner).redact(text).into_owned()
        });
        tiller_provider::build(config, &self.formats, &|name| (self.env)(name), Some(&self.keys), &redact)
    }

    /// The effect of entering a key.
    pub(crate) fn entered(&self, provider: &str) -> EnteredKey {
        entered(&self.current(), &|name| (self.env)(name), provider)
    }

    /// Keys of the environment, to be offered by the names of their variables.
    pub(crate) fn found_keys(&self) -> Vec<FoundKey> {
        let found = tiller_provider::registry::found(&self.current(), &|name| (self.env)(name));
        let of = |f: FoundVariable| FoundKey { variable: f.variable, provider: f.provider, model: f.model };
        found.into_iter().map(of).collect()
    }

    /// The person trusts the folder: the project's settings apply from now on, in exactly the form that was shown.
    /// `None`: the folder has none; else the errors in them.
    pub(crate) fn trust(&self, folder_config: &FolderConfig) -> Option<Vec<Notice>> {
        let mut state = self.state();
        if !trust(&mut state.sources, folder_config) {
            return None;
        }
        let loaded = tiller_config::load(&state.sources);
        let wrong = |p: &Problem| Some(&p.source) == state.sources.project.as_ref();
        let wrong = loaded.problems.iter().filter(|p| wrong(p));
        let told = wrong.map(|p| {
            Notice::new(NoticeKind::Config, p.to_string())
                .hint("Until then, the project's settings are ignored.")
        });
        let told = told.collect();
        if loaded.problems.is_empty() {
            state.good = loaded.config;
        }
        Some(told)
    }

    /// The person no longer trusts the folder: its settings do not apply from now on. False: they did not apply before.
    pub(crate) fn distrust(&self) -> bool {
        let mut state = self.state();
        let applied = std::mem::take(&mut state.sources.trusted);
        state.sources.project_text = None;
        if applied {
            let loaded = tiller_config::load(&state.sources);
            // An error in the person's own file changes nothing else.
            if loaded.problems.is_empty() {
                state.good = loaded.config;
            }
        }
        applied
    }

    /// Masks this text in everything that is written from now on. A text that is too short for a key is not masked,
    /// since that would garble ordinary text.
    pub(crate) fn learn(&self, key: &str) {
        if key.len() < crate::app::setup::SHORTEST_KEY {
            return;
        }
        let mut all = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|k| k == key) {
            all.push(key.to_owned());
            *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Redactor::new(all.clone());
        }
    }

    /// Masks all keys that are known at the time of the call.
    pub(crate) fn redact(self: &Arc<Self>) -> Redact {
        let shared = Arc::clone(self);
        Arc::new(move |text: &str| {
            shared.redactor.read().unwrap_or_else(PoisonError::into_inner).redact(text).into_owned()
        })
    }

    /// Finds all keys that are known at the time of the call.
    pub(crate) fn secrets(self: &Arc<Self>) -> tiller_tool::Secrets {
        let shared = Arc::clone(self);
        Arc::new(move |text: &str| {
            shared.redactor.read().unwrap_or_else(PoisonError::into_inner).secrets(text)
        })
    }

    /// Tests for the secrets that are known at the time of the call.
    pub(crate) fn incomplete(self: &Arc<Self>) -> Incomplete {
        let shared = Arc::clone(self);
        Arc::new(move |text: &str| {
            shared.redactor.read().unwrap_or_else(PoisonError::into_inner).may_grow(text)
        })
    }
}

/// The first error in the person's file, where that may restrict something.
pub(crate) fn unusable(setup: &Setup) -> Option<String> {
    let user = setup.sources.user.as_ref()?;
    let first = setup.config.problems.iter().find(|p| p.source == *user)?;
    tiller_config::may_restrict(user).then(|| first.to_string().trim_end_matches('.').to_owned())
}

/// As [`SharedSettings::trust`], on `sources`.
pub(super) fn trust(sources: &mut Sources, folder_config: &FolderConfig) -> bool {
    let bytes = folder_config.bytes(PROJECT).map(<[u8]>::to_vec);
    // A file that was not hashed (a link, or too large) is not loaded.
    sources.trusted = bytes.is_some();
    sources.project_text = bytes;
    sources.trusted
}

/// Writes a provider into the person's file: its values in order, by their names.
///
/// # Errors
/// A sentence.
pub(crate) fn write_provider(
    file: &Path,
    kinds: &ProviderKinds,
    name: &str,
    values: &[(&str, &str)],
) -> Result<(), String> {
    for (key, value) in values {
        let key = format!("providers.{name}.{key}");
        tiller_config::set_value(file, &key, &Value::from(*value), kinds).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Stores the person's agreement to use a server on this machine.
///
/// # Errors
/// A sentence.
pub(crate) fn keep_local(file: &Path, kinds: &ProviderKinds, local: &Local) -> Result<(), String> {
    write_provider(file, kinds, local.name, &[("kind", "openai-chat"), ("base_url", &local.base())])
}

/// Keys that are both entered and in the environment, with different values: which one is used.
pub(crate) fn doubled(setup: &Setup) -> Vec<Notice> {
    let file = tiller_config::KeyFile::usual(&setup.places);
    let mut out = Vec::new();
    for name in file.names().unwrap_or_default() {
        let EnteredKey::Over(variable) = entered(&setup.config.config, &|v| (setup.env)(v), &name) else {
            continue;
        };
        let kept = file.get(&name).ok().flatten();
        if kept.is_some_and(|k| Some(k.reveal().trim()) != (setup.env)(&variable).as_deref().map(str::trim)) {
            let path = file.path().display();
            out.push(
                Notice::new(
                    NoticeKind::Info,
                    format!("The stored key of {name} is used, not the one in {variable}."),
                )
                .hint(format!("To use {variable}, remove the line `{name}` from {path}.")),
            );
        }
    }
    out
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
