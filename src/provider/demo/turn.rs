//! The planner's view of a request: the task, its own calls for it, and their results.

use serde_json::Value;
use tiller_protocol::{Block, Part, ToolCall};

use crate::codec::request::{ChatMessage, Request};

/// A call with its result.
#[derive(Clone, Debug)]
pub(crate) struct Done<'a> {
    pub(crate) name: &'a str,
    pub(crate) args: &'a Value,
    pub(crate) ok: bool,
    pub(crate) text: String,
    /// Number of the reply that made the call.
    pub(crate) reply: usize,
}

impl Done<'_> {
    /// An argument as text.
    pub(crate) fn arg(&self, key: &str) -> &str {
        self.args.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it was not carried out: refused by a rule or the person, or interrupted.
    pub(crate) fn prevented(&self) -> bool {
        // A command that ran and failed is a normal result; its text has the exit code.
        let ran = self.name == "terminal" && self.text.contains("[exit ");
        !self.ok && !ran
    }
}

/// The present turn.
#[derive(Clone, Debug)]
pub(crate) struct Turn<'a> {
    /// The person's request.
    pub(crate) task: String,
    /// The skill that came with it, by `$name`: its name and its text.
    pub(crate) loaded: Option<(String, String)>,
    /// A message of the person during the turn that the planner has not answered yet.
    pub(crate) aside: Option<String>,
    pub(crate) done: Vec<Done<'a>>,
    tools: &'a [tiller_protocol::ToolSpec],
}

impl<'a> Turn<'a> {
    /// Parses a request. A message of the person directly after tool results was sent during the turn; any other begins
    /// a turn.
    pub(crate) fn read(request: &'a Request, is_task: impl Fn(&str) -> bool) -> Self {
        let messages = &request.messages;
        let mut start = 0;
        for (at, message) in messages.iter().enumerate() {
            let after_result = at > 0 && matches!(messages[at - 1], ChatMessage::ToolResult { .. });
            let said = said(message);
            // A clear new task in the middle of a turn replaces the present one.
            if said.as_deref().is_some_and(|s| !after_result || is_task(s)) {
                start = at;
            }
        }
        let task = messages.get(start).and_then(said).unwrap_or_default();
        let loaded = messages.get(start).and_then(loaded);
        let mut aside = None;
        let mut done = Vec::new();
        let mut calls: Vec<&ToolCall> = Vec::new();
        let mut reply = 0;
        for message in messages.iter().skip(start + 1) {
            match message {
                ChatMessage::User { .. } => aside = said(message).or(aside),
                ChatMessage::Assistant { blocks, .. } => {
                    aside = None;
                    reply += 1;
                    calls.extend(blocks.iter().filter_map(|b| match b {
                        Block::ToolCall(call) => Some(call),
                        _ => None,
                    }));
                }
                ChatMessage::ToolResult { call_id, ok, content, .. } => {
                    if let Some(call) = calls.iter().find(|c| c.id == *call_id) {
                        done.push(Done {
                            name: &call.name,
                            args: &call.arguments,
                            ok: *ok,
                            text: text(content),
                            reply,
                        });
                    }
                }
            }
        }
        Self { task, loaded, aside, done, tools: &request.tools }
    }

    /// Whether the tool is available in this session.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| t.lists(tool))
    }

    /// The results of a tool, oldest first.
    pub(crate) fn of(&self, tool: &str) -> impl DoubleEndedIterator<Item = &Done<'a>> {
        self.done.iter().filter(move |d| d.name == tool)
    }

    /// How often a tool was called.
    pub(crate) fn times(&self, tool: &str) -> usize {
        self.of(tool).count()
    }

    /// The newest result of a tool.
    pub(crate) fn last(&self, tool: &str) -> Option<&Done<'a>> {
        self.of(tool).next_back()
    }
}

/// How the text of a skill begins, which the engine adds behind a message that names it.
const SKILL: &str = "<skill name=\"";

/// The last skill of a message: those that it requires stand before it.
fn loaded(message: &ChatMessage) -> Option<(String, String)> {
    let ChatMessage::User { content } = message else { return None };
    content.iter().find_map(|part| {
        let Part::Text { text } = part else { return None };
        let (name, rest) = text.rsplit_once(SKILL)?.1.split_once('"')?;
        Some((name.to_owned(), rest.to_owned()))
    })
}

/// The person's own words in a message: additions of the engine are in angle brackets.
fn said(message: &ChatMessage) -> Option<String> {
    let ChatMessage::User { content } = message else { return None };
    let words: Vec<&str> = content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if !text.trim_start().starts_with('<') => {
                Some(text.split_once(&format!("\n\n{SKILL}")).map_or(text.as_str(), |(own, _)| own).trim())
            }
            _ => None,
        })
        .filter(|text| !text.is_empty())
        .collect();
    (!words.is_empty()).then(|| words.join("\n"))
}

fn text(content: &[Part]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
