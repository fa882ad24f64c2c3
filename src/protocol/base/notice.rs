//! The one form of an error that a person sees, on screen and headless alike.

use serde::{Deserialize, Serialize};

/// The area of the cause, which tells who can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// For information.
    Info,
    /// The request cannot be carried out as given.
    User,
    /// Configuration or usage is wrong.
    Config,
    /// A rule or a person refused.
    Denied,
    /// A model or the network failed.
    Network,
    /// A budget or limit was reached.
    Budget,
    /// The store could not be written.
    Store,
    /// A fault of Tiller itself.
    Internal,
}

/// What happened, why, and what to do. Short and plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub kind: NoticeKind,
    /// What happened and why, one sentence.
    pub message: String,
    /// What to do, one short sentence in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Technical details, for the log view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Beginnings of a hint to continue the turn. Each client replaces them with its own command for that.
const CONTINUE: [&str; 2] = ["continue to ", "then continue: "];

/// Whether `hint` tells the person to continue the turn, so that its word "continue" stands for a command.
pub fn says_continue(hint: &str) -> bool {
    CONTINUE.iter().any(|begin| hint.starts_with(begin))
}

impl Notice {
    /// Without hints.
    pub fn new(kind: NoticeKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), detail: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds technical details.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}
