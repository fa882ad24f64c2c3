//! The words around a command's output: only what the model could not know otherwise.

use std::time::Duration;

use super::backend::CommandEnd;
use super::confined::blocked::{BlockedAction, blocked_words};
use super::hints;
use super::processes::launch::Compared;

/// What happened besides the output.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    pub how: CommandEnd,
    pub exit: Option<i32>,
    pub took: Duration,
    pub limit: Duration,
    /// The folder, when it changed.
    pub moved: Option<String>,
    /// A process that it left running.
    pub left: Option<String>,
    /// It waited for input when its time was over.
    pub waited: bool,
    pub stuck: usize,
    /// What was done because it took too much of the machine.
    pub excess: Option<String>,
    /// What else the model has to know.
    pub note: Option<String>,
    /// Protected files that were put back, or changed otherwise.
    pub restored: Compared,
    /// Connections that the sandbox refused meanwhile, each with its reason.
    pub refused: Vec<String>,
    /// What else the sandbox refused, where the command failed.
    pub blocked: Vec<BlockedAction>,
    /// It ran in the persistent shell, which is gone after all but a normal end.
    pub shell: bool,
}

/// Long enough to be worth a word.
const LONG: Duration = Duration::from_secs(5);

/// Adds the notes to the output.
pub(crate) fn word(mut output: String, facts: &CommandOutcome) -> String {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    let mut notes = Vec::new();
    match facts.how {
        CommandEnd::Done | CommandEnd::ShellEnded => match facts.exit {
            Some(0) if output.is_empty() => notes.push("(no output)".to_owned()),
            Some(0) | None => {}
            Some(code) => notes.push(format!("[exit {code}{}]", signal(code))),
        },
        CommandEnd::TimedOut => notes.push(format!(
            "[timed out after {} s and was terminated; raise timeout, or use background: true]",
            seconds(facts.limit)
        )),
        CommandEnd::Stopped => notes.push("[stopped by the user]".into()),
    }
    if let Some(excess) = &facts.excess {
        notes.push(format!("[{excess}]"));
    }
    if let Some(note) = &facts.note {
        notes.push(format!("[{note}]"));
    }
    notes.extend(sandbox_lines(facts, &output));
    if facts.took >= LONG && facts.how != CommandEnd::TimedOut {
        notes.push(crate::output::duration_note(&seconds(facts.took)));
    }
    if facts.waited {
        notes.push(
            "[It was waiting for input when it timed out: commands have empty input and no terminal.]".into(),
        );
    } else if facts.exit != Some(0)
        && let Some(hint) = hints::asked(&output)
    {
        notes.push(format!("[{hint}]"));
    }
    if facts.shell && facts.how != CommandEnd::Done {
        notes.push(
            "[The shell ended with it. The next command gets a new one with the same folder and exported \
             variables; functions and other variables are lost.]"
                .into(),
        );
    }
    if let Some(moved) = &facts.moved {
        notes.push(format!("[folder is now {moved}]"));
    }
    if let Some(left) = &facts.left {
        notes.push(format!(
            "[a process that it started is still running and keeps the output open: process {left}]"
        ));
    }
    if facts.stuck > 0 {
        notes.push(format!("[{} of its processes could not be ended]", facts.stuck));
    }
    for note in notes {
        output.push_str(&note);
        output.push('\n');
    }
    output.truncate(output.trim_end().len());
    output
}

/// The lines for model and screen about protected files and what the sandbox refused. `output`: of the command.
pub(crate) fn sandbox_lines(facts: &CommandOutcome, output: &str) -> Vec<String> {
    let failed = facts.exit != Some(0);
    let rights = hints::no_rights(output).filter(|_| failed).map(|words| format!("[{words}]"));
    let compared = facts.restored.clone().lines().map(|line| format!("[{line}]"));
    compared.chain(refused(&facts.refused)).chain(blocked(&facts.blocked)).chain(rights).collect()
}

/// A line about what the sandbox refused; `None`: nothing.
fn blocked(actions: &[BlockedAction]) -> Option<String> {
    (!actions.is_empty()).then(|| format!("[The sandbox blocked {}]", blocked_words(actions)))
}

/// Refused connections that are named in full.
const NAMED: usize = 3;

/// A line for model and screen about refused connections; `None`: there were none.
fn refused(all: &[String]) -> Option<String> {
    let named = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match all.len() {
        0 => None,
        n if n > NAMED => {
            Some(format!("[The sandbox refused connections to {named}; and {} more]", n - NAMED))
        }
        _ => Some(format!("[The sandbox refused connections to {named}]")),
    }
}

fn signal(code: i32) -> &'static str {
    match code {
        130 => ", interrupted",
        134 => ", aborted",
        137 => ", killed",
        139 => ", segmentation fault",
        143 => ", terminated",
        126 => ", not executable",
        127 => ", not found",
        _ => "",
    }
}

fn seconds(time: Duration) -> String {
    let s = time.as_secs_f64();
    if s < 10.0 { format!("{s:.1}") } else { format!("{s:.0}") }
}
