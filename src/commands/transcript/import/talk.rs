//! The content of another program's transcript before it becomes a session. Readers of formats only add what they find;
//! [`super::build`] makes a valid tree of it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tiller_permit::Redactor;
use tiller_protocol::{AgentId, Block, EntryBody, Message, Origin, Part, Time};

/// One conversation.
#[derive(Default)]
pub(super) struct Conversation {
    /// The program's id of it.
    pub(super) id: String,
    /// Its working folder.
    pub(super) project: String,
    pub(super) title: String,
    /// `provider/model`, the last one used.
    pub(super) model: String,
    pub(super) items: Vec<Item>,
    /// Tags: name and key of an item.
    pub(super) tags: Vec<(String, String)>,
    /// Records that are not part of the conversation.
    pub(super) records: Vec<Record>,
    /// Key of the user's last item.
    pub(super) end: Option<String>,
    /// Keys that are not items: the key that represents them as a parent.
    alias: HashMap<String, Option<String>>,
    keys: HashMap<String, usize>,
    /// Time of the last line with a time.
    now: Time,
}

/// A message or an action.
pub(super) struct Item {
    pub(super) key: String,
    /// Key of the item before; may be an alias or unknown.
    pub(super) parent: Option<String>,
    pub(super) time: Time,
    pub(super) agent: AgentId,
    pub(super) body: EntryBody,
    /// For a compaction: the key of the first kept item.
    pub(super) kept: Option<String>,
}

/// A line that is kept outside of the conversation.
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) time: Time,
    pub(super) kind: String,
    /// The text, if it was not JSON, with the reason.
    pub(super) body: Result<Value, (String, String)>,
}

impl Conversation {
    /// Records the time of a line; a line without one has that of the line before.
    pub(super) fn at(&mut self, time: Option<Time>) -> Time {
        if let Some(time) = time {
            self.now = time;
        }
        self.now
    }

    /// Adds an item. False: its key exists already, and nothing was added.
    pub(super) fn add(&mut self, key: &str, parent: Option<&str>, body: EntryBody) -> bool {
        if self.keys.contains_key(key) {
            return false;
        }
        self.keys.insert(key.to_owned(), self.items.len());
        self.items.push(Item {
            key: key.to_owned(),
            parent: parent.map(Into::into),
            time: self.now,
            agent: AgentId::main(),
            body,
            kept: None,
        });
        true
    }

    /// Masks secrets, as in every stored text.
    pub(super) fn mask(&mut self, redactor: &Arc<Redactor>) {
        let masks = Arc::clone(redactor);
        let redact: tiller_engine::Redact = Arc::new(move |t: &str| masks.redact(t).into_owned());
        for item in &mut self.items {
            let note = EntryBody::Note { text: String::new() };
            item.body = tiller_engine::masked_entry(&redact, std::mem::replace(&mut item.body, note));
            if let EntryBody::Assistant { blocks, .. } = &mut item.body {
                for block in blocks {
                    match block {
                        Block::Unknown { raw, .. } => redactor.redact_json(raw),
                        // The signature is for its vendor, and nothing is sent there again.
                        Block::Thinking { text, signature } => {
                            let masked = redact(text);
                            if masked != *text {
                                (*text, *signature) = (masked, None);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        for record in &mut self.records {
            match &mut record.body {
                Ok(raw) => redactor.redact_json(raw),
                Err((text, _)) => *text = redact(text),
            }
        }
        self.title = redact(&self.title);
        self.tags.iter_mut().for_each(|(name, _)| *name = redact(name));
    }

    /// Whether the key exists already.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.keys.contains_key(key) || self.alias.contains_key(key)
    }

    /// The item that was added last.
    pub(super) fn last(&mut self) -> Option<&mut Item> {
        self.items.last_mut()
    }

    /// The item with this key.
    pub(super) fn get(&mut self, key: &str) -> Option<&mut Item> {
        let at = *self.keys.get(key)?;
        self.items.get_mut(at)
    }

    /// Attaches children of `key` to `at` (`None`: to the root). The first meaning of a key is kept: a repeated line
    /// moves nothing.
    pub(super) fn stands_for(&mut self, key: &str, at: Option<&str>) {
        if !self.knows(key) {
            self.alias.insert(key.to_owned(), at.map(Into::into));
        }
    }

    /// Keeps a line unchanged.
    pub(super) fn keep(&mut self, line: usize, kind: &str, raw: &Value) {
        let record = Record { line, time: self.now, kind: kind.to_owned(), body: Ok(raw.clone()) };
        self.records.push(record);
    }

    /// Keeps a line that could not be parsed.
    pub(super) fn broken(&mut self, line: usize, text: &str, why: &str) {
        let body = Err((text.to_owned(), why.to_owned()));
        self.records.push(Record { line, time: self.now, kind: "broken line".into(), body });
    }

    /// The index of the item for `key`. `None`: the root; `Err`: unknown.
    pub(super) fn place(&self, key: Option<&str>) -> Result<Option<usize>, ()> {
        let mut next = key;
        // Aliases may form a cycle.
        for _ in 0..=self.alias.len() {
            let Some(key) = next else { return Ok(None) };
            if let Some(at) = self.keys.get(key) {
                return Ok(Some(*at));
            }
            next = self.alias.get(key).ok_or(())?.as_deref();
        }
        Err(())
    }
}

/// Text of a field; empty if it is not text.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A count in a field; 0 if it is not a number.
pub(super) fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

/// A time in a field: RFC 3339, or milliseconds since 1970.
pub(super) fn time(value: &Value, field: &str) -> Option<Time> {
    match value.get(field)? {
        Value::String(s) => Time::parse(s).ok(),
        other => other.as_i64().map(Time),
    }
}

/// A message of a person, or of the program to the model.
pub(super) fn said(origin: Origin, parts: Vec<Part>) -> EntryBody {
    let words: Vec<&str> = parts
        .iter()
        .map(|p| match p {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image]",
        })
        .collect();
    EntryBody::User {
        message: Message::text(words.join("\n")),
        origin,
        content: parts,
        taint: None,
        learnings: Vec::new(),
    }
}
