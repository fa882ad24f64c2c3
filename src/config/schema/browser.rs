//! The browser of agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The browser that agents can use. Changes take effect at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Browser {
    /// Offer browser tools to agents, where there is a browser.
    pub enabled: bool,
    /// Which browser: one of this machine, or one elsewhere. `auto`: the one at `url` when it is set, else one of this
    /// machine.
    pub backend: BrowserBackend,
    /// DevTools address of a browser elsewhere, such as `wss://host/token` or `http://127.0.0.1:9222`.
    pub url: Option<String>,
    /// Program of a Chromium or a browser built on it; by default the first one on `PATH`.
    pub program: Option<String>,
    /// Name of a profile that is kept with its cookies and logins, and used by the main agent; none by default.
    pub profile: Option<String>,
    /// Show no window.
    pub headless: bool,
    /// Further arguments of the program. `--proxy-server=http://HOST:PORT` names a proxy for public hosts; what the browser
    /// opens is judged before.
    pub arguments: Vec<String>,
    /// Size in tokens of what a call tells of a page; the whole page is kept in a file.
    pub snapshot_tokens: usize,
    /// Maximum size in MiB of a download.
    pub download_mb: u64,
}

/// Which browser is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrowserBackend {
    /// The one at `url` when it is set, else one of this machine.
    #[default]
    Auto,
    /// One of this machine.
    Local,
    /// The one at `url`.
    Remote,
}

impl Default for Browser {
    fn default() -> Self {
        Self {
            enabled: true,
            backend: BrowserBackend::Auto,
            url: None,
            program: None,
            profile: None,
            headless: true,
            arguments: Vec::new(),
            snapshot_tokens: 2_000,
            download_mb: 100,
        }
    }
}
