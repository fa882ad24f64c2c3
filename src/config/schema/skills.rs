//! Skills: folders with a SKILL.md that say how a kind of task is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Skills, own commands and output styles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillSettings {
    /// Whether agents may write skills: `always` without a question, `ask` after you have seen the difference, `never`.
    pub approve: SkillApproval,
    /// Names of skills that are not used.
    pub disabled: Vec<String>,
    /// The output style, by name; none by default.
    pub style: Option<String>,
    /// Address of a registry: a JSON file that says which packs of skills there are. Asked only by `tiller skills`.
    pub registry: Option<String>,
    /// After a task of five tool calls or more that succeeded, offer to save how it was done as a skill, once in a
    /// session: `hint` says so in a line, `ask` opens a question, `never` does neither. `/save-skill never` ends it too.
    pub offer: SkillOffer,
}

/// How a skill is offered after a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkillOffer {
    /// By a line that says how.
    #[default]
    Hint,
    /// By a question.
    Ask,
    /// Not at all.
    Never,
}

/// What happens when an agent wants to write a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkillApproval {
    /// It is written without a question; it can be undone.
    Always,
    /// The difference is shown, and you decide.
    #[default]
    Ask,
    /// It is refused.
    Never,
}
