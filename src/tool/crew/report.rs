//! How agents ended, what a critic says of their results, and rows of the lists that tools return.

use std::fmt;

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tiller_protocol::AgentState;

use super::port::is_false;

/// The status of a [`Report`]. Written as one word, which models read and the store keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportStatus {
    /// There is no such agent, or the stored word is unknown. Written as an empty word.
    #[default]
    Unknown,
    /// The state of the agent: how it ended, or that it still works.
    Agent(AgentState),
    /// The user moved the agent to the background; the caller does not wait for it.
    Background,
    /// The task was not started, because a task that it depends on is not done.
    Skipped,
    /// The agent could not be started; a retry would not help.
    Refused,
}

impl ReportStatus {
    pub const DONE: Self = Self::Agent(AgentState::Done);
    pub const FAILED: Self = Self::Agent(AgentState::Failed);
    pub const CANCELLED: Self = Self::Agent(AgentState::Cancelled);

    const AGENT_STATES: [AgentState; 9] = [
        AgentState::Idle,
        AgentState::Queued,
        AgentState::Running,
        AgentState::Waiting,
        AgentState::Paused,
        AgentState::Done,
        AgentState::Failed,
        AgentState::Cancelled,
        AgentState::Interrupted,
    ];

    /// The word for models and the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Agent(state) => state.word(),
            Self::Background => "background",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
        }
    }

    fn from_word(word: &str) -> Self {
        let others = [Self::Background, Self::Skipped, Self::Refused];
        let mut all = others.into_iter().chain(Self::AGENT_STATES.map(Self::Agent));
        all.find(|s| s.word() == word).unwrap_or_default()
    }
}

impl From<AgentState> for ReportStatus {
    fn from(state: AgentState) -> Self {
        Self::Agent(state)
    }
}

impl fmt::Display for ReportStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for ReportStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for ReportStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::from_word(&word))
    }
}

/// The word of a critic or reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The result does what the task asked for (critic).
    Valid,
    /// It does not (critic).
    Invalid,
    /// Not known, or not judged.
    Unknown,
    /// The result is accepted (reviewer).
    Accept,
    /// It must be changed (reviewer).
    Revise,
}

/// A judgement with its reasons: the JSON object that the judging agent answered, of which all fields are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdict(Map<String, Value>);

impl Verdict {
    /// From an answer that matches the schema `{verdict, reasons}`. Anything but an object is an unknown verdict.
    pub fn from_answer(answer: Value) -> Self {
        match answer {
            Value::Object(fields) => Self(fields),
            _ => Self::default(),
        }
    }

    /// No judgement, for this reason.
    pub fn unknown(why: String) -> Self {
        Self::from_answer(json!({"verdict": "unknown", "reasons": [why]}))
    }

    /// With the number of the review round, from 1.
    #[must_use]
    pub fn in_round(mut self, round: u32) -> Self {
        self.0.insert("rounds".into(), round.into());
        self
    }

    /// The judgement.
    pub fn judgement(&self) -> Judgement {
        match self.0.get("verdict").and_then(Value::as_str) {
            Some("valid") => Judgement::Valid,
            Some("invalid") => Judgement::Invalid,
            Some("accept") => Judgement::Accept,
            Some("revise") => Judgement::Revise,
            _ => Judgement::Unknown,
        }
    }

    /// The reasons as a list, one line each.
    pub fn reasons(&self) -> String {
        let reasons = self.0.get("reasons").and_then(Value::as_array).into_iter().flatten();
        reasons.filter_map(Value::as_str).map(|r| format!("- {r}")).collect::<Vec<_>>().join("\n")
    }

    /// The reasons of a verdict against the result.
    pub fn objections(&self) -> Option<String> {
        matches!(self.judgement(), Judgement::Revise | Judgement::Invalid).then(|| self.reasons())
    }
}

/// How an agent ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Its name, `a1`.
    pub agent: String,
    pub label: String,
    pub status: ReportStatus,
    /// Its last message.
    pub summary: String,
    /// The list items of its last message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Files that it changed, relative to its folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    pub tool_calls: u32,
    pub tokens: u64,
    /// US dollars; `None`: unknown.
    pub cost: Option<f64>,
    pub seconds: f64,
    /// Its own folder, if it had one. It is kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The terminal elsewhere where its commands ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// Why it is not done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The answer that matches the schema of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The judgement of a critic or reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether this is an earlier result for the same task.
    #[serde(skip_serializing_if = "is_false")]
    pub reused: bool,
}

impl Report {
    /// Whether the agent completed its task.
    pub fn done(&self) -> bool {
        self.status == ReportStatus::DONE
    }
}

/// One agent of the list that `list_agents` returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSummary {
    pub agent: String,
    pub label: String,
    pub state: AgentState,
    pub role: String,
    /// What it does now; empty: nothing.
    pub act: String,
    pub tokens: u64,
    pub seconds: f64,
}

/// A note on the shared board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub key: String,
    pub value: String,
    /// Starts at 1 and increases with each change.
    pub version: u64,
    /// The agent that wrote it.
    pub by: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_verdicts_are_stored_as_before() {
        for word in ["", "done", "failed", "waiting for the user", "background", "skipped", "refused"] {
            let text = format!("{{\"agent\":\"a1\",\"status\":\"{word}\"}}");
            let report: Report = serde_json::from_str(&text).unwrap();
            assert_eq!(report.status.word(), word);
            assert_eq!(serde_json::to_value(&report).unwrap()["status"], word);
        }
        let stored = json!({"reasons": ["r"], "verdict": "revise", "note": 1, "rounds": 2});
        let verdict: Verdict = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!((verdict.judgement(), verdict.objections().as_deref()), (Judgement::Revise, Some("- r")));
        assert_eq!(
            serde_json::to_string(&verdict).unwrap(),
            stored.to_string(),
            "fields and their order are kept"
        );
    }
}
