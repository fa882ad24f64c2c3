//! A workflow: named steps that depend on each other, checked as a whole before the first one starts.

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
    /// The place of each step in its file, as `ship.toml:3:1`; empty: the workflow is not from a file.
    #[serde(skip)]
    pub places: Vec<String>,
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
    pub message: String,
}

impl Workflow {
    /// Checks the form of all steps and the names that they use.
    ///
    /// # Errors
    /// Every error, in the order of the steps; never empty.
    pub fn check(&self, names: &NameCheck<'_>) -> Result<(), Vec<WorkflowError>> {
        let mut errors: Vec<WorkflowError> = Vec::new();
        let mut add = |step, message: String| errors.push(WorkflowError { step, message });
        if self.name.chars().count() > NAME {
            add(None, format!("the name is longer than {NAME} characters"));
        }
        if self.steps.is_empty() {
            add(None, "it has no steps".into());
        }
        if self.steps.len() > super::MOST {
            add(None, format!("{} steps are too many: at most {}", self.steps.len(), super::MOST));
        }
        for (at, step) in self.steps.iter().enumerate() {
            let id = step.id.as_deref().unwrap_or_default();
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if id.is_empty() {
                add(Some(at), format!("step {} has no id", at + 1));
            } else if id.chars().count() > NAME || !id.chars().all(plain) {
                let message = format!(
                    "step {}: an id can contain letters, digits, - _ . (at most {NAME} characters)",
                    at + 1
                );
                add(Some(at), message);
            } else if let Some(first) = self.steps[..at].iter().position(|s| s.id == step.id) {
                let first = first + 1;
                add(Some(at), format!("two steps have the id {id}: numbers {first} and {}", at + 1));
            }
            let name = step.name(at);
            if step.brief.goal.trim().is_empty() {
                add(Some(at), format!("step {name} has no goal"));
            }
            super::errors_of(step).into_iter().for_each(|why| add(Some(at), format!("step {name}: {why}")));
            for unknown in super::unknown_dependencies(step, &self.steps) {
                let known: Vec<String> = self.steps.iter().enumerate().map(|(n, s)| s.name(n)).collect();
                let known = known.join(", ");
                add(
                    Some(at),
                    format!("step {name} depends on {unknown}, which does not exist; existing: {known}"),
                );
            }
        }
        for (at, way) in super::dependency_cycles(&self.steps) {
            let message = format!("these steps depend on each other: {way}");
            errors.push(WorkflowError { step: Some(at), message });
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
            let roles = [step.brief.agent.as_deref(), review.and_then(|r| r.by.as_deref())];
            let clis = [step.brief.cli.as_deref(), review.and_then(|r| r.cli.as_deref())];
            let said = roles.into_iter().flatten().filter_map(|r| (names.role)(r));
            let said = said.chain(clis.into_iter().flatten().filter_map(|c| (names.cli)(c)));
            let said = said.chain(step.brief.skills.iter().filter_map(|s| (names.skill)(s)));
            let said = said.chain(step.brief.tools.iter().filter_map(|t| (names.tool)(t)));
            let said = said.chain(step.brief.terminal.iter().filter_map(|t| (names.terminal)(t)));
            // Model names of an external program are its own.
            let own = step.brief.model.as_deref().filter(|_| step.brief.cli.is_none());
            let reviewers = review.filter(|r| r.cli.is_none()).and_then(|r| r.model.as_deref());
            let said = said.chain(own.into_iter().chain(reviewers).filter_map(|m| (names.model)(m)));
            errors.extend(
                said.map(|why| WorkflowError { step: Some(at), message: format!("step {id}: {why}") }),
            );
        }
        errors
    }
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
