//! The only shape in which an error reaches a person, on screen and headless alike.

use serde::{Deserialize, Serialize};

/// Who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// For information.
    Info,
    /// What was asked for cannot be done as asked.
    User,
    /// Configuration or usage is wrong.
    Config,
    /// A rule or a person said no.
    Denied,
    /// A model or the network failed.
    Network,
    /// A budget or limit was reached.
    Budget,
    /// The store could not be written.
    Store,
    /// Ours.
    Internal,
}

/// What happened, why, and what to do. Short and plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub kind: NoticeKind,
    /// What happened and why, one sentence.
    pub message: String,
    /// What to do, one short sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// The technical rest, for the log view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How a hint begins that tells the person to continue the turn. Each face names its own way of doing that.
const CONTINUE: [&str; 2] = ["continue to ", "then continue: "];

/// Whether `hint` tells the person to continue the turn: its word "continue" stands for a command.
pub fn says_continue(hint: &str) -> bool {
    CONTINUE.iter().any(|begin| hint.starts_with(begin))
}

impl Notice {
    /// Without hints.
    pub fn new(kind: NoticeKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), detail: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the technical rest.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}
