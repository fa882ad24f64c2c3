//! Tasks that only answer, plan or ask.

use serde_json::json;
use tiller_protocol::Part;

use super::change::said;
use super::{fix, shorten};
use crate::codec::request::{ChatMessage, Request};
use crate::demo::Step;
use crate::demo::turn::{Done, Turn};

/// What the planner can do, with the keywords that it understands.
const CAN: &str = "\
I am the built-in demo: a small planner with a few rules, not a language model. I understand these words:\n\
\n\
- `fix the failing test`: run the tests, look for the cause, fix it if it is a wrong operator\n\
- `add a max operation` (in the sample), or `add notes.md with TEXT`\n\
- `explain` the project, or `explain FILE`\n\
- `search TEXT`, `recall TEXT` (in earlier sessions), `rename A to B`, `replace A with B in FILE`, `edit FILE`\n\
- `remember: TEXT`, `what do you remember`, `make a mistake` (twice: it is learned from), `use the skill code-review`\n\
- `checkpoint NAME`, `restore NAME` (the files as they were then)\n\
- `run COMMAND`, `start COMMAND` (in the background)\n\
- `plan: one, two, three` and `ask me something`\n\
- `delegate: explain the project; run the tests` to other agents, `spawn TASK` in the background\n\
- `workflow: explain the project; run the tests; plan: one, two` as steps; the last one runs after the others\n\
- a web address: I fetch it\n\
\n\
For anything else, choose a real model.";

pub(super) fn help() -> Step {
    Step::say(CAN)
}

pub(super) fn unknown(task: &str) -> Step {
    let task = shorten(task, 60);
    Step::say(format!("The demo does not understand \"{task}\".\n\n{CAN}"))
}

pub(super) fn prevented(call: &Done<'_>) -> Step {
    Step::say(format!(
        "`{}` was not done: {}. Stopping here; say what to do instead.",
        call.name,
        shorten(&call.text, 160).trim_end_matches('.')
    ))
}

pub(super) fn plan(turn: &Turn<'_>, items: &[String]) -> Step {
    let defaults = ["Look around", "Make a change", "Check it"];
    let items: Vec<&str> =
        if items.is_empty() { defaults.to_vec() } else { items.iter().map(String::as_str).collect() };
    if turn.times("todo_write") == 0 {
        return Step::call("Adding it to the todo list.", "todo_write", fix::plan(&items, 0));
    }
    let Some(list) = turn.last("todo_read") else { return Step::call("", "todo_read", json!({})) };
    Step::say(format!(
        "The todo list:\n\n{}\nYou can tick off and reorder items in its panel.",
        list.text.lines().map(|l| format!("    {}\n", shorten(l, 100))).collect::<String>()
    ))
}

pub(super) fn ask(turn: &Turn<'_>) -> Step {
    match turn.last("clarify") {
        None => Step::call(
            "",
            "clarify",
            json!({
                "question": "What should I do next?",
                "choices": ["Fix the failing test", "Explain the project", "Nothing for now"],
                "allow_freetext": true,
            }),
        ),
        Some(answer) if answer.ok => {
            let answer = said(&answer.text).unwrap_or_default();
            Step::say(format!("You chose \"{}\". Send it as a message to begin.", shorten(&answer, 80)))
        }
        Some(_) => Step::say("You gave no answer; that is fine."),
    }
}

/// Answers a request without tools, which the engine sends for a title or a summary.
pub(super) fn without_tools(request: &Request) -> Step {
    let said: Vec<&str> = request
        .messages
        .iter()
        .filter_map(|m| match m {
            ChatMessage::User { content } => content.iter().find_map(|p| match p {
                Part::Text { text } if !text.trim_start().starts_with('<') => Some(text.trim()),
                _ => None,
            }),
            _ => None,
        })
        .filter(|t| !t.is_empty())
        .collect();
    let asked = format!("{} {}", request.system, said.last().copied().unwrap_or_default()).to_lowercase();
    if asked.contains("summar") || asked.contains("compact") {
        let list: String = said.iter().map(|t| format!("- {}\n", shorten(t, 120))).collect();
        return Step::say(format!("What you asked so far:\n{list}"));
    }
    let words: Vec<&str> =
        said.first().copied().unwrap_or("Demo session").split_whitespace().take(6).collect();
    Step::say(shorten(&words.join(" "), 60))
}
