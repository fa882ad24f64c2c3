//! Folds [`Chunk`]s into the blocks of a reply.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};
use tiller_protocol::{Block, StopReason, ToolCall, Usage};

use crate::codec::chunk::Chunk;
use crate::codec::repair::{self, Repaired};

/// Maximum bytes of one block. The rest is dropped and [`Assembler::truncated`] is set.
pub const PART_LIMIT: usize = 64 * 1024 * 1024;
/// Maximum number of blocks of one reply.
pub const BLOCK_LIMIT: usize = 4096;
/// Bytes kept of arguments that were not a JSON object.
const MALFORMED_LIMIT: usize = 16 * 1024;

#[derive(Clone, Debug)]
enum Slot {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted(String),
    Call { call: ToolCall, json: String },
    Unknown(Value),
}

#[derive(Clone, Debug)]
struct OpenBlock {
    slot: Slot,
    ended: bool,
}

/// Folds chunks into blocks. Pure; the same chunks give the same blocks however they were split.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    open: BTreeMap<usize, OpenBlock>,
    provider: String,
    seed: String,
    taken: HashSet<String>,
    made: usize,
    /// Token counts so far.
    pub usage: Usage,
    /// Why the reply ended; `None` while it runs, and when the stream was cut.
    pub stop: Option<StopReason>,
    /// Content beyond [`PART_LIMIT`] or [`BLOCK_LIMIT`] was dropped.
    pub truncated: bool,
}

/// The result of one reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembled {
    /// In the order in which they began. Every call is complete; run those without `malformed`.
    pub blocks: Vec<Block>,
    /// Names of calls that were cut off. They are not in `blocks` and must not run.
    pub dropped: Vec<String>,
    pub usage: Usage,
    /// `None`: the stream was cut.
    pub stop: Option<StopReason>,
    pub truncated: bool,
}

impl Assembled {
    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|b| if let Block::ToolCall(call) = b { Some(call) } else { None })
    }
}

impl Assembler {
    /// For one reply of the provider of this name. `seed` makes generated ids unique within the session (for instance a
    /// counter of requests); `taken` are the call ids of the session.
    pub fn new(provider: &str, seed: &str, taken: impl IntoIterator<Item = String>) -> Self {
        Self {
            provider: provider.into(),
            seed: seed.into(),
            taken: taken.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds the next chunk.
    pub fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Text { index, text } => self.append(index, &text, || Slot::Text(String::new())),
            Chunk::Thinking { index, text } => self.append(index, &text, thinking),
            Chunk::TextWasThought { index } => {
                if let Some(OpenBlock { slot, .. }) = self.open.get_mut(&index)
                    && let Slot::Text(text) = slot
                {
                    *slot = Slot::Thinking { text: std::mem::take(text), signature: String::new() };
                }
            }
            Chunk::Signature { index, signature } => {
                self.begin(index, thinking);
                if let Some(OpenBlock { slot: Slot::Thinking { signature: s, .. }, ended: false }) =
                    self.open.get_mut(&index)
                {
                    grow(s, &signature, &mut self.truncated);
                }
            }
            Chunk::Redacted { index, data } => {
                self.begin(index, || Slot::Redacted(data));
            }
            Chunk::ToolBegin { index, id, name, vendor } => {
                if !self.open.contains_key(&index) {
                    let id = self.unique(id);
                    let call = ToolCall { id, name, arguments: empty(), malformed: None, vendor };
                    self.begin(index, || Slot::Call { call, json: String::new() });
                }
            }
            Chunk::ToolArgs { index, json: more } => {
                if let Some(OpenBlock { slot: Slot::Call { json, .. }, ended: false }) =
                    self.open.get_mut(&index)
                {
                    grow(json, &more, &mut self.truncated);
                }
            }
            Chunk::BlockEnd { index } => {
                if let Some(open) = self.open.get_mut(&index).filter(|o| !o.ended) {
                    open.ended = true;
                    if let Slot::Call { call, json } = &mut open.slot {
                        close(call, json);
                    }
                }
            }
            Chunk::Unknown { index, raw } => {
                self.begin(index, || Slot::Unknown(raw));
            }
            Chunk::Usage(usage) => self.usage = usage,
            Chunk::Stop(stop) => self.stop = Some(stop),
            Chunk::Ping | Chunk::Progress { .. } => {}
        }
    }

    /// The id of the call at `index`, once it has begun: the vendor's, or a generated one.
    pub fn call_id(&self, index: usize) -> Option<&str> {
        match self.open.get(&index) {
            Some(OpenBlock { slot: Slot::Call { call, .. }, .. }) => Some(&call.id),
            _ => None,
        }
    }

    /// Whether no content has arrived yet, so that a retry repeats nothing.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The blocks so far that may stay in history: incomplete calls and signatures are left out.
    pub fn partial(&self) -> Vec<Block> {
        self.clone().finish().blocks
    }

    /// Ends the reply.
    pub fn finish(self) -> Assembled {
        let mut out = Assembled {
            usage: self.usage,
            stop: self.stop,
            truncated: self.truncated,
            ..Assembled::default()
        };
        // Blocks that a format adds behind the reply cannot be cut by the output limit.
        let written = |(_, open): &(&usize, &OpenBlock)| !matches!(open.slot, Slot::Unknown(_));
        let last = self.open.iter().rev().find(written).map(|(index, _)| *index);
        for (index, OpenBlock { slot, ended }) in self.open {
            match slot {
                Slot::Text(text) if text.is_empty() => {}
                Slot::Text(text) => out.blocks.push(Block::Text { text }),
                Slot::Thinking { text, signature } => {
                    let signature = (ended && !signature.is_empty()).then_some(signature);
                    if !text.is_empty() || signature.is_some() {
                        out.blocks.push(Block::Thinking { text, signature });
                    }
                }
                Slot::Redacted(data) => out.blocks.push(Block::Redacted { data }),
                Slot::Call { call, json } => {
                    // At the output limit vendors end the block nevertheless. A cut object is never valid JSON, but a
                    // call that was cut before its arguments looks like one without arguments.
                    let cut = Some(index) == last
                        && out.stop == Some(StopReason::MaxTokens)
                        && (json.is_empty() || call.malformed.is_some());
                    if ended && !cut {
                        out.blocks.push(Block::ToolCall(call));
                    } else {
                        unsign_last(&mut out.blocks);
                        out.dropped.push(call.name);
                    }
                }
                Slot::Unknown(raw) => {
                    out.blocks.push(Block::Unknown { provider: self.provider.clone(), raw });
                }
            }
        }
        out
    }

    /// Creates the block at `index` if there is none.
    fn begin(&mut self, index: usize, slot: impl FnOnce() -> Slot) {
        if self.open.contains_key(&index) {
            return;
        }
        if self.open.len() >= BLOCK_LIMIT {
            self.truncated = true;
            return;
        }
        self.open.insert(index, OpenBlock { slot: slot(), ended: false });
    }

    fn append(&mut self, index: usize, more: &str, slot: fn() -> Slot) {
        self.begin(index, slot);
        let kind = std::mem::discriminant(&slot());
        if let Some(open) = self.open.get_mut(&index)
            && !open.ended
            && std::mem::discriminant(&open.slot) == kind
            && let Slot::Text(text) | Slot::Thinking { text, .. } = &mut open.slot
        {
            grow(text, more, &mut self.truncated);
        }
    }

    /// The id, unless it is empty, taken, or of the form of calls that messages make.
    fn unique(&mut self, id: String) -> String {
        if !id.is_empty() && !ToolCall::is_of_message(&id) && self.taken.insert(id.clone()) {
            return id;
        }
        loop {
            self.made += 1;
            let id = if self.seed.is_empty() {
                format!("call_{}", self.made)
            } else {
                format!("call_{}_{}", self.seed, self.made)
            };
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// Removes the signature of the last thought, for blocks whose next call is left out. A vendor accepts a signed thought
/// only with what followed it; the text stays for the person.
pub fn unsign_last(blocks: &mut Vec<Block>) {
    match blocks.last_mut() {
        Some(Block::Thinking { text, .. }) if text.is_empty() => drop(blocks.pop()),
        Some(Block::Thinking { signature, .. }) => *signature = None,
        _ => {}
    }
}

fn thinking() -> Slot {
    Slot::Thinking { text: String::new(), signature: String::new() }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// Appends up to [`PART_LIMIT`].
fn grow(text: &mut String, more: &str, truncated: &mut bool) {
    let room = PART_LIMIT - text.len();
    if more.len() <= room {
        text.push_str(more);
    } else {
        text.push_str(&more[..more.floor_char_boundary(room)]);
        *truncated = true;
    }
}

/// Parses the arguments of a complete call. The parser refuses deep nesting, so that no later walk over the value can
/// exhaust the stack.
fn close(call: &mut ToolCall, json: &str) {
    match repair::arguments(json) {
        Repaired::Object(value, text) => {
            if let Some(Value::Object(vendor)) = &mut call.vendor
                && vendor.contains_key("text")
            {
                if serde_json::to_string(&value).is_ok_and(|own| own == text) {
                    vendor.shift_remove("text");
                } else {
                    vendor.insert("text".into(), Value::from(text));
                }
            }
            call.arguments = value;
        }
        Repaired::Nothing => {}
        Repaired::Unclear => {
            call.malformed = Some(json[..json.floor_char_boundary(MALFORMED_LIMIT)].to_owned())
        }
    }
    if let Some(Value::Object(vendor)) = &mut call.vendor {
        if vendor.get("text").is_some_and(Value::is_null) {
            vendor.shift_remove("text");
        }
        if vendor.is_empty() {
            call.vendor = None;
        }
    }
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
