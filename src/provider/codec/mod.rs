//! The interface of a wire format, and the [`Provider`] over HTTP that uses one.

pub(crate) mod amend;
pub mod assemble;
pub mod chunk;
pub(crate) mod fit;
pub mod format;
pub(crate) mod image_limits;
pub(crate) mod lax;
pub(crate) mod picture;
pub(crate) mod repair;
pub(crate) mod reply;
pub mod request;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tiller_config::schema::{ModelInfo, Timeouts};
use tiller_http::is_local;
use tiller_protocol::{Clock as _, SystemClock};

use crate::codec::amend::{Amendments, Refusal};
use crate::codec::chunk::Chunk;
use crate::codec::request::Request;
use crate::error::ProviderError;
use crate::models;
use crate::registry::key::{Key, Secret};
use crate::registry::learned::Learned;
use crate::registry::local;
use crate::transport::fault;
use crate::transport::http::Http;
use crate::transport::stream::{self, Limits};
use crate::{ChunkStream, Patience, Provider};

/// One wire format. Pure: it encodes requests and decodes replies.
pub(crate) trait Wire: Send + Sync {
    /// The path after the base address, for this model.
    fn path(&self, base: &str, model: &str) -> String;

    /// Adds the header with the key, and the format's fixed ones.
    fn headers(&self, key: Option<&Secret>, out: &mut HeaderMap);

    /// The request body. `provider` is the configured name; `info` the known properties of the model.
    fn body(&self, provider: &str, request: &Request, info: &ModelInfo) -> Vec<u8>;

    /// Handles a refusal of the request. Returns what later bodies leave out; `None`: nothing.
    fn amend(&self, request: &Request, info: &ModelInfo, refusal: Refusal<'_>) -> Option<&'static str>;

    /// The options and parts that the server refused.
    fn amendments(&self) -> &Amendments;

    /// A decoder for one reply.
    fn decoder(&self, provider: &str) -> Box<dyn Decoder>;

    /// The path of the list of models.
    fn models_path(&self, base: &str) -> String;

    /// A path that only a valid key may read. It differs from the list of models where that is public.
    fn check_path(&self, base: &str) -> String {
        self.models_path(base)
    }

    /// The ids in that list.
    fn models(&self, body: &[u8]) -> Vec<String>;
}

/// State of the stream after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// The reply is complete, but counts may follow: wait a little, and accept an end.
    Grace,
    /// The stream is over, even if the connection stays open.
    Over,
}

/// Decodes the events of one reply.
pub(crate) trait Decoder: Send {
    /// Decodes the data of one event and appends its chunks to `out`. The name is redundant: every format repeats it in
    /// the data.
    fn event(&mut self, name: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError>;

    /// Decodes one document of an answer that is not a stream. By default it is treated as an event.
    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        self.event("", data, out).map(drop)
    }

    /// Ends the reply: the stream ended, or the grace period did. Appends remaining chunks; an error when the reply is
    /// not complete.
    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError>;
}

/// How long the beginning of a reply is awaited where neither the settings nor the address say otherwise.
const FIRST_BYTE: Duration = Duration::from_secs(120);

/// Seconds of silence in the middle of a reply, for servers in the own network.
const NEAR_IDLE: f64 = 600.0;

fn seconds(of: f64) -> Duration {
    Duration::try_from_secs_f64(of.max(0.001)).unwrap_or(Duration::MAX)
}

/// A provider that speaks one wire format over HTTP.
pub(crate) struct WireProvider {
    pub(crate) name: String,
    pub(crate) wire: Box<dyn Wire>,
    /// Without a slash at the end.
    pub(crate) base: String,
    pub(crate) key: Key,
    /// The person's own headers, sent as they are.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeouts: Timeouts,
    pub(crate) table: Arc<models::Overrides>,
    pub(crate) http: Arc<Http>,
    /// Where refused options are kept; `None`: nowhere.
    pub(crate) learned: Option<Learned>,
}

impl WireProvider {
    fn header_map(&self, key: Option<&Secret>) -> Result<HeaderMap, ProviderError> {
        let mut map = HeaderMap::new();
        self.wire.headers(key, &mut map);
        for (name, value) in &self.headers {
            let (Ok(n), Ok(mut v)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
            else {
                return Err(ProviderError::Rejected(format!(
                    "the header `{name}` of the provider `{}` is not valid. Correct it in config.toml.",
                    self.name
                )));
            };
            v.set_sensitive(true);
            map.insert(n, v);
        }
        Ok(map)
    }

    async fn get(&self, path: String) -> Result<Vec<u8>, ProviderError> {
        let key = self.key.get(&self.name).await?;
        let url = format!("{}{path}", self.base);
        let (headers, limits) = (self.header_map(key.as_ref())?, self.limits());
        let got = stream::get(&self.http, &self.name, &url, headers, &limits);
        got.await.map_err(|e| {
            if matches!(e, ProviderError::Auth(_)) {
                self.key.forget();
            }
            fault::scrub(e, key.as_ref())
        })
    }

    /// How long the beginning of a reply is awaited; `None`: without a limit.
    fn first_byte(&self) -> Option<Duration> {
        match self.timeouts.first_byte {
            Some(own) => Some(seconds(own)).filter(|limit| *limit != Duration::MAX),
            None => (!local::is_near(&self.base)).then_some(FIRST_BYTE),
        }
    }

    /// Silence in the middle of a reply. Some servers send a long call only when it is whole: those in the own network get more
    /// time.
    fn idle(&self) -> Duration {
        let usual = Timeouts::default().idle;
        let own = self.timeouts.idle;
        let unset = (own - usual).abs() < f64::EPSILON;
        seconds(if unset && local::is_near(&self.base) { NEAR_IDLE } else { own })
    }

    /// The error of a refused request. Where the server refused a part that can be left out, the turn retries, as after any
    /// transient failure, and the next body differs.
    fn amend(&self, request: &Request, error: ProviderError) -> ProviderError {
        let (said, failed) = match &error {
            ProviderError::Rejected(text) => (text, false),
            // Local servers fail with it when a chat template refuses something.
            ProviderError::Wait { message, .. } if message.contains("(500)") || message.contains("(501)") => {
                (message, true)
            }
            _ => return error,
        };
        let bound = models::limits_output(&self.table, &self.name, &request.model);
        let info = models::lookup_in(&self.table, &self.name, &request.model);
        let refusal = Refusal { said, failed, bound };
        let Some(left_out) = self.wire.amend(&self.limited(request), &info, refusal) else { return error };
        if let Some(learned) = &self.learned {
            learned.keep(&self.base, &self.wire.amendments().options(), SystemClock::default().now());
        }
        let said = said.trim_end_matches('.');
        ProviderError::Wait {
            message: format!("{said}. Left out from now on: {left_out}"),
            after: Some(Duration::ZERO),
        }
    }

    /// The request with no more output than the server said it gives.
    fn limited<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        match self.wire.amendments().output(&request.model) {
            Some(most) if request.max_output.is_none_or(|asked| asked > most) => {
                Cow::Owned(Request { max_output: Some(most), ..request.clone() })
            }
            _ => Cow::Borrowed(request),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            connect: seconds(self.timeouts.connect),
            first_byte: self.first_byte().unwrap_or(Duration::MAX),
            idle: self.idle(),
            near: local::is_near(&self.base),
            pings_only: seconds(self.timeouts.pings_only),
            reply: stream::REPLY_LIMIT,
        }
    }
}

#[async_trait]
impl Provider for WireProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        Url::parse(&self.base).is_ok_and(|url| is_local(&url))
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        let key = self.key.get(&self.name).await?;
        let url = format!("{}{}", self.base, self.wire.path(&self.base, &request.model));
        let opened = stream::open(stream::StreamRequest {
            http: &self.http,
            provider: &self.name,
            url,
            headers: self.header_map(key.as_ref())?,
            body: self.body(&request),
            decoder: self.wire.decoder(&self.name),
            limits: self.limits(),
        })
        .await;
        match opened {
            Err(ProviderError::Auth(text)) => {
                // A key command may return a fresh key next time.
                self.key.forget();
                Err(ProviderError::Auth(fault::without(&text, key.as_ref())))
            }
            Err(error) => Err(fault::scrub(self.amend(&request, error), key.as_ref())),
            // Errors in the middle of a reply quote the server too.
            Ok(stream) => Ok(stream.map(move |item| item.map_err(|e| fault::scrub(e, key.as_ref()))).boxed()),
        }
    }

    async fn prepare(&self) {
        if let Ok(url) = reqwest::Url::parse(&self.base) {
            let _ = self.http.client(&url, self.limits().connect).await;
        }
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        let info = models::lookup_in(&self.table, &self.name, &request.model);
        if models::limits_output(&self.table, &self.name, &request.model) {
            self.wire.amendments().keep_limit(&request.model);
        }
        self.wire.body(&self.name, &self.limited(request), &info)
    }

    fn patience(&self) -> Option<Patience> {
        let setting = |name: &str| format!("providers.{}.timeouts.{name}", self.name);
        let signals = (seconds(self.timeouts.pings_only), setting("pings_only"));
        Some(Patience { limit: self.first_byte(), setting: setting("first_byte"), signals })
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        let body = self.get(self.wire.models_path(&self.base)).await?;
        let mut ids = self.wire.models(&body);
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.get(self.wire.check_path(&self.base)).await.map(drop)
    }
}
