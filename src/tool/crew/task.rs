//! One task of a call, or step of a workflow, and what is wrong among several.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::port::{Brief, is_false};
use super::shape;

/// Tasks of one call.
pub(super) const MOST: usize = 50;
/// Tries of one task besides the first.
const RETRIES: u32 = 5;
/// Times that a result is looked at.
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
    /// Take an earlier result of the same task
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_false")]
    pub reuse: bool,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// Who looks at the result, and sends it back to who made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// A role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Or an external program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What to look for, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// Times at most that it is looked at.
    #[serde(default = "rounds")]
    pub rounds: u32,
}

fn rounds() -> u32 {
    2
}

/// Each task's name: its id, or its number from 1.
pub(super) fn name(at: usize, task: &Task) -> String {
    task.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| (at + 1).to_string())
}

/// Names are unique and known, nothing waits for itself, and there is something to do.
///
/// # Errors
/// In a sentence for the model, which names the task.
pub(super) fn check(tasks: &[Task]) -> Result<(), String> {
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
        if let Some(why) = own(task).first() {
            return Err(format!("task {}: {why}", at + 1));
        }
        if names.insert(name(at, task), at).is_some() {
            return Err(format!("two tasks have the id {}", name(at, task)));
        }
    }
    for (at, task) in tasks.iter().enumerate() {
        if let Some(unknown) = task.depends_on.iter().find(|d| !names.contains_key(*d)) {
            let mut known: Vec<_> = names.keys().cloned().collect();
            known.sort();
            let (me, known) = (name(at, task), known.join(", "));
            return Err(format!("task {me} depends on {unknown}, which does not exist; existing: {known}"));
        }
    }
    circle(tasks, &names).map_or(Ok(()), |way| Err(format!("these tasks depend on each other: {way}")))
}

/// What is wrong with a task by itself: its retries, its review, its schema.
pub(super) fn own(task: &Task) -> Vec<String> {
    let mut wrong = Vec::new();
    if task.retries > RETRIES {
        wrong.push(format!("at most {RETRIES} retries"));
    }
    if let Some(rounds) = task.review.as_ref().map(|r| r.rounds).filter(|r| !(1..=ROUNDS).contains(r)) {
        wrong.push(format!("review.rounds is {rounds}; it must be from 1 to {ROUNDS}"));
    }
    wrong.extend(task.schema.as_ref().and_then(|schema| shape::checked(schema).err()));
    wrong
}

/// What a task depends on and that is not there.
pub(super) fn strangers<'t>(task: &'t Task, tasks: &[Task]) -> Vec<&'t String> {
    let known = |d: &&String| tasks.iter().enumerate().any(|(at, t)| name(at, t) == **d);
    task.depends_on.iter().filter(|d| !known(d)).collect()
}

/// A circle among tasks whose names are unique and known, as `a -> b -> a`.
pub(super) fn waits_in_circle(tasks: &[Task]) -> Option<String> {
    let names: HashMap<String, usize> = tasks.iter().enumerate().map(|(at, t)| (name(at, t), at)).collect();
    circle(tasks, &names)
}

/// A circle of tasks, if there is one, as `a -> b -> a`.
fn circle(tasks: &[Task], names: &HashMap<String, usize>) -> Option<String> {
    // Tasks whose predecessors are all out of the way go out of the way; what is left goes round.
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
    let names: Vec<String> = way[start..].iter().chain([&at]).map(|w| name(*w, &tasks[*w])).collect();
    Some(names.join(" -> "))
}
