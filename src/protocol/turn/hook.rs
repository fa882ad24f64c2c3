//! Hooks: commands of the settings that run when something happens.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;

/// What a hook can be run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    SessionStart,
    SessionEnd,
    UserPrompt,
    BeforeToolCall,
    AfterToolCall,
    BeforeResponse,
    ContextCompact,
    AgentStart,
    AgentEnd,
    FileChanged,
    Notification,
}

impl HookEvent {
    /// All events, in the order in which they happen.
    pub const ALL: [Self; 11] = [
        Self::SessionStart,
        Self::UserPrompt,
        Self::BeforeToolCall,
        Self::AfterToolCall,
        Self::BeforeResponse,
        Self::ContextCompact,
        Self::AgentStart,
        Self::AgentEnd,
        Self::FileChanged,
        Self::Notification,
        Self::SessionEnd,
    ];

    /// As in settings and in the JSON of a hook.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::SessionEnd => "session-end",
            Self::UserPrompt => "user-prompt",
            Self::BeforeToolCall => "before-tool-call",
            Self::AfterToolCall => "after-tool-call",
            Self::BeforeResponse => "before-response",
            Self::ContextCompact => "context-compact",
            Self::AgentStart => "agent-start",
            Self::AgentEnd => "agent-end",
            Self::FileChanged => "file-changed",
            Self::Notification => "notification",
        }
    }

    /// The event of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether a hook can stop what is about to happen.
    pub fn can_deny(self) -> bool {
        matches!(
            self,
            Self::UserPrompt
                | Self::BeforeToolCall
                | Self::AfterToolCall
                | Self::BeforeResponse
                | Self::ContextCompact
                | Self::AgentStart
        )
    }
}

/// How the run of a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookOutcome {
    /// It had nothing to change.
    Passed,
    /// It changed arguments or a result, or added text.
    Changed,
    Denied,
    /// It failed or took too long.
    Failed,
}

/// The last run of a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    pub time: Time,
    pub seconds: f64,
    pub outcome: HookOutcome,
    /// The reason of a denial or of a failure; empty otherwise.
    pub why: String,
}

/// One hook, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRow {
    /// The same for as long as its settings stay the same.
    pub id: String,
    pub event: HookEvent,
    /// Its name in the settings, or its command.
    pub name: String,
    pub command: String,
    /// The calls or paths that it runs for; empty: all.
    pub matches: String,
    /// Where it comes from, for people: `yours`, `project`, `plugin NAME`.
    pub source: String,
    pub blocking: bool,
    /// Seconds.
    pub timeout: u64,
    /// The user has not turned it off for this session.
    pub on: bool,
    /// Runs in this session.
    pub runs: u64,
    pub last: Option<HookRun>,
}
