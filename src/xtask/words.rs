//! Replaced words that must not come back in any text that a person or a model reads.

use std::path::Path;

use anyhow::Result;

use crate::texts::{self, Text};

/// The replaced words and their replacements. A quote is the beginning or the end of a string.
const OLD: &[(&str, &str)] = &[
    ("wants to shell", "wants to run"),
    ("no rule can say exactly", "No rule can cover exactly this command"),
    ("this takes an answer", "Answer first, or press Esc to decide later"),
    ("none matches", "no permission rule matches"),
    ("Denied by the person", "The user denied this call"),
    ("Ask for something.", "What should I do?"),
    (", but for denied", "except denied and protected actions"),
    ("\"again to quit", "Press Ctrl-C again to quit"),
    ("own words", "type an answer"),
    ("last hit", "previous hit"),
    ("until no answer is a no", "Auto-deny after N seconds"),
    ("a question is deaf", "Ignore keys for N ms after a question appears"),
    ("is to have another", "Rebind which action?"),
    ("Requests to the model at most", "Maximum model requests"),
    ("Dollars at most", "Maximum cost in US dollars"),
    ("Nobody is there to ask", "No terminal to ask on; pass --yes"),
    ("It lies in", "It is stored in"),
    ("holds at once", "takes effect immediately"),
    ("gives a step up", "abandons a step"),
    ("the person", "the user"),
    ("last words", "last message"),
    ("goes on;", "continues;"),
    ("go on from", "continue from"),
    ("it is cut\"", "it is truncated"),
    ("what was written\"", "does not match its checksum"),
    ("stand on each other", "refer to each other"),
    ("hold what they hold", "are unaffected"),
    ("hand in a plan", "submit a plan"),
    ("mend it", "fix it"),
    ("mended", "fixed"),
    ("is deaf", "ignores keys"),
    ("standing yes", "without asking"),
    ("ctrl-r wider", "Ctrl-R widen scope"),
    ("file states", "snapshots"),
    ("permission profile", "permission mode"),
    ("every profile", "every mode"),
    ("any profile", "any mode"),
    ("the profile is", "the mode is"),
    ("unasked", "without asking"),
    ("inside of", "inside"),
    ("outside of", "outside"),
    ("somebody", "someone"),
];

/// The table of terms for contributors. Its last column lists words that are refused.
const TERMS: &str = include_str!("../../WORDS.md");

/// The refused words of [`TERMS`], in lower case, with the term that replaces them.
fn terms() -> &'static [(String, &'static str)] {
    static TABLE: std::sync::LazyLock<Vec<(String, &'static str)>> = std::sync::LazyLock::new(|| rows(TERMS));
    &TABLE
}

/// Reads a table of the form `| term | meaning | `refused`, `refused` |`.
fn rows(table: &'static str) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for line in table.lines() {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let (Some(term), Some(_), Some(refused)) = (cells.next(), cells.next(), cells.next()) else {
            continue;
        };
        found.extend(refused.split('`').skip(1).step_by(2).map(|old| (old.to_lowercase(), term)));
    }
    found
}

/// Extracts the texts of a file.
type Read = fn(&str) -> Vec<Text>;

/// Folders of texts other than Rust source, the suffix of their files, and how a file is read.
const FOLDERS: &[(&str, &str, Read)] = &[
    ("src/tool", "md", texts::paragraphs),
    ("src/skills", "md", texts::paragraphs),
    ("assets", "md", texts::paragraphs),
    ("assets", "toml", texts::values),
    ("skills", "md", texts::paragraphs),
    ("keymaps", "toml", texts::paragraphs),
];

/// The problems of one source file: its string literals, and the doc comments that are printed.
pub(crate) fn check(name: &str, code: &str, problems: &mut Vec<String>) {
    report(name, &texts::literals(code), problems);
    report(name, &texts::printed_docs(code), problems);
}

/// The problems of the README and of the texts in data files.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn data(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    report("README.md", &texts::paragraphs(&std::fs::read_to_string(root.join("README.md"))?), problems);
    for (folder, ending, read) in FOLDERS {
        for path in crate::tidy::files(&root.join(folder), ending)? {
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            report(&name, &read(&std::fs::read_to_string(&path)?), problems);
        }
    }
    Ok(())
}

fn report(name: &str, texts: &[Text], problems: &mut Vec<String>) {
    for (line, text) in texts {
        let text = text.to_lowercase();
        for (old, new) in OLD.iter().filter(|(old, _)| says(&text, &old.to_lowercase())) {
            problems.push(format!("{name}:{line}: says {old:?}; better: {new:?}"));
        }
        for (old, new) in terms().iter().filter(|(old, _)| says(&text, old)) {
            problems.push(format!("{name}:{line}: says {old:?}; the word is {new:?} (WORDS.md)"));
        }
    }
}

/// Whether a text contains the words as whole words.
fn says(text: &str, words: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(at, found)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
        let begins = letter(found.chars().next()) && letter(before);
        let ends = letter(found.chars().next_back()) && letter(after);
        !begins && !ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(code: &str) -> Vec<String> {
        let mut problems = Vec::new();
        check("x.rs", code, &mut problems);
        problems
    }

    #[test]
    fn old_words_are_found_in_texts_and_not_in_comments() {
        let code = "let a = \"fine\";\n// \"throw away\"\nlet b = \"you throw away it\";\n";
        assert_eq!(problems(code), ["x.rs:3: says \"throw away\"; the word is \"delete\" (WORDS.md)"]);
    }

    #[test]
    fn old_words_are_found_in_continued_lines_and_in_help() {
        let continued = "let a = \"what the \\\n    person decides\";\n";
        assert_eq!(problems(continued), ["x.rs:1: says \"the person\"; better: \"the user\""]);
        let help = "#[derive(Args)]\npub struct A {\n    /// Throw away the\n    /// session\n    pub all: bool,\n}\n";
        assert_eq!(problems(help), ["x.rs:3: says \"throw away\"; the word is \"delete\" (WORDS.md)"]);
        assert_eq!(problems("/// Not printed: throw away.\nfn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn the_table_of_terms_is_read_and_names_each_term_once() {
        let found = rows(
            "| Word | What it is | Not |\n| --- | --- | --- |\n| delete | remove | `throw away`, `Wipe` |\n",
        );
        assert_eq!(found, [("throw away".to_owned(), "delete"), ("wipe".to_owned(), "delete")]);
        assert!(terms().len() > 20, "{:?}", terms());
        let mut words: Vec<&str> = terms().iter().map(|(old, _)| old.as_str()).collect();
        words.sort_unstable();
        assert!(words.windows(2).all(|w| w[0] != w[1]), "{words:?}");
        let lines = TERMS.lines().filter(|l| l.starts_with("| ")).skip(2);
        let mut named: Vec<&str> = lines.filter_map(|l| l.split('|').nth(1)).map(str::trim).collect();
        let count = named.len();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), count);
    }

    #[test]
    fn words_are_whole_and_a_quote_is_the_end_of_a_string() {
        assert_eq!(problems("let a = \"recommended\";"), Vec::<String>::new());
        assert_eq!(problems("let a = \"it is cut off\";"), Vec::<String>::new());
        assert_eq!(problems("let a = \"it is cut\";").len(), 1);
    }

    #[test]
    fn old_words_are_found_in_data_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (folder, ending, _) in FOLDERS {
            put(&format!("{folder}/none.{ending}"), "");
        }
        put("README.md", "Fine.\n\nYou throw\naway it.\n");
        put("src/tool/files/write.md", "Throw away a file.\n");
        put("assets/demo/tour.toml", "# throw away\ntext = \"throw away\"\n");
        let mut problems = Vec::new();
        data(root.path(), &mut problems).unwrap();
        let said = |place: &str| format!("{place}: says \"throw away\"; the word is \"delete\" (WORDS.md)");
        let places = ["README.md:3", "src/tool/files/write.md:1", "assets/demo/tour.toml:2"];
        assert_eq!(problems, places.map(said));
    }
}
