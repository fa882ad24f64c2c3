//! Texts of a question of an external program that may contain a command, where no field holds one. They are checked as
//! commands.

use serde_json::Value;
use tiller_external::ToolUse;

/// Most texts of one question, and most bytes of each.
const TEXTS: usize = 64;
const LONGEST: usize = 16 << 10;

/// Every text of the question that may be a command, without duplicates.
pub(crate) fn of(tool: &ToolUse, shown: &str) -> Vec<String> {
    let mut all = Vec::new();
    for text in [shown, &tool.target, &tool.name] {
        add(&mut all, text);
    }
    arguments(&mut all, &tool.args);
    all
}

/// The strings of its arguments, and lists of words as one line.
fn arguments(all: &mut Vec<String>, value: &Value) {
    match value {
        Value::String(text) => add(all, text),
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            add(all, &words.join(" "));
            list.iter().for_each(|v| arguments(all, v));
        }
        Value::Object(fields) => fields.values().for_each(|v| arguments(all, v)),
        _ => {}
    }
}

/// Adds a text, its parts in backticks, and its lines without a prompt sign, a verb before them ("Run ...") and remarks
/// in brackets behind them.
fn add(all: &mut Vec<String>, text: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut push = |one: &str| {
        let one = one.trim();
        if !one.is_empty() && all.len() < TEXTS && !all.iter().any(|t| t == one) {
            all.push(one.to_owned());
        }
    };
    push(text);
    text.split('`').skip(1).step_by(2).for_each(&mut push);
    for line in text.lines() {
        let line = line.trim();
        let bare = line.strip_prefix(['$', '#', '%', '>']).unwrap_or(line).trim_start();
        let plain = bare.split([':', ' ']).next().filter(|w| {
            ["run", "running", "execute", "executing", "shell", "bash", "command", "exec"]
                .contains(&w.to_lowercase().as_str())
        });
        let bare = plain.map_or(bare, |word| bare[word.len()..].trim_start_matches([':', ' ']));
        push(bare);
        for bracket in [" (", " ["] {
            if let Some((front, _)) = bare.split_once(bracket) {
                push(front);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_in_titles_and_arguments() {
        for (shown, args) in [
            ("rm -rf ~", Value::Null),
            ("Run `rm -rf ~`", Value::Null),
            ("Run: rm -rf ~", Value::Null),
            ("$ rm -rf ~", Value::Null),
            ("rm -rf ~ [current working directory /w] (clean up)", Value::Null),
            ("Permission\n  rm -rf ~\nYes / No", Value::Null),
            ("it asks", serde_json::json!({"script": "rm -rf ~"})),
            ("it asks", serde_json::json!({"deep": [{"argv": ["rm", "-rf", "~"]}]})),
        ] {
            let tool = ToolUse { args: args.clone(), ..ToolUse::default() };
            let all = of(&tool, shown);
            assert!(all.iter().any(|t| t == "rm -rf ~"), "{shown} {args}: {all:?}");
        }
    }

    #[test]
    fn much_of_it_is_bounded() {
        let args = Value::Array((0..10_000).map(|n| Value::String(format!("w{n}"))).collect());
        let all = of(&ToolUse { args, ..ToolUse::default() }, &"é".repeat(1 << 20));
        assert!(all.len() <= TEXTS && all.iter().all(|t| t.len() <= LONGEST));
    }
}
