//! How much a model should think before it answers.

use serde::{Deserialize, Serialize};

/// The thinking effort of a session, a message or an agent.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// The provider's default.
    #[default]
    Default,
    Off,
    Low,
    Medium,
    High,
    /// The model's maximum.
    Max,
}

impl Effort {
    /// Every level, lowest first.
    pub const ALL: [Self; 6] = [Self::Default, Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// As on the command line and in the header.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl std::str::FromStr for Effort {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|e| e.word() == s)
            .ok_or_else(|| format!("Unknown effort {s}: use off, low, medium, high, max or default."))
    }
}

/// The effort of a session as a client shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffortView {
    /// What the person chose.
    pub chosen: Effort,
    /// The level in use: the one of the session's model that is nearest to the choice.
    pub used: Effort,
    /// The levels of the model; empty: it has no reasoning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Effort>,
}
