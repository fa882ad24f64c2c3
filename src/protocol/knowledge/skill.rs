//! Skills, own commands and output styles, as a client shows and changes them.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::usage::Cost;

/// A command about skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SkillCommand {
    /// Use a skill from now on, or not.
    Switch { name: String, on: bool },
    /// Copy a skill that is built in, or of a pack or a plugin, to the user's own: the copy takes its place and can be edited.
    Copy { name: String },
    /// Bring a version of a skill back.
    Restore { name: String, project: bool, version: u64 },
    /// Write answers in this style from now on; `None`: as usual.
    Style { name: Option<String> },
    /// Read all of them again: a file has changed.
    Reload,
    /// Let the agent write how the last task was done as a skill.
    Save,
    /// Offer that after tasks, or never again.
    Offer { on: bool },
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
    /// All own commands, also those that are not used.
    Commands,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "skills", rename_all = "snake_case")]
pub enum SkillReply {
    Skills { rows: Vec<SkillRow> },
    Versions { name: String, rows: Vec<SkillVersionRow> },
    Styles { rows: Vec<StyleRow> },
    Commands { rows: Vec<CommandRow> },
}

/// A skill in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillRow {
    pub name: String,
    pub description: String,
    /// Where it is from, in words: built in, plugin, pack and its name, yours, project.
    pub source: String,
    /// The name of the pack that it belongs to; empty: of none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pack: String,
    /// Its files stay as they are: it belongs to a pack or a plugin, or is built in.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// It is the project's.
    pub project: bool,
    /// Its file; empty where it has none on this machine.
    pub file: String,
    pub state: SkillUse,
    /// How often it was used, and what came of it.
    pub record: SkillRecord,
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
    /// The user has not agreed to its files as they are.
    Untrusted,
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

/// An own command in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandRow {
    /// Without the slash.
    pub name: String,
    /// What it does; may be empty.
    pub description: String,
    /// How its arguments are written; may be empty.
    pub hint: String,
    /// Why it is not used and what to do, as a sentence without a full stop; empty: it is used.
    pub unused: String,
}

/// The own command of this name: the whole name, else the last part of a name such as `team:review` where one command alone
/// has it.
pub fn find_command<C>(
    mut all: impl Iterator<Item = C> + Clone,
    name: &str,
    name_of: impl Fn(&C) -> &str,
) -> Option<C> {
    let ends = |command: &C| name_of(command).rsplit_once(':').is_some_and(|(_, last)| last == name);
    let mut in_folders = all.clone().filter(ends);
    let whole = all.find(|command| name_of(command) == name);
    whole.or_else(|| in_folders.next().filter(|_| in_folders.next().is_none()))
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

/// How often a skill was used, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillRecord {
    /// Turns that used it.
    pub uses: u64,
    /// Those that succeeded.
    pub done: u64,
    /// Those with a check: of the goal that they were for, or tests that the agent ran.
    pub checked: u64,
    /// Those whose check passed.
    pub passed: u64,
    /// Sum of the known costs of these turns.
    pub cost: Cost,
    pub tokens: u64,
    /// The newest.
    pub last: Time,
    /// The newest trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<SkillTrial>,
}

/// What a trial of a skill brought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillTrial {
    pub time: Time,
    /// BLAKE3 of the `SKILL.md` that was tried, hex.
    pub text: String,
    /// Prompts that it should answer to, with it.
    pub with: TrialRuns,
    /// The same prompts without it.
    pub without: TrialRuns,
    /// Prompts that it should not answer to.
    pub others: TrialRuns,
    /// The budget was used up before all prompts were run.
    pub cut: bool,
}

/// Sums of runs of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialRuns {
    pub runs: u64,
    /// Runs that loaded the skill.
    pub used: u64,
    /// Runs that succeeded.
    pub done: u64,
    /// Runs that were checked.
    pub checked: u64,
    /// Runs whose check passed.
    pub passed: u64,
    pub cost: Cost,
    pub tokens: u64,
}

impl SkillRecord {
    /// For people: `used 3 times, 2 in turns that succeeded, checks passed 1 of 2, $0.12`.
    pub fn words(&self) -> String {
        let times = match self.uses {
            0 => return "not used yet".into(),
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let mut text = format!("used {times}, {} in turns that succeeded", self.done);
        if self.checked > 0 {
            text.push_str(&format!(", checks passed {} of {}", self.passed, self.checked));
        }
        if self.cost != Cost::default() {
            text.push_str(&format!(", {}", self.cost));
        }
        text
    }
}

impl SkillTrial {
    /// For people: `with it 2 of 2 runs succeeded ($0.03), without it 1 of 2 ($0.02); checks passed 2 of 2 and 0 of 2`.
    pub fn words(&self) -> String {
        let TrialRuns { runs, done, cost, .. } = self.with;
        let mut text = format!(
            "with it {done} of {runs} runs succeeded ({cost}), without it {} of {} ({})",
            self.without.done, self.without.runs, self.without.cost
        );
        if self.with.checked + self.without.checked > 0 {
            text.push_str(&format!(
                "; checks passed {} of {} and {} of {}",
                self.with.passed, self.with.checked, self.without.passed, self.without.checked
            ));
        }
        if self.with.used < self.with.runs {
            text.push_str(&format!("; loaded in {} of {runs}", self.with.used));
        }
        if self.others.used > 0 {
            text.push_str(&format!("; loaded needlessly in {} of {}", self.others.used, self.others.runs));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_folder_is_found_by_its_own_name_where_that_is_unique() {
        let found = |all: &[&'static str], name: &str| find_command(all.iter().copied(), name, |name| *name);
        let all = ["ops:unit", "team:review", "team:unit", "build", "ops:build"];
        assert_eq!(found(&all, "review"), Some("team:review"));
        assert_eq!(found(&all, "team:unit"), Some("team:unit"));
        assert_eq!(found(&all, "build"), Some("build"));
        assert_eq!(found(&all, "unit"), None);
        assert_eq!(found(&all, "team"), None);
    }

    #[test]
    fn records_and_trials_are_said_in_a_line() {
        assert_eq!(SkillRecord::default().words(), "not used yet");
        let record = SkillRecord {
            uses: 3,
            done: 2,
            checked: 2,
            passed: 1,
            cost: Cost(120_000),
            ..Default::default()
        };
        assert_eq!(record.words(), "used 3 times, 2 in turns that succeeded, checks passed 1 of 2, $0.12");
        let with = TrialRuns { runs: 2, used: 1, done: 2, checked: 2, passed: 2, ..TrialRuns::default() };
        let without = TrialRuns { runs: 2, done: 1, checked: 2, ..TrialRuns::default() };
        let others = TrialRuns { runs: 2, used: 1, ..TrialRuns::default() };
        let trial = SkillTrial { with, without, others, ..SkillTrial::default() };
        assert_eq!(
            trial.words(),
            "with it 2 of 2 runs succeeded ($0.00), without it 1 of 2 ($0.00); checks passed 2 of 2 and 0 of 2; \
             loaded in 1 of 2; loaded needlessly in 1 of 2"
        );
    }
}
