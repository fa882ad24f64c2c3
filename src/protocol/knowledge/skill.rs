//! Skills, own commands and output styles, as a client shows and changes them.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;

/// A command about skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SkillCommand {
    /// Use a skill from now on, or not.
    Switch { name: String, on: bool },
    /// Bring a version of a skill back.
    Restore { name: String, project: bool, version: u64 },
    /// Write answers in this style from now on; `None`: as usual.
    Style { name: Option<String> },
    /// Read all of them again: a file has changed.
    Reload,
}

/// What is asked about skills, answered by `skills_reply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SkillQuery {
    /// All skills, also those that are not used.
    Skills,
    /// The versions of a skill.
    Versions { name: String, project: bool },
    /// All output styles.
    Styles,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "skills", rename_all = "snake_case")]
pub enum SkillReply {
    Skills { rows: Vec<SkillRow> },
    Versions { name: String, rows: Vec<SkillVersionRow> },
    Styles { rows: Vec<StyleRow> },
}

/// A skill in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillRow {
    pub name: String,
    pub description: String,
    /// Where it is from, in words: built in, plugin, yours, project.
    pub source: String,
    /// It is the project's.
    pub project: bool,
    /// Its file; empty where it has none on this machine.
    pub file: String,
    pub state: SkillUse,
    /// How often it was loaded.
    pub uses: u64,
    /// What is wrong with it, a line each.
    pub problems: Vec<String>,
    /// How its arguments are written; empty: it has none.
    pub arguments: String,
    /// Its text, or the beginning of it.
    pub text: String,
}

/// Whether a skill is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillUse {
    #[default]
    Used,
    /// The settings turn it off.
    Off,
    /// Another of the same name takes its place.
    Hidden,
    /// It cannot be used.
    Broken,
}

/// A version of a skill in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillVersionRow {
    pub version: u64,
    /// When another state took its place.
    pub time: Time,
    /// What took its place: create, edit, patch, delete, restore.
    pub action: String,
    /// Who did it.
    pub by: String,
    /// What restoring it would change now (unified); empty: nothing.
    pub diff: String,
}

/// An output style in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StyleRow {
    pub name: String,
    pub description: String,
    pub source: String,
    /// The style in force.
    pub current: bool,
    pub text: String,
}
