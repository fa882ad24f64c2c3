//! Tests of the program wait for what shows that the program has come so far. Three ways of waiting fail on a busy machine.

/// Reason against a statement after another one that waits for nothing that is sure.
const BLIND: &str = "waits for a text that may stand elsewhere on the screen before it is typed; `type_in` and `say` wait for the \
                     field with the cursor";
const UNREAD: &str =
    "reads the screen directly after a key, before the program has drawn; `wait` for what the key brings";
const SLEEP: &str = "lets time pass on one thread; wait for the condition (`wait`, `poll`, `Term::wait`)";

/// The problems of a file of tests.
pub(crate) fn check(name: &str, text: &str, problems: &mut Vec<String>) {
    let mut before = "";
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let why = match argument(before, ".keys(") {
            _ if line.contains("thread::sleep(") => Some(SLEEP),
            // The rig of the engine's tests has its waits in their own runtime.
            _ if name.starts_with("tests/it/") && line.contains("time::sleep(") => Some(SLEEP),
            Some(typed) if argument(line, ".wait_text(") == Some(typed) => Some(BLIND),
            Some(_) if line.starts_with("let ") && line.ends_with(".screen();") => Some(UNREAD),
            _ => None,
        };
        problems.extend(why.map(|why| format!("{name}:{}: {why}", at + 1)));
        before = line;
    }
}

/// The argument of a statement that is one call of this method.
fn argument<'a>(line: &'a str, method: &str) -> Option<&'a str> {
    let (_, argument) = line.split_once(method)?;
    argument.strip_suffix(");")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_what_was_just_typed_and_a_look_without_a_wait_are_refused() {
        let found = |text: &str| {
            let mut problems = Vec::new();
            check("tests/it/x.rs", text, &mut problems);
            problems.len()
        };
        assert_eq!(found("term.keys(\"go\");\n    term.wait_text(\"go\");\n"), 1);
        assert_eq!(found("second.keys(&name);\nsecond.wait_text(&name);\n"), 1);
        assert_eq!(found("term.keys(\"p\");\nlet screen = term.screen();\n"), 1);
        assert_eq!(found("std::thread::sleep(MOMENT);\n"), 1);
        assert_eq!(found("tokio::time::sleep(MOMENT).await;\n"), 1);
        assert_eq!(found("term.keys(\"f\");\nterm.wait_text(\"Find in\");\n"), 0);
        assert_eq!(found("term.wait_text(\"go\");\nterm.wait_text(\"go\");\n"), 0);
    }
}
