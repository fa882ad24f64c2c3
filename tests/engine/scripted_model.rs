//! A model that plays a script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::Value;
use tiller_protocol::{StopReason, Usage};
use tiller_provider::{Chunk, ChunkStream, Provider, ProviderError, Request};
use tokio::sync::Semaphore;

use crate::rig::DEADLINE;

/// A lock whose holder may have panicked in another test: the data is still right.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts passes: none is lost, each lets one waiter go on, whether it waits already or comes later.
/// `Notify` stores one pass at most, so that of two given early the second was lost.
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(0))
    }

    /// Lets one waiter go on.
    pub(crate) fn pass_one(&self) {
        self.0.add_permits(1);
    }

    /// Waits for a pass and uses it up.
    pub(crate) async fn passed(&self) {
        self.0.acquire().await.expect("the semaphore is never closed").forget();
    }
}

/// One thing that the scripted model does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Chunk(Chunk),
    /// Continues when the gate gives a pass.
    Gate(Arc<Gate>),
    /// Gives a pass when all before it has been taken.
    Reached(Arc<Gate>),
    Fail(ProviderError),
    /// The request itself is refused; must be the first.
    Refuse(ProviderError),
    Hang,
    Panic,
}

type Handler = Box<dyn FnMut(usize, &Request) -> Vec<Step> + Send>;

/// The scripted model, `fake/m`.
pub(crate) struct Fake {
    replies: Mutex<VecDeque<Vec<Step>>>,
    handler: Mutex<Option<Handler>>,
    pub(crate) requests: Mutex<Vec<Request>>,
    /// Time of each request.
    pub(crate) times: Mutex<Vec<std::time::Instant>>,
    /// Requests whose reply is known: the handler has seen them.
    seen: AtomicUsize,
}

impl Fake {
    pub(crate) fn new(replies: impl IntoIterator<Item = Vec<Step>>) -> Arc<Self> {
        Arc::new(Self {
            replies: Mutex::new(replies.into_iter().collect()),
            handler: Mutex::default(),
            requests: Mutex::default(),
            times: Mutex::default(),
            seen: AtomicUsize::new(0),
        })
    }

    pub(crate) fn with(handler: impl FnMut(usize, &Request) -> Vec<Step> + Send + 'static) -> Arc<Self> {
        let fake = Self::new([]);
        *lock(&fake.handler) = Some(Box::new(handler));
        fake
    }

    pub(crate) fn push(&self, reply: Vec<Step>) {
        lock(&self.replies).push_back(reply);
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.requests).len()
    }

    /// Waits until this many requests have arrived, and their handler has seen them.
    pub(crate) async fn requested(&self, n: usize) {
        let end = std::time::Instant::now() + DEADLINE;
        while self.seen.load(Ordering::Acquire) < n {
            assert!(std::time::Instant::now() < end, "{n} requests");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn request(&self, n: usize) -> Request {
        lock(&self.requests)[n].clone()
    }
}

#[async_trait]
impl Provider for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        lock(&self.times).push(std::time::Instant::now());
        let n = {
            let mut requests = lock(&self.requests);
            requests.push(request.clone());
            requests.len() - 1
        };
        let scripted = lock(&self.replies).pop_front();
        let steps = match (scripted, &mut *lock(&self.handler)) {
            (Some(steps), _) => steps,
            (None, Some(handler)) => handler(n, &request),
            (None, None) => vec![Step::Fail(ProviderError::Rejected("the script is over".into()))],
        };
        self.seen.fetch_add(1, Ordering::Release);
        if let Some(Step::Refuse(e)) = steps.first() {
            return Err(e.clone());
        }
        let stream = futures_util::stream::unfold(VecDeque::from(steps), |mut steps| async move {
            loop {
                match steps.pop_front()? {
                    Step::Chunk(c) => return Some((Ok(c), steps)),
                    Step::Gate(gate) => gate.passed().await,
                    Step::Reached(reached) => reached.pass_one(),
                    Step::Fail(e) | Step::Refuse(e) => return Some((Err(e), VecDeque::new())),
                    Step::Hang => std::future::pending().await,
                    Step::Panic => panic!("a provider that panics"),
                }
            }
        });
        Ok(stream.boxed())
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        format!("{request:?}").into_bytes()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        Ok(vec!["m".into()])
    }
}

pub(crate) fn usage() -> Step {
    Step::Chunk(Chunk::Usage(Usage { input: 100, output: 20, ..Usage::default() }))
}

pub(crate) fn stop(reason: StopReason) -> Step {
    Step::Chunk(Chunk::Stop(reason))
}

pub(crate) fn words(index: usize, text: &str) -> Vec<Step> {
    vec![Step::Chunk(Chunk::Text { index, text: text.into() }), Step::Chunk(Chunk::BlockEnd { index })]
}

/// A reply that is only text.
pub(crate) fn says(text: &str) -> Vec<Step> {
    let mut steps = words(0, text);
    steps.extend([usage(), stop(StopReason::EndTurn)]);
    steps
}

/// A reply that calls tools: id, name, arguments.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Vec<Step> {
    let mut steps = words(0, "I look.");
    for (i, (id, name, args)) in calls.iter().enumerate() {
        let index = i + 1;
        steps.push(Step::Chunk(Chunk::ToolBegin {
            index,
            id: (*id).into(),
            name: (*name).into(),
            vendor: None,
        }));
        steps.push(Step::Chunk(Chunk::ToolArgs { index, json: args.to_string() }));
        steps.push(Step::Chunk(Chunk::BlockEnd { index }));
    }
    steps.extend([usage(), stop(StopReason::ToolUse)]);
    steps
}
