//! Recording and replaying of provider traffic, for tests and bug reports.
//!
//! A recording is a file of JSON lines, mode 0600:
//!
//! - `{"t":"request","n":0,"ms":0,"model":…,"system":…,"tools":…,"same":0,"messages":[…]}`: a request, without the
//!   first `same` messages, which equal those of the request before, so that a long session stays small
//! - `{"t":"chunk","n":0,"ms":12,"chunk":{…}}`: one delta of its reply, `ms` after the request
//! - `{"t":"error","n":0,"ms":15,"error":{…}}`, or `{"t":"end","n":0,"ms":20}`
//!
//! Keys never reach this layer (they are in headers); secrets in texts are masked as everywhere else.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tiller_protocol::lock;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::codec::chunk::Chunk;
use crate::codec::request::{ChatMessage, Request};
use crate::replay::redact::Redact;
use crate::{ChunkStream, Patience, Provider, ProviderError};

/// Maximum bytes of a recording that is replayed.
const SIZE_LIMIT: u64 = 256 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum Line {
    Request(RecordedRequest),
    Chunk { n: usize, ms: u64, chunk: Chunk },
    Error { n: usize, ms: u64, error: ProviderError },
    End { n: usize, ms: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedRequest {
    n: usize,
    ms: u64,
    model: String,
    /// System prompt, tools and settings.
    head: Value,
    /// Number of messages that equal those of the request before.
    same: usize,
    messages: Vec<Value>,
}

/// A request as it is recorded and compared: with secrets masked.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    model: String,
    head: Value,
    messages: Vec<Value>,
}

fn plain(request: &Request, redact: &Redact) -> Plain {
    let mut head = serde_json::to_value(request).unwrap_or_default();
    if let Some(map) = head.as_object_mut() {
        // The cache key is random in each session.
        for key in ["messages", "model", "cache_key"] {
            map.shift_remove(key);
        }
    }
    redact.value(&mut head);
    let messages = request.messages.iter().map(|m| plain_message(m, redact)).collect();
    Plain { model: request.model.clone(), head, messages }
}

fn plain_message(message: &ChatMessage, redact: &Redact) -> Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    redact.value(&mut value);
    value
}

struct Tape {
    file: std::fs::File,
    n: usize,
    last: Vec<Value>,
}

impl Tape {
    fn write(&mut self, line: &Line) {
        // A full disk must not stop the turn: the recording is then incomplete, which is logged.
        let written = serde_json::to_string(line).map_err(std::io::Error::other).and_then(|mut text| {
            text.push('\n');
            self.file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the recording could not be written");
        }
    }
}

/// Records the requests to a provider and its replies.
pub struct Recorder {
    inner: Arc<dyn Provider>,
    tape: Arc<Mutex<Tape>>,
    start: Instant,
    redact: Redact,
}

impl Recorder {
    /// Wraps `inner`. Creates the file with mode 0600.
    ///
    /// # Errors
    /// A sentence for people, when the file cannot be created.
    pub fn new(inner: Arc<dyn Provider>, path: &Path, redact: Redact) -> Result<Self, String> {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).write(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let file = options
            .open(path)
            .map_err(|e| format!("the recording {} cannot be created ({e})", path.display()))?;
        let tape = Arc::new(Mutex::new(Tape { file, n: 0, last: Vec::new() }));
        Ok(Self { inner, tape, start: Instant::now(), redact })
    }
}

fn since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Provider for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        let Plain { model, head, messages } = plain(&request, &self.redact);
        let n = {
            let mut tape = lock(&self.tape);
            let n = tape.n;
            tape.n += 1;
            let same = tape.last.iter().zip(&messages).take_while(|(a, b)| a == b).count();
            let new = messages[same..].to_vec();
            tape.last = messages;
            let ms = since(self.start);
            tape.write(&Line::Request(RecordedRequest { n, ms, model, head, same, messages: new }));
            n
        };
        let start = Instant::now();
        match self.inner.stream(request).await {
            Err(error) => {
                let masked = self.redact.error(error.clone());
                lock(&self.tape).write(&Line::Error { n, ms: since(start), error: masked });
                Err(error)
            }
            Ok(stream) => {
                let reply = RecordedReply {
                    n,
                    tape: Arc::clone(&self.tape),
                    redact: self.redact.clone(),
                    deltas: Vec::new(),
                };
                let reply = Arc::new(Mutex::new(reply));
                let end = Arc::clone(&reply);
                let written = stream.inspect(move |item| held(&reply).take(since(start), item));
                // A dropped stream has no end mark, as in reality.
                let last = futures_util::stream::once(async move {
                    held(&end).end(since(start));
                    None
                });
                Ok(written.map(Some).chain(last).filter_map(std::future::ready).boxed())
            }
        }
    }

    fn patience(&self) -> Option<Patience> {
        self.inner.patience()
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        self.inner.body(request)
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        self.inner.models().await
    }
}

/// A reply while it is recorded. Deltas may cut a secret anywhere, so those of a block are written when the block is
/// complete, or when the stream is dropped.
struct RecordedReply {
    n: usize,
    tape: Arc<Mutex<Tape>>,
    redact: Redact,
    /// Pending text, thinking and arguments, with their times.
    deltas: Vec<(u64, Chunk)>,
}

fn held(reply: &Mutex<RecordedReply>) -> std::sync::MutexGuard<'_, RecordedReply> {
    reply.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordedReply {
    fn take(&mut self, ms: u64, item: &Result<Chunk, ProviderError>) {
        let n = self.n;
        let line = match item {
            Ok(chunk) if delta(&mut chunk.clone()).is_some() => return self.deltas.push((ms, chunk.clone())),
            Ok(chunk) => Line::Chunk { n, ms, chunk: chunk.clone() },
            Err(error) => Line::Error { n, ms, error: self.redact.error(error.clone()) },
        };
        self.flush();
        lock(&self.tape).write(&line);
    }

    fn end(&mut self, ms: u64) {
        self.flush();
        lock(&self.tape).write(&Line::End { n: self.n, ms });
    }

    /// Writes the pending deltas. When a block contains a secret, its first delta gets the whole masked text.
    fn flush(&mut self) {
        let mut deltas = std::mem::take(&mut self.deltas);
        let kinds: Vec<(u8, usize)> =
            deltas.iter_mut().map(|(_, c)| delta(c).map_or((0, 0), |(kind, _)| kind)).collect();
        let mut dropped = vec![false; deltas.len()];
        for first in 0..deltas.len() {
            if kinds[..first].contains(&kinds[first]) {
                continue;
            }
            let same: Vec<usize> = (first..deltas.len()).filter(|at| kinds[*at] == kinds[first]).collect();
            let whole: String = same
                .iter()
                .filter_map(|at| delta(&mut deltas[*at].1).map(|(_, text)| text.clone()))
                .collect();
            let masked = self.redact.text(&whole);
            if masked == whole {
                continue;
            }
            same.iter().for_each(|at| dropped[*at] = *at != first);
            if let Some((_, text)) = delta(&mut deltas[first].1) {
                *text = masked;
            }
        }
        let mut tape = lock(&self.tape);
        for ((ms, chunk), _) in deltas.into_iter().zip(dropped).filter(|(_, dropped)| !dropped) {
            tape.write(&Line::Chunk { n: self.n, ms, chunk });
        }
    }
}

impl Drop for RecordedReply {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The text of a delta, with the kind and index of its block.
fn delta(chunk: &mut Chunk) -> Option<((u8, usize), &mut String)> {
    match chunk {
        Chunk::Text { index, text } => Some(((0, *index), text)),
        Chunk::Thinking { index, text } => Some(((1, *index), text)),
        Chunk::ToolArgs { index, json } => Some(((2, *index), json)),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct RecordedAnswer {
    asked: Plain,
    items: Vec<(u64, Result<Chunk, ProviderError>)>,
}

/// Replays a recording: the n-th request must equal the recorded one, and gets its reply.
pub struct Replay {
    name: String,
    path: PathBuf,
    answers: Mutex<VecDeque<RecordedAnswer>>,
    /// Whether to keep the recorded times between chunks.
    timed: bool,
    /// The mask of the recording: requests are compared masked.
    redact: Redact,
    given: Mutex<usize>,
}

impl Replay {
    /// Opens a recording.
    ///
    /// # Errors
    /// A sentence for people, with the line that cannot be parsed.
    pub fn open(name: &str, path: &Path, timed: bool, redact: Redact) -> Result<Self, String> {
        let shown = path.display();
        let meta =
            std::fs::metadata(path).map_err(|e| format!("the recording {shown} cannot be read ({e})"))?;
        if meta.len() > SIZE_LIMIT {
            return Err(format!("the recording {shown} is too large"));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("the recording {shown} cannot be read ({e})"))?;
        let mut answers: Vec<RecordedAnswer> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let bad = |why: &str| format!("line {} of the recording {shown} {why}", at + 1);
            let line: Line = serde_json::from_str(line).map_err(|e| bad(&format!("cannot be read: {e}")))?;
            let (n, item) = match line {
                Line::Request(asked) => {
                    let before = answers.last().map(|a| a.asked.messages.as_slice()).unwrap_or_default();
                    let mut messages = before
                        .get(..asked.same)
                        .ok_or_else(|| bad("refers to messages that are not there"))?
                        .to_vec();
                    messages.extend(asked.messages);
                    let asked = Plain { model: asked.model, head: asked.head, messages };
                    answers.push(RecordedAnswer { asked, items: Vec::new() });
                    continue;
                }
                Line::Chunk { n, ms, chunk } => (n, Some((ms, Ok(chunk)))),
                Line::Error { n, ms, error } => (n, Some((ms, Err(error)))),
                Line::End { n, .. } => (n, None),
            };
            let answer = answers.get_mut(n).ok_or_else(|| bad("answers a request that is not there"))?;
            answer.items.extend(item);
        }
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            answers: Mutex::new(answers.into()),
            timed,
            redact,
            given: Mutex::new(0),
        })
    }
}

#[async_trait]
impl Provider for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        let shown = self.path.display();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = answers.front() else {
            return Err(ProviderError::Rejected(format!(
                "the recording {shown} has ended: it has {} requests, and this is one more.",
                *given
            )));
        };
        if let Some(difference) = difference(&answer.asked, &plain(&request, &self.redact)) {
            return Err(ProviderError::Rejected(format!(
                "request {} is not the recorded one: {difference}. The recording is {shown}.",
                *given + 1
            )));
        }
        let items = answers.pop_front().map(|a| a.items).unwrap_or_default();
        *given += 1;
        // The refusal came before the stream.
        if let [(_, Err(error))] = &items[..] {
            return Err(error.clone());
        }
        let cut = !matches!(items.last(), Some((_, Err(_))))
            && !items.iter().any(|(_, i)| matches!(i, Ok(Chunk::Stop(_))));
        let mut items: VecDeque<_> = items.into();
        if cut {
            let ms = items.back().map_or(0, |(ms, _)| *ms);
            let text = "the recording ends in the middle of this reply.".to_owned();
            items.push_back((ms, Err(ProviderError::Network(text))));
        }
        let timed = self.timed;
        Ok(futures_util::stream::unfold((items, 0), move |(mut left, before)| async move {
            let (ms, item) = left.pop_front()?;
            if timed && ms > before {
                tokio::time::sleep(Duration::from_millis(ms - before)).await;
            }
            Some((item, (left, ms)))
        })
        .boxed())
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        serde_json::to_vec(request).unwrap_or_default()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut models: Vec<String> = answers.iter().map(|a| a.asked.model.clone()).collect();
        models.sort();
        models.dedup();
        Ok(models)
    }
}

/// Where two requests differ, as text; `None`: they are equal.
fn difference(recorded: &Plain, now: &Plain) -> Option<String> {
    let short = |v: &Value| {
        let text = v.to_string();
        let cut: String = text.chars().take(120).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    };
    if recorded.model != now.model {
        return Some(format!("the model is {}, recorded: {}", now.model, recorded.model));
    }
    for (at, (a, b)) in recorded.messages.iter().zip(&now.messages).enumerate() {
        if a != b {
            return Some(format!("message {} is {}, recorded: {}", at + 1, short(b), short(a)));
        }
    }
    let (was, is) = (recorded.messages.len(), now.messages.len());
    if was != is {
        return Some(format!("it has {is} messages, recorded: {was}"));
    }
    for key in ["system", "tools", "max_output", "effort"] {
        let (a, b) = (&recorded.head[key], &now.head[key]);
        if a != b {
            return Some(format!("`{key}` is {}, recorded: {}", short(b), short(a)));
        }
    }
    (recorded.head != now.head).then(|| "its settings differ".to_owned())
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
