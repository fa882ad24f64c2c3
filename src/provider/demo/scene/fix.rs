//! Runs the tests, finds what fails, and fixes it if the planner knows that kind of fault.

use serde_json::{Value, json};

use super::{names, shorten, unnumbered};
use crate::demo::Step;
use crate::demo::turn::{Done, Turn};

/// A file that identifies a kind of project → the command that runs its tests.
const TESTS: &[(&str, &str)] = &[
    ("test.sh", "sh test.sh"),
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
    ("package.json", "npm test"),
    ("pyproject.toml", "python3 -m pytest -q"),
    ("pytest.ini", "python3 -m pytest -q"),
    ("Makefile", "make test"),
    ("makefile", "make test"),
];

/// Words in a function name, and the operator that it should use.
const OPERATORS: &[(&[&str], char)] = &[
    (&["add", "plus", "sum"], '+'),
    (&["sub", "minus", "diff", "subtract"], '-'),
    (&["mul", "times", "multiply", "product"], '*'),
    (&["div", "divide", "quotient"], '/'),
];

/// The steps of the plan; the planner completes them one by one.
const PLAN: [&str; 4] = ["Run the tests", "Find the cause", "Fix it", "Run the tests again"];

/// The plan with the first `done` items completed.
pub(super) fn plan(items: &[&str], done: usize) -> Value {
    let todos: Vec<Value> = items
        .iter()
        .enumerate()
        .map(|(at, content)| {
            let status = match at {
                _ if at < done => "completed",
                _ if at == done => "in_progress",
                _ => "pending",
            };
            json!({"id": (at + 1).to_string(), "content": content, "status": status})
        })
        .collect();
    json!({"todos": todos, "merge": false})
}

/// The command that runs the tests of a project with these files.
pub(super) fn command(listing: &str) -> Option<&'static str> {
    let names = names(listing);
    TESTS.iter().find(|(file, _)| names.contains(file)).map(|(_, command)| *command)
}

/// Whether a command succeeded.
pub(super) fn passed(run: &Done<'_>) -> bool {
    run.ok && !run.text.contains("[exit ")
}

pub(super) fn next(turn: &Turn<'_>) -> Step {
    let Some(listing) = turn.last("list_dir") else {
        return Step::call("Looking for the tests first.", "list_dir", json!({"path": "."}))
            .thinking("The task mentions tests, so the kind of project comes first.");
    };
    let Some(test) = command(&listing.text) else {
        let text = "I found no tests that I know how to run here (I know test.sh, Cargo, Go, npm, pytest \
                    and make). Tell me the command: `run COMMAND`.";
        return Step::say(text);
    };
    let runs: Vec<&Done<'_>> = turn.of("terminal").collect();
    match runs[..] {
        [] => with_plan(
            turn,
            Step::call(
                format!("The command for the tests is `{test}`."),
                "terminal",
                json!({"command": test}),
            ),
            0,
        ),
        [first] if passed(first) => finish(turn, &PLAN[..1], format!("`{test}` passes: nothing to fix.")),
        [first] => cause(turn, first, test),
        [.., last] if passed(last) => finish(
            turn,
            &PLAN,
            format!("All tests pass now. {} The diff of this turn shows the change.", changed(turn)),
        ),
        [.., last] => Step::say(format!(
            "The tests still fail:\n\n    {}\n\nThe demo's few rules cannot fix that.",
            failures(&last.text).join("\n    ")
        )),
    }
}

/// The step, with an update of the plan.
fn with_plan(turn: &Turn<'_>, step: Step, done: usize) -> Step {
    if turn.has("todo_write") && turn.times("todo_write") <= done {
        step.and("todo_write", plan(&PLAN, done))
    } else {
        step
    }
}

/// Completes the plan, then ends with `text`.
fn finish(turn: &Turn<'_>, items: &[&str], text: String) -> Step {
    let ticked = turn.last("todo_write").is_some_and(|d| !d.args.to_string().contains("in_progress"));
    if turn.has("todo_write") && !ticked {
        return Step { calls: vec![("todo_write", plan(items, items.len()))], ..Step::default() };
    }
    Step::say(text)
}

/// Lines of test output that report a failure.
fn failures(output: &str) -> Vec<String> {
    let bad = |line: &&str| {
        let low = line.to_lowercase();
        (low.contains("fail") || low.contains("error") || low.contains("panicked"))
            && !low.contains(" 0 failed")
    };
    let mut found: Vec<String> = output.lines().filter(bad).take(5).map(|l| shorten(l.trim(), 120)).collect();
    if found.is_empty() {
        found.extend(output.lines().rev().take(3).map(|l| shorten(l.trim(), 120)));
        found.reverse();
    }
    found
}

/// The operation in the name that the first failure mentions.
fn suspect(output: &str) -> Option<&'static str> {
    let line = output.lines().find(|l| l.to_lowercase().contains("fail"))?.to_lowercase();
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).collect();
    OPERATORS.iter().flat_map(|(names, _)| names.iter()).find(|n| words.contains(n)).copied()
}

fn cause(turn: &Turn<'_>, run: &Done<'_>, test: &str) -> Step {
    let Some(word) = suspect(&run.text) else {
        let text = format!(
            "`{test}` fails:\n\n    {}\n\nI am a small planner with a few rules, not a language model: I can \
             fix a function that uses the wrong operator, and this is something else. A real model can \
             take it from here.",
            failures(&run.text).join("\n    ")
        );
        return Step::say(text);
    };
    let Some(hits) = turn.last("search") else {
        let step = Step::call(
            format!("A check fails: `{}`. Looking for the code behind `{word}`.", failures(&run.text)[0]),
            "search",
            json!({"pattern": format!(r"\b\w*{word}\w*\s*\(")}),
        );
        return with_plan(turn, step, 1).thinking(format!("The failing line names `{word}`."));
    };
    let Some(file) = hit_file(&hits.text) else {
        return Step::say(format!("No function has `{word}` in its name, so I cannot continue."));
    };
    let Some(page) = turn.last("read_file") else {
        return Step::call(format!("Reading {file}."), "read_file", json!({"path": file}));
    };
    if let Some(edit) = turn.last("edit_file") {
        if edit.ok {
            let step = Step::call("Running the tests again.", "terminal", json!({"command": test}));
            return with_plan(turn, step, 3);
        }
        return Step::say("The file could not be changed, so I stop here.");
    }
    match mend(&page.text) {
        Some((old, new)) => with_plan(
            turn,
            Step::call(
                format!("This line has the wrong operator:\n\n    {old}"),
                "edit_file",
                json!({"path": page.arg("path"), "old": old, "new": new}),
            ),
            2,
        )
        .thinking("The function is named after one operation and computes another."),
        None => Step::say(format!("{file} has no mistake that the demo knows how to fix.")),
    }
}

/// The first file in the results of a search.
fn hit_file(hits: &str) -> Option<String> {
    hits.lines().find_map(|line| {
        let word = line.split_whitespace().next()?;
        let path = word.split(':').next().unwrap_or(word);
        (path.contains('.') && !path.starts_with('[') && path.chars().any(char::is_alphabetic))
            .then(|| path.to_owned())
    })
}

/// A line whose function is named after one operation but uses the operator of another, and its correction.
fn mend(page: &str) -> Option<(String, String)> {
    for line in unnumbered(page) {
        let Some((head, body)) = line.split_once('(') else { continue };
        let name = head.rsplit([' ', '\t']).next().unwrap_or_default().to_lowercase();
        let parts: Vec<&str> = name.split('_').collect();
        let Some((_, right)) = OPERATORS.iter().find(|(names, _)| names.iter().any(|n| parts.contains(n)))
        else {
            continue;
        };
        let used = OPERATORS.iter().map(|(_, o)| *o).find(|o| body.contains(&format!(" {o} ")));
        if let Some(wrong) = used.filter(|o| o != right) {
            let new = format!("{head}({}", body.replacen(&format!(" {wrong} "), &format!(" {right} "), 1));
            return Some((line.to_owned(), new));
        }
    }
    None
}

fn changed(turn: &Turn<'_>) -> String {
    turn.last("edit_file")
        .map_or_else(String::new, |e| format!("I changed one operator in {}.", e.arg("path")))
}
