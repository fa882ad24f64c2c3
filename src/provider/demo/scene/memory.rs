//! What outlasts a session: memory, learnings, skills.

use serde_json::json;

use super::fix::{passed, plan};
use super::shorten;
use crate::demo::Step;
use crate::demo::turn::Turn;

/// A command that fails, and what works instead in the sample project.
const MISTAKE: &str = "sh calc add 2 3";
const INSTEAD: &str = "sh calc.sh add 2 3";
/// Steps of a skill that become todos.
const STEPS: usize = 8;

/// Writes an entry of MEMORY.md, or of USER.md where it is about the user.
pub(super) fn remember(turn: &Turn<'_>, text: &str) -> Step {
    let Some(done) = turn.last("memory") else {
        let low = format!(" {} ", text.to_lowercase());
        let user = [" i ", " my ", " me ", " i'm "].iter().any(|word| low.contains(word));
        let file = if user { "user" } else { "memory" };
        return Step::call("", "memory", json!({"action": "append", "file": file, "text": text}));
    };
    let said = shorten(&done.text, 200);
    Step::say(if done.ok {
        format!(
            "It was {}. Every later session begins with it; `/memory` shows it.",
            said.trim_end_matches('.')
        )
    } else {
        format!("It was not kept: {said}")
    })
}

/// Shows what is remembered.
pub(super) fn remembered(turn: &Turn<'_>) -> Step {
    match turn.last("memory") {
        None => Step::call("", "memory", json!({"action": "read"})),
        Some(done) => Step::say(format!("This is remembered:\n\n{}", all_lines(&done.text))),
    }
}

/// All lines of a result, as a block of code.
fn all_lines(text: &str) -> String {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("    {line}\n")).collect()
}

/// Makes a mistake and corrects it, unless a learning of an earlier one names the correction.
pub(super) fn mistake(turn: &Turn<'_>) -> Step {
    let mut runs = turn.of("terminal");
    let Some(first) = runs.next() else {
        return Step::call("A command with a typing error:", "terminal", json!({"command": MISTAKE}));
    };
    let known = first.text.contains(INSTEAD);
    let Some(second) = runs.next() else {
        let text = if known {
            "The result came with a learning from the last time, which names what worked."
        } else {
            "There is no such file: its name ends in .sh."
        };
        return Step::call(text, "terminal", json!({"command": INSTEAD}));
    };
    Step::say(if !passed(second) {
        "Both failed: this works in the sample project of `tiller demo`.".to_owned()
    } else if known {
        format!("`{MISTAKE}` failed as before, its learning said what to do, and `{INSTEAD}` worked.")
    } else {
        format!(
            "`{MISTAKE}` failed, then `{INSTEAD}` worked. Tiller proposes a learning from both; `/learnings` shows it. \
             Accept it, and send this again: the learning comes with the failure."
        )
    })
}

/// Loads a skill, unless it came with the message, and makes a todo list of its steps.
pub(super) fn skill(turn: &Turn<'_>, name: &str) -> Step {
    let came =
        turn.loaded.as_ref().filter(|(loaded, _)| loaded == name).map(|(_, text)| (text.as_str(), true));
    let view = turn.last("skill_view").map(|view| (view.text.as_str(), view.ok));
    let Some((text, ok)) = came.or(view) else {
        return Step::call(format!("Loading the skill `{name}`."), "skill_view", json!({"name": name}));
    };
    let steps = steps_of(text);
    if !ok {
        return Step::say(format!("The skill `{name}` cannot be used: {}", shorten(text, 160)));
    }
    if steps.is_empty() {
        return Step::say(format!(
            "The skill `{name}` is in the conversation. It has no parts for a todo list."
        ));
    }
    if turn.times("todo_write") == 0 {
        let text = format!("It has {} parts. They become the todo list.", steps.len());
        return Step::call(text, "todo_write", plan(&steps, 0));
    }
    Step::say(format!(
        "The skill `{name}` is in the conversation, and its parts are in the todo list. A real model would follow them now; \
         the demo stops here."
    ))
}

/// The steps of a skill: its headings with numbers, or all headings where none has a number. Pitfalls and checks are no steps.
fn steps_of(text: &str) -> Vec<&str> {
    let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let numbered = |head: &str| head.starts_with(|c: char| c.is_ascii_digit());
    let any = heads.iter().any(|head| numbered(head));
    let steps = heads.into_iter().filter(|head| !any || numbered(head));
    steps
        .map(|head| head.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' '))
        .take(STEPS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_headings_of_a_skill_are_its_steps() {
        let text = "# Review\n\n## 1. Look\n- a\n## 2. Prove it\n### 2.1 More\n## Pitfalls\n## Done when\n";
        assert_eq!(steps_of(text), ["Look", "Prove it"]);
        assert_eq!(steps_of("## Look\n## Prove it\n"), ["Look", "Prove it"]);
        assert_eq!(steps_of("No headings.\n"), [] as [&str; 0]);
    }

    /// A summary would leave out entries that the prompt has.
    #[test]
    fn what_is_remembered_is_listed_whole() {
        let entry = |n: usize| format!("- 2026-11-18: entry {n} {}\n", "word ".repeat(40).trim());
        let result: String = (0..30).map(entry).collect();
        let said = all_lines(&format!("MEMORY.md:\n{result}\nUSER.md:\n- last\n"));
        assert_eq!(said.lines().count(), 33);
        assert!((0..30).all(|n| said.contains(entry(n).trim_end())) && said.ends_with("    - last\n"));
    }
}
