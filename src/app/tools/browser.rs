//! The browser of agents, by the settings.

use std::path::Path;

use tiller_config::schema::{Browser, BrowserBackend};
use tiller_tool::Registry;
use tiller_tool::browser::{BrowserSettings, tools};

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Adds the tools of the browser, where there is one. `profiles`: the folder of the profiles. `path`: as `PATH`.
pub(crate) fn add(registry: &mut Registry, config: &Browser, profiles: &Path, path: &str) {
    let settings = settings(config, profiles, path);
    let usable = config.enabled && settings.usable();
    for tool in tools(settings) {
        if usable {
            registry.push(tool);
        } else {
            registry.note_absent(tool.info());
        }
    }
}

/// The settings with the program that was found.
pub(crate) fn settings(config: &Browser, profiles: &Path, path: &str) -> BrowserSettings {
    let mut settings = BrowserSettings {
        headless: config.headless,
        snapshot_tokens: config.snapshot_tokens.clamp(200, 50_000),
        download_bytes: config.download_mb.saturating_mul(MIB),
        arguments: config.arguments.clone(),
        ..BrowserSettings::default()
    };
    settings.remote = config.url.clone().filter(|_| config.backend != BrowserBackend::Local);
    if config.backend != BrowserBackend::Remote && settings.remote.is_none() {
        settings.program = match &config.program {
            Some(program) => Some(program.into()),
            None => BrowserSettings::local(path).program,
        };
    }
    if let Some(name) = &config.profile {
        // The check of the settings refuses other names.
        settings.keep_profile(profiles, name);
    }
    settings
}
