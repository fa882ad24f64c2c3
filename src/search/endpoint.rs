//! A server with the embeddings API of OpenAI. What it answers is bounded and checked: a wrong number of vectors, numbers
//! that are none, or different lengths in one answer are a fault, never a vector.

use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::{Value, json};
use tiller_config::Embeddings;
use tiller_http::{PostError, client, post};

use crate::embedder::DIMENSIONS;

/// How long a connection is waited for.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const BYTES: usize = 64 << 20;
/// Bytes of a text that are sent.
const TEXT: usize = 8 << 10;
/// Characters of a server's error that are shown.
const SHOWN: usize = 200;

/// Why there are no vectors, as a sentence for the person without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

/// Why a request for vectors failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EmbedFault {
    /// The server answered, but not with vectors of these texts: it may have some for others, or for fewer at once.
    Texts(Fault),
    /// There are no vectors now, of whatever text.
    Server(Fault),
}

impl From<EmbedFault> for Fault {
    fn from(fault: EmbedFault) -> Self {
        match fault {
            EmbedFault::Texts(fault) | EmbedFault::Server(fault) => fault,
        }
    }
}

/// Answers of a server that concern the texts that it was sent: bad request, too large, unprocessable, internal error.
const OF_TEXTS: [u16; 4] = [400, 413, 422, 500];

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// A person waits for a search.
    Search,
    /// Texts are indexed in the background.
    Index,
}

impl TimeLimit {
    fn time(self) -> Duration {
        match self {
            Self::Search => Duration::from_secs(2),
            Self::Index => Duration::from_secs(60),
        }
    }
}

/// A server, and the model that it is asked for.
pub struct Endpoint {
    url: Url,
    model: String,
    key: Option<String>,
    dimensions: Option<u32>,
    batch: u32,
    client: Client,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url.as_str())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// From the settings; `None`: they name no server.
    ///
    /// # Errors
    /// When the address or the model is missing or wrong.
    pub fn new(
        settings: &Embeddings,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Fault> {
        let Some(base) = settings.url.as_deref().map(str::trim).filter(|u| !u.is_empty()) else {
            return Ok(None);
        };
        let wrong = |why: &str| Fault(format!("[embeddings] {why}"));
        let model = settings.model.clone().filter(|m| !m.trim().is_empty());
        let model = model.ok_or_else(|| wrong("needs a model"))?;
        let url = format!("{}/embeddings", base.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|e| wrong(&format!("url is not an address: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("url must begin with http:// or https://"));
        }
        let key = match &settings.key_env {
            None => None,
            Some(name) => {
                let key = variable(name).map(|k| k.trim().to_owned()).filter(|k| !k.is_empty());
                Some(key.ok_or_else(|| wrong(&format!("needs its key in the variable {name}")))?)
            }
        };
        let client =
            client(&url, CONNECT).map_err(|why| Fault(format!("[embeddings] has no client: {why}")))?;
        let batch = settings.batch.clamp(1, 512);
        let dimensions = settings.dimensions.filter(|d| *d > 0);
        Ok(Some(Self { url, model, key, dimensions, batch, client }))
    }

    pub(crate) fn identity(&self) -> String {
        let dimensions = self.dimensions.map_or_else(String::new, |d| format!(" {d}"));
        format!("{} {}{dimensions}", self.url, self.model)
    }

    pub(crate) fn batch(&self) -> u32 {
        self.batch
    }

    /// A vector for each text, in their order.
    pub(crate) async fn embed(&self, texts: &[&str], limit: TimeLimit) -> Result<Vec<Vec<f32>>, EmbedFault> {
        let late = || self.fault(&format!("gave no answer within {} s", limit.time().as_secs()));
        match tokio::time::timeout(limit.time(), self.ask(texts)).await {
            Ok(answer) => answer,
            Err(_) => Err(EmbedFault::Server(late())),
        }
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedFault> {
        let texts: Vec<&str> = texts.iter().map(|t| &t[..t.floor_char_boundary(TEXT)]).collect();
        let mut body = json!({"model": self.model, "input": texts, "encoding_format": "float"});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let posted = post(&self.client, self.url.clone(), self.key.as_deref(), &body, BYTES).await;
        let bytes = posted.map_err(|e| self.failed(e))?;
        self.read(&bytes, texts.len()).map_err(EmbedFault::Texts)
    }

    fn read(&self, bytes: &[u8], count: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let answer: Value =
            serde_json::from_slice(bytes).map_err(|_| self.fault("sent an answer that is not JSON"))?;
        let data = answer["data"].as_array().filter(|d| d.len() == count);
        let data = data.ok_or_else(|| self.fault("sent another number of vectors than texts"))?;
        let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); count];
        let mut length = None;
        for (n, item) in data.iter().enumerate() {
            let at = item["index"].as_u64().map_or(n, |i| usize::try_from(i).unwrap_or(usize::MAX));
            let slot = vectors.get_mut(at).filter(|v| v.is_empty());
            let slot = slot.ok_or_else(|| self.fault("sent vectors of unknown texts"))?;
            let numbers = item["embedding"].as_array().filter(|n| !n.is_empty());
            let numbers = numbers.ok_or_else(|| self.fault("sent a vector without numbers"))?;
            if numbers.len() > DIMENSIONS {
                let count = numbers.len();
                return Err(self.fault(&format!(
                    "sent a vector of {count} numbers, more than {DIMENSIONS}: set `dimensions` in [embeddings]"
                )));
            }
            #[allow(clippy::cast_possible_truncation, reason = "checked to be finite")]
            let vector: Option<Vec<f32>> =
                numbers.iter().map(|x| x.as_f64().map(|x| x as f32).filter(|x| x.is_finite())).collect();
            let vector = vector.ok_or_else(|| self.fault("sent a vector without numbers"))?;
            if *length.get_or_insert(vector.len()) != vector.len() {
                return Err(self.fault("sent vectors of different lengths"));
            }
            *slot = vector;
        }
        Ok(vectors)
    }

    fn fault(&self, what: &str) -> Fault {
        Fault(format!("{} {what}", self.url.host_str().unwrap_or("the server")))
    }

    fn failed(&self, error: PostError) -> EmbedFault {
        let server = |what: &str| EmbedFault::Server(self.fault(what));
        match error {
            PostError::Key => server("has a key with characters that no header can hold"),
            PostError::Unsent(_) => server("cannot be reached"),
            PostError::Ended(_) => server("ended the connection"),
            PostError::TooLarge => EmbedFault::Texts(self.fault("sent a too large answer")),
            PostError::Refused { status, said } => {
                let said: String = said.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
                let colon = if said.is_empty() { "" } else { ": " };
                let fault = self.fault(&format!("answered {status}{colon}{said}"));
                match OF_TEXTS.contains(&status) {
                    true => EmbedFault::Texts(fault),
                    false => EmbedFault::Server(fault),
                }
            }
        }
    }
}
