//! A workflow: named steps that wait for each other, checked as a whole before the first one starts.

use serde::{Deserialize, Serialize};

use super::asker::Asker;
use super::port::Report;
use super::run;
use super::task::{self, Task};

/// Characters of a name.
const NAME: usize = 60;

/// What is to be done, step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workflow {
    pub name: String,
    pub description: String,
    /// Each with an id of its own.
    pub steps: Vec<Task>,
    /// Where each step stands in its file, `ship.toml:3:1`; empty: it comes from no file.
    #[serde(skip)]
    pub places: Vec<String>,
}

/// What is known here of what steps name. Each gives what is wrong with a name, in a sentence's part.
pub struct Known<'a> {
    pub role: &'a dyn Fn(&str) -> Option<String>,
    pub cli: &'a dyn Fn(&str) -> Option<String>,
    pub skill: &'a dyn Fn(&str) -> Option<String>,
}

/// What is wrong, and with which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its place in the list; `None`: more than one is concerned.
    pub step: Option<usize>,
    pub message: String,
}

impl Workflow {
    /// Looks at all of it. The first mistake of its form (everything else would follow from that), or all names that
    /// are not known.
    ///
    /// # Errors
    /// With what is wrong; never empty.
    pub fn check(&self, known: &Known<'_>) -> Result<(), Vec<Wrong>> {
        let one = |step, message: String| Err(vec![Wrong { step, message }]);
        if self.name.chars().count() > NAME {
            return one(None, format!("the name is longer than {NAME} characters"));
        }
        if self.steps.is_empty() {
            return one(None, "it has no steps".into());
        }
        for (at, step) in self.steps.iter().enumerate() {
            let id = step.id.as_deref().unwrap_or_default();
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if id.is_empty() {
                return one(Some(at), format!("step {} has no id", at + 1));
            }
            if id.chars().count() > NAME || !id.chars().all(plain) {
                let message =
                    format!("step {}: an id is made of letters, digits, - _ . (at most {NAME})", at + 1);
                return one(Some(at), message);
            }
            if step.brief.goal.trim().is_empty() {
                return one(Some(at), format!("step {id} has no goal"));
            }
            if let Some(first) = self.steps[..at].iter().position(|s| s.id == step.id) {
                let first = first + 1;
                return one(Some(at), format!("two steps are called {id}: the {first}. and the {}.", at + 1));
            }
        }
        if let Err(message) = task::check(&self.steps) {
            // It names the task by its id, or by its number.
            return one(self.meant(&message), message.replace("these tasks", "these steps"));
        }
        let wrong = self.unknown(known);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The step that a sentence is about, when it is about one.
    fn meant(&self, message: &str) -> Option<usize> {
        let name = message.strip_prefix("task ")?.split([' ', ':']).next()?;
        let by_id = self.steps.iter().position(|s| s.id.as_deref() == Some(name));
        by_id.or_else(|| name.parse::<usize>().ok()?.checked_sub(1))
    }

    /// Roles and skills that there are not, programs that are missing.
    fn unknown(&self, known: &Known<'_>) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let id = step.id.as_deref().unwrap_or_default();
            let review = step.review.as_ref();
            let roles = [step.brief.agent.as_deref(), review.and_then(|r| r.by.as_deref())];
            let clis = [step.brief.cli.as_deref(), review.and_then(|r| r.cli.as_deref())];
            let said = roles.into_iter().flatten().filter_map(|r| (known.role)(r));
            let said = said.chain(clis.into_iter().flatten().filter_map(|c| (known.cli)(c)));
            let said = said.chain(step.brief.skills.iter().filter_map(|s| (known.skill)(s)));
            wrong.extend(said.map(|why| Wrong { step: Some(at), message: format!("step {id}: {why}") }));
        }
        wrong
    }

    /// Runs it. It was checked.
    pub async fn run(self, crew: &Asker) -> Vec<Report> {
        let named = |mut step: Task| {
            if step.brief.label.is_none() {
                step.brief.label.clone_from(&step.id);
            }
            step
        };
        run::all(self.steps.into_iter().map(named).collect(), crew).await
    }
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
