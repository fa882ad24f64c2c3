//! A server of the settings that speaks the format of OpenAI: one request, its limits, its errors, its cost.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tiller_http::{PostError, client, is_local, post};
use tiller_protocol::{Access, Cost, ModelRef, Usage};

use super::words;
use crate::cx::ServerCost;
use crate::output::human;
use crate::text::clean;
use crate::{Ports, ToolCx, ToolError};

const CONNECT: Duration = Duration::from_secs(15);
/// Bytes of an answer in text, and of one that holds an image or audio (base64 takes a third more).
pub(super) const TEXT_BYTES: usize = 4 << 20;
pub(super) const MEDIA_BYTES: usize = 48 << 20;
/// Characters of an error that are shown.
const ERROR_SHOWN: usize = 300;

/// A key that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MediaKey(String);

impl MediaKey {
    /// Blanks around a key are dropped.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for MediaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaKey(..)")
    }
}

/// In US dollars; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// For a million tokens of input; for speech, a million characters.
    pub input: Option<f64>,
    /// For a million tokens of output.
    pub output: Option<f64>,
    /// For each request.
    pub each: Option<f64>,
}

impl Prices {
    /// What `usage` costs; `None` where a price that it needs is not known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<Cost> {
        let known = |price: Option<f64>| price.filter(|p| p.is_finite() && *p >= 0.0);
        let of = |tokens: u64, price: Option<f64>| match (tokens, known(price)) {
            (_, Some(price)) => Some(tokens as f64 * price / 1e6),
            // With a price for each request the tokens are part of it.
            (_, None) => known(self.each).is_some().then_some(0.0),
        };
        let sum = of(usage.context(), self.input)? + of(usage.output, self.output.or(self.input))?;
        Some(Cost::from_usd(sum + known(self.each).unwrap_or(0.0)))
    }
}

/// One server, with the model that it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// Base address, such as `https://api.openai.com/v1`.
    pub url: String,
    pub model: String,
    /// Name of the variable with its key; `None`: it needs none.
    pub variable: Option<String>,
    /// `None`: the variable is not set, or none is needed.
    pub key: Option<MediaKey>,
    pub prices: Prices,
    /// Voice of speech where a call names none.
    pub voice: Option<String>,
}

/// The answer of a server, and its bill, which is sent when it is dropped.
pub(super) struct Answer {
    pub body: Vec<u8>,
    pub bill: Bill,
}

/// Counts a request when it is dropped: also one that was interrupted, since the server may charge it all the same.
pub(super) struct Bill {
    ports: Arc<dyn Ports>,
    cost: ServerCost,
    prices: Prices,
    /// The server has not accepted it: nothing is charged.
    refused: bool,
}

impl Bill {
    /// Replaces the estimate by what the server counted; 0 tokens are no count.
    pub(super) fn counted(&mut self, usage: Usage) {
        if usage.context() > 0 || usage.output > 0 {
            self.cost.usage = usage;
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        if !self.refused {
            self.cost.cost = self.prices.cost(&self.cost.usage);
            self.ports.server_cost(self.cost.clone());
        }
    }
}

impl Endpoint {
    /// The address of `path` below the base.
    ///
    /// # Errors
    /// When the base is no address.
    fn address(&self, path: &str) -> Result<Url, ToolError> {
        let text = format!("{}/{path}", self.url.trim_end_matches('/'));
        Url::parse(&text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                ToolError::Tell("the url of this tool in config.toml is not an http address".into())
            })
    }

    /// What a request needs: that its host may be reached.
    pub(super) fn access(&self, path: &str) -> Result<Access, ToolError> {
        let url = self.address(path)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // The user's own settings name it, as they name a search engine.
        Ok(Access::Net { url: url.into(), host, local: false })
    }

    /// Host of the server, for people.
    pub(super) fn host(&self) -> String {
        self.address("").ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Returns the likely cost of such a request.
    pub(super) fn likely(&self, usage: &Usage) -> Option<Cost> {
        self.charged().cost(usage)
    }

    /// Returns its prices: nothing for a server on this machine without a price in the settings.
    fn charged(&self) -> Prices {
        let local = || self.address("").is_ok_and(|url| is_local(&url));
        match self.prices == Prices::default() && local() {
            true => Prices { each: Some(0.0), ..Prices::default() },
            false => self.prices,
        }
    }

    /// Sends one request, within the budget. `estimate`: its tokens, counted where the server counts none. `section`:
    /// its name under `[media]` in the settings. `most`: bytes of the answer.
    ///
    /// # Errors
    /// What was wrong, and what to set; never with the key.
    pub(super) async fn ask(
        &self,
        cx: &ToolCx,
        (section, path): (&str, &str),
        body: &Value,
        estimate: Usage,
        (most, time): (usize, Duration),
    ) -> Result<Answer, ToolError> {
        if let (Some(variable), None) = (&self.variable, &self.key) {
            return Err(ToolError::Tell(format!(
                "there is no key for {}: {variable} is not set. The user can set it, or name another variable with key_env \
                 under [media.{section}] in config.toml",
                self.host()
            )));
        }
        let price = self.likely(&estimate);
        cx.ports
            .may_spend(price)
            .await
            .map_err(|why| ToolError::Tell(self.over_budget(section, price, &why)))?;
        let asked = self.exchange(cx, (section, path), body, estimate, most);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(ToolError::Interrupted(String::new())),
            done = asked => done,
            () = tokio::time::sleep(time) => Err(ToolError::TimedOut(format!(
                "no complete answer of {} within {} s", self.host(), time.as_secs()
            ))),
        }
    }

    fn over_budget(&self, section: &str, price: Option<Cost>, why: &str) -> String {
        if price.is_some() {
            return format!("nothing was sent: {why}");
        }
        format!(
            "nothing was sent: {why}. The user can set each (dollars for a request), or input and output (dollars per \
             million), under [media.{section}] in config.toml"
        )
    }

    async fn exchange(
        &self,
        cx: &ToolCx,
        (section, path): (&str, &str),
        body: &Value,
        estimate: Usage,
        most: usize,
    ) -> Result<Answer, ToolError> {
        let url = self.address(path)?;
        let tell = |why: String| ToolError::Tell(format!("{}: {why}", self.host()));
        let client = client(&url, CONNECT).map_err(tell)?;
        let mut bill = Bill {
            ports: Arc::clone(&cx.ports),
            cost: ServerCost {
                session: cx.session,
                model: ModelRef(format!("{section}/{}", self.model)),
                usage: Usage { estimated: true, ..estimate },
                cost: None,
            },
            prices: self.charged(),
            refused: false,
        };
        let key = self.key.as_ref().map(|key| key.0.as_str());
        let error = match post(&client, url, key, body, most).await {
            Ok(body) => return Ok(Answer { body, bill }),
            Err(error) => error,
        };
        bill.refused = matches!(error, PostError::Key | PostError::Unsent(_) | PostError::Refused { .. });
        Err(tell(match error {
            PostError::Key => "its key has characters that no header can hold".into(),
            PostError::Unsent(cause) => format!("no connection: {cause}"),
            PostError::Ended(cause) => format!("the transfer failed: {cause}"),
            PostError::Refused { status, said } => {
                self.refusal(section, status, &words(&clean(said.as_bytes()), ERROR_SHOWN))
            }
            PostError::TooLarge => format!("its answer is larger than {}", human(most as u64)),
        }))
    }

    fn refusal(&self, section: &str, status: u16, said: &str) -> String {
        let what = match status {
            401 | 403 => match &self.variable {
                Some(variable) => format!("it refused the key of {variable} (HTTP {status})"),
                None => format!(
                    "it wants a key (HTTP {status}); the user can name its variable with key_env under \
                     [media.{section}] in config.toml"
                ),
            },
            404 => format!(
                "HTTP 404; url or model under [media.{section}] in config.toml may be wrong (model: {})",
                self.model
            ),
            429 => "it takes no more requests now (HTTP 429)".to_owned(),
            300..=399 => {
                format!("it answered with a redirect (HTTP {status}); its url in config.toml may be wrong")
            }
            _ => format!("it answered with HTTP {status}"),
        };
        if said.is_empty() { what } else { format!("{what}: {said}") }
    }
}

/// Asks a model for an answer in text. `content`: as Chat Completions takes it.
///
/// # Errors
/// As [`Endpoint::ask`], and when the answer holds no text.
pub(super) async fn chat(
    endpoint: &Endpoint,
    cx: &ToolCx,
    section: &str,
    content: Value,
    estimate: Usage,
    time: Duration,
) -> Result<String, ToolError> {
    let body = json!({"model": endpoint.model, "messages": [{"role": "user", "content": content}]});
    let limits = (TEXT_BYTES, time);
    let mut answer = endpoint.ask(cx, (section, "chat/completions"), &body, estimate, limits).await?;
    let wrong = |why: &str| ToolError::Tell(format!("{}: {why}", endpoint.host()));
    let reply: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| wrong("its answer is no JSON of Chat Completions"))?;
    answer.bill.counted(usage(&reply));
    let text = match reply.pointer("/choices/0/message/content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        _ => return Err(wrong("its answer holds no text")),
    };
    let text = clean(text.as_bytes());
    if text.trim().is_empty() { Err(wrong("its answer is empty")) } else { Ok(text) }
}

/// The tokens that a server counted.
pub(super) fn usage(reply: &Value) -> Usage {
    let count = |path: &str| reply.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let input = count("/usage/prompt_tokens").max(count("/usage/input_tokens"));
    let cached = count("/usage/prompt_tokens_details/cached_tokens").min(input);
    let output = count("/usage/completion_tokens").max(count("/usage/output_tokens"));
    Usage { input: input - cached, cache_read: cached, output, ..Usage::default() }
}

/// Tokens of a text, estimated.
pub(super) fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}
