//! A workflow: named steps that depend on each other, checked as a whole before the first one starts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Task;

/// Longest name, in characters.
const NAME: usize = 60;

/// Steps with names that depend on each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workflow {
    pub name: String,
    pub description: String,
    /// Each has a unique id.
    pub steps: Vec<Task>,
    /// The place of each step in its file; empty: the workflow is not from a file.
    #[serde(skip)]
    pub places: Vec<StepPlace>,
}

/// A step in its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepPlace {
    pub file: PathBuf,
    /// Line and column, from 1.
    pub at: (usize, usize),
    /// Those of its keys; those within a table after a dot: `review.by`.
    pub keys: BTreeMap<String, (usize, usize)>,
}

impl StepPlace {
    /// Where the first of these keys stands that the step has; where the step begins, if it has none.
    pub fn of(&self, keys: &[&str]) -> (usize, usize) {
        keys.iter().find_map(|key| self.keys.get(*key).copied()).unwrap_or(self.at)
    }
}

/// Checks of the names that steps use. Each returns what is wrong with a name, as a part of a sentence.
pub struct NameCheck<'a> {
    pub role: &'a dyn Fn(&str) -> Option<String>,
    pub cli: &'a dyn Fn(&str) -> Option<String>,
    pub skill: &'a dyn Fn(&str) -> Option<String>,
    /// A tier (`fast`, `main`, `deep`) or `provider/model`.
    pub model: &'a dyn Fn(&str) -> Option<String>,
    /// A tool or a set of tools.
    pub tool: &'a dyn Fn(&str) -> Option<String>,
    /// A terminal of the settings, or `local`.
    pub terminal: &'a dyn Fn(&str) -> Option<String>,
}

impl NameCheck<'_> {
    /// Accepts every name; the engine checks them later.
    pub fn accept_all() -> Self {
        let any = &|_: &str| -> Option<String> { None };
        Self { role: any, cli: any, skill: any, model: any, tool: any, terminal: any }
    }
}

/// An error in a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowError {
    /// The index of the step; `None`: it concerns several steps or the whole.
    pub step: Option<usize>,
    /// The key that it is about, by each name that it has; empty: the step as a whole.
    pub keys: &'static [&'static str],
    pub message: String,
}

/// The names of the key with the dependencies of a step.
const NEEDS: &[&str] = &["needs", "depends_on"];

impl Workflow {
    /// Checks the form of all steps and the names that they use.
    ///
    /// # Errors
    /// Every error, in the order of the steps; never empty.
    pub fn check(&self, names: &NameCheck<'_>) -> Result<(), Vec<WorkflowError>> {
        let mut errors: Vec<WorkflowError> = Vec::new();
        let mut add = |step, keys, message: String| errors.push(WorkflowError { step, keys, message });
        if self.name.chars().count() > NAME {
            add(None, &[], format!("the name is longer than {NAME} characters"));
        }
        if self.steps.is_empty() {
            add(None, &[], "it has no steps".into());
        }
        if self.steps.len() > super::MOST {
            add(None, &[], format!("{} steps are too many: at most {}", self.steps.len(), super::MOST));
        }
        for (at, step) in self.steps.iter().enumerate() {
            let id = step.id.as_deref().unwrap_or_default();
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if id.is_empty() {
                add(Some(at), &["id"], format!("step {} has no id", at + 1));
            } else if id.chars().count() > NAME || !id.chars().all(plain) {
                let message = format!(
                    "step {}: an id can contain letters, digits, - _ . (at most {NAME} characters)",
                    at + 1
                );
                add(Some(at), &["id"], message);
            } else if let Some(first) = self.steps[..at].iter().position(|s| s.id == step.id) {
                let first = first + 1;
                add(Some(at), &["id"], format!("two steps have the id {id}: numbers {first} and {}", at + 1));
            }
            let name = step.name(at);
            if step.brief.goal.trim().is_empty() {
                add(Some(at), &["goal"], format!("step {name} has no goal"));
            }
            super::errors_of(step)
                .into_iter()
                .for_each(|(keys, why)| add(Some(at), keys, format!("step {name}: {why}")));
            for unknown in super::unknown_dependencies(step, &self.steps) {
                let known: Vec<String> = self.steps.iter().enumerate().map(|(n, s)| s.name(n)).collect();
                let known = known.join(", ");
                add(
                    Some(at),
                    NEEDS,
                    format!("step {name} depends on {unknown}, which does not exist; existing: {known}"),
                );
            }
        }
        for (at, way) in super::dependency_cycles(&self.steps) {
            let message = format!("these steps depend on each other: {way}");
            errors.push(WorkflowError { step: Some(at), keys: NEEDS, message });
        }
        errors.extend(self.unknown_names(names));
        errors.sort_by_key(|w| w.step);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Unknown roles, skills, tools, terminals and models, and missing programs.
    fn unknown_names(&self, names: &NameCheck<'_>) -> Vec<WorkflowError> {
        let mut errors = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let id = step.id.as_deref().unwrap_or_default();
            let review = step.review.as_ref();
            // Model names of an external program are its own.
            let own = step.brief.model.as_ref().filter(|_| step.brief.cli.is_none());
            let reviewers = review.filter(|r| r.cli.is_none()).and_then(|r| r.model.as_ref());
            let mut look = |keys, named: &[&String], wrong: &dyn Fn(&str) -> Option<String>| {
                let said = named.iter().filter_map(|name| wrong(name));
                let error =
                    |why| WorkflowError { step: Some(at), keys, message: format!("step {id}: {why}") };
                errors.extend(said.map(error));
            };
            look(&["agent"], step.brief.agent.as_ref().as_slice(), names.role);
            look(&["review.by"], review.and_then(|r| r.by.as_ref()).as_slice(), names.role);
            look(&["cli"], step.brief.cli.as_ref().as_slice(), names.cli);
            look(&["review.cli"], review.and_then(|r| r.cli.as_ref()).as_slice(), names.cli);
            look(&["skills"], &step.brief.skills.iter().collect::<Vec<_>>(), names.skill);
            look(&["tools"], &step.brief.tools.iter().collect::<Vec<_>>(), names.tool);
            look(&["terminal"], step.brief.terminal.as_ref().as_slice(), names.terminal);
            look(&["model"], own.as_slice(), names.model);
            look(&["review.model"], reviewers.as_slice(), names.model);
        }
        errors
    }
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
