//! OpenAI Chat Completions: reading the streamed reply, with tolerance for the differences between servers.

use std::collections::VecDeque;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::StopReason;

use crate::codec::chunk::Chunk;
use crate::codec::lax;
use crate::codec::repair::{self, Repaired};
use crate::codec::reply::{BlockKind, Blocks, usage};
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::openai::chat_event::{CallDelta, ChatEvent, ChatUsage, Groq, PromptProgress};
use crate::openai::think_tags::{Piece, ThinkTags};
use crate::transport::fault;

/// An open call at a server's index.
struct OpenCall {
    at: u64,
    id: String,
    name: String,
    /// Its arguments so far.
    json: String,
    index: usize,
    /// Its name has arrived, and its beginning has gone out.
    begun: bool,
    /// The name of the call before it, repeated: it is a call only with arguments.
    repeated: bool,
    extra: Option<Value>,
    nesting: Nesting,
    copies: Copies,
}

/// The pieces of arguments so far, as growing copies: some servers send with each piece all that there was.
#[derive(Default)]
struct Copies {
    last: String,
    pieces: usize,
    /// Some piece did not begin with the one before it.
    broken: bool,
}

impl Copies {
    fn feed(&mut self, json: &str) {
        if json.is_empty() {
            return;
        }
        self.broken |= !json.starts_with(&self.last);
        self.pieces += 1;
        self.last.clear();
        if !self.broken {
            self.last.push_str(json);
        }
    }
}

/// Bytes that are parsed to see whether the arguments of one call are whole.
const WORK_LIMIT: usize = 16 * 1024 * 1024;

/// How deep the arguments so far are nested, so that they are parsed only where they can be whole.
#[derive(Default)]
struct Nesting {
    depth: usize,
    string: bool,
    escaped: bool,
    /// Bytes parsed so far.
    work: usize,
}

impl Nesting {
    fn feed(&mut self, json: &str) {
        for byte in json.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.string => self.escaped = true,
                b'"' => self.string = !self.string,
                b'{' | b'[' if !self.string => self.depth += 1,
                b'}' | b']' if !self.string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl OpenCall {
    /// Begins its block, with the arguments so far.
    fn begin(&mut self, out: &mut VecDeque<Chunk>) {
        self.begun = true;
        let mut vendor = json!({"text": null});
        if let Some(extra) = self.extra.take() {
            vendor["extra_content"] = extra;
        }
        let (index, id, name) = (self.index, self.id.clone(), self.name.clone());
        out.push_back(Chunk::ToolBegin { index, id, name, vendor: Some(vendor) });
        if !self.json.is_empty() {
            out.push_back(Chunk::ToolArgs { index, json: self.json.clone() });
        }
    }

    /// Adds to its arguments.
    fn grow(&mut self, json: &str) {
        self.json.push_str(json);
        self.nesting.feed(json);
        self.copies.feed(json);
    }

    /// True where its pieces can only be growing copies, the last one whole, and `next` begins another object: read as parts of
    /// one text they are no beginning of an object.
    fn was_copied(&mut self, next: &str) -> bool {
        let Copies { last, pieces, broken } = &self.copies;
        if *broken || *pieces < 2 || next.starts_with(last) || !next.trim_start().starts_with('{') {
            return false;
        }
        self.nesting.work = self.nesting.work.saturating_add(self.json.len() + last.len());
        let one = format!("{}{next}", self.json);
        let is_part = serde_json::from_str::<IgnoredAny>(&one).map_or_else(|error| error.is_eof(), |_| true);
        self.nesting.work <= WORK_LIMIT
            && !is_part
            && matches!(serde_json::from_str(last), Ok(Value::Object(_)))
    }

    /// True when its arguments are whole.
    fn is_whole(&mut self) -> bool {
        if self.nesting.depth > 0 || self.nesting.string {
            return false;
        }
        self.nesting.work = self.nesting.work.saturating_add(self.json.len());
        self.nesting.work <= WORK_LIMIT && repair::is_whole(&self.json)
    }

    /// True for a piece at its index that belongs to another call. Some servers give all calls one index, and no ids.
    fn is_over(&mut self, id: &str, name: &str, json: &str) -> bool {
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        let other_id = !id.is_empty() && !self.id.is_empty() && id != self.id;
        let same_id = !id.is_empty() && id == self.id;
        if other_id {
            // A new id with each piece: arguments go on where they stopped.
            let goes_on = name == self.name && !json.is_empty() && !json.trim_start().starts_with('{');
            return !(goes_on && !self.json.is_empty() && !self.is_whole());
        }
        if name != self.name {
            return !same_id;
        }
        if !same_id && self.was_copied(json) {
            return true;
        }
        // The same name again: a new call behind whole arguments, unless these are the same or an empty object in their
        // place.
        !same_id
            && self.is_whole()
            && !repair::is_placeholder(&self.json)
            && repair::arguments(&self.json) != repair::arguments(json)
            && !json.starts_with(&self.json)
    }
}

/// The decoder of one reply.
pub(crate) struct ChatReply {
    provider: String,
    blocks: Blocks,
    calls: Vec<OpenCall>,
    details: Vec<Value>,
    tags: ThinkTags,
    /// Indices of text blocks so far.
    texts: Vec<usize>,
    refusal: String,
    finish: Option<String>,
    counted: bool,
    done: bool,
    /// The answer is not a stream: each call of a list is complete.
    whole: bool,
}

impl ChatReply {
    pub(crate) fn new(provider: &str) -> Self {
        Self {
            provider: provider.into(),
            blocks: Blocks::default(),
            calls: Vec::new(),
            details: Vec::new(),
            tags: ThinkTags::default(),
            texts: Vec::new(),
            refusal: String::new(),
            finish: None,
            counted: false,
            done: false,
            whole: false,
        }
    }

    fn text(&mut self, text: &str, out: &mut VecDeque<Chunk>) {
        let mut pieces = Vec::new();
        self.tags.push(text, &mut pieces);
        self.pieces(pieces, out);
    }

    /// Ends the open text.
    fn end_text(&mut self, out: &mut VecDeque<Chunk>) {
        let mut pieces = Vec::new();
        self.tags.finish(&mut pieces);
        self.pieces(pieces, out);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, out: &mut VecDeque<Chunk>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    let (index, new) = self.blocks.run(BlockKind::Text, out);
                    if new {
                        self.texts.push(index);
                    }
                    out.push_back(Chunk::Text { index, text });
                }
                Piece::Thought(text) => self.thought(text, "", out),
                Piece::AllThought => {
                    self.blocks.end(out);
                    out.extend(self.texts.drain(..).map(|index| Chunk::TextWasThought { index }));
                }
            }
        }
    }

    /// Stores `field` as the signature: the thought is sent back under the same name.
    fn thought(&mut self, text: String, field: &str, out: &mut VecDeque<Chunk>) {
        if text.is_empty() {
            return;
        }
        let (index, new) = self.blocks.run(BlockKind::Thought, out);
        if new && !field.is_empty() {
            out.push_back(Chunk::Signature { index, signature: field.into() });
        }
        out.push_back(Chunk::Thinking { index, text });
    }

    fn call(&mut self, mut call: CallDelta<'_>, out: &mut VecDeque<Chunk>) {
        let (name, json) = call.function();
        // Some servers give no index, or the same one to every call: a new id with a name begins a call.
        let own = self.calls.iter().rfind(|open| !call.id.is_empty() && open.id == call.id.as_str());
        let at = call.index.0.filter(|_| !self.whole).unwrap_or_else(|| match (own, self.calls.last()) {
            (_, Some(last)) if self.whole => last.at.saturating_add(1),
            (Some(open), _) => open.at,
            (None, Some(last)) if call.id.is_empty() || name.is_empty() => last.at,
            (None, Some(last)) => last.at.saturating_add(1),
            (None, None) => 0,
        });
        let known = self.calls.iter().rposition(|o| o.at == at);
        let over = known.is_some_and(|n| self.calls[n].is_over(call.id.as_str(), name.as_str(), &json));
        if let Some(open) = known.filter(|_| over).map(|n| &mut self.calls[n])
            && open.name == name.as_str()
            && open.was_copied(&json)
        {
            // Behind one more of them, those before it have no other reading.
            let (index, json) = (open.index, open.copies.last.clone());
            out.push_back(Chunk::ToolArgs { index, json });
        }
        let known = known.filter(|_| !over);
        let n = match known {
            Some(n) => n,
            None => {
                self.end_text(out);
                self.blocks.end(out);
                // Without an id, the same name behind whole arguments may be only their end.
                let same = |o: &OpenCall| o.at == at && o.name == name.as_str() && call.id.is_empty();
                self.calls.push(OpenCall {
                    at,
                    repeated: !self.whole && self.calls.last().is_some_and(same),
                    id: call.id.into_string(),
                    name: String::new(),
                    json: String::new(),
                    index: self.blocks.fresh(),
                    begun: false,
                    extra: lax::read::<Value>(call.extra_content),
                    nesting: Nesting::default(),
                    copies: Copies::default(),
                });
                self.calls.len() - 1
            }
        };
        let open = &mut self.calls[n];
        if open.name.is_empty() {
            open.name = name.into_string();
        }
        open.grow(&json);
        if open.begun {
            if !json.is_empty() {
                out.push_back(Chunk::ToolArgs { index: open.index, json });
            }
        } else if !(open.name.is_empty() || open.repeated && open.json.is_empty()) {
            open.begin(out);
        }
    }

    fn count(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(c) = lax::read::<ChatUsage>(raw) else { return };
        let (prompt, output) = (c.prompt_tokens.0, c.completion_tokens.0);
        if prompt.is_none() && output.is_none() {
            return;
        }
        let of_prompt = c.prompt_tokens_details.unwrap_or_default();
        let cache_read = of_prompt.cached_tokens.0.or(c.prompt_cache_hit_tokens.0);
        let reasoning = c.completion_tokens_details.unwrap_or_default().reasoning_tokens.0;
        self.counted = true;
        out.push_back(Chunk::Usage(usage(
            prompt.unwrap_or(0),
            cache_read.unwrap_or(0),
            of_prompt.cache_write_tokens.0.unwrap_or(0),
            output.unwrap_or(0),
            reasoning.unwrap_or(0),
        )));
    }

    /// Joins a streamed list of reasoning details: pieces of one index and type become one.
    fn detail(&mut self, raw: Option<&RawValue>) {
        for piece in lax::read::<Vec<Value>>(raw).unwrap_or_default() {
            let same = |d: &&mut Value| d["index"] == piece["index"] && d["type"] == piece["type"];
            let Some(Value::Object(known)) = self.details.last_mut().filter(same) else {
                self.details.push(piece);
                continue;
            };
            let Value::Object(piece) = piece else { continue };
            for (key, value) in piece {
                match (known.get_mut(&key), value) {
                    (Some(Value::String(a)), Value::String(b))
                        if matches!(key.as_str(), "text" | "summary" | "data") =>
                    {
                        a.push_str(&b);
                    }
                    (_, Value::Null) => {}
                    (_, value) => {
                        known.insert(key, value);
                    }
                }
            }
        }
    }
}

impl Decoder for ChatReply {
    fn event(&mut self, name: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Flow::Over);
        }
        let Some(event) = lax::event::<ChatEvent<'_>>(&self.provider, data)? else { return Ok(Flow::More) };
        if event.is_failure(name) {
            return Err(fault::stated(&self.provider, data));
        }
        if let Some(progress) = lax::read::<PromptProgress>(event.prompt_progress) {
            let (done, of) = (progress.processed.0.unwrap_or(0), progress.total.0.unwrap_or(0));
            out.push_back(Chunk::Progress { done, of });
        }
        // One choice is requested; further ones are ignored.
        if let Some(choice) = event.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                let calls = delta.calls();
                let field =
                    if delta.reasoning_content.is_empty() { "reasoning" } else { "reasoning_content" };
                let thought = if delta.reasoning_content.is_empty() {
                    delta.reasoning
                } else {
                    delta.reasoning_content
                };
                self.thought(thought.into_string(), field, out);
                self.thought(delta.content.thought, "", out);
                self.detail(delta.reasoning_details);
                if !delta.content.text.is_empty() {
                    self.text(delta.content.text.as_str(), out);
                }
                self.refusal.push_str(delta.refusal.as_str());
                for call in calls {
                    self.call(call, out);
                }
            }
            // The word for none, from servers that write it as text.
            if !matches!(choice.finish_reason.as_str(), "" | "null" | "None") {
                self.finish = Some(choice.finish_reason.into_string());
            }
        }
        self.count(event.usage, out);
        self.count(lax::read::<Groq<'_>>(event.x_groq).and_then(|g| g.usage), out);
        Ok(match (&self.finish, self.counted) {
            (Some(_), _) => Flow::Grace,
            (None, _) => Flow::More,
        })
    }

    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        // Some servers send the pieces of a stream, but not as events.
        let answer = serde_json::from_str::<Value>(data).unwrap_or_default();
        // Words of another service: the whole document is quoted.
        if answer.get("detail").is_some() && answer.get("choices").is_none() {
            return Ok(());
        }
        self.whole = answer["choices"][0]["message"].is_object();
        self.event("", data, out)?;
        if self.whole {
            self.end_text(out);
            if self.finish.is_none() && self.blocks.any() {
                self.finish = Some("stop".into());
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        // Without a finish reason a call may be incomplete: only whole arguments tell that it is not.
        let is_call = |open: &&OpenCall| !(open.repeated && open.json.is_empty());
        let whole = self
            .calls
            .iter()
            .filter(is_call)
            .all(|open| matches!(repair::arguments(&open.json), Repaired::Object(..)));
        let Some(finish) = self
            .finish
            .take()
            .or_else(|| (self.done && self.blocks.any() && whole).then(|| "stop".to_owned()))
        else {
            return Err(fault::cut(&self.provider));
        };
        let any_call = !self.calls.is_empty();
        self.end_text(out);
        self.blocks.end(out);
        for mut open in std::mem::take(&mut self.calls) {
            if !open.begun && !open.repeated {
                open.begin(out);
            }
            out.push_back(Chunk::BlockEnd { index: open.index });
        }
        if !self.details.is_empty() {
            let index = self.blocks.fresh();
            let raw = json!({"reasoning_details": std::mem::take(&mut self.details)});
            out.push_back(Chunk::Unknown { index, raw });
        }
        let refusal = std::mem::take(&mut self.refusal);
        out.push_back(Chunk::Stop(match finish.as_str() {
            "error" => {
                return Err(fault::event(&self.provider, "server_error", "the model stopped with an error"));
            }
            "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
            // Other vendors' words for it.
            "content_filter" | "refusal" | "safety" | "SAFETY" | "sensitive" => StopReason::Refusal(refusal),
            _ if !refusal.is_empty() => StopReason::Refusal(refusal),
            _ if any_call => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        }));
        Ok(())
    }
}
