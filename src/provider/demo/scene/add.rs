//! Adds an operation to the sample project (in three files at once), or a file anywhere.

use serde_json::json;

use super::fix::{command, passed};
use super::{names, unnumbered};
use crate::demo::Step;
use crate::demo::intent;
use crate::demo::turn::Turn;

/// An operation that can be added: name, description, shell expression, a check and its result.
struct Operation {
    name: &'static str,
    what: &'static str,
    expression: &'static str,
    check: &'static str,
}

const OPERATIONS: &[Operation] = &[
    Operation { name: "mod", what: "the remainder", expression: "$(($1 % $2))", check: "check mod 9 4 1" },
    Operation {
        name: "max",
        what: "the larger one",
        expression: "$(($1 > $2 ? $1 : $2))",
        check: "check max 3 8 8",
    },
    Operation {
        name: "min",
        what: "the smaller one",
        expression: "$(($1 < $2 ? $1 : $2))",
        check: "check min 3 8 3",
    },
    Operation {
        name: "avg",
        what: "the mean, rounded towards zero",
        expression: "$((($1 + $2) / 2))",
        check: "check avg 4 8 6",
    },
];

/// Synonyms of the operations.
const ALIASES: &[(&str, &str)] = &[
    ("modulo", "mod"),
    ("remainder", "mod"),
    ("maximum", "max"),
    ("minimum", "min"),
    ("average", "avg"),
    ("mean", "avg"),
];

fn operation(what: &str) -> Option<&'static Operation> {
    let low = what.to_lowercase();
    let mut words = low.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| {
        let word = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
        OPERATIONS.iter().find(|o| o.name == word)
    })
}

pub(super) fn next(turn: &Turn<'_>, what: &str) -> Step {
    if let Some(path) = intent::file(what) {
        return file(turn, what, &path);
    }
    let Some(listing) = turn.last("list_dir") else {
        return Step::call("Let me look at the project.", "list_dir", json!({"path": "."}));
    };
    let here = names(&listing.text);
    let sample = here.contains(&"calc.sh") && here.contains(&"test.sh");
    let Some(op) = operation(what).filter(|_| sample) else {
        let text = if sample {
            "To the calculator I can add `mod`, `max`, `min` or `avg`: say for instance `add a max operation`. \
             Anywhere I can add a file: `add notes.md with TEXT`."
        } else {
            "I cannot write new code: I am a small planner, not a language model. I can add a file with text \
             that you give: `add notes.md with TEXT`."
        };
        return Step::say(text);
    };
    if turn.times("read_file") == 0 {
        let mut step = Step::default();
        for path in ["lib/ops.sh", "test.sh", "README.md"] {
            step = step.and("read_file", json!({"path": path}));
        }
        step.text = format!(
            "`{}` belongs in three places: the code, the checks and the README. Reading them.",
            op.name
        );
        return step;
    }
    if let Some(patch) = turn.last("patch") {
        let test = command(&listing.text).unwrap_or("sh test.sh");
        return match turn.last("terminal") {
            None if patch.ok => Step::call("Running the checks.", "terminal", json!({"command": test})),
            Some(run) if passed(run) => {
                Step::say(format!("Added `{}`: code, check and README. All checks pass.", op.name))
            }
            Some(run) if run.text.contains(&format!("ok    {} ", op.name)) => Step::say(format!(
                "Added `{}`, and its check passes. Another check fails; type `fix` to look at it.",
                op.name
            )),
            _ => Step::say("The checks fail with the change. Open the diff of this turn to revert it."),
        };
    }
    match patch(turn, op) {
        Ok(patch) => {
            Step::call("Now one change across three files, all or nothing.", "patch", json!({"patch": patch}))
        }
        Err(why) => Step::say(why),
    }
}

/// The change, based on the files that were read.
fn patch(turn: &Turn<'_>, op: &Operation) -> Result<String, String> {
    let find = |path: &str, start: &str| -> Result<String, String> {
        let page = turn.of("read_file").rfind(|d| d.arg("path") == path && d.ok);
        let text = page.map(|d| d.text.as_str()).unwrap_or_default();
        let line = unnumbered(text).filter(|l| l.starts_with(start)).last().map(str::to_owned);
        line.ok_or_else(|| format!("{path} is not as expected, so nothing was changed."))
    };
    if turn.of("read_file").any(|d| d.text.contains(&format!("op_{}()", op.name))) {
        return Err(format!("`{}` already exists.", op.name));
    }
    let code = find("lib/ops.sh", "op_")?;
    let check = find("test.sh", "check ")?;
    let line = find("README.md", "- `")?;
    let Operation { name, what, expression, check: new } = op;
    Ok(format!(
        "*** Begin Patch\n\
         *** Update File: lib/ops.sh\n@@\n {code}\n+op_{name}() {{ echo {expression}; }}\n\
         *** Update File: test.sh\n@@\n {check}\n+{new}\n\
         *** Update File: README.md\n@@\n {line}\n+- `{name} A B`: {what}\n\
         *** End Patch\n"
    ))
}

/// `FILE with|containing|saying TEXT`.
fn file(turn: &Turn<'_>, what: &str, path: &str) -> Step {
    if let Some(done) = turn.last("write_file") {
        return Step::say(format!("{} is written.", done.arg("path")));
    }
    let text = [" with ", " containing ", " saying ", ": "]
        .iter()
        .find_map(|link| what.split_once(link))
        .map_or("", |(_, text)| text.trim());
    let text = text.strip_prefix("the text ").unwrap_or(text).trim_matches(['"', '`']);
    if text.is_empty() {
        return Step::say(format!("What should {path} contain? Type: `add {path} with TEXT`."));
    }
    Step::call(
        format!("Writing {path}."),
        "write_file",
        json!({"path": path, "content": format!("{text}\n")}),
    )
}
