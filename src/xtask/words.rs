//! Words that once stood on the screen and were replaced: they must not come back. The words of a message are a matter
//! for its reader; this keeps only what was decided.

use std::path::Path;

use anyhow::Result;

/// What may not stand in a text, and what says it better.
const OLD: &[(&str, &str)] = &[
    ("wants to shell", "wants to run"),
    ("no rule can say exactly", "No rule can cover exactly this command"),
    ("this takes an answer", "Answer first, or press Esc to decide later"),
    ("none matches", "no rule matches"),
    ("Denied by the person", "The user denied this call"),
    ("Ask for something", "What should I do?"),
    (", but for denied", "except denied and protected actions"),
    ("\"again to quit", "Press Ctrl-C again to quit"),
    ("throw away", "delete"),
    ("thrown away", "deleted"),
    ("put away", "archive"),
    ("own words", "type an answer"),
    ("last hit", "previous hit"),
    ("Go another way", "Branch before ..."),
    ("until no answer is a no", "Auto-deny after N seconds"),
    ("a question is deaf", "Ignore keys for N ms after a question appears"),
    ("is to have another", "Rebind which action?"),
    ("Requests to the model at most", "Maximum model requests"),
    ("Dollars at most", "Maximum cost in US dollars"),
    ("Nobody is there to ask", "No terminal to ask on; pass --yes"),
    ("It lies in", "It is stored in"),
    ("holds at once", "takes effect immediately"),
    ("gives a step up", "abandons a step"),
];

/// The problems of one source file.
pub(crate) fn check(name: &str, code: &str, problems: &mut Vec<String>) {
    for (at, line) in code.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
        let Some(quote) = line.find('"') else { continue };
        for (old, new) in OLD.iter().filter(|(old, _)| line[quote..].contains(old)) {
            problems.push(format!("{name}:{}: says {old:?}; better: {new:?}", at + 1));
        }
    }
}

/// The problems of the README.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn readme(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    for (at, line) in std::fs::read_to_string(root.join("README.md"))?.lines().enumerate() {
        for (old, new) in OLD.iter().filter(|(old, _)| line.contains(old)) {
            problems.push(format!("README.md:{}: says {old:?}; better: {new:?}", at + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_words_are_found_in_texts_and_not_in_comments() {
        let code = "let a = \"fine\";\n// \"throw away\"\nlet b = \"you throw away it\";\n";
        let mut problems = Vec::new();
        check("x.rs", code, &mut problems);
        assert_eq!(problems, ["x.rs:3: says \"throw away\"; better: \"delete\""]);
    }
}
