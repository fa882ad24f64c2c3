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
    /// Of one of ours, in words or as `provider/model`.
    pub model: &'a dyn Fn(&str) -> Option<String>,
    /// A tool, or a set of them.
    pub tool: &'a dyn Fn(&str) -> Option<String>,
}

impl Known<'_> {
    /// Takes every name: for where they are looked at later.
    pub fn anything() -> Self {
        let any = &|_: &str| -> Option<String> { None };
        Self { role: any, cli: any, skill: any, model: any, tool: any }
    }
}

/// What is wrong, and with which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its place in the list; `None`: more than one is concerned.
    pub step: Option<usize>,
    pub message: String,
}

impl Workflow {
    /// Looks at all of it, and finds everything at once: mistakes of its form, and names that are not known.
    ///
    /// # Errors
    /// With what is wrong; never empty.
    pub fn check(&self, known: &Known<'_>) -> Result<(), Vec<Wrong>> {
        let mut wrong: Vec<Wrong> = Vec::new();
        // Each step is known by a name of its own, and so is what it waits for: a circle can be looked for.
        let mut clear = true;
        let mut add = |step, message: String| wrong.push(Wrong { step, message });
        if self.name.chars().count() > NAME {
            add(None, format!("the name is longer than {NAME} characters"));
        }
        if self.steps.is_empty() {
            add(None, "it has no steps".into());
        }
        if self.steps.len() > task::MOST {
            add(None, format!("{} steps are too many: at most {}", self.steps.len(), task::MOST));
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
                clear = false;
                add(Some(at), format!("two steps have the id {id}: numbers {first} and {}", at + 1));
            }
            let name = task::name(at, step);
            if step.brief.goal.trim().is_empty() {
                add(Some(at), format!("step {name} has no goal"));
            }
            task::own(step).into_iter().for_each(|why| add(Some(at), format!("step {name}: {why}")));
            for unknown in task::strangers(step, &self.steps) {
                clear = false;
                let known: Vec<String> =
                    self.steps.iter().enumerate().map(|(n, s)| task::name(n, s)).collect();
                let known = known.join(", ");
                add(
                    Some(at),
                    format!("step {name} depends on {unknown}, which does not exist; existing: {known}"),
                );
            }
        }
        if clear && let Some(way) = task::waits_in_circle(&self.steps) {
            wrong.push(Wrong { step: None, message: format!("these steps depend on each other: {way}") });
        }
        wrong.extend(self.unknown(known));
        wrong.sort_by_key(|w| w.step);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Roles, skills, tools and models that there are not, programs that are missing.
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
            let said = said.chain(step.brief.tools.iter().filter_map(|t| (known.tool)(t)));
            // A program has models of its own.
            let own = step.brief.model.as_deref().filter(|_| step.brief.cli.is_none());
            let theirs = review.filter(|r| r.cli.is_none()).and_then(|r| r.model.as_deref());
            let said = said.chain(own.into_iter().chain(theirs).filter_map(|m| (known.model)(m)));
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
