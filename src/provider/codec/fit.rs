//! Rewrites messages so that every vendor's schema accepts them.
//!
//! The conversation is stored as it arrived, and models, imported transcripts and crashes produce what a vendor
//! rejects: a tool name with a dot, a duplicate id, a call without a result, arguments that are not an object, an empty
//! text, a reply at the very end. One such item would make the server reject every later request of the session, so
//! each request passes [`fit`]. Well-formed messages are borrowed.
//!
//! The form of a message depends only on the messages before it and on the results that follow it directly: a longer
//! conversation repeats the messages of the shorter one unchanged, until it holds too many images.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};
use tiller_protocol::{Block, ModelRef, Part, ToolCall};

use crate::codec::image_limits::{ImageLimits, parts};
use crate::codec::picture;
use crate::codec::request::ChatMessage;

/// Maximum bytes of one text; the strictest vendor accepts 10 MB.
const TEXT_LIMIT: usize = mib(8);
/// Maximum characters of a tool name, by the strictest vendor.
const NAME_LIMIT: usize = 64;

/// Inserted between two replies of the model, and after the last one: no vendor accepts two replies in a row.
const GO_ON: &str = "Continue from where you stopped.";
/// Inserted before a conversation that begins with a reply.
const BEGINS: &str = "(The conversation began earlier.)";
/// Replaces a missing result.
const NO_RESULT: &str = "There is no result: the call was interrupted.";

/// The limits of a vendor.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Maps an id to the vendor's form; different ids stay different.
    pub(crate) id: fn(&str) -> Cow<'_, str>,
    /// Maximum number of calls in one reply.
    pub(crate) calls: usize,
    /// Accepted types of images.
    pub(crate) images: &'static [&'static str],
    /// Maximum bytes of an image in base64.
    pub(crate) image_bytes: usize,
    /// Maximum side of an image, in pixels.
    pub(crate) image_side: u32,
    /// Limits for all images of a request.
    pub(crate) image_limits: ImageLimits,
}

/// Mebibytes in bytes.
pub(crate) const fn mib(n: usize) -> usize {
    n * 1024 * 1024
}

/// The messages, adapted to `rules`. The server has refused one of the first `refused` images.
///
/// The images of the whole conversation count together: the oldest are left out when there are too many.
pub(crate) fn fit<'a>(
    messages: &'a [ChatMessage],
    rules: &Rules,
    refused: usize,
) -> Vec<Cow<'a, ChatMessage>> {
    let mut fitting = Fitting { rules, used: HashSet::new(), out: Vec::with_capacity(messages.len() + 1) };
    let first = messages.iter().position(is_reply).unwrap_or(messages.len());
    fitting.others(messages[..first].iter());
    let mut at = first;
    while let Some(ChatMessage::Assistant { blocks, model }) = messages.get(at) {
        let next = messages[at + 1..].iter().position(is_reply).map_or(messages.len(), |n| at + 1 + n);
        fitting.reply(&messages[at], blocks, model, &messages[at + 1..next]);
        at = next;
    }
    if fitting.out.last().is_none_or(|m| is_reply(m)) {
        fitting.say(GO_ON);
    }
    rules.image_limits.leave_out(&mut fitting.out, refused);
    fitting.out
}

/// The number of images that [`fit`] keeps when each is considered alone.
pub(crate) fn images(messages: &[ChatMessage], rules: &Rules) -> usize {
    messages.iter().flat_map(parts).filter(|p| matches!(p, Part::Image { .. }) && !rules.unfit(p)).count()
}

impl Rules {
    fn unfit(&self, part: &Part) -> bool {
        match part {
            Part::Text { text } => text.len() > TEXT_LIMIT,
            Part::Image { media_type, data } => {
                data.is_empty()
                    || data.len() > self.image_bytes
                    || !self.images.contains(&media_type.as_str())
                    || self.too_wide(data)
            }
        }
    }

    fn too_wide(&self, data: &str) -> bool {
        picture::side(data).is_some_and(|side| side > self.image_side)
    }
}

struct Fitting<'a, 'r> {
    rules: &'r Rules,
    /// Ids that occur in the request.
    used: HashSet<String>,
    out: Vec<Cow<'a, ChatMessage>>,
}

impl<'a> Fitting<'a, '_> {
    fn say(&mut self, text: &str) {
        self.out.push(Cow::Owned(user(text.to_owned())));
    }

    /// Adds a reply, the results of its calls in their order, and other messages up to the next reply.
    fn reply(
        &mut self,
        message: &'a ChatMessage,
        blocks: &'a [Block],
        model: &ModelRef,
        after: &'a [ChatMessage],
    ) {
        let mut taken = HashSet::new();
        if answers(blocks) {
            match self.out.last() {
                None => self.say(BEGINS),
                Some(last) if is_reply(last) => self.say(GO_ON),
                Some(_) => {}
            }
            let calls: Vec<&ToolCall> = blocks
                .iter()
                .filter_map(|b| if let Block::ToolCall(c) = b { Some(c) } else { None })
                .collect();
            let results: Vec<Option<&ChatMessage>> =
                calls.iter().enumerate().map(|(n, call)| result_of(call, n, after, &mut taken)).collect();
            let ids: Vec<String> = calls.iter().map(|c| self.unique(&c.id)).collect();
            let odd = blocks.iter().any(wrong) || calls.iter().zip(&ids).any(|(c, id)| c.id != *id);
            if odd || calls.len() > self.rules.calls {
                self.mended_reply(blocks, model, &ids, &results);
            } else {
                self.out.push(Cow::Borrowed(message));
                self.results(&calls, &ids, &results);
            }
        }
        let rest = after.iter().enumerate().filter(|(n, _)| !taken.contains(n));
        self.others(rest.map(|(_, m)| m));
    }

    /// Splits a reply as the vendor's limit of calls requires. All blocks that are not calls go into the first part.
    fn mended_reply(
        &mut self,
        blocks: &[Block],
        model: &ModelRef,
        ids: &[String],
        results: &[Option<&'a ChatMessage>],
    ) {
        let mut given = ids.iter();
        let all: Vec<Block> = blocks.iter().map(|b| mended(b, &mut given)).collect();
        let calls: Vec<ToolCall> = all
            .iter()
            .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.clone()) } else { None })
            .collect();
        let limit = self.rules.calls;
        if calls.len() <= limit {
            let calls: Vec<&ToolCall> = calls.iter().collect();
            self.out.push(Cow::Owned(ChatMessage::Assistant { blocks: all, model: model.clone() }));
            return self.results(&calls, ids, results);
        }
        let mut seen = 0;
        let mut first: Vec<Block> = all
            .into_iter()
            .filter(|b| {
                let call = matches!(b, Block::ToolCall(_));
                seen += usize::from(call);
                !call || seen <= limit
            })
            .collect();
        for (n, part) in calls.chunks(limit).enumerate() {
            let blocks = match n {
                0 => std::mem::take(&mut first),
                _ => part.iter().cloned().map(Block::ToolCall).collect(),
            };
            self.out.push(Cow::Owned(ChatMessage::Assistant { blocks, model: model.clone() }));
            let part: Vec<&ToolCall> = part.iter().collect();
            let of = n * limit..n * limit + part.len();
            self.results(&part, &ids[of.clone()], &results[of]);
        }
    }

    fn results(&mut self, calls: &[&ToolCall], ids: &[String], results: &[Option<&'a ChatMessage>]) {
        for ((call, id), result) in calls.iter().zip(ids).zip(results) {
            let name = wire_name(&call.name);
            let result = match result {
                Some(whole @ ChatMessage::ToolResult { call_id, name: of, content, .. })
                    if call_id == id && *of == name && !content.iter().any(|p| self.rules.unfit(p)) =>
                {
                    Cow::Borrowed(*whole)
                }
                Some(ChatMessage::ToolResult { ok, content, .. }) => Cow::Owned(ChatMessage::ToolResult {
                    call_id: id.clone(),
                    name: name.into_owned(),
                    ok: *ok,
                    content: content.iter().map(|p| self.part(p)).collect(),
                }),
                _ => Cow::Owned(ChatMessage::ToolResult {
                    call_id: id.clone(),
                    name: name.into_owned(),
                    ok: false,
                    content: vec![Part::Text { text: NO_RESULT.into() }],
                }),
            };
            self.out.push(result);
        }
    }

    /// Adds messages of the person, and results without a call.
    fn others(&mut self, messages: impl Iterator<Item = &'a ChatMessage>) {
        for message in messages {
            match message {
                ChatMessage::User { content } if !content.iter().any(says) => {}
                ChatMessage::User { content } if content.iter().any(|p| self.rules.unfit(p)) => {
                    let content = content.iter().map(|p| self.part(p)).collect();
                    self.out.push(Cow::Owned(ChatMessage::User { content }));
                }
                ChatMessage::User { .. } => self.out.push(Cow::Borrowed(message)),
                ChatMessage::ToolResult { name, content, .. } => {
                    let head = format!("Result of an earlier call to {}:", wire_name(name));
                    let mut parts = vec![Part::Text { text: head }];
                    parts.extend(content.iter().map(|p| self.part(p)));
                    self.out.push(Cow::Owned(ChatMessage::User { content: parts }));
                }
                ChatMessage::Assistant { .. } => {}
            }
        }
    }

    fn part(&self, part: &Part) -> Part {
        match part {
            part if !self.rules.unfit(part) => part.clone(),
            Part::Text { text } => Part::Text { text: cut(text) },
            Part::Image { data, .. } if data.len() > self.rules.image_bytes => Part::Text {
                text: format!("[image left out: larger than {} MB]", self.rules.image_bytes / mib(1)),
            },
            Part::Image { data, .. } if self.rules.too_wide(data) => {
                Part::Text { text: format!("[image left out: wider than {} pixels]", self.rules.image_side) }
            }
            Part::Image { media_type, .. } => {
                let kind: String = media_type.chars().filter(|c| !c.is_control()).take(40).collect();
                Part::Text { text: format!("[image left out: the model does not read {kind}]") }
            }
        }
    }

    /// A form of the id that is unique within this request.
    fn unique(&mut self, id: &str) -> String {
        let mut wire = (self.rules.id)(id).into_owned();
        let mut n = 1;
        while wire.is_empty() || !self.used.insert(wire.clone()) {
            n += 1;
            wire = (self.rules.id)(&format!("{id}#{n}")).into_owned();
        }
        wire
    }
}

fn is_reply(message: &ChatMessage) -> bool {
    matches!(message, ChatMessage::Assistant { .. })
}

fn user(text: String) -> ChatMessage {
    ChatMessage::User { content: vec![Part::Text { text }] }
}

/// The result of a reply's `n`-th call; each result is used once.
fn result_of<'a>(
    call: &ToolCall,
    n: usize,
    after: &'a [ChatMessage],
    taken: &mut HashSet<usize>,
) -> Option<&'a ChatMessage> {
    let fits = |at: usize, taken: &HashSet<usize>| {
        !taken.contains(&at)
            && matches!(after.get(at), Some(ChatMessage::ToolResult { call_id, .. }) if *call_id == call.id)
    };
    // They are nearly always in order.
    let at = if fits(n, taken) { Some(n) } else { (0..after.len()).find(|at| fits(*at, taken)) }?;
    taken.insert(at);
    after.get(at)
}

/// Whether the reply holds anything that a vendor accepts as an answer: thoughts alone are not enough.
fn answers(blocks: &[Block]) -> bool {
    blocks.iter().any(|b| match b {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolCall(_) => true,
        _ => false,
    })
}

fn says(part: &Part) -> bool {
    match part {
        Part::Text { text } => !text.trim().is_empty(),
        Part::Image { .. } => true,
    }
}

/// Whether the block must be rewritten.
fn wrong(block: &Block) -> bool {
    match block {
        Block::Text { text } => text.len() > TEXT_LIMIT,
        Block::ToolCall(call) => {
            matches!(wire_name(&call.name), Cow::Owned(_))
                || !call.arguments.is_object()
                || weight(&call.arguments) > TEXT_LIMIT
        }
        _ => false,
    }
}

fn mended<'i>(block: &Block, ids: &mut impl Iterator<Item = &'i String>) -> Block {
    match block {
        Block::Text { text } if text.len() > TEXT_LIMIT => Block::Text { text: cut(text) },
        Block::ToolCall(call) => {
            let mut call = call.clone();
            if let Some(id) = ids.next() {
                call.id.clone_from(id);
            }
            if let Cow::Owned(name) = wire_name(&call.name) {
                call.name = name;
            }
            if !call.arguments.is_object() || weight(&call.arguments) > TEXT_LIMIT {
                call.arguments = Value::Object(Map::new());
                // The argument text, where a format stores it, must match.
                if let Some(Value::Object(vendor)) = &mut call.vendor {
                    vendor.shift_remove("text");
                }
            }
            Block::ToolCall(call)
        }
        other => other.clone(),
    }
}

fn cut(text: &str) -> String {
    let kept = &text[..text.floor_char_boundary(TEXT_LIMIT - 64)];
    format!("{kept}\n[cut: longer than {} MB]", TEXT_LIMIT / mib(1))
}

/// Approximate bytes of a value as JSON. The parser of replies refuses deep nesting, so this cannot exhaust the stack.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(s) => s.len() + 2,
        Value::Array(list) => list.iter().map(weight).fold(2, |a, b| a.saturating_add(b + 1)),
        Value::Object(map) => {
            map.iter().fold(2, |a, (k, v)| a.saturating_add(k.len() + 4).saturating_add(weight(v)))
        }
        _ => 8,
    }
}

/// A tool name that every format accepts: a letter or `_`, then at most 63 of `A-Z a-z 0-9 _ -`.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.len() <= NAME_LIMIT && name.starts_with(begins) && name.chars().all(fine) {
        return Cow::Borrowed(name);
    }
    let mut out: String = name.chars().take(NAME_LIMIT).map(|c| if fine(c) { c } else { '_' }).collect();
    if !out.chars().any(|c| c.is_ascii_alphanumeric()) {
        out = "unknown_tool".into();
    } else if !out.starts_with(begins) {
        out.insert(0, '_');
        out.truncate(NAME_LIMIT);
    }
    Cow::Owned(out)
}

/// A call id of at most `limit` characters (40 or more) of `A-Z a-z 0-9 _ -`. Other ids get a short digest, so that
/// different ones stay different.
fn bounded_id(id: &str, limit: usize) -> Cow<'_, str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= limit && id.chars().all(fine) {
        return Cow::Borrowed(id);
    }
    let kept: String = id.chars().filter(|c| fine(*c)).take(limit.min(57) - 17).collect();
    Cow::Owned(format!("{kept}_{:016x}", digest(id)))
}

/// FNV-1a, 64 bits: stable across versions, and not security-relevant.
fn digest(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Ids of at most 64 characters: Anthropic, OpenAI Responses.
pub(crate) fn id_64(id: &str) -> Cow<'_, str> {
    bounded_id(id, 64)
}

/// Ids of at most 40 characters: OpenAI Chat Completions.
pub(crate) fn id_40(id: &str) -> Cow<'_, str> {
    bounded_id(id, 40)
}

/// Ids of exactly nine letters and digits: Mistral.
pub(crate) fn id_9(id: &str) -> Cow<'_, str> {
    if id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let mut rest = digest(id);
    let letters = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let next = |_| {
        let c = letters[(rest % 36) as usize];
        rest /= 36;
        char::from(c)
    };
    Cow::Owned((0..9).map(next).collect())
}

/// Any id: Gemini only receives its own.
pub(crate) fn id_any(id: &str) -> Cow<'_, str> {
    Cow::Borrowed(id)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
