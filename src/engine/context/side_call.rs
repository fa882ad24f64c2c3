//! Requests to a model beside the conversation: a summary, a title, an answer of `/btw`, the check of a goal.
//!
//! Each request that the server accepted is recorded as a row of its own when it ends: complete, failed, cut off, or
//! dropped with the task that waited for it. Counts that the server did not send are estimated and marked.

use crate::context::windows;
use crate::money;
use crate::session::model;
use std::sync::Arc;
use std::time::Duration;
use tiller_config::agents::Tier;

use futures_util::StreamExt;
use tiller_config::schema::ModelInfo;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{
    Block, EntryBody, EventBody, ModelRef, Part, SessionId, StopReason, ToolCall, ToolSpec, Usage,
};
use tiller_provider::transport::retry;
use tiller_provider::{Assembler, ChatMessage, Chunk, Effort, Provider, ProviderError, Request};
use tiller_tool::ServerCost;
use tokio::sync::{Notify, mpsc};

use crate::context::msg::{ContextMsg, SideCallCost, SideMsg, Wait};
use crate::context::{request, tokens};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::money::allowance::Allowance;

/// Output tokens for thinking, in addition to those of the answer.
const THINKING: u64 = 16_000;

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SideCallReply {
    pub(crate) text: String,
    /// The output limit cut it off.
    pub(crate) cut: bool,
}

/// Asks one model on behalf of one session. Holds a sender to the engine's loop, which outlives it.
#[derive(Clone)]
pub(crate) struct SideCall {
    provider: Arc<dyn Provider>,
    model: ModelRef,
    info: ModelInfo,
    tier: Tier,
    session: SessionId,
    tx: mpsc::Sender<Msg>,
    /// Ends a retry wait early when the user requests it.
    skip: Arc<Notify>,
    /// The longest wait that a server may ask for; `None`: any.
    longest_wait: Option<Duration>,
    /// Factor for waits; tests shorten them.
    scale: f64,
    counts: tokens::Calibration,
    /// What the limits leave for this call.
    left: Allowance,
}

/// Prepares requests to `model` that count for the open session.
pub(crate) fn side_call(core: &Core, provider: Arc<dyn Provider>, model: &ModelRef) -> SideCall {
    SideCall {
        provider,
        model: model.clone(),
        info: model::model_info(core, model),
        tier: model::tier_of(core, model),
        session: core.session.id,
        tx: core.tx.clone(),
        skip: Arc::clone(&core.context.side_skip),
        longest_wait: model::longest_wait(core),
        scale: core.services.models.retry_scale,
        counts: tokens::Calibration::of(&request::live(&core.session.history.path)),
        left: money::left_beside(core, model::tier_of(core, model)),
    }
}

/// Prepares requests to the model of the fast tier, as [`side_call`]. `None`: none is configured, or it cannot be asked now: it is
/// the demo model, which follows a script, its budget is used up, or its provider is not known.
pub(crate) fn fast(core: &Core) -> Option<SideCall> {
    let model = ModelRef(core.services.config().tiers.fast.clone()?);
    if model::is_demo(core, &model) || money::may_ask(core, &model).is_err() {
        return None;
    }
    let provider = model::provider(core, &model).ok()?;
    Some(side_call(core, provider, &model))
}

pub(crate) fn side_msg(core: &mut Core, msg: SideMsg) {
    match msg {
        SideMsg::SideCallCost(spent) => {
            let SideCallCost { session, model, tier, usage } = *spent;
            // A request is charged even when another session was opened meanwhile.
            let call = if session == core.session.id {
                money::book(core, &model, tier, usage)
            } else {
                money::book_elsewhere(core, &model, tier, usage)
            };
            let ticket = core.services.store.costs().record(session, call);
            core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
        SideMsg::ServerCost(spent) => {
            let ServerCost { session, model, usage, cost } = *spent;
            let call = money::book_server(core, session == core.session.id, &model, usage, cost);
            let ticket = core.services.store.costs().record(session, call);
            core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
        SideMsg::MaySpend { price, reply } => {
            // A call that was dropped does not wait for it.
            let _ = reply.send(money::may_spend(core, price));
        }
        SideMsg::AttachedImage { number, reply } => {
            let _ = reply.send(attached_image(core, number));
        }
        SideMsg::TooLong { model, error, request } => windows::learn_window(core, &model, &error, request),
        SideMsg::Waits(wait) => {
            let event = match wait {
                Some(Wait { attempt, of, wait, why }) => {
                    let seconds = wait.as_secs_f64();
                    TurnEvent::Retrying { attempt, of, seconds, why, discard: false }
                }
                None => TurnEvent::RetryEnded {},
            };
            core.show(core.scope(), EventBody::Turn(event));
        }
    }
}

/// Image `number` (from 1) of those that the user sent in this conversation, in base64.
fn attached_image(core: &Core, number: usize) -> Result<Arc<str>, String> {
    let sent = core.session.history.path.iter().filter_map(|entry| match &entry.body {
        EntryBody::User { content, .. } => Some(content),
        _ => None,
    });
    let images = sent.flatten().filter_map(|part| match part {
        Part::Image { data, .. } => Some(data.as_str()),
        Part::Text { .. } => None,
    });
    let all: Vec<&str> = images.collect();
    let found = number.checked_sub(1).and_then(|at| all.get(at));
    found.map(|data| Arc::from(*data)).ok_or_else(|| match all.len() {
        0 => "the user has attached no image to this conversation".to_owned(),
        1 => "there is only image 1".to_owned(),
        most => format!("there are only images 1 to {most}"),
    })
}

impl SideCall {
    pub(crate) fn model(&self) -> &ModelRef {
        &self.model
    }

    /// The model's window in tokens, where it is known.
    pub(crate) fn window(&self) -> Option<u64> {
        self.info.window
    }

    /// Sends one request. `answer`: output tokens of the answer; `None` leaves the limit to the provider. A model that
    /// thinks gets additional tokens for that; when it turns out to think and has used up the limit, the request is
    /// sent once more.
    pub(crate) async fn ask(
        &self,
        system: &str,
        text: String,
        answer: Option<u64>,
    ) -> Result<SideCallReply, ProviderError> {
        let thinks = self.info.thinking == Some(true);
        let (got, thought) = self.request(system, text.clone(), self.room(answer, thinks)).await?;
        if !(got.cut && thought && !thinks && answer.is_some()) {
            return Ok(got);
        }
        Ok(self.request(system, text, self.room(answer, true)).await?.0)
    }

    /// Sends one request with one tool. Returns the calls of it.
    pub(crate) async fn ask_tool(
        &self,
        system: &str,
        text: String,
        tool: ToolSpec,
        answer: u64,
    ) -> Result<Vec<ToolCall>, ProviderError> {
        let room = self.room(Some(answer), self.info.thinking == Some(true));
        let (blocks, _) = self.exchange(system, text, vec![tool], room).await?;
        Ok(blocks
            .into_iter()
            .filter_map(|b| if let Block::ToolCall(call) = b { Some(call) } else { None })
            .collect())
    }

    /// Output tokens that a request may use.
    fn room(&self, answer: Option<u64>, thinks: bool) -> Option<u64> {
        let room = answer?.saturating_add(if thinks { THINKING } else { 0 });
        Some(self.info.max_output.map_or(room, |most| room.min(most)))
    }

    /// The answer, and whether the model thought first.
    async fn request(
        &self,
        system: &str,
        text: String,
        max_output: Option<u64>,
    ) -> Result<(SideCallReply, bool), ProviderError> {
        let (blocks, stop) = self.exchange(system, text, Vec::new(), max_output).await?;
        let thought = blocks.iter().any(|b| matches!(b, Block::Thinking { .. } | Block::Redacted { .. }));
        let texts: Vec<String> = blocks
            .into_iter()
            .filter_map(|b| if let Block::Text { text } = b { Some(text) } else { None })
            .collect();
        Ok((SideCallReply { text: texts.join("\n"), cut: stop == StopReason::MaxTokens }, thought))
    }

    /// The blocks of the answer, and why it ended.
    async fn exchange(
        &self,
        system: &str,
        text: String,
        tools: Vec<ToolSpec>,
        max_output: Option<u64>,
    ) -> Result<(Vec<Block>, StopReason), ProviderError> {
        let asked = tokens::of_text(system) + tokens::of_text(&text);
        let request = Request {
            model: self.model.model().to_owned(),
            system: system.trim().into(),
            tools: tools.into(),
            messages: vec![ChatMessage::User { content: vec![Part::Text { text }] }].into(),
            max_output,
            effort: Effort::Default,
            cache_key: format!("{}-side", self.session),
        };
        let mut books = CostRecorder::new(self, asked);
        if let Some(why) = self.left.refuses(self.counts.read(asked), &self.info) {
            books.refused = true;
            return Err(ProviderError::Rejected(why));
        }
        let mut stream = match self.provider.stream(request).await {
            Ok(stream) => stream,
            Err(e) => {
                books.refused = true;
                if e.too_long() {
                    let (model, error) = (self.model.clone(), e.clone());
                    let msg = SideMsg::TooLong { model, error, request: self.counts.read(asked) };
                    // A report that does not fit into the inbox is made again by the next refusal.
                    let _ = self.tx.try_send(Msg::Context(ContextMsg::SideCall(msg)));
                }
                return Err(e);
            }
        };
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.inspect_err(|e| {
                // The server charges nothing for a rejected request.
                let refused = matches!(e, ProviderError::Rejected(_) | ProviderError::Auth(_));
                books.refused = refused && books.parts.is_empty() && books.counted == Usage::default();
            })?;
            books.push(chunk);
            if books.parts.stop.is_some() {
                break;
            }
        }
        let whole = books.finish();
        let Some(stop) = whole.stop else {
            return Err(ProviderError::Network("the reply was cut off".into()));
        };
        // A refusal is no answer.
        if let StopReason::Refusal(why) = &stop {
            return Err(ProviderError::Rejected(crate::bus::notices::refusal(why).message));
        }
        Ok((whole.blocks, stop))
    }

    /// Waits before attempt `attempt + 1` of `of`, where a retry may help. The wait is shown, and the user can skip
    /// it. False: there is no further attempt.
    pub(crate) async fn wait(&self, error: &ProviderError, attempt: u32, of: u32) -> bool {
        if retry::over(error, self.longest_wait).is_some() {
            return false;
        }
        let Some(wait) = retry::wait(error, attempt, of, retry::random()) else { return false };
        let wait = wait.mul_f64(self.scale);
        let why = error.to_string();
        let told = Wait { attempt: attempt + 1, of, wait, why };
        let skipped = self.skip.notified();
        // The engine may have ended.
        let _ = self.tx.send(Msg::Context(ContextMsg::SideCall(SideMsg::Waits(Some(told))))).await;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = skipped => {}
        }
        let _ = self.tx.send(Msg::Context(ContextMsg::SideCall(SideMsg::Waits(None)))).await;
        true
    }

    /// Why the last error is final; the text names the server's wait where that is the reason.
    pub(crate) fn too_long_a_wait(&self, error: &ProviderError) -> Option<ProviderError> {
        retry::over(error, self.longest_wait)
    }
}

/// Records the cost of a request when it is dropped.
struct CostRecorder<'a> {
    call: &'a SideCall,
    parts: Assembler,
    /// Tokens of the request, estimated.
    asked: u64,
    bytes: u64,
    /// The server did not accept the request: nothing is charged.
    refused: bool,
    whole: bool,
    /// The server's counts.
    counted: Usage,
}

impl<'a> CostRecorder<'a> {
    fn new(call: &'a SideCall, asked: u64) -> Self {
        let parts = Assembler::new(call.model.provider(), "", []);
        Self { call, parts, asked, bytes: 0, refused: false, whole: false, counted: Usage::default() }
    }

    fn push(&mut self, chunk: Chunk) {
        self.bytes += match &chunk {
            Chunk::Text { text, .. } | Chunk::Thinking { text, .. } => text.len() as u64,
            _ => 0,
        };
        self.parts.push(chunk);
        (self.whole, self.counted) = (self.parts.stop.is_some(), self.parts.usage);
    }

    fn finish(mut self) -> tiller_provider::Assembled {
        std::mem::take(&mut self.parts).finish()
    }
}

impl Drop for CostRecorder<'_> {
    fn drop(&mut self) {
        if self.refused {
            return;
        }
        let SideCall { session, model, tier, tx, counts, .. } = self.call;
        let request = Usage { input: counts.read(self.asked), estimated: true, ..Usage::default() };
        let written = counts.written(tokens::of_bytes(self.bytes));
        let usage = tokens::completed(self.counted, self.whole, request, written);
        let spent = Box::new(SideCallCost { session: *session, model: model.clone(), tier: *tier, usage });
        if let Err(mpsc::error::TrySendError::Full(msg)) =
            tx.try_send(Msg::Context(ContextMsg::SideCall(SideMsg::SideCallCost(spent))))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let tx = tx.clone();
            runtime.spawn(async move { tx.send(msg).await });
        }
    }
}
