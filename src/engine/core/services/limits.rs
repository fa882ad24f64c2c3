//! The limits of tools and programs, from the configuration.

use std::time::Duration;

use tiller_config::{Config, SearchEngine};
use tiller_tool::Limits;
use tiller_tool::code::CodeLimits;
use tiller_tool::shell::{Bounds, share_of_memory};
use tiller_tool::web::{KeyedEngine, SearchChoice, SearchKey, SearchSettings};

use super::Variables;

/// Where searches of the web go, from the configuration.
fn search(config: &Config, variables: &Variables) -> SearchSettings {
    let (web, usual) = (&config.web, SearchSettings::default());
    let keyed = |variable: &str, address: &Option<String>, usual: KeyedEngine| KeyedEngine {
        address: address.clone().unwrap_or(usual.address),
        variable: variable.to_owned(),
        key: variables(variable).map(|key| SearchKey::new(&key)),
    };
    SearchSettings {
        choice: match web.search {
            SearchEngine::Auto => SearchChoice::Auto,
            SearchEngine::Brave => SearchChoice::Brave,
            SearchEngine::Tavily => SearchChoice::Tavily,
            SearchEngine::Searxng => SearchChoice::Searxng,
            SearchEngine::Keyless => SearchChoice::Keyless,
        },
        brave: keyed(&web.brave_key_env, &web.brave_url, usual.brave),
        tavily: keyed(&web.tavily_key_env, &web.tavily_url, usual.tavily),
        searxng: web.searxng_url.clone(),
        keyless: web.keyless_url.clone().unwrap_or(usual.keyless),
    }
}

/// The tools' limits, from the configuration.
pub(crate) fn limits(config: &Config, variables: &Variables) -> Limits {
    let l = &config.limits;
    Limits {
        output_bytes: l.output_bytes,
        command: Duration::from_secs(l.command),
        command_max: Duration::from_secs(l.command_max),
        fetch_private: l.fetch_private,
        search: search(config, variables),
        deletions: l.command_deletions,
        code: CodeLimits {
            python: config.code.python.clone(),
            time: Duration::from_secs(config.code.time),
            calls: config.code.calls,
            output_bytes: config.code.output_bytes,
            error_bytes: config.code.error_bytes,
        },
        bounds: Bounds {
            processes: l.command_processes.max(16),
            memory: share_of_memory(l.command_memory.clamp(1, 100)),
            ..Bounds::default()
        },
        ..Limits::default()
    }
}

/// What a program of another vendor may take of the machine.
pub(crate) fn program_bounds(config: &Config) -> Bounds {
    let l = &config.limits;
    Bounds {
        processes: l.program_processes.max(16),
        memory: share_of_memory(l.program_memory.clamp(1, 100)),
        whose: "program",
    }
}
