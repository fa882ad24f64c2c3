//! One node of the session tree. Entries are only ever added; a head is a named pointer to one.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};
use crate::base::usage::{Cost, Usage};
use crate::bus::view::{LayerCost, ModelRef};
use crate::knowledge::memory::Taint;
use crate::session::additions::Additions;
use crate::session::carried::Carried;
use crate::session::message::{Block, Message, Origin, Part, StopReason, ToolCall};
use crate::turn::tool::{FileDiff, InnerCall, ToolOutcome, ToolSpec};

/// A node: what happened, after which entry, by which agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub id: EntryId,
    /// The entry before it on its branch; `None` for the root.
    pub parent: Option<EntryId>,
    pub session: SessionId,
    pub agent: AgentId,
    pub time: Time,
    pub body: EntryBody,
    /// Workspace snapshot current at this point (filled from the Tree issue on).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryBody {
    /// The frozen start of every request until the next compaction: system prompt and tool list.
    Prefix {
        system: String,
        tools: Vec<ToolSpec>,
        #[serde(default)]
        layers: Vec<LayerCost>,
    },
    /// A message of the person, or of the engine.
    User {
        message: Message,
        #[serde(default)]
        origin: Origin,
        /// The content that the model receives: the text, attachments as read at sending time, and news at the end.
        /// Stored, so that later requests repeat it byte for byte.
        content: Vec<Part>,
        /// The least trusted text of others in `content`: output of a command, a file, what a server sent. `None`: there is
        /// none, or the entry is of an earlier version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<Taint>,
        /// The numbers of the learnings whose texts stand at the end of `content`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        learnings: Vec<i64>,
    },
    /// A model's reply.
    Assistant {
        blocks: Vec<Block>,
        stop: StopReason,
        model: ModelRef,
        #[serde(default)]
        usage: Usage,
        /// `None`: the price is not known.
        #[serde(default)]
        cost: Option<Cost>,
    },
    /// The result of one tool call. Each call has exactly one. That of a call of a message ([`is_of_message`])
    /// stands before the message, follows no reply, and is never sent to a model: the message holds the output.
    ///
    /// [`is_of_message`]: crate::ToolCall::is_of_message
    ToolResult {
        call_id: String,
        name: String,
        outcome: ToolOutcome,
        /// What the model sees.
        content: Vec<Part>,
        /// What the screen shows besides (diff, listing); never sent to a model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<crate::turn::tool::Display>,
        /// Seconds, from monotonic time.
        seconds: f64,
        /// The numbers of the learnings whose texts stand at the end of `content`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        learnings: Vec<i64>,
        /// The least trusted text of others in `content` besides what the tool itself says: news of other agents, words of
        /// hooks, learnings. `None`: there is none, or the entry is of an earlier version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<Taint>,
        /// The parts of `content` that the tool did not say.
        #[serde(default, skip_serializing_if = "Additions::is_empty")]
        added: Additions,
    },
    /// A call that the running call `of` made: of a script. It stands between the reply and the result of that call, is
    /// written when it ends, and is never sent to a model.
    InnerCall {
        /// As [`InnerCall::id`] makes it.
        call_id: String,
        of: String,
        call: Box<InnerCall>,
        /// How many calls the outer one may make.
        most: u32,
    },
    /// A summary of the path so far. Requests after it start here; the old path stays in the tree.
    Compaction {
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
        /// Entries from here on to the compaction were kept word for word; `None`: none were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_from: Option<EntryId>,
        tokens_before: u64,
        tokens_after: u64,
        /// The least trusted text in what is summed up; `None`: it was not recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<Taint>,
        /// Contents that later requests have in place of entries.
        #[serde(default, skip_serializing_if = "Carried::is_empty")]
        carried: Carried,
    },
    /// A summary of another branch of the session, up to `from`.
    BranchSummary {
        summary: String,
        from: EntryId,
        /// What the person asked to keep above all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
        /// As that of a compaction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<Taint>,
    },
    /// A named point of the conversation and the files.
    Checkpoint { name: String },
    /// A line for the person that is never sent to a model (a private `!!` command, a change of model).
    Note { text: String },
}

impl EntryBody {
    /// A result that has nothing but its content: no display, no time, and no text that the tool did not say.
    pub fn plain_result(call_id: String, name: String, outcome: ToolOutcome, content: Vec<Part>) -> Self {
        Self::ToolResult {
            call_id,
            name,
            outcome,
            content,
            display: None,
            seconds: 0.0,
            learnings: Vec::new(),
            taint: None,
            added: Additions::default(),
        }
    }

    /// Short stable name, as in the store's `kind` column.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Prefix { .. } => "prefix",
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::ToolResult { .. } => "tool_result",
            Self::InnerCall { .. } => "inner_call",
            Self::Compaction { .. } => "compaction",
            Self::BranchSummary { .. } => "branch_summary",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Note { .. } => "note",
        }
    }

    /// The files that a call changed, as far as its entry shows them.
    pub fn files(&self) -> Vec<&FileDiff> {
        match self {
            Self::ToolResult { display: Some(display), .. } => display.files(),
            Self::InnerCall { call, .. } => call.files.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The arguments of a call of a message, of which only the result is stored. `None`: it is another entry.
    pub fn message_call(&self) -> Option<serde_json::Value> {
        match self {
            Self::ToolResult { call_id, content, .. } if ToolCall::is_of_message(call_id) => {
                let Some(Part::Text { text }) = content.first() else { return None };
                let line = text.strip_prefix(ToolCall::MESSAGE_LINE)?;
                Some(serde_json::json!({ "command": line }))
            }
            _ => None,
        }
    }

    /// The text that the tool of a result said, without what stands around it. `None`: it is no result.
    pub fn own_text(&self) -> Option<String> {
        let Self::ToolResult { content, added, .. } = self else { return None };
        Some(words(added.own(content)))
    }

    /// Whether it begins a turn of the agent's: a message of the user's, or a task of Tiller's.
    pub fn begins_turn(&self) -> bool {
        matches!(self, Self::User { origin, .. } if origin.begins_turn())
    }

    /// The text of the entry, for search and previews.
    pub fn search_text(&self) -> String {
        match self {
            Self::Prefix { .. } => String::new(),
            Self::User { message, .. } => message.text.clone(),
            Self::Assistant { blocks, .. } => blocks
                .iter()
                .filter_map(|b| match b {
                    Block::Text { text } => Some(text.clone()),
                    Block::ToolCall(c) => Some(format!("{} {}", c.name, c.arguments)),
                    _ => None,
                })
                .collect::<Vec<_>>()
                .join("\n"),
            Self::ToolResult { content, .. } => words(content),
            Self::InnerCall { call, .. } => format!("{} {}\n{}", call.verb, call.target, call.output),
            Self::Compaction { summary, .. } | Self::BranchSummary { summary, .. } => summary.clone(),
            Self::Checkpoint { name } => name.clone(),
            Self::Note { text } => text.clone(),
        }
    }
}

/// The texts of parts, one below the other.
fn words(content: &[Part]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// A line that the person ran in the shell themselves, with what it wrote, as an entry of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRecord {
    pub line: String,
    pub output: String,
    /// It is a `!` line: the model reads it.
    pub shared: bool,
}

impl ShellRecord {
    const SHARED: &str = "! ";
    const PRIVATE: &str = "!! ";

    /// The entry that holds it.
    pub fn body(&self) -> EntryBody {
        let Self { line, output, shared } = self;
        if !shared {
            return EntryBody::Note { text: format!("{}{line}\n{output}", Self::PRIVATE) };
        }
        let said = format!("I ran this command myself:\n$ {line}\n{output}");
        EntryBody::User {
            message: Message::text(format!("{}{line}", Self::SHARED)),
            origin: Origin::Shell,
            content: vec![Part::Text { text: said }],
            taint: Some(Taint::ToolOutput),
            learnings: Vec::new(),
        }
    }

    /// What an entry holds; `None`: it is no such line.
    pub fn read(body: &EntryBody) -> Option<Self> {
        match body {
            EntryBody::User { message, origin: Origin::Shell, content, .. } => {
                let line = message.text.strip_prefix(Self::SHARED)?.to_owned();
                let parts: Vec<&str> = content
                    .iter()
                    .map(|part| match part {
                        Part::Text { text } => text.as_str(),
                        Part::Image { .. } => "[image]",
                    })
                    .collect();
                let output = parts.join("\n").split_once(&format!("$ {line}\n"))?.1.to_owned();
                Some(Self { line, output, shared: true })
            }
            EntryBody::Note { text } => {
                let (line, output) = text.strip_prefix(Self::PRIVATE)?.split_once('\n')?;
                Some(Self { line: line.to_owned(), output: output.to_owned(), shared: false })
            }
            _ => None,
        }
    }
}
