//! Redacts secrets in everything that is stored or shown. Entries are redacted where they are made, so that later
//! requests repeat what is stored. Signed thinking stays unchanged, since its vendor verifies it. Tools run with the
//! original arguments.

use std::time::Duration;

use serde_json::Value;
use tiller_permit::{context, grows, undecided};
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::view::LayerCost;
use tiller_protocol::{Addition, Ask, Attachment, Block, EntryBody, Message, Part, ToolCall};
use tokio::sync::mpsc;

use crate::core::services::{Redact, Redaction};

/// Longest time that the end of a text is withheld.
pub(crate) const QUIET: Duration = Duration::from_millis(200);
/// Longest text that a stream withholds, in bytes.
const HELD: usize = 4 << 10;
/// Longest field, in bytes, that is checked together with its name.
const NAMED: usize = 512;
/// Longest text, in bytes, that is checked again while more arrives.
const WINDOW: usize = 16 << 10;

fn text(redact: &Redact, text: &mut String) {
    *text = redact(text);
}

/// Redacts an entry. Signed thinking and data that only its vendor reads stay.
pub fn entry(redact: &Redact, mut body: EntryBody) -> EntryBody {
    match &mut body {
        EntryBody::Prefix { system, layers, .. } => prefix(redact, system, layers),
        EntryBody::User { message: m, content, .. } => {
            message(redact, m);
            parts(redact, content);
        }
        EntryBody::Assistant { blocks: b, .. } => blocks(redact, b),
        EntryBody::ToolResult { content, display, added, .. } => {
            parts(redact, content);
            for what in &mut added.after {
                if let Addition::Rule(rule) = what {
                    text(redact, rule);
                }
            }
            match display {
                Some(Display::Diff { files }) => files.iter_mut().for_each(|f| text(redact, &mut f.diff)),
                Some(Display::Measure { text: t } | Display::Output { tail: t, .. }) => text(redact, t),
                Some(Display::Calls { calls, tail, .. }) => {
                    text(redact, tail);
                    calls.iter_mut().for_each(|call| inner(redact, call));
                }
                None => {}
            }
        }
        EntryBody::InnerCall { call, .. } => inner(redact, call),
        EntryBody::Compaction { summary, focus, carried, .. } => {
            text(redact, summary);
            focus.iter_mut().for_each(|f| text(redact, f));
            carried.all_mut().for_each(|one| parts(redact, &mut one.content));
        }
        EntryBody::BranchSummary { summary, focus, .. } => {
            text(redact, summary);
            focus.iter_mut().for_each(|f| text(redact, f));
        }
        EntryBody::Checkpoint { name: t } | EntryBody::Note { text: t } => text(redact, t),
    }
    body
}

/// Redacts a system prompt. Where that changes it, its layers are not found in it any more.
pub(crate) fn prefix(redact: &Redact, system: &mut String, layers: &mut [LayerCost]) {
    let clean = redact(system);
    if clean != *system {
        layers.iter_mut().for_each(|layer| layer.part = None);
        *system = clean;
    }
}

/// Redacts a call of a script.
pub(crate) fn inner(redact: &Redact, call: &mut InnerCall) {
    text(redact, &mut call.target);
    value(redact, &mut call.arguments);
    text(redact, &mut call.output);
    text(redact, &mut call.by);
    call.files.iter_mut().for_each(|f| text(redact, &mut f.diff));
}

/// Redacts what the user typed, pasted text included.
pub(crate) fn message(redact: &Redact, m: &mut Message) {
    text(redact, &mut m.text);
    for a in &mut m.attachments {
        if let Attachment::Paste { text: pasted, .. } = a {
            *pasted = redact(pasted).into();
        }
    }
}

fn parts(redact: &Redact, parts: &mut [Part]) {
    for part in parts {
        if let Part::Text { text: t } = part {
            text(redact, t);
        }
    }
}

/// Redacts a model's text and calls.
pub(crate) fn blocks(redact: &Redact, blocks: &mut [Block]) {
    for block in blocks {
        match block {
            Block::Text { text: t } | Block::Thinking { text: t, signature: None } => text(redact, t),
            Block::ToolCall(ToolCall { arguments, malformed, vendor, .. }) => {
                let before = arguments.clone();
                value(redact, arguments);
                // The raw arguments hold the secret, too.
                if before != *arguments
                    && let Some(Value::Object(fields)) = vendor
                {
                    fields.remove("text");
                }
                malformed.iter_mut().for_each(|m| text(redact, m));
            }
            Block::Thinking { signature: Some(_), .. } | Block::Redacted { .. } | Block::Unknown { .. } => {}
        }
    }
}

/// Redacts every text in a JSON value; the names of fields stay. A name may say that its value is a secret, so both
/// are also checked together.
pub(crate) fn value(redact: &Redact, v: &mut Value) {
    match v {
        Value::String(s) => text(redact, s),
        Value::Array(items) => items.iter_mut().for_each(|i| value(redact, i)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, f)| match f {
            Value::String(s) => {
                let before = s.clone();
                text(redact, s);
                let head = format!("{name}: ");
                let both = format!("{head}{before:?}");
                // A long text is no password: one check is enough.
                if *s == before && both.len() <= NAMED {
                    let masked = redact(&both);
                    if masked != both && masked.starts_with(&head) {
                        *s = "[redacted secret]".into();
                    }
                }
            }
            other => value(redact, other),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Redacts a question for the store. On screen the user sees exactly what would run.
pub(crate) fn ask(redact: &Redact, ask: Ask) -> Ask {
    let cleaned = serde_json::to_value(&ask).ok().and_then(|mut v| {
        value(redact, &mut v["body"]);
        serde_json::from_value(v).ok()
    });
    // Redaction cannot make the question unreadable; if it did, its id and call would still be needed after a restart.
    cleaned.unwrap_or(ask)
}

/// Redacts text that is shown while it arrives. A secret may be cut anywhere, so a last word that may become one is
/// withheld. The text before it on its line and the line above are checked again, since they may say that the word is
/// a secret.
pub(crate) struct Stream {
    redaction: Redaction,
    raw: String,
    /// The part of `raw` that was returned, redacted.
    shown: String,
    /// Bytes of `raw` that were returned.
    cut: usize,
    /// The withheld end was returned, too.
    paused: bool,
}

impl Stream {
    pub(crate) fn new(redaction: &Redaction) -> Self {
        Self { redaction: redaction.clone(), raw: String::new(), shown: String::new(), cut: 0, paused: false }
    }

    /// Takes more text; returns what can be shown.
    pub(crate) fn push(&mut self, more: &str) -> String {
        self.raw.push_str(more);
        let cut = self.boundary();
        self.show(cut)
    }

    /// Whether text is withheld.
    pub(crate) fn has_rest(&self) -> bool {
        self.cut < self.raw.len()
    }

    /// Returns the withheld text when nothing has arrived for a while. More may follow.
    pub(crate) fn pause(&mut self) -> String {
        self.show(self.raw.len())
    }

    /// The next piece of a tool's output; `None` at its end. Nothing is lost when the future is dropped.
    pub(crate) async fn next_of(&mut self, live: &mut mpsc::Receiver<String>) -> Option<String> {
        loop {
            let more = if !self.paused && self.boundary() < self.raw.len() {
                tokio::time::timeout(QUIET, live.recv()).await
            } else {
                Ok(live.recv().await)
            };
            let new = match more {
                Ok(Some(more)) => {
                    self.paused = false;
                    self.push(&more)
                }
                Ok(None) => {
                    let rest = self.finish();
                    return (!rest.is_empty()).then_some(rest);
                }
                // A prompt of a program that waits for input must be visible.
                Err(_) => {
                    self.paused = true;
                    self.pause()
                }
            };
            if !new.is_empty() {
                return Some(new);
            }
        }
    }

    /// Returns the rest and starts anew.
    pub(crate) fn finish(&mut self) -> String {
        let rest = self.pause();
        self.raw.clear();
        self.shown.clear();
        self.cut = 0;
        rest
    }

    /// The end of the text that more text cannot change.
    fn boundary(&self) -> usize {
        let raw = self.raw.as_str();
        let mut end = raw.trim_end_matches(grows).len();
        if end < raw.len() && !(self.redaction.incomplete)(raw) {
            end = raw.len();
        }
        // A key block is recognised by its body and ends where the following text says.
        if let Some(begin) = undecided(&raw[..end]) {
            end = end.min(begin);
        }
        if raw.len() - end > HELD { raw.len() } else { end }
    }

    fn show(&mut self, cut: usize) -> String {
        if cut <= self.cut {
            return String::new();
        }
        self.cut = cut;
        let now = (self.redaction.redact)(&self.raw[..cut]);
        let new = match now.strip_prefix(self.shown.as_str()) {
            Some(new) => new.to_owned(),
            // The text that was shown is part of a secret: at least the rest of it is masked.
            None => now[now.ceil_char_boundary(self.shown.len().min(now.len()))..].to_owned(),
        };
        if now.len() >= self.shown.len() {
            self.shown = now;
        }
        let from = window(&self.raw[..cut]);
        if from > 0 {
            self.raw.drain(..from);
            self.cut -= from;
            self.shown = (self.redaction.redact)(&self.raw[..cut - from]);
        }
        new
    }
}

/// The start of the text that is checked again: what says what follows it is, or an open key block.
fn window(raw: &str) -> usize {
    if let Some(begin) = raw.rfind("-----BEGIN")
        && !raw[begin..].split_once("-----END").is_some_and(|(_, end)| end.contains('\n'))
        && raw.len() - begin < WINDOW
    {
        return begin;
    }
    if !raw.contains('\n') {
        return if raw.len() > WINDOW { raw.len() } else { 0 };
    }
    context(raw)
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
