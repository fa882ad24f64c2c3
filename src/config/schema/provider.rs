//! Model servers: how they are reached, and what is known of their models.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The names of the API formats that a provider can have, in the order in which they are listed. The composition root
/// takes them from the provider room and hands them down. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderKinds(Arc<[&'static str]>);

impl ProviderKinds {
    /// All of them.
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }
}

impl FromIterator<&'static str> for ProviderKinds {
    fn from_iter<I: IntoIterator<Item = &'static str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// The name of a provider's API format. A file whose name is not among the [`ProviderKinds`] is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProviderKind(pub String);

impl JsonSchema for ProviderKind {
    fn schema_name() -> Cow<'static, str> {
        "ProviderKind".into()
    }

    /// The names are filled in by [`json_schema`](crate::json_schema), which knows them.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": [], "description": "API format of a provider."})
    }
}

/// One model server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// API format.
    pub kind: ProviderKind,
    /// Base URL of the server; by default that of the provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Name of the environment variable that contains the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Command that prints the key on its first output line.
    #[serde(default)]
    pub api_key_command: Option<String>,
    /// Additional HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Timeouts in seconds.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// `replay`: the recording to play back; any other kind: write a recording to this file.
    #[serde(default)]
    pub recording: Option<String>,
    /// `demo`: milliseconds between two pieces of text; 0 for no delay.
    #[serde(default)]
    pub speed: Option<u64>,
    /// Prices and context windows of models that the built-in table does not list, by ID pattern.
    #[serde(default)]
    pub models: BTreeMap<String, ModelInfo>,
}

/// Timeouts in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: f64,
    /// Until the reply begins; by default 120, and for a server on this machine or in a private network without a limit.
    /// When it is over, the request is not sent again.
    pub first_byte: Option<f64>,
    /// Between two bytes of the reply; the default of 90 is 600 for a server on this machine or in a private network.
    pub idle: f64,
    /// While the server sends only keep-alive signals.
    pub pings_only: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: 15.0, first_byte: None, idle: 90.0, pings_only: 300.0 }
    }
}

/// Properties of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelInfo {
    /// Context window in tokens.
    pub window: Option<u64>,
    /// Maximum output tokens per reply.
    pub max_output: Option<u64>,
    /// Price of input, in US dollars per million tokens.
    pub input: Option<f64>,
    /// Price of output, in US dollars per million tokens.
    pub output: Option<f64>,
    /// Price of input read from the cache, in US dollars per million tokens.
    pub cache_read: Option<f64>,
    /// Price of input written to the cache, in US dollars per million tokens.
    pub cache_write: Option<f64>,
    /// Prices for longer prompts.
    pub long: Vec<LongPrompt>,
    /// The model accepts images.
    pub images: Option<bool>,
    /// The model supports thinking.
    pub thinking: Option<bool>,
    /// Levels of thinking effort by the provider's names: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub effort: Vec<String>,
    /// The model supports tool calls.
    pub tools: Option<bool>,
}

/// Prices of a whole request, including the reply, whose prompt is longer than `over`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPrompt {
    /// Tokens of the prompt, including cached ones.
    pub over: u64,
    /// Price of input, in US dollars per million tokens.
    pub input: f64,
    /// Price of output, in US dollars per million tokens.
    pub output: f64,
    /// Price of input read from the cache, in US dollars per million tokens.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Price of input written to the cache, in US dollars per million tokens.
    #[serde(default)]
    pub cache_write: Option<f64>,
}
