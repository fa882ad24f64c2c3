//! Web search.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Web search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Web {
    /// The search engine.
    pub search: SearchEngine,
    /// Environment variable with the key of the Brave Search API.
    pub brave_key_env: String,
    /// Environment variable with the key of the Tavily API.
    pub tavily_key_env: String,
    /// Address of a SearXNG server, which may be one of your network. `search.formats` in its settings.yml needs `json`.
    pub searxng_url: Option<String>,
    /// Another address of the Brave Search API.
    pub brave_url: Option<String>,
    /// Another address of the Tavily API.
    pub tavily_url: Option<String>,
    /// Another address of the page that is read without a key.
    pub keyless_url: Option<String>,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            search: SearchEngine::Auto,
            brave_key_env: "BRAVE_API_KEY".into(),
            tavily_key_env: "TAVILY_API_KEY".into(),
            searxng_url: None,
            brave_url: None,
            tavily_url: None,
            keyless_url: None,
        }
    }
}

/// A search engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchEngine {
    /// The first for which there is an address or a key: SearXNG, Brave, Tavily; else the keyless one.
    #[default]
    Auto,
    Brave,
    Tavily,
    Searxng,
    /// A page of DuckDuckGo for browsers, which needs no key and may refuse at any time: best effort.
    Keyless,
}
