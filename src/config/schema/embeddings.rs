//! A model that makes vectors of texts, for search by meaning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server with the embeddings API of OpenAI, which may be one of this machine. It receives the text of your sessions.
/// Without one the table that `tiller memory embed --import` has stored is used; without that, search is by keywords.
/// Changes take effect at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Embeddings {
    /// Base address, such as `http://localhost:11434/v1`.
    pub url: Option<String>,
    /// The model, by the server's name.
    pub model: Option<String>,
    /// Name of the environment variable that contains the key; none by default.
    pub key_env: Option<String>,
    /// Dimensions that the server is asked for, up to 4096; those of the model by default. With 1536 dimensions, 100,000
    /// entries take 150 MB of memory in each window and 470 MB of disk.
    pub dimensions: Option<u32>,
    /// Texts in one request.
    pub batch: u32,
    /// How much the meaning counts beside the words, 0 to 1.
    pub weight: f32,
}

impl Default for Embeddings {
    fn default() -> Self {
        Self { url: None, model: None, key_env: None, dimensions: None, batch: 32, weight: 0.3 }
    }
}
