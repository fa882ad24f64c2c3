//! Workflows in plain mode: their state in lines, and the commands for them.

use tiller_protocol::command::Query;
use tiller_protocol::{AgentCommand, CommandBody, WorkflowFile, WorkflowView};

use super::Plain;

/// Shown in the list of commands.
pub(super) const HELP: &str = "workflow NAME starts one; without NAME: state of all; workflow pause w1, resume w1, stop w1, \
    retry w1 STEP, end w1 STEP";

/// Runs the command in the rest of the line.
pub(super) fn run(p: &mut Plain, text: &str) -> Result<(), String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = |id: &&str| (*id).to_owned();
    let command = match words.as_slice() {
        [] => {
            let all: Vec<String> = p.model.crew.workflows.iter().map(lines).collect();
            p.say(&if all.is_empty() { "No workflow was started.".to_owned() } else { all.join("\n") });
            p.send(CommandBody::Query(Query::Workflows));
            return Ok(());
        }
        ["pause", w] => AgentCommand::WorkflowPause { id: id(w), paused: true },
        ["resume", w] => AgentCommand::WorkflowResume { id: id(w) },
        ["stop", w] => AgentCommand::WorkflowCancel { id: id(w) },
        ["end", w, step] => AgentCommand::WorkflowCancelStep { id: id(w), step: id(step) },
        ["retry", w, step, note @ ..] => {
            let note = Some(note.join(" ")).filter(|n| !n.is_empty());
            AgentCommand::WorkflowRetry { id: id(w), step: id(step), note }
        }
        [name] => AgentCommand::Workflow { name: id(name) },
        _ => return Err("a workflow name is a single word".into()),
    };
    p.send(CommandBody::Agent(command));
    Ok(())
}

fn lines(flow: &WorkflowView) -> String {
    let state = if flow.paused { "is paused".to_owned() } else { flow.state.predicate() };
    let done = flow.done();
    let mut text = format!("Workflow {} {state}: {done} of {} steps done.", flow.called(), flow.steps.len());
    for step in &flow.steps {
        let needs = if step.needs.is_empty() {
            String::new()
        } else {
            format!(", needs {}", step.needs.join(" and "))
        };
        let said = if step.said.is_empty() { String::new() } else { format!(": {}", step.said) };
        text.push_str(&format!("\n  {} {}{needs}{said}", step.id, step.state.word()));
    }
    text
}

/// Those of files.
pub(super) fn files(files: &[WorkflowFile]) -> String {
    let line = |f: &WorkflowFile| match f.wrong.is_empty() {
        true => format!("\n  {}: {} steps. {}", f.name, f.steps.len(), f.description),
        false => format!("\n  {} has an error: {}", f.name, f.wrong),
    };
    if files.is_empty() {
        return "No workflow found: add NAME.toml or NAME.yaml to .tiller/workflows.".into();
    }
    format!("Available workflows:{}", files.iter().map(line).collect::<String>())
}
