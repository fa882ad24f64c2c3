//! Tasks of a call and steps of a workflow, and the checks of their input.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::port::{Brief, is_false};

mod answer_schema;
pub(crate) mod workflow;

pub use workflow::{NameCheck, StepPlace, Workflow, WorkflowError};

/// Most tasks of one call, and most steps of a workflow.
pub const MOST: usize = 50;
/// Most retries of one task.
const RETRIES: u32 = 5;
/// Most rounds of a review.
const ROUNDS: u32 = 10;

// One task of a call. (No doc comment: it would be sent to every model.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Task {
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(flatten)]
    #[schemars(flatten)]
    pub brief: Brief,
    /// Ids of tasks whose results it gets
    #[schemars(skip)]
    #[serde(alias = "needs", skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// A critic judges the result
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_false")]
    pub verify: bool,
    #[schemars(skip)]
    pub retries: u32,
    /// JSON schema of the answer
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// A review of the result: a reviewer accepts it or sends it back to the agent that did the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// The role of the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The external program that reviews, instead of a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What to look for; empty: the whole work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// Most rounds, from 1 to 10.
    #[serde(default = "rounds")]
    pub rounds: u32,
}

fn rounds() -> u32 {
    2
}

impl Task {
    /// The id, or the number from 1. `index`: the place in the list, from 0.
    pub fn name(&self, index: usize) -> String {
        self.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| (index + 1).to_string())
    }
}

/// Checks the tasks of a call: each has a goal and a unique name, dependencies exist and have no cycle.
///
/// # Errors
/// A sentence for the model that names the first faulty task.
pub fn check(tasks: &[Task]) -> Result<(), String> {
    if tasks.is_empty() {
        return Err("there is no task".into());
    }
    if tasks.len() > MOST {
        return Err(format!("{} tasks are too many for one call: at most {MOST}", tasks.len()));
    }
    let mut names: HashMap<String, usize> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if task.brief.goal.trim().is_empty() {
            return Err(format!("task {} has no goal", at + 1));
        }
        if let Some((_, why)) = errors_of(task).first() {
            return Err(format!("task {}: {why}", at + 1));
        }
        if names.insert(task.name(at), at).is_some() {
            return Err(format!("two tasks have the id {}", task.name(at)));
        }
    }
    for (at, task) in tasks.iter().enumerate() {
        if let Some(unknown) = task.depends_on.iter().find(|d| !names.contains_key(*d)) {
            let mut known: Vec<_> = names.keys().cloned().collect();
            known.sort();
            let (me, known) = (task.name(at), known.join(", "));
            return Err(format!("task {me} depends on {unknown}, which does not exist; existing: {known}"));
        }
    }
    cycle(tasks, &names).map_or(Ok(()), |way| Err(format!("these tasks depend on each other: {way}")))
}

/// The key of an error, and the error.
type KeyError = (&'static [&'static str], String);

/// Errors of one task, its dependencies aside: retries, review, schema.
pub(super) fn errors_of(task: &Task) -> Vec<KeyError> {
    let mut errors: Vec<KeyError> = Vec::new();
    if task.retries > RETRIES {
        errors.push((&["retries"], format!("at most {RETRIES} retries")));
    }
    if let Some(rounds) = task.review.as_ref().map(|r| r.rounds).filter(|r| !(1..=ROUNDS).contains(r)) {
        let message = format!("review.rounds is {rounds}; it must be from 1 to {ROUNDS}");
        errors.push((&["review.rounds"], message));
    }
    let schema = task.schema.as_ref().and_then(|schema| answer_schema::check(schema).err());
    errors.extend(schema.map(|why| (&["schema"] as &[_], why)));
    errors
}

/// Names that a task depends on and that no task has.
pub(super) fn unknown_dependencies<'t>(task: &'t Task, tasks: &[Task]) -> Vec<&'t String> {
    let known = |d: &&String| tasks.iter().enumerate().any(|(at, t)| t.name(at) == **d);
    task.depends_on.iter().filter(|d| !known(d)).collect()
}

/// Each cycle of dependencies, as `a -> b -> a`, with the index of its first task. Dependencies that do not exist are left out.
pub(super) fn dependency_cycles(tasks: &[Task]) -> Vec<(usize, String)> {
    let names: HashMap<String, usize> = tasks.iter().enumerate().map(|(at, t)| (t.name(at), at)).collect();
    let mut tasks = tasks.to_vec();
    // Names that do not exist are errors of their own.
    tasks.iter_mut().for_each(|t| t.depends_on.retain(|d| names.contains_key(d)));
    let mut found = Vec::new();
    while found.len() < MOST
        && let Some(way) = circle(&tasks, &names)
    {
        let words: Vec<String> = way.iter().chain(way.first()).map(|at| tasks[*at].name(*at)).collect();
        found.extend(way.first().map(|at| (*at, words.join(" -> "))));
        // What is left without the dependency that closes it may have another one.
        if let (Some(first), Some(last)) = (way.first(), way.last()) {
            tasks[*last].depends_on.retain(|d| names[d] != *first);
        }
    }
    found
}

/// The names of tasks that depend on each other. `names`: the index of each name.
fn cycle(tasks: &[Task], names: &HashMap<String, usize>) -> Option<String> {
    let way = circle(tasks, names)?;
    let words: Vec<String> = way.iter().chain(way.first()).map(|at| tasks[*at].name(*at)).collect();
    Some(words.join(" -> "))
}

/// Tasks that depend on each other, each on the next one and the last on the first; `None`: there are none.
fn circle(tasks: &[Task], names: &HashMap<String, usize>) -> Option<Vec<usize>> {
    // Tasks without remaining dependencies are removed until nothing changes; what remains contains a cycle.
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    loop {
        let free = |at: &usize| tasks[*at].depends_on.iter().all(|d| !left.contains(&names[d]));
        let before = left.len();
        let next: Vec<usize> = left.iter().copied().filter(|at| !free(at)).collect();
        if next.is_empty() {
            return None;
        }
        if next.len() == before {
            left = next;
            break;
        }
        left = next;
    }
    let (mut way, mut at) = (Vec::new(), *left.first()?);
    while !way.contains(&at) {
        way.push(at);
        at = tasks[at].depends_on.iter().map(|d| names[d]).find(|d| left.contains(d))?;
    }
    let start = way.iter().position(|w| *w == at)?;
    Some(way.split_off(start))
}
