//! The built-in demo model: a small deterministic planner that needs no key and no network.
//!
//! It is not a language model and never pretends to be one. It reads the request, recognises the task by keywords
//! ([`intent`]), reads the results so far ([`turn`]) and decides the next step ([`scene`]): a few words and the next
//! tool calls. Everything goes through the real engine: real files, real commands, real questions.

mod intent;
mod sample;
mod scene;
mod turn;

pub use sample::{SampleFile, TourStep, sample, tour};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::Value;
use tiller_protocol::{StopReason, Usage};

use crate::codec::chunk::Chunk;
use crate::codec::format::ApiFormat;
use crate::codec::request::Request;
use crate::{ChunkStream, Provider, ProviderError};

/// The name of the provider and of its only model.
pub const NAME: &str = "demo";
/// Delay between two pieces of text: about the speed of fast reading.
pub const SPEED: Duration = Duration::from_millis(15);

/// The format of the demo model.
pub(crate) const FORMAT: ApiFormat = ApiFormat::local("demo", |of| {
    Ok(Arc::new(Demo::named(of.name, of.entry.speed.map_or(SPEED, Duration::from_millis))))
});

/// Characters of one piece.
const PIECE: usize = 8;

/// The planner's next step: a thought, text, and tool calls. Without calls the turn ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) thought: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<(&'static str, Value)>,
}

impl Step {
    /// Text that ends the turn.
    pub(crate) fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Text and one call.
    pub(crate) fn call(text: impl Into<String>, tool: &'static str, args: Value) -> Self {
        Self { text: text.into(), calls: vec![(tool, args)], ..Self::default() }
    }

    /// Adds a call.
    #[must_use]
    pub(crate) fn and(mut self, tool: &'static str, args: Value) -> Self {
        self.calls.push((tool, args));
        self
    }

    /// Adds a thought in front.
    #[must_use]
    pub(crate) fn thinking(mut self, thought: impl Into<String>) -> Self {
        self.thought = thought.into();
        self
    }
}

/// The demo model.
#[derive(Clone, Debug)]
pub struct Demo {
    name: String,
    speed: Duration,
}

impl Default for Demo {
    fn default() -> Self {
        Self::new(SPEED)
    }
}

impl Demo {
    /// `speed` is the delay between two pieces of text; zero in tests.
    pub fn new(speed: Duration) -> Self {
        Self::named(NAME, speed)
    }

    /// With another configured name.
    pub fn named(name: &str, speed: Duration) -> Self {
        Self { name: name.to_owned(), speed }
    }
}

#[async_trait]
impl Provider for Demo {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        let step = scene::next(&request);
        let input = tokens(self.body(&request).len());
        let chunks = chunks(&step, input);
        let speed = self.speed;
        Ok(futures_util::stream::unfold(chunks, move |mut left| async move {
            let chunk = left.pop_front()?;
            if !speed.is_zero() && matches!(chunk, Chunk::Text { .. } | Chunk::Thinking { .. }) {
                tokio::time::sleep(speed).await;
            }
            Some((Ok(chunk), left))
        })
        .boxed())
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        // There is no wire format: the planner reads the request itself. Messages come last, so that a longer request
        // extends the shorter one.
        serde_json::to_vec(request).unwrap_or_default()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        Ok(vec![NAME.to_owned()])
    }
}

/// An estimate: about 2.5 bytes per token.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(2) / 5
}

fn chunks(step: &Step, input: u64) -> VecDeque<Chunk> {
    let mut out = VecDeque::new();
    let mut index = 0;
    let mut written = step.thought.len() + step.text.len();
    out.push_back(Chunk::Usage(Usage { input, ..Usage::default() }));
    if !step.thought.is_empty() {
        out.extend(pieces(&step.thought).map(|text| Chunk::Thinking { index, text }));
        out.push_back(Chunk::BlockEnd { index });
        index += 1;
    }
    if !step.text.is_empty() {
        out.extend(pieces(&step.text).map(|text| Chunk::Text { index, text }));
        out.push_back(Chunk::BlockEnd { index });
        index += 1;
    }
    for (name, args) in &step.calls {
        let json = args.to_string();
        written += json.len();
        // The assembler replaces an empty id by an id that is unique in the session.
        out.push_back(Chunk::ToolBegin { index, id: String::new(), name: (*name).to_owned(), vendor: None });
        out.push_back(Chunk::ToolArgs { index, json });
        out.push_back(Chunk::BlockEnd { index });
        index += 1;
    }
    let output = tokens(written).max(1);
    let reasoning = tokens(step.thought.len());
    out.push_back(Chunk::Usage(Usage { input, output, reasoning, ..Usage::default() }));
    out.push_back(Chunk::Stop(if step.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse }));
    out
}

/// Splits text near [`PIECE`] characters, after a space where there is one.
fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = rest.char_indices().nth(PIECE).map_or(rest.len(), |(at, _)| at);
        let end = rest[from..].find([' ', '\n']).map_or(rest.len(), |at| from + at + 1);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece.to_owned())
    })
}
