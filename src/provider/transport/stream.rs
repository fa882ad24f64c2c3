//! One request in progress: sends it, enforces the time-outs, and turns bytes into chunks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use tiller_protocol::{Clock as _, SystemClock};
use tokio::time::{Instant, timeout, timeout_at};

use crate::ChunkStream;
use crate::codec::chunk::Chunk;
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::transport::answer::{Answer, Document};
use crate::transport::fault;
use crate::transport::http::Http;
use crate::transport::sse::SseDecoder;
use crate::transport::timer::Timer;

/// Maximum bytes that are read of an error's body, and of a list of models.
const ERROR_LIMIT: usize = 64 * 1024;
const LIST_LIMIT: usize = 8 * 1024 * 1024;
/// Maximum bytes of a reply's content. The longest legitimate replies have half a million; each is drawn, stored and
/// sent again with every request, so an endless one must be stopped early.
const CONTENT_LIMIT: usize = 16 * 1024 * 1024;
/// Maximum bytes of one reply after decompression, most of it framing where the deltas are small. Guards against
/// compression bombs and endless replies.
pub(crate) const REPLY_LIMIT: usize = 256 * 1024 * 1024;
/// How long counts may arrive after the end of a reply.
const GRACE: Duration = Duration::from_millis(1500);
/// Time limit for an error's body.
const ERROR_TIME: Duration = Duration::from_secs(5);

/// The time-outs of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    /// Silence before the reply begins. [`Duration::MAX`]: no limit, also not for signals without a reply.
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    /// In the own network: a connection that goes silent there is seldom broken, the server computes.
    pub(crate) near: bool,
    pub(crate) pings_only: Duration,
    /// Maximum bytes of the reply after decompression.
    pub(crate) reply: usize,
}

/// One request.
pub(crate) struct StreamRequest<'a> {
    pub(crate) http: &'a Http,
    pub(crate) provider: &'a str,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) decoder: Box<dyn Decoder>,
    pub(crate) limits: Limits,
}

fn parse(provider: &str, url: &str) -> Result<Url, ProviderError> {
    match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host_str().is_some() => Ok(url),
        _ => Err(ProviderError::Rejected(format!(
            "the base URL of {provider} is not a valid http or https address. Correct it."
        ))),
    }
}

fn late(provider: &str, limit: Duration, what: &str) -> ProviderError {
    ProviderError::Network(format!("{provider} {what} for {} seconds.", limit.as_secs_f32()))
}

/// The error for a request that the server took and did not answer in time.
fn unanswered(provider: &str, limit: Duration, what: &str, setting: &str) -> ProviderError {
    let seconds = limit.as_secs_f32();
    ProviderError::Unanswered(format!(
        "{provider} {what} for {seconds} seconds. It may still be computing the reply, so the request was not sent \
         again. To wait longer, raise providers.{provider}.timeouts.{setting} in config.toml."
    ))
}

/// The same for one that is silent before its reply. `signs`: it has sent signals before.
fn silent(provider: &str, limit: Duration, signs: bool) -> ProviderError {
    let so_far = if signs {
        "sent only keep-alive signals, then nothing"
    } else {
        "accepted the request, then sent nothing"
    };
    unanswered(provider, limit, so_far, "first_byte")
}

fn endless(provider: &str) -> ProviderError {
    let megabytes = CONTENT_LIMIT / 1024 / 1024;
    ProviderError::Rejected(format!(
        "the reply of {provider} was longer than {megabytes} MB and was stopped there."
    ))
}

/// Sends the request and waits until it is accepted.
pub(crate) async fn open(request: StreamRequest<'_>) -> Result<ChunkStream, ProviderError> {
    let StreamRequest { http, provider, url, mut headers, body, decoder, limits } = request;
    let url = parse(provider, &url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let client = http.client(&url, limits.connect).await?;
    let proxy = http.proxy_of(&url);
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream"));
    // Compression makes some servers delay deltas.
    headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    let start = Instant::now();
    let first = start.checked_add(limits.first_byte);
    let response = until(first, client.post(url).headers(headers).body(body).send())
        .await
        .ok_or_else(|| silent(provider, limits.first_byte, false))?
        .map_err(|e| fault::network(provider, &host, proxy.as_deref(), &e))?;
    if !response.status().is_success() {
        return Err(refused(provider, proxy.as_deref(), response).await);
    }
    let run = Run {
        provider: provider.into(),
        host,
        proxy,
        response,
        sse: SseDecoder::default(),
        decoder,
        limits,
        queue: VecDeque::new(),
        failure: None,
        phase: Phase::First(first),
        content: Instant::now(),
        timer: None,
        bytes: 0,
        arrived: Arrived::default(),
        answer: Answer::default(),
    };
    Ok(futures_util::stream::unfold(run, |mut run| async move {
        let item = run.next().await?;
        Some((item, run))
    })
    .boxed())
}

/// Waits for `work` until `end`.
async fn until<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

async fn refused(provider: &str, proxy: Option<&str>, mut response: Response) -> ProviderError {
    let status = response.status().as_u16();
    if status == 407 {
        return fault::proxy_login(proxy);
    }
    let headers = response.headers().clone();
    let body = read(&mut response, ERROR_LIMIT, ERROR_TIME).await;
    fault::refusal(provider, status, &headers, &body, SystemClock::default().now())
}

/// Reads a body up to a size and a time limit; returns what arrived until then.
async fn read(response: &mut Response, limit: usize, time: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let work = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = limit - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() >= limit {
                break;
            }
        }
    };
    let _ = timeout(time, work).await;
    body
}

/// Downloads a small document.
pub(crate) async fn get(
    http: &Http,
    provider: &str,
    url: &str,
    headers: HeaderMap,
    limits: &Limits,
) -> Result<Vec<u8>, ProviderError> {
    let url = parse(provider, url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let client = http.client(&url, limits.connect).await?;
    let proxy = http.proxy_of(&url);
    // Nothing is computed for a list.
    let limit = limits.first_byte.min(limits.idle);
    let mut response = timeout(limit, client.get(url).headers(headers).send())
        .await
        .map_err(|_| late(provider, limit, "accepted the request, then sent nothing"))?
        .map_err(|e| fault::network(provider, &host, proxy.as_deref(), &e))?;
    if !response.status().is_success() {
        return Err(refused(provider, proxy.as_deref(), response).await);
    }
    Ok(read(&mut response, LIST_LIMIT, limits.idle).await)
}

#[derive(Clone, Copy)]
enum Phase {
    /// Waits for the beginning of the reply: for the next byte until this time.
    First(Option<Instant>),
    Running,
    /// The reply is complete; counts may follow.
    Grace(Instant),
    Over,
}

/// The end of a wait: that of silence, or that of signals without content, for which the flag is set.
fn earlier(idle: Option<Instant>, quiet: Option<Instant>) -> (Option<Instant>, bool) {
    match (idle, quiet) {
        (Some(i), Some(q)) if q < i => (Some(q), true),
        (None, q) => (q, true),
        (i, _) => (i, false),
    }
}

/// The part of a reply that has arrived.
#[derive(Default)]
struct Arrived {
    /// Bytes of content in the chunks.
    kept: usize,
    /// Tokens of the prompt that the server has read.
    read: u64,
}

/// A reply in progress. Dropping it closes the connection.
struct Run {
    provider: Arc<str>,
    host: String,
    proxy: Option<String>,
    response: Response,
    sse: SseDecoder,
    decoder: Box<dyn Decoder>,
    limits: Limits,
    queue: VecDeque<Chunk>,
    /// Returned after the queue is empty.
    failure: Option<ProviderError>,
    phase: Phase,
    /// When something other than a ping last arrived, or the server was last seen to get on with the prompt.
    content: Instant,
    /// Created at the first wait with a time limit.
    timer: Option<Timer>,
    bytes: usize,
    /// The part that has arrived so far.
    arrived: Arrived,
    answer: Answer,
}

impl Run {
    async fn next(&mut self) -> Option<Result<Chunk, ProviderError>> {
        loop {
            if let Some(chunk) = self.queue.pop_front() {
                return Some(Ok(chunk));
            }
            if let Some(error) = self.failure.take() {
                self.phase = Phase::Over;
                return Some(Err(error));
            }
            if matches!(self.phase, Phase::Over) {
                return None;
            }
            self.read().await;
        }
    }

    /// Reads once, and fills the queue, the failure, or both.
    async fn read(&mut self) {
        let quiet = self.content.checked_add(self.limits.pings_only);
        let (end, quiet_first) = match self.phase {
            Phase::First(None) => (None, false),
            Phase::Grace(end) => (Some(end), false),
            Phase::First(idle) => earlier(idle, quiet),
            _ => earlier(Instant::now().checked_add(self.limits.idle), quiet),
        };
        let read = match end {
            Some(end) => {
                let timer = self.timer.get_or_insert_with(|| Timer::at(end));
                timer.within(end, self.response.chunk()).await
            }
            None => Some(self.response.chunk().await),
        };
        let Some(read) = read else {
            match self.phase {
                Phase::Grace(_) => self.finish(),
                Phase::First(_) if quiet_first => {
                    let (limit, what) = (self.limits.pings_only, "sent only keep-alive signals and no reply");
                    self.fail(unanswered(&self.provider, limit, what, "pings_only"));
                }
                Phase::First(_) => {
                    self.fail(silent(&self.provider, self.limits.first_byte, self.bytes > 0));
                }
                _ => {
                    let (limit, what, setting) = match quiet_first {
                        true => (
                            self.limits.pings_only,
                            "sent only keep-alive signals and no reply",
                            "pings_only",
                        ),
                        false => (self.limits.idle, "went silent in the middle of its reply", "idle"),
                    };
                    self.fail(match self.limits.near {
                        true => unanswered(&self.provider, limit, what, setting),
                        false => late(&self.provider, limit, what),
                    });
                }
            }
            return;
        };
        match read {
            Ok(Some(bytes)) => self.take(&bytes),
            Ok(None) => self.finish(),
            Err(e) if matches!(self.phase, Phase::Grace(_)) => {
                tracing::debug!(error = %e.without_url(), "the connection broke after the reply");
                self.finish();
            }
            Err(e) if e.is_decode() || e.is_body() => self.fail(fault::cut(&self.provider)),
            Err(e) => self.fail(fault::network(&self.provider, &self.host, self.proxy.as_deref(), &e)),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Phase::First(end) = &mut self.phase {
            *end = Instant::now().checked_add(self.limits.first_byte);
        }
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.limits.reply {
            let megabytes = self.limits.reply / 1024 / 1024;
            self.fail(ProviderError::Rejected(format!(
                "the reply of {} was larger than {megabytes} MB and was stopped.",
                self.provider
            )));
            return;
        }
        if self.answer.take(bytes) {
            self.begins();
            if self.answer.enough() {
                self.finish();
            }
            return;
        }
        let Self { sse, decoder, queue, arrived, provider, answer, .. } = self;
        let Arrived { kept, read } = arrived;
        let mut flow = Flow::More;
        let mut failure = None;
        let (mut content, mut progress) = (false, false);
        let decoded = sse.feed(bytes, |event| {
            if failure.is_some() || flow == Flow::Over {
                return;
            }
            let mut chunks = VecDeque::new();
            answer.event();
            match decoder.event(&event.name, &event.data, &mut chunks) {
                Ok(next) => {
                    if next != Flow::More {
                        flow = next;
                    }
                }
                Err(e) => failure = Some(e),
            }
            for chunk in chunks {
                content |= chunk.is_content();
                if let Chunk::Progress { done, .. } = chunk {
                    progress |= done > *read;
                    *read = done.max(*read);
                }
                *kept = kept.saturating_add(chunk.size());
                if *kept > CONTENT_LIMIT {
                    failure.get_or_insert_with(|| endless(provider));
                    return;
                }
                Chunk::join(queue, chunk);
            }
        });
        if content {
            self.begins();
        } else if progress {
            self.content = Instant::now();
        }
        if let Some(error) = failure {
            self.fail(error);
        } else if flow == Flow::Over {
            self.finish();
        } else if decoded.is_err() {
            self.fail(ProviderError::Rejected(format!(
                "{} sent a single event of more than {} MB, which is not read.",
                self.provider,
                crate::transport::sse::LINE_LIMIT / 1024 / 1024
            )));
        } else if flow == Flow::Grace && (content || !matches!(self.phase, Phase::Grace(_))) {
            // Some servers repeat the reason with each piece.
            self.phase = Phase::Grace(Instant::now() + GRACE);
        } else if self.queue.is_empty() {
            // Comments and unknown events count as keep-alives.
            self.queue.push_back(Chunk::Ping);
        }
    }

    /// Content of the reply has arrived.
    fn begins(&mut self) {
        self.content = Instant::now();
        if matches!(self.phase, Phase::First(_)) {
            self.phase = Phase::Running;
        }
    }

    fn finish(&mut self) {
        self.phase = Phase::Over;
        let document = self.answer.document(&self.provider);
        if let Document::Wrong(error) = document {
            self.failure = Some(error);
            return;
        }
        if let Document::Json(parts) = document {
            for part in &parts {
                if let Err(e) = self.decoder.document(part, &mut self.queue) {
                    self.failure = Some(e);
                    return;
                }
            }
            if self.queue.iter().map(Chunk::size).sum::<usize>() > CONTENT_LIMIT {
                self.queue.clear();
                self.failure = Some(endless(&self.provider));
                return;
            }
        }
        if let Err(e) = self.decoder.end(&mut self.queue) {
            self.failure = Some(self.answer.unread(&self.provider).unwrap_or(e));
        }
    }

    fn fail(&mut self, error: ProviderError) {
        self.phase = Phase::Over;
        self.failure = Some(error);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
