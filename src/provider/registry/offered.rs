//! Keys that the environment holds under the usual names of other programs, and what happens to a key that is
//! entered.

use tiller_config::Config;
use tiller_protocol::ModelRef;

use crate::models;
use crate::registry::BUILTIN;

/// A variable that other tools use for a key. It is offered by its name, and used after the person's yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedVariable {
    pub variable: &'static str,
    /// The provider's name in `config.toml`.
    pub name: &'static str,
    /// Its `kind` there.
    pub kind: &'static str,
    /// Its address; empty: the kind's own.
    pub base: &'static str,
}

const fn offered(
    variable: &'static str,
    name: &'static str,
    kind: &'static str,
    base: &'static str,
) -> OfferedVariable {
    OfferedVariable { variable, name, kind, base }
}

/// Not used unasked: only the names that the built-in providers have are.
pub const OFFERED: [OfferedVariable; 5] = [
    offered("GOOGLE_API_KEY", "gemini", "gemini", ""),
    offered("MISTRAL_API_KEY", "mistral", "openai-chat", "https://api.mistral.ai/v1"),
    offered("TOGETHER_API_KEY", "together", "openai-chat", "https://api.together.xyz/v1"),
    offered("FIREWORKS_API_KEY", "fireworks", "openai-chat", "https://api.fireworks.ai/inference/v1"),
    offered("CEREBRAS_API_KEY", "cerebras", "openai-chat", "https://api.cerebras.ai/v1"),
];

/// What becomes of a key that the person enters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnteredKey {
    Used,
    /// It is used, instead of the key in this variable.
    Over(String),
    /// It would not be used; why, and what to do.
    Unused(String),
}

/// Looks at what else gives a key to the provider of this name.
pub fn entered(config: &Config, var: &dyn Fn(&str) -> Option<String>, name: &str) -> EnteredKey {
    let set = |v: &str| var(v).is_some_and(|v| !v.trim().is_empty());
    let entry = config.providers.get(name);
    let own = BUILTIN.iter().find(|b| b.name == name);
    if entry.is_some_and(|e| e.api_key_command.is_some()) {
        return EnteredKey::Unused(format!(
            "config.toml sets api_key_command for {name}. Remove that line, or correct the command."
        ));
    }
    match entry.and_then(|e| e.api_key_env.as_deref()) {
        Some(v) if set(v) => {
            return EnteredKey::Unused(format!(
                "config.toml says that the key of {name} is in {v}. Remove api_key_env, or change {v}."
            ));
        }
        Some(_) => return EnteredKey::Used,
        None => {}
    }
    if entry.is_none() && own.is_none() {
        return EnteredKey::Unused(format!("there is no provider {name}. Add it to config.toml first."));
    }
    match own.map(|b| b.key).filter(|v| !v.is_empty() && set(v)) {
        Some(v) => EnteredKey::Over(v.to_owned()),
        None => EnteredKey::Used,
    }
}

/// A key of the environment, by the name of its variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVariable {
    pub variable: String,
    pub provider: String,
    /// The provider is ready and begins with this model; `None`: it needs the person's yes first.
    pub model: Option<ModelRef>,
}

/// Keys that are in the environment. No value leaves it.
pub fn found(config: &Config, var: &dyn Fn(&str) -> Option<String>) -> Vec<FoundVariable> {
    let set = |v: &str| !v.is_empty() && var(v).is_some_and(|v| !v.trim().is_empty());
    let own =
        BUILTIN.iter().filter(|b| set(b.key) && !config.providers.contains_key(b.name)).filter_map(|b| {
            let model = ModelRef(format!("{}/{}", b.name, models::default_of(b.name)?));
            Some(FoundVariable { variable: b.key.into(), provider: b.name.into(), model: Some(model) })
        });
    let other = OFFERED.iter().filter(|o| set(o.variable)).filter(|o| {
        // Not a second one for what has a key already.
        !config.providers.contains_key(o.name) && !BUILTIN.iter().any(|b| b.name == o.name && set(b.key))
    });
    let other =
        other.map(|o| FoundVariable { variable: o.variable.into(), provider: o.name.into(), model: None });
    own.chain(other).collect()
}
