//! Servers for images, speech and questions to several models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Servers that speak the format of OpenAI, for tools beside the conversation. Without a section agents do not have its
/// tool. Changes take effect at the next start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Media {
    /// A model that sees images: `vision_analyze`.
    pub vision: Option<MediaServer>,
    /// A model that makes images: `image_generate`.
    pub image: Option<MediaServer>,
    /// A model that speaks: `text_to_speech`.
    pub speech: Option<MediaServer>,
    /// Several models that answer one question: `mixture_of_agents`.
    pub mixture: Option<MediaMixture>,
}

/// A server, and the model that it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaServer {
    /// Base address, such as `https://api.openai.com/v1`. A model of `mixture.models` has that of `mixture.synthesis`
    /// by default.
    #[serde(default)]
    pub url: Option<String>,
    /// The model, by the server's name.
    pub model: String,
    /// Name of the environment variable that contains the key; none by default.
    #[serde(default)]
    pub key_env: Option<String>,
    /// Price of input, in US dollars per million tokens; of speech, per million characters.
    #[serde(default)]
    pub input: Option<f64>,
    /// Price of output, in US dollars per million tokens.
    #[serde(default)]
    pub output: Option<f64>,
    /// Price of each request in US dollars, such as that of an image.
    #[serde(default)]
    pub each: Option<f64>,
    /// Voice of speech where a call names none.
    #[serde(default)]
    pub voice: Option<String>,
}

/// Models that answer together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaMixture {
    /// They answer in parallel.
    pub models: Vec<MediaServer>,
    /// Makes one answer of theirs.
    pub synthesis: MediaServer,
}

impl Media {
    /// Every server.
    pub fn servers(&self) -> impl Iterator<Item = &MediaServer> {
        let mixture = self.mixture.iter().flat_map(|m| m.models.iter().chain([&m.synthesis]));
        [&self.vision, &self.image, &self.speech].into_iter().flatten().chain(mixture)
    }

    /// The variables that hold their keys.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.servers().filter_map(|server| server.key_env.as_deref())
    }
}
