//! Work that is delegated to other agents.

use serde_json::{Value, json};

use super::shorten;
use crate::demo::Step;
use crate::demo::turn::Turn;

/// Delegates each part to its own agent and reports the results. `steps`: as a workflow, whose last step waits for the
/// others.
pub(super) fn delegate(turn: &Turn<'_>, parts: &[String], steps: bool) -> Step {
    let Some(done) = turn.last("delegate_task") else {
        if parts.is_empty() {
            return Step::say(
                "What should other agents do? For example: delegate: explain the project; run the tests",
            );
        }
        if steps {
            let words =
                format!("Creating a workflow of {}; the last step waits for the others.", count(parts.len()));
            return Step::call(words, "delegate_task", json!({"workflow": flow(parts)}));
        }
        let tasks: Vec<Value> = parts.iter().map(|goal| json!({"goal": goal})).collect();
        let words = format!("Starting one agent for each of {}, in parallel.", count(parts.len()));
        return Step::call(words, "delegate_task", json!({"tasks": tasks}));
    };
    let json = done.text.split_once('\n').map_or("", |(_, json)| json);
    let reports: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    let word = |r: &Value, key: &str| r[key].as_str().unwrap_or_default().to_owned();
    let lines: Vec<String> = reports
        .iter()
        .map(|r| {
            let (summary, error) = (word(r, "summary"), word(r, "error"));
            let said = if summary.is_empty() { error } else { summary };
            format!(
                "- **{}** ({}, {}): {}",
                word(r, "agent"),
                word(r, "label"),
                word(r, "status"),
                shorten(&said, 120)
            )
        })
        .collect();
    Step::say(format!("All agents have ended:\n\n{}", lines.join("\n")))
}

/// Starts an agent in the background.
pub(super) fn spawn(turn: &Turn<'_>, goal: &str) -> Step {
    match turn.last("spawn_agent") {
        None => Step::call("An agent works on it in the background.", "spawn_agent", json!({"goal": goal})),
        Some(done) => Step::say(shorten(done.text.lines().next().unwrap_or_default(), 400)),
    }
}

/// Workflow steps with the numbers of their parts as ids.
fn flow(parts: &[String]) -> Vec<Value> {
    let id = |at: usize| format!("step{}", at + 1);
    let step = |(at, goal): (usize, &String)| {
        let last = at > 0 && at + 1 == parts.len();
        let needs: Vec<String> = (0..at).filter(|_| last).map(id).collect();
        json!({"id": id(at), "goal": goal, "needs": needs})
    };
    parts.iter().enumerate().map(step).collect()
}

fn count(n: usize) -> String {
    if n == 1 { "this".into() } else { format!("these {n} parts") }
}
