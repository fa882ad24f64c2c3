//! Messages of people and models, in a form from which every wire format can be made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::ids::EntryId;

/// One piece of a model's reply, in the order in which it arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Block {
    /// Text for the person.
    Text { text: String },
    /// Reasoning. `signature` must go back unchanged to APIs that sign it.
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Reasoning that the vendor encrypted; `data` goes back unchanged.
    Redacted { data: String },
    /// A tool call.
    ToolCall(ToolCall),
    /// A vendor's block of unknown type. Kept, and sent back only to that vendor.
    Unknown { provider: String, raw: Value },
}

/// One call of one tool, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the session: the vendor's id, or a generated one when that was missing or not unique.
    pub id: String,
    pub name: String,
    /// The arguments; `{}` when they could not be read.
    pub arguments: Value,
    /// The raw text, when it was not a JSON object. Such a call is never run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// Vendor data that must go back with the call (Gemini's thought signature, a Responses item id).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Value>,
}

impl ToolCall {
    /// The beginning of the ids of calls that a message of the user's makes: the commands in the text of an own command.
    /// No model made them, and their output is part of the message.
    pub const OF_MESSAGE: &str = "tiller-message-";

    /// Stands before the command at the beginning of the result of such a call.
    pub const MESSAGE_LINE: &str = "$ ";

    /// Whether a call of this id belongs to a message of the user's.
    pub fn is_of_message(call_id: &str) -> bool {
        call_id.starts_with(Self::OF_MESSAGE)
    }

    /// The id of command `number` of the message whose entry has, or will have, the id `message`. `run`: unique for each
    /// time that the commands run.
    pub fn id_in_message(message: EntryId, run: impl std::fmt::Display, number: usize) -> String {
        format!("{}{message}-{run}-{number}", Self::OF_MESSAGE)
    }

    /// The message that a call of this id belongs to: it follows the results of its calls, unless it was never sent.
    /// `None`: a model made the call.
    pub fn message_of(call_id: &str) -> Option<EntryId> {
        /// Length of an id of an entry.
        const ID: usize = 36;
        call_id.strip_prefix(Self::OF_MESSAGE)?.get(..ID)?.parse().ok()
    }
}

/// One piece of input to a model, from a person or a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// An image; `data` is base64.
    Image {
        media_type: String,
        data: String,
    },
}

/// Something that the person attached to a message. It stays with the message in queue and history. Contents are
/// shared: a copy of an attachment costs the same whatever its size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attachment {
    /// Long pasted text; stands in `Message::text` as its `label`, for instance `[paste 1: 312 lines]`.
    Paste { label: String, text: Arc<str> },
    /// An image; `data` is base64. `width` and `height` in pixels.
    Image { label: String, media_type: String, data: Arc<str>, width: u32, height: u32 },
    /// `@path`, with an optional line range (1-based, inclusive). The engine reads it when it sends.
    File {
        label: String,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<(u32, u32)>,
    },
}

impl Attachment {
    /// Its placeholder in the text of the message.
    pub fn label(&self) -> &str {
        match self {
            Self::Paste { label, .. } | Self::Image { label, .. } | Self::File { label, .. } => label,
        }
    }
}

/// What the person typed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// As shown in the composer, with the labels of attachments as placeholders.
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// How much the model thinks about this message; `None`: as in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<crate::session::effort::Effort>,
}

impl Message {
    /// Plain text without attachments.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// How a user entry was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Sent while idle, or delivered from the queue as a turn of its own.
    #[default]
    Prompt,
    /// Delivered in the middle of a turn.
    Steer,
    /// A `!` line: a command that the person ran, with its output.
    Shell,
    /// Written by the engine for the model (files changed outside, edited todo list, budget news).
    Engine,
    /// Written by the engine, and begins a turn as the user's message does: the next turn of a goal, the task of `/save-skill`.
    Task,
}

impl Origin {
    /// Whether it is [`Self::Prompt`].
    pub fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }

    /// The origin of a waiting message with this one that is delivered in the middle of a turn.
    pub fn within_turn(self) -> Self {
        if self.is_prompt() { Self::Steer } else { Self::Engine }
    }

    /// Whether Tiller wrote it itself.
    pub fn is_of_tiller(self) -> bool {
        matches!(self, Self::Engine | Self::Task)
    }

    /// Whether an entry with this origin begins a turn of the agent's.
    pub fn begins_turn(self) -> bool {
        matches!(self, Self::Prompt | Self::Task)
    }
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model ended its turn.
    EndTurn,
    /// It called tools and waits for the results.
    ToolUse,
    /// It hit its output limit.
    MaxTokens,
    /// It declined; the vendor's reason if there is one.
    Refusal(String),
    /// The person stopped it; what had arrived is kept.
    Interrupted,
    /// The stream broke; what had arrived is kept.
    Cut(String),
}

/// The quoted source of a message, for edits of history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub entry: EntryId,
    pub text: String,
}
